// Resources: named state that outlives a step. A Resource is a named place (container, type, name)
// with a lock and an object; handles in tensors refer to it. A variable is a resource of the type
// `variable`, whose object is a tensor.
// Locks: reader-writer. They never park a pool thread for long, because critical sections are
// single kernels. Threads: any.
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
  const ResourceType* def() const { return def_; }  // NULL: a variable
  bool exists() const { return exists_.load(std::memory_order_acquire); }
  // Returns true if the container was reset: the name now leads to another resource, so holders of
  // the handle must open it anew.
  bool reset() const { return reset_.load(std::memory_order_acquire); }

  // The Try functions return false if they would have to wait, also behind other waiters. The Lock
  // functions wait in FIFO order. A thread must not lock one resource twice.
  bool TryRead();
  bool TryUpdate();
  void LockRead();
  void LockUpdate();
  void UnlockRead();
  // changed: wakes calls that wait for an update of the resource.
  void UnlockUpdate(bool changed = true);
  // Returns the number of updates. REQUIRES: a lock is held.
  uint64_t version() const { return version_; }
  // Returns true if the variable was assigned since it was locked. REQUIRES: the update lock is
  // held.
  bool assigned() const { return assigned_; }
  // Counts calls that wait for an update (see WaitingCalls). REQUIRES: the update lock is held, or
  // another waiter is in line.
  void Watch(int32_t calls) { watching_.fetch_add(calls); }
  // Reports, without a lock, a change of state that calls read beside the object. Returns true if
  // calls wait and must be told. A call that begins to wait counts itself first and then compares
  // touches(), so one of the two sees the other.
  bool Touch() {
    touches_.fetch_add(1);
    return watching_.load() > 0;
  }
  uint64_t touches() const { return touches_.load(); }

  // The variable's value; empty if uninitialised. REQUIRES: a lock is held; to replace the value,
  // the update lock.
  const Tensor& value() const { return value_; }
  void set_value(Tensor t);
  // Returns the device of the variable's value, which the first opener sets; NULL before that.
  Device* device() const { return device_.load(std::memory_order_acquire); }
  // FAILED_PRECONDITION if the variable is on another device, whose memory this device does not
  // share.
  Status LiveOn(Device* device);
  // Returns true if a kernel on this device cannot reach the variable.
  bool Away(const Device* device) const;
  // Moves the variable and its value to this device. REQUIRES: the update lock is held.
  Status MoveTo(Device* device, MemoryBudget* budget);
  // Returns the plugin's object; NULL if none. REQUIRES: a lock is held.
  void* object() const { return object_; }
  void set_object(void* o);  // destroys the old object. REQUIRES: the update lock is held
  // Makes the object if there is none. REQUIRES: the caller holds no lock.
  Status MakeObject(const tw_host* host, tw_status* (*make)(const tw_host*, void*, void**), void* arg);
  // Removes value and object. REQUIRES: the update lock is held.
  void Clear();

  // For TouchedResources; guarded by its lock.
  Resource* next_touched = nullptr;
  bool listed_as_touched = false;

 private:
  bool Enter(bool update);
  void Queue(bool update);
  void Leave();

  const std::string container_, type_, name_;
  const ResourceType* def_;                   // NULL: a variable
  const std::shared_ptr<const void> plugin_;  // keeps the plugin of the type loaded
  std::atomic<int32_t> state_{0};             // number of readers, or -1 for an updater
  std::atomic<int32_t> waiting_{0};
  std::atomic<int32_t> watching_{0};  // calls that wait for an update; they begin to wait under the lock
  std::atomic<uint64_t> touches_{0};
  uint64_t version_ = 0;
  bool assigned_ = false;
  std::mutex mu_;  // guards the queue
  std::condition_variable free_;
  uint64_t next_ticket_ = 0, serving_ = 0;
  friend class ResourceStore;
  std::atomic<bool> exists_{false}, reset_{false};
  Tensor value_;
  std::atomic<Device*> device_{nullptr};
  void* object_ = nullptr;
};

// Returns true if the tensor is a handle to a resource of a container that was reset since.
bool LeadsToReset(const Tensor& t);

// The named containers of a runtime.
class ResourceStore {
 public:
  explicit ResourceStore(const Registry* registry) : registry_(registry) {}
  // Finds or makes a resource; the caller gets a reference. A resource without a name is always new
  // and dies with its last handle. INVALID_ARGUMENT if the name belongs to another type; NOT_FOUND
  // for an unknown type.
  StatusOr<Resource*> Open(std::string_view container, std::string_view type, std::string_view name);
  Resource* Find(std::string_view container, std::string_view name) const;  // adds a reference; NULL: none
  // Destroys value and object now. The place keeps its name for holders of handles and is removed
  // some time after the last of them. NOT_FOUND if the resource has no contents.
  Status Drop(std::string_view container, std::string_view name);
  // Empties the container: frees its memory now and wakes calls that wait in it. Plans that hold
  // handles are made anew, see resets(). Returns the number of resources with contents. Allocates
  // nothing.
  size_t ResetContainer(std::string_view container) { return Detach(container, 1); }
  // Empties a graph's own container, which nobody can open any more.
  size_t EndContainer(std::string_view container) { return Detach(container, 0); }
  // Counts resets. A reset first marks the resources, then increments this.
  uint64_t resets() const { return resets_.load(std::memory_order_acquire); }
  std::vector<Resource*> List(std::string_view container) const;  // adds references; sorted by name
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
  std::set<Resource*> dropped_;  // places that were dropped while others held handles
  size_t sweep_at_ = 16;         // size of dropped_ at which Sweep runs
  std::atomic<uint64_t> resets_{0};

 public:
  ~ResourceStore();
};

}  // namespace thalweg
