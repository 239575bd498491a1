// Resources: named state that outlives a step. A Resource is the place (container, type, name), its lock and its object; handles in
// tensors refer to it. Variables are the type `variable`, whose object is a tensor.
// Locks: reader-writer, never parking a pool thread for long: critical sections are single kernels. Threads: any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/registry/registry.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Device;
class MemoryBudget;

class Resource final : public Handle {
 public:
  Resource(std::string container, std::string type, std::string name, const ResourceType* def)
      : container_(std::move(container)),
        type_(std::move(type)),
        name_(std::move(name)),
        def_(def),
        plugin_(def ? def->in_resources.lock() : nullptr) {}
  ~Resource() override;
  const std::string& container() const { return container_; }
  const std::string& type() const { return type_; }
  const std::string& name() const { return name_; }
  bool is_variable() const { return def_ == nullptr; }
  const ResourceType* def() const { return def_; }  // NULL: variable
  bool exists() const { return exists_.load(std::memory_order_acquire); }
  // Its container was reset: who opens it by name from now on finds another. What remembers the handle opens it anew.
  bool reset() const { return reset_.load(std::memory_order_acquire); }

  // Try: false where it would have to wait, also behind others who wait. Lock: waits, first come first served. A thread must not lock one
  // resource twice.
  bool TryRead();
  bool TryUpdate();
  void LockRead();
  void LockUpdate();
  void UnlockRead();
  // changed: calls that wait for an update of it are called.
  void UnlockUpdate(bool changed = true);
  // Under a lock: how many updates there were.
  uint64_t version() const { return version_; }
  // Under update: since it was locked the variable was given a tensor.
  bool assigned() const { return assigned_; }
  // Under update, or where one more stands in line: how many calls wait for an update of it (see WaitingCalls).
  void Watch(int32_t calls) { watching_.fetch_add(calls); }
  // Without a lock: what calls look at beside the object has changed; true: some wait, and are to be told. A call that begins to wait
  // counts first and then looks whether it was touched, so one of the two sees the other.
  bool Touch() {
    touches_.fetch_add(1);
    return watching_.load() > 0;
  }
  uint64_t touches() const { return touches_.load(); }

  // Under a lock. The variable's value (empty: uninitialised); under update it may be replaced.
  const Tensor& value() const { return value_; }
  void set_value(Tensor t);
  // Where the variable's value lives: the device of whoever opened it first; NULL: nobody did yet.
  Device* device() const { return device_.load(std::memory_order_acquire); }
  // FAILED_PRECONDITION if it lives elsewhere, in memory that this device does not share.
  Status LiveOn(Device* device);
  // Whether a kernel on this device cannot reach the variable.
  bool Away(const Device* device) const;
  // Under update: the variable lives on this device from now on, with its value.
  Status MoveTo(Device* device, MemoryBudget* budget);
  // Under a lock: the plugin's object, NULL if none.
  void* object() const { return object_; }
  void set_object(void* o);  // under update; destroys the old one
  // Without a lock: makes the object where there is none.
  Status MakeObject(const tw_host* host, tw_status* (*make)(const tw_host*, void*, void**), void* arg);
  // Under update: no value and no object any more.
  void Clear();

  // For TouchedResources, under its lock.
  Resource* next_touched = nullptr;
  bool listed_as_touched = false;

 private:
  bool Enter(bool update);
  void Queue(bool update);
  void Leave();

  const std::string container_, type_, name_;
  const ResourceType* def_;                   // NULL: variable
  const std::shared_ptr<const void> plugin_;  // whose type it is, so that it is not unloaded
  std::atomic<int32_t> state_{0};             // readers, or -1: an updater
  std::atomic<int32_t> waiting_{0};
  std::atomic<int32_t> watching_{0};  // calls that wait for an update; they begin to under its lock
  std::atomic<uint64_t> touches_{0};
  uint64_t version_ = 0;
  bool assigned_ = false;
  std::mutex mu_;  // the queue
  std::condition_variable free_;
  uint64_t next_ticket_ = 0, serving_ = 0;
  friend class ResourceStore;
  std::atomic<bool> exists_{false}, reset_{false};
  Tensor value_;
  std::atomic<Device*> device_{nullptr};
  void* object_ = nullptr;
};

// Whether the tensor is a handle to what was in a container before it was reset.
bool LeadsToReset(const Tensor& t);

// The named containers of a runtime.
class ResourceStore {
 public:
  explicit ResourceStore(const Registry* registry) : registry_(registry) {}
  // Found or made; the answer holds a reference. Without a name always made, and gone with its last handle. INVALID_ARGUMENT if the name
  // belongs to another type; NOT_FOUND for an unknown type.
  StatusOr<Resource*> Open(std::string_view container, std::string_view type, std::string_view name);
  Resource* Find(std::string_view container, std::string_view name) const;  // borrowed reference added; NULL: none
  // Value and object go now. The place keeps its name for those who hold handles, and goes some time after the last of them. NOT_FOUND if
  // it is empty.
  Status Drop(std::string_view container, std::string_view name);
  // Empties the container: memory goes now, and whoever waits at something in it is called. Plans that hold handles are made anew, see
  // resets(). Answers how many things there were. Allocates nothing.
  size_t ResetContainer(std::string_view container) { return Detach(container, 1); }
  // The same of a graph's own, which nobody can open any more.
  size_t EndContainer(std::string_view container) { return Detach(container, 0); }
  // Goes up with each reset, after handles to what was there say so.
  uint64_t resets() const { return resets_.load(std::memory_order_acquire); }
  std::vector<Resource*> List(std::string_view container) const;  // references added, by name
  size_t CountOnDevicesOf(std::string_view plugin) const;

 private:
  using Key = std::pair<std::string, std::string>;
  using KeyView = std::pair<std::string_view, std::string_view>;
  struct Before {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return KeyView(a) < KeyView(b); }
  };
  const Registry* registry_;
  mutable std::mutex mu_;
  void Sweep();
  size_t Detach(std::string_view container, uint64_t resets);

  std::map<Key, Resource*, Before> all_;
  std::set<Resource*> dropped_;  // of these, places that were dropped while others held handles
  size_t sweep_at_ = 16;         // so many of them
  std::atomic<uint64_t> resets_{0};

 public:
  ~ResourceStore();
};

}  // namespace thalweg
