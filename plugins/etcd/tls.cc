#include "tls.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "http.h"
#include "secret_file.h"
#include "thalweg/plugin/abi.h"

namespace thalweg::etcd {
namespace {

// A file that cannot be examined does not count as absent: its owner relies on it.
bool IsThere(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) return true;
  if (errno == ENOENT) return false;
  throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' cannot be read: " + strerror(errno));
}

// Returns the text of the oldest error in this thread, which is the cause of the others.
std::string Reason(unsigned long error) {
  const char* text = ERR_reason_error_string(error);
  return text ? text : "no reason is known";
}

void Need(bool good, const std::string& path) {
  if (good) return;
  const std::string why = Reason(ERR_peek_error());
  ERR_clear_error();
  throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' cannot be used: " + why);
}

void UseFiles(SSL_CTX* c, const std::string& folder) {
  const std::string ca = folder + "/ca.pem", cert = folder + "/cert.pem", key = folder + "/key.pem";
  if (folder.empty() || !IsThere(ca)) {
    Need(SSL_CTX_set_default_verify_paths(c) == 1, "the machine's certificates");
  } else {
    Need(SSL_CTX_load_verify_locations(c, ca.c_str(), nullptr) == 1, ca);
  }
  if (folder.empty() || !IsThere(cert)) return;
  if (struct stat s = {}; stat(key.c_str(), &s) == 0) MustBeSecret(key, s);
  Need(SSL_CTX_use_certificate_chain_file(c, cert.c_str()) == 1, cert);
  Need(SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(c) == 1, key);
}

// A key with a password would prompt for it at the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

}  // namespace

Tls::Tls(const std::string& host, const std::string& folder)
    : host_(host), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), ssl_(nullptr, SSL_free) {
  ERR_clear_error();
  if (!context_) throw Failed(TW_RESOURCE_EXHAUSTED, "there is no memory for TLS");
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_passwd_cb(context_.get(), NoPassword);
  UseFiles(context_.get(), folder);
  ssl_.reset(SSL_new(context_.get()));
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  if (!ssl_ || !in_ || !out_) {
    BIO_free(in_);
    BIO_free(out_);
    throw Failed(TW_RESOURCE_EXHAUSTED, "there is no memory for TLS");
  }
  SSL_set_bio(ssl_.get(), in_, out_);
  // In certificates, numbers are stored apart from names, and a number is no valid server name to
  // request.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) != 1) {
    ERR_clear_error();
    if (SSL_set1_host(ssl_.get(), host.c_str()) != 1 || SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) != 1)
      throw Failed(TW_INVALID_ARGUMENT, "'" + host + "' is no name of a machine");
  }
  SSL_set_connect_state(ssl_.get());
}

void Tls::Take(std::string_view bytes) {
  if (BIO_write(in_, bytes.data(), int(bytes.size())) != int(bytes.size()))
    throw Failed(TW_RESOURCE_EXHAUSTED, "there is no memory for TLS");
}

std::string Tls::Give() {
  std::string bytes(size_t(BIO_ctrl_pending(out_)), '\0');
  if (!bytes.empty()) BIO_read(out_, bytes.data(), int(bytes.size()));
  return bytes;
}

// Returns false if more bytes have to come over the connection first.
bool Tls::Done(int result, const char* doing) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (result > 0) return true;
  if (error == SSL_ERROR_WANT_READ) return false;
  if (error == SSL_ERROR_ZERO_RETURN) return !(over_ = true);
  const unsigned long cause = ERR_peek_error();
  const long verified = SSL_get_verify_result(ssl_.get());
  ERR_clear_error();
  if (verified != X509_V_OK) {
    throw Failed(TW_PERMISSION_DENIED, "'" + host_ + "' has not proven who it is: " + X509_verify_cert_error_string(verified) +
                                           "; ca.pem must be whose certificates it has");
  }
  const bool refused = ERR_GET_LIB(cause) == ERR_LIB_SSL && ERR_GET_REASON(cause) > SSL_AD_REASON_OFFSET;  // an alert of the other side
  throw Failed(refused ? TW_PERMISSION_DENIED : TW_UNAVAILABLE, "TLS with '" + host_ + "' fails at " + doing + ": " + Reason(cause));
}

bool Tls::Shake() {
  ERR_clear_error();
  return Done(SSL_do_handshake(ssl_.get()), "the handshake");
}

void Tls::Send(std::string_view text) {
  ERR_clear_error();
  // The result goes to memory, so nothing has to wait.
  if (!text.empty() && !Done(SSL_write(ssl_.get(), text.data(), int(text.size())), "sending"))
    throw Failed(TW_UNAVAILABLE, "'" + host_ + "' hangs up");
}

std::string Tls::Receive() {
  std::string text;
  char bytes[16384];
  for (int n;;) {
    ERR_clear_error();
    n = SSL_read(ssl_.get(), bytes, sizeof bytes);
    if (!Done(n, "receiving")) return text;
    text.append(bytes, size_t(n));
  }
}

}  // namespace thalweg::etcd
