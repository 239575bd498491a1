// Credentials: the identity of this endpoint and the identities it accepts: a folder with `ca.pem`
// (trusted authorities), `cert.pem` and `key.pem` (its own), `token` (a secret that the whole
// cluster shares), and optionally `revoked` (revoked certificates). Threads: any.
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

// The files may change while they are in use: new streams and handshakes use the current contents.
class Credentials {
 public:
  explicit Credentials(std::string folder) : folder_(std::move(folder)) {}
  // Reads the files again. Returns empty, or the error; then the last good ones stay in use. The
  // list of revoked certificates is updated even if other files are wrong.
  std::string Refresh();
  // Reads only the list of revoked certificates again.
  std::string RefreshRevoked();
  // serial: in the format of Identity.
  bool Revoked(const std::string& serial) const;
  bool any_revoked() const {
    std::lock_guard lock(mu_);
    return !revoked_.empty();
  }
  Secrets secrets() const;
  // Reads the files again; returns whether they differ from those at the previous call.
  bool Changed();

 private:
  std::string ReadAll(Secrets* out, std::string* stamp) const;
  const std::string folder_;
  mutable std::mutex mu_;
  Secrets secrets_;
  std::string stamp_;                        // of the files, as they were read
  uint64_t version_ = 0, asked_ = 0;         // version of secrets_; version at the last call of Changed
  std::unordered_set<std::string> revoked_;  // serial numbers
  std::string revoked_stamp_;
};

// The handshake ends if the peer shows a revoked certificate.
grpc_channel_credentials* NewChannelCredentials(std::shared_ptr<const Credentials> credentials);
// `credentials` must outlive the server. They are read again when their files change.
grpc_server_credentials* NewServerCredentials(Credentials* credentials);

// The proven identity of a call's peer.
struct Identity {
  std::string name;  // "task/ps/0", "client/ann"
  uint32_t role = 0;
  std::string serial;  // of its certificate: hexadecimal digits, lower case
  std::string wrong;   // why the identity is not accepted; empty if it is
};
Identity IdentityOf(grpc_call* call);
// Takes the same time for all contents.
bool SameSecret(const std::string& a, const std::string& b);

}  // namespace thalweg::grpc_transport
