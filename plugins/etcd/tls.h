// TLS as a client speaks it: what is sent becomes what goes over a connection, and what comes over it what was received. It knows no
// socket, so that whoever has one keeps to deadlines, and no signal comes of a write to a closed one. Threads: values, no sharing.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace thalweg::etcd {

class Tls {
 public:
  // host: a name or a number, for which the other side must have a certificate. folder: holds ca.pem, whose certificates count (without it
  // the machine's do), and maybe cert.pem and key.pem, which prove who this side is. Read here, so a connection takes what they hold when
  // it begins. Throws Failed, as all here: INVALID_ARGUMENT for what the folder holds; PERMISSION_DENIED where one side does not trust the
  // other.
  Tls(const std::string& host, const std::string& folder);
  // What came over the connection.
  void Take(std::string_view bytes);
  // What is to go over it now.
  std::string Give();
  // True: both sides know each other, and what is said from now on is encrypted.
  bool Shake();
  void Send(std::string_view text);
  // What was received since, maybe nothing.
  std::string Receive();
  // The other side has said that it is done.
  bool over() const { return over_; }

 private:
  bool Done(int result, const char* doing);

  const std::string host_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  BIO *in_ = nullptr, *out_ = nullptr;  // the connection's
  bool over_ = false;
};

}  // namespace thalweg::etcd
