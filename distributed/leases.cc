#include "distributed/leases.h"

#include <utility>

#include "framework/runtime/devices/give_memory_back.h"

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
  auto hold = std::make_unique<Hold>(shared_from_this());  // if memory runs out, it releases what is leased by then
  std::unique_lock lock(mu_);
  while (!each.empty()) {
    const std::string& name = *each.begin();
    emptied_.wait(lock, [&] {
      const auto it = containers_.find(name);
      return it == containers_.end() || !it->second.ending;
    });
    ++containers_[name].sessions;
    hold->names_.insert(each.extract(each.begin()));
  }
  lock.unlock();
  return hold;
}

// The reset runs without mu_: it ends calls that wait in the container, and the end of such a call
// may be the end of another session.
void Leases::Release(const std::set<std::string>& names) {
  bool emptied = false;
  for (const std::string& name : names) {
    std::unique_lock lock(mu_);
    const auto it = containers_.find(name);
    if (--it->second.sessions > 0) continue;
    it->second.ending = true;
    lock.unlock();
    runtime_->resources().ResetContainer(name);
    lock.lock();
    containers_.erase(it);
    lock.unlock();
    emptied_.notify_all();
    emptied = true;
  }
  if (emptied) GiveMemoryBack(*runtime_);
}

}  // namespace thalweg::distributed
