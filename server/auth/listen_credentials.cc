#include "server/auth/listen_credentials.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

struct OpenSslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

absl::StatusOr<std::string> ReadFile(absl::string_view key, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat(key, ": cannot read ", path));
  return content.str();
}

using CertificatePtr = std::unique_ptr<X509, OpenSslFree>;

absl::StatusOr<CertificatePtr> FirstCertificate(absl::string_view key, const std::string& path,
                                                const std::string& pem) {
  const std::unique_ptr<BIO, OpenSslFree> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", path, " holds no certificate in PEM form"));
  }
  return certificate;
}

/// gRPC would find out at the first connection, and tell nobody but the log.
absl::Status CheckPair(const TlsFiles& files, const std::string& certificate_pem,
                       const std::string& key_pem) {
  LTX_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                       FirstCertificate("tls_cert", files.certificate, certificate_pem));
  const std::unique_ptr<BIO, OpenSslFree> bio(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  // An empty password, so that an encrypted key is an error and not a prompt on the terminal.
  char no_password[] = "";
  const std::unique_ptr<EVP_PKEY, OpenSslFree> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password));
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tls_key: ", files.key, " holds no private key in PEM form without a password"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tls_key: ", files.key, " does not belong to the certificate in ", files.certificate));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("tls_cert and tls_key belong together: give both or none");
  }
  if (files.certificate.empty()) {
    if (!files.client_ca.empty()) {
      return absl::InvalidArgumentError("tls_client_ca needs tls_cert and tls_key");
    }
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions options(
      files.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                              : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  LTX_ASSIGN_OR_RETURN(pair.cert_chain, ReadFile("tls_cert", files.certificate));
  LTX_ASSIGN_OR_RETURN(pair.private_key, ReadFile("tls_key", files.key));
  LTX_RETURN_IF_ERROR(CheckPair(files, pair.cert_chain, pair.private_key));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  if (!files.client_ca.empty()) {
    LTX_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile("tls_client_ca", files.client_ca));
    LTX_RETURN_IF_ERROR(
        FirstCertificate("tls_client_ca", files.client_ca, options.pem_root_certs).status());
  }
  return grpc::SslServerCredentials(options);
}

bool IsLoopback(absl::string_view listen) {
  const absl::string_view host = listen.substr(0, listen.rfind(':'));
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

}  // namespace ltx::server
