#include "distributed/leases.h"

#include <utility>

#include "framework/runtime/give_memory_back.h"

namespace thalweg::distributed {
namespace {

constexpr size_t kMostLeases = 16;  // of one session: a client must not make a task keep any number of names

}  // namespace

StatusOr<std::unique_ptr<Leases::Hold>> Leases::Take(const std::vector<std::string>& names) {
  if (names.empty()) return nullptr;
  std::set<std::string> each(names.begin(), names.end());
  if (each.size() > kMostLeases) {
    return InvalidArgument("session option 'lease' names ", each.size(), " containers, and a session may lease ", kMostLeases);
  }
  std::unique_lock lock(mu_);
  for (const std::string& name : each) {
    emptied_.wait(lock, [&] { return !ending_.contains(name); });
    ++sessions_[name];
  }
  lock.unlock();
  return std::make_unique<Hold>(shared_from_this(), std::move(each));
}

// The reset runs without mu_: it ends calls that wait in the container, and the end of such a call
// may be the end of another session.
void Leases::Release(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    {
      std::lock_guard lock(mu_);
      const auto it = sessions_.find(name);
      if (--it->second > 0) continue;
      sessions_.erase(it);
      ending_.insert(name);
    }
    runtime_->resources().ResetContainer(name);
    {
      std::lock_guard lock(mu_);
      ending_.erase(name);
    }
    emptied_.notify_all();
  }
  GiveMemoryBack(*runtime_);
}

}  // namespace thalweg::distributed
