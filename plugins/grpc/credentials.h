// What proves who this endpoint is and who may talk to it: a folder with `ca.pem` (whose certificates count), `cert.pem` and `key.pem` (its
// own), `token` (a secret that all of the cluster share), and maybe `revoked` (whose certificates count no longer). Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include <grpc/grpc.h>

namespace thalweg::grpc_transport {

struct Secrets {
  std::string ca, cert, key, token;
};

// Files that may be changed while they are used: new streams and handshakes take what they hold then.
class Credentials {
 public:
  explicit Credentials(std::string folder) : folder_(std::move(folder)) {}
  // Empty: good, else what is wrong; then the last good ones stay. The list of what is revoked is taken whatever is wrong with the others.
  std::string Refresh();
  // The list alone.
  std::string RefreshRevoked();
  // serial: as Identity has it.
  bool Revoked(const std::string& serial) const;
  bool any_revoked() const {
    std::lock_guard lock(mu_);
    return !revoked_.empty();
  }
  Secrets secrets() const;
  // Refreshes; whether they are others than when this was asked last.
  bool Changed();

 private:
  std::string ReadAll(Secrets* out, std::string* stamp) const;
  const std::string folder_;
  mutable std::mutex mu_;
  Secrets secrets_;
  std::string stamp_;                        // of the files, as they were read
  uint64_t version_ = 0, asked_ = 0;         // of secrets_; when Changed was asked
  std::unordered_set<std::string> revoked_;  // serial numbers
  std::string revoked_stamp_;
};

// Whoever shows a certificate that is revoked is hung up on in the handshake.
grpc_channel_credentials* NewChannelCredentials(std::shared_ptr<const Credentials> credentials);
// credentials must live as long as the server. They are read again when their files change.
grpc_server_credentials* NewServerCredentials(Credentials* credentials);

// Who the peer of a call has proven to be.
struct Identity {
  std::string name;  // "task/ps/0", "client/ann"
  uint32_t role = 0;
  std::string serial;  // of its certificate: hexadecimal digits, lower case
  std::string wrong;   // not empty: it is nobody whom we know, and why
};
Identity IdentityOf(grpc_call* call);
// Takes the same time whatever they hold.
bool SameSecret(const std::string& a, const std::string& b);

}  // namespace thalweg::grpc_transport
