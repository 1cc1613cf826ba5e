// Tells ThreadSanitizer that a connection of OpenSSL is freed after its last use. OpenSSL, built
// without it, copies and frees in its sight; gRPC frees a connection on the thread that drops the
// last reference to it, which it counts by an atomic number out of sight. Uses at a time are not
// ordered here: a connection and its BIO need locks for those.

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sanitizer/tsan_interface.h>

#include "tests/sanitizers/next_function.h"

namespace {

using ltx::testing::NextFunction;

NextFunction<int(SSL*)> next_ssl_do_handshake("SSL_do_handshake");
NextFunction<int(SSL*, void*, int)> next_ssl_read("SSL_read");
NextFunction<int(SSL*, const void*, int)> next_ssl_write("SSL_write");
NextFunction<void(SSL*)> next_ssl_free("SSL_free");
NextFunction<int(BIO*, void*, int)> next_bio_read("BIO_read");
NextFunction<int(BIO*, const void*, int)> next_bio_write("BIO_write");
NextFunction<int(BIO*)> next_bio_free("BIO_free");

/// Names the edges from uses to frees. One for all connections, as a connection and both ends of
/// the BIO pair below it reach into each other's buffers.
char connections;

/// The result of a use.
int Used(int result) {
  __tsan_release(&connections);
  return result;
}

}  // namespace

extern "C" {

int SSL_do_handshake(SSL* ssl) { return Used(next_ssl_do_handshake(ssl)); }

int SSL_read(SSL* ssl, void* buffer, int size) { return Used(next_ssl_read(ssl, buffer, size)); }

int SSL_write(SSL* ssl, const void* buffer, int size) {
  return Used(next_ssl_write(ssl, buffer, size));
}

int BIO_read(BIO* bio, void* buffer, int size) { return Used(next_bio_read(bio, buffer, size)); }

int BIO_write(BIO* bio, const void* buffer, int size) {
  return Used(next_bio_write(bio, buffer, size));
}

void SSL_free(SSL* ssl) {
  __tsan_acquire(&connections);
  next_ssl_free(ssl);
}

int BIO_free(BIO* bio) {
  __tsan_acquire(&connections);
  return next_bio_free(bio);
}

}  // extern "C"
