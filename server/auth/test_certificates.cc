#include "server/auth/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <random>

namespace ltx::testing {
namespace {

struct OpenSslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Ptr = std::unique_ptr<T, OpenSslFree>;

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, size);
}

Ptr<BIO> Reader(const std::string& pem) {
  return Ptr<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

void AddExtension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Ptr<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, id, value));
  X509_add_ext(certificate, extension.get(), -1);
}

}  // namespace

TestCertificate MakeCertificate(const std::string& common_name, const TestCertificate* issuer) {
  const Ptr<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Ptr<X509> certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()),
                   static_cast<long>(std::random_device()() >> 1));
  constexpr long kDay = 24 * 3600;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);

  Ptr<X509> signer;
  Ptr<EVP_PKEY> signing_key;
  if (issuer != nullptr) {
    signer.reset(PEM_read_bio_X509(Reader(issuer->certificate).get(), nullptr, nullptr, nullptr));
    signing_key.reset(
        PEM_read_bio_PrivateKey(Reader(issuer->key).get(), nullptr, nullptr, nullptr));
  }
  X509* const by = issuer != nullptr ? signer.get() : certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(by));
  AddExtension(certificate.get(), by, NID_basic_constraints,
               issuer != nullptr ? "critical,CA:FALSE" : "critical,CA:TRUE");
  AddExtension(certificate.get(), by, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_sign(certificate.get(), issuer != nullptr ? signing_key.get() : key.get(), EVP_sha256());

  const Ptr<BIO> certificate_pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_pem.get(), certificate.get());
  const Ptr<BIO> key_pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {Text(certificate_pem.get()), Text(key_pem.get())};
}

}  // namespace ltx::testing
