// Containers of state that end with their last session. A session leases containers by name, with
// the session option `lease`. When the last session of this task that leases a container has ended,
// the container is emptied, whatever ended the session: a client that closed it, died or cannot be
// reached. Threads: any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {

class Leases : public std::enable_shared_from_this<Leases> {
 public:
  // The containers that one session leases. The destructor may empty containers, so it must run on
  // a thread that may block, with no lock of the worker held.
  class Hold {
   public:
    explicit Hold(std::shared_ptr<Leases> leases) : leases_(std::move(leases)) {}
    ~Hold() { leases_->Release(names_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class Leases;
    const std::shared_ptr<Leases> leases_;
    std::set<std::string> names_;  // Take adds each when it is leased
  };

  explicit Leases(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  // Leases the containers; if one of them is being emptied, waits until it is empty. Returns NULL
  // for no names. INVALID_ARGUMENT for more names than a session may lease.
  StatusOr<std::unique_ptr<Hold>> Take(const std::vector<std::string>& names);

 private:
  struct Container {
    uint32_t sessions = 0;  // how many lease it
    bool ending = false;    // it is being emptied, and no session leases it
  };
  // Allocates nothing.
  void Release(const std::set<std::string>& names);

  const std::shared_ptr<Runtime> runtime_;
  std::mutex mu_;  // guards the rest
  std::condition_variable emptied_;
  std::map<std::string, Container> containers_;
};

}  // namespace thalweg::distributed
