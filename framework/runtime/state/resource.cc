#include "framework/runtime/state/resource.h"

#include <algorithm>
#include <iterator>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/tensor/memory_budget.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {

Resource::~Resource() { set_object(nullptr); }

// Waiters stand in a queue that nobody passes: a stream of readers cannot starve an updater, nor
// updaters a reader.
bool Resource::TryRead() { return waiting_.load() == 0 && Enter(false); }
bool Resource::TryUpdate() { return waiting_.load() == 0 && Enter(true); }
void Resource::LockRead() {
  if (!TryRead()) Queue(false);
}
void Resource::LockUpdate() {
  if (!TryUpdate()) Queue(true);
}

bool Resource::Enter(bool update) {
  int32_t s = state_.load();
  if (update) return s == 0 && state_.compare_exchange_strong(s, -1);
  while (s >= 0) {
    if (state_.compare_exchange_weak(s, s + 1)) return true;
  }
  return false;
}

// Queue increments the number of waiters before it reads the state, and Leave changes the state
// before it reads that number. Both are in one total order, so one of the two always sees the
// other; the mutex keeps the wake-up from falling between the check and the sleep.
void Resource::Queue(bool update) {
  std::unique_lock lock(mu_);
  waiting_.fetch_add(1);
  uint64_t ticket = next_ticket_++;
  free_.wait(lock, [&] { return ticket == serving_ && Enter(update); });
  ++serving_;
  waiting_.fetch_sub(1);
  free_.notify_all();  // the next in line may be another reader
}

void Resource::UnlockRead() {
  if (state_.fetch_sub(1) == 1) Leave();
}
void Resource::UnlockUpdate(bool changed) {
  version_ += changed;
  assigned_ = false;
  const bool watched = changed && watching_.load(std::memory_order_relaxed) > 0;
  state_.store(0);
  Leave();
  if (watched) WaitingCalls::Get().Updated(this);
}
void Resource::Leave() {
  if (waiting_.load() == 0) return;
  std::lock_guard lock(mu_);
  free_.notify_all();
}

void Resource::set_value(Tensor t) {
  value_ = std::move(t);
  assigned_ = true;
  exists_.store(bool(value_), std::memory_order_release);
}

void Resource::set_object(void* o) {
  if (object_ && object_ != o) def_->def.destroy(def_->host, object_);
  object_ = o;
  if (def_) exists_.store(o != nullptr, std::memory_order_release);
}

Status Resource::MakeObject(const tw_host* host, tw_status* (*make)(const tw_host*, void*, void**), void* arg) {
  if (exists()) return Status();
  LockUpdate();
  Status made;
  if (!exists()) {
    void* object = nullptr;
    made = FromC(make(host, arg, &object));
    if (made.ok()) set_object(object);
  }
  UnlockUpdate();
  return made;
}

void Resource::Clear() {
  set_object(nullptr);
  set_value(Tensor());
  device_.store(nullptr, std::memory_order_release);
}

Status Resource::LiveOn(Device* device) {
  Device* home = nullptr;
  if (device_.compare_exchange_strong(home, device) || home == device || (home->host_memory() && device->host_memory())) return Status();
  return FailedPrecondition("variable '", Shown(name_), "' lives on ", home->name(), "; a handle on ", device->name(),
                            " cannot lead to it: place both on one device, or give one a container of its own");
}

bool Resource::Away(const Device* device) const {
  const Device* home = this->device();
  return home && home != device && !(home->host_memory() && device->host_memory());
}

Status Resource::MoveTo(Device* device, MemoryBudget* budget) {
  if (Away(device) && value_ && FindDType(value_.dtype())->plain) {
    ASSIGN_OR_RETURN(Tensor host, this->device()->ToHost(value_));
    ASSIGN_OR_RETURN(Tensor there, device->FromHost(host));
    if (budget) RETURN_IF_ERROR(budget->Charge(there.get()));
    set_value(std::move(there));
  }
  device_.store(device, std::memory_order_release);
  return Status();
}

bool LeadsToReset(const Tensor& t) {
  if (!t || t.dtype() != TW_RESOURCE || t.view().count == 0) return false;
  const auto* r = dynamic_cast<const Resource*>(t.as<Handle*>()[0]);
  return r && r->reset();
}

// ---- ResourceStore ----

namespace {
// Empties a resource and drops a reference. Handles may live on in tensors.
void Forget(Resource* r) {
  r->LockUpdate();
  r->Clear();
  r->UnlockUpdate();
  r->Release();
}
}  // namespace

ResourceStore::~ResourceStore() {
  for (auto& [key, r] : all_) Forget(r);
}

StatusOr<Resource*> ResourceStore::Open(std::string_view container, std::string_view type, std::string_view name) {
  const ResourceType* def = nullptr;
  if (type != TW_VARIABLE_TYPE && !(def = registry_->FindResourceType(type))) {
    return NotFound("no loaded plugin has the resource type '", type, "' (of resource '", Shown(name), "')");
  }
  if (name.empty()) return new Resource(std::string(container), std::string(type), std::string(), def);
  std::lock_guard lock(mu_);
  auto [it, made] = all_.try_emplace(Key(container, name), nullptr);
  Resource*& r = it->second;
  if (made) {
    try {
      r = new Resource(std::string(container), std::string(type), std::string(name), def);
    } catch (...) {
      all_.erase(it);
      throw;
    }
  }
  if (r->type() != type) {
    return InvalidArgument("resource '", Shown(name), "' in container '", Shown(container), "' is a '", r->type(), "', not a '", type,
                           "'; choose another shared_name or container");
  }
  r->Retain();
  return r;
}

Resource* ResourceStore::Find(std::string_view container, std::string_view name) const {
  std::lock_guard lock(mu_);
  auto it = all_.find(KeyView(container, name));
  if (it == all_.end()) return nullptr;
  it->second->Retain();
  return it->second;
}

Status ResourceStore::Drop(std::string_view container, std::string_view name) {
  Resource* r = Find(container, name);
  if (!r || !r->exists()) {
    if (r) r->Release();
    return NotFound("there is no resource '", Shown(name), "' in container '", Shown(container), "'");
  }
  r->LockUpdate();
  r->Clear();
  r->UnlockUpdate();
  std::lock_guard lock(mu_);
  // Only this function and the map hold references then, and new handles are made under the lock.
  auto it = all_.find(KeyView(container, name));
  if (it != all_.end() && it->second == r) {
    if (r->refs() == 2) {
      dropped_.erase(r);
      all_.erase(it);
      r->Release();
    } else {
      dropped_.insert(r);
    }
  }
  r->Release();
  if (dropped_.size() >= sweep_at_) Sweep();
  return Status();
}

// Removes dropped places that have no handles any more. Handles are made under the lock, or from
// other handles.
void ResourceStore::Sweep() {
  for (auto it = dropped_.begin(); it != dropped_.end();) {
    Resource* r = *it;
    const bool unused = r->refs() == 1 && !r->exists();
    it = unused || r->exists() ? dropped_.erase(it) : std::next(it);
    if (!unused) continue;
    all_.erase(all_.find(KeyView(r->container(), r->name())));
    r->Release();
  }
  sweep_at_ = std::max<size_t>(16, 2 * dropped_.size());
}

// Moves map nodes from one map to another, because the end of a graph must not fail for lack of
// memory for a list.
size_t ResourceStore::Detach(std::string_view container, uint64_t resets) {
  std::map<Key, Resource*, Before> gone;
  {
    std::lock_guard lock(mu_);
    for (auto it = all_.lower_bound(KeyView(container, "")); it != all_.end() && it->first.first == container;) {
      it->second->reset_.store(true, std::memory_order_release);
      dropped_.erase(it->second);
      gone.insert(all_.extract(it++));
    }
  }
  resets_.fetch_add(resets, std::memory_order_acq_rel);
  size_t n = 0;
  for (auto& [key, r] : gone) {
    n += r->exists();
    Forget(r);
  }
  return n;
}

std::vector<Resource*> ResourceStore::List(std::string_view container) const {
  std::lock_guard lock(mu_);
  std::vector<Resource*> found;
  for (auto it = all_.lower_bound(KeyView(container, "")); it != all_.end() && it->first.first == container; ++it) {
    it->second->Retain();
    found.push_back(it->second);
  }
  return found;
}

size_t ResourceStore::CountOnDevicesOf(std::string_view plugin) const {
  std::lock_guard lock(mu_);
  return size_t(std::count_if(all_.begin(), all_.end(), [&](const auto& e) {
    const Device* home = e.second->device();
    return home && home->plugin() == plugin;
  }));
}

}  // namespace thalweg
