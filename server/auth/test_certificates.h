#ifndef LTX_SERVER_AUTH_TEST_CERTIFICATES_H_
#define LTX_SERVER_AUTH_TEST_CERTIFICATES_H_

#include <string>

namespace ltx::testing {

/// Certificates made on the spot, good for a day, as PEM text.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

/// A certificate for `common_name` and, as alternative names, localhost and 127.0.0.1. Signed by
/// `issuer`, or by itself, as an authority, if that is null.
TestCertificate MakeCertificate(const std::string& common_name, const TestCertificate* issuer);

}  // namespace ltx::testing

#endif  // LTX_SERVER_AUTH_TEST_CERTIFICATES_H_
