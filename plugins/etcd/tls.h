// Tls: the client side of TLS: converts sent text to bytes for a connection, and bytes from it to
// received text. It uses no socket, so the owner of the socket can keep deadlines, and a write to a
// closed socket raises no signal. Threads: values, no sharing.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace thalweg::etcd {

class Tls {
 public:
  // host: a name or a number, for which the other side must have a certificate. folder: holds
  // ca.pem, the trusted authorities (without it the machine's are trusted), and optionally cert.pem
  // and key.pem, the identity of this side. The files are read here, so a connection uses their
  // contents at its beginning. Throws Failed, as all methods here: INVALID_ARGUMENT for invalid
  // files; PERMISSION_DENIED if one side does not trust the other.
  Tls(const std::string& host, const std::string& folder);
  // Takes bytes that came over the connection.
  void Take(std::string_view bytes);
  // Returns the bytes to send over it now.
  std::string Give();
  // Returns true once the handshake is complete; everything sent from then on is encrypted.
  bool Shake();
  void Send(std::string_view text);
  // Returns the text received since the last call, possibly none.
  std::string Receive();
  // The other side has closed the TLS session.
  bool over() const { return over_; }

 private:
  bool Done(int result, const char* doing);

  const std::string host_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  BIO *in_ = nullptr, *out_ = nullptr;  // towards the connection
  bool over_ = false;
};

}  // namespace thalweg::etcd
