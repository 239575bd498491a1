// Registry: ops, kernels, resource types, device kinds and other roles of one runtime. Plugins commit all of what they register or nothing.
// Threads: look-ups from any; commits are serialised.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/op_schema.h"
#include "framework/registry/kernel_spec.h"
#include "framework/registry/role.h"
#include "framework/registry/unread_kernels.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

struct ResourceType {
  std::string type, plugin;
  tw_resource_def def{};
  const tw_host* host = nullptr;
  bool saves = false;                      // it has save and restore
  bool only = true;                        // the only type of its plugin
  std::weak_ptr<const void> in_resources;  // held by every resource of the type; see KernelDef
};
struct DeviceKind {
  std::string kind, plugin;
  tw_device_def def{};
  tw_stream_set streams{};  // valid if has_streams; `wait` may be NULL
  bool has_streams = false;
  // The sets that the device has.
  std::optional<tw_pinned_set> pinned;
  std::optional<tw_peer_set> peer;
  std::optional<tw_event_set> events;
  std::optional<tw_statistics_set> statistics;
  std::optional<tw_capture_set> capture;
  std::optional<tw_profile_set> profile;
  std::optional<tw_dlpack_set> dlpack;
  const tw_host* host = nullptr;
  // Keeps the plugin mapped and not yet shut down while memory of its devices is out; set by the loader.
  std::shared_ptr<const void> pin;
  // Held by whatever plans work for its devices, so that the plugin is not unloaded; see KernelDef.
  std::weak_ptr<const void> in_plans;
};
struct DeviceKindName {
  std::string kind;
  bool has_streams = false;
};

// What one plugin's init registered, not yet seen by anybody.
struct Registration {
  // The very same was committed before, or is known to be right: schemas and specs are read when they are first used.
  bool read_later = false;
  std::vector<std::unique_ptr<OpSchema>> ops;
  std::vector<std::unique_ptr<KernelDef>> kernels;
  std::shared_ptr<KernelOrigin> origin;  // of those that are unread
  std::vector<UnreadKernels> unread;
  std::vector<std::unique_ptr<ResourceType>> resources;
  std::vector<std::unique_ptr<DeviceKind>> devices;
  std::vector<std::shared_ptr<Role>> roles;
  Status status;  // the first refusal, even if the plugin ignored it
};

// Plugins that are known but not loaded yet. A registry asks before it says that something is not there, and before it lists all.
class PluginSource {
 public:
  enum class Part { kOp, kOpRole, kKernel, kResource, kDevice, kRole };
  virtual ~PluginSource() = default;
  // Loads whatever brings the part of that name: an op; the role of one; kernels of an op, on devices of a kind; a type of resource; a
  // device kind; a role, as "compiler" or "file_system mem", for devices of a kind. Without a name or kind: of all names, for all kinds.
  // What fails is the source's to report.
  virtual void Bring(Part part, std::string_view name, std::string_view kind) = 0;
  virtual std::vector<DeviceKindName> DeviceKinds() = 0;
};

class Registry {
 public:
  // NULL: none (any more). The source is asked without any lock of the registry's held.
  void SetSource(PluginSource* source) { source_.store(source, std::memory_order_release); }
  // Plugins whose kernels go before those of others, whatever the priority, the first of the list first. REQUIRES: nothing is committed
  // yet.
  void SetPreferred(std::vector<std::string> plugins) { preferred_ = std::move(plugins); }
  // Is told what turns out to be wrong when it is read later; it is left out then. REQUIRES: nothing is committed yet.
  void SetWarn(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }
  // All or nothing. Errors: ALREADY_EXISTS naming both plugins; NOT_FOUND for a kernel of an unknown op or an unknown argument name.
  Status Commit(Registration r);
  // Takes back whatever the plugin registered. REQUIRES: nothing of it is in use.
  void Remove(std::string_view plugin);
  // FAILED_PRECONDITION if another plugin has kernels of its ops, or somebody holds a role of it.
  Status CheckRemovable(std::string_view plugin) const;

  const OpSchema* FindOp(std::string_view name) const;
  // Among those that are registered; asks nobody and reads nothing.
  bool HasOp(std::string_view name) const;
  // "; did you mean 'x'?" of these, or "".
  std::string MeantOp(std::string_view name) const;
  // The op that plays a role; FAILED_PRECONDITION saying that no loaded plugin has one.
  StatusOr<const OpSchema*> FindRole(std::string_view role) const;
  // The best kernel of the op for these types (flat, inputs then outputs) and attributes (in schema order) on a device kind; NULL: none.
  const KernelDef* FindKernel(const OpSchema& op, std::string_view kind, const std::vector<uint32_t>& types,
                              const std::vector<uint32_t>& in_at, const std::vector<uint32_t>& out_at,
                              const std::vector<AttrValue>& attrs) const;
  // Every kernel of the op, best first.
  std::vector<const KernelDef*> Kernels(std::string_view op) const;
  const ResourceType* FindResourceType(std::string_view type) const;
  std::vector<const OpSchema*> Ops() const;  // by name
  // By kind, then by plugin: several plugins may have devices of one kind. Without a kind: all.
  std::vector<const DeviceKind*> DeviceKinds(std::string_view kind = {}) const;
  // The kinds that there are or would be, by name; loads nothing.
  std::vector<DeviceKindName> DeviceKindNames() const;
  // By role, then name, then plugin. Without a role, a name or a kind of devices: all.
  std::vector<std::shared_ptr<const Role>> Roles(std::string_view role = {}, std::string_view name = {}, std::string_view kind = {}) const;
  // All of one role; of that name and for devices of that kind, unless they are empty.
  template <class T>
  std::vector<std::shared_ptr<const T>> RolesOf(std::string_view name = {}, std::string_view kind = {}) const {
    std::vector<std::shared_ptr<const T>> out;
    for (auto& r : Roles(T::kRole, name, kind)) out.push_back(std::static_pointer_cast<const T>(std::move(r)));
    return out;
  }

 private:
  struct KernelsOfOp {
    std::vector<std::unique_ptr<KernelDef>> best_first;
    std::vector<UnreadKernels> unread;
  };
  Status CheckRole(const Role& role, const Registration& r) const;
  void AddKernel(std::unique_ptr<KernelDef> k) const;
  // A kernel for any op, made one for this.
  void AddMadeFor(const OpSchema& op, const KernelDef& any);
  // What was left to be read of an op. REQUIRES: mu_ is held alone. NULL: there is no such op, or it could not be read.
  const OpSchema* ReadOp(std::string_view name) const;
  void ReadKernels(std::string_view op) const;
  void ReadAllOps() const;
  // mu_, shared, once all that the op has is read.
  std::shared_lock<std::shared_mutex> LockKernels(std::string_view op) const;
  void Warn(const Status& why) const;
  bool Better(const KernelDef& a, const KernelDef& b) const;
  // Asks the source, if there is one.
  void Bring(PluginSource::Part part, std::string_view name, std::string_view kind = {}) const;
  std::atomic<PluginSource*> source_{nullptr};
  std::vector<std::string> preferred_;
  std::function<void(const std::string&)> warn_;
  mutable std::shared_mutex mu_;
  mutable std::map<std::string, std::unique_ptr<OpSchema>, std::less<>> ops_;
  std::map<std::string, const OpSchema*, std::less<>> roles_;
  mutable std::map<std::string, KernelsOfOp, std::less<>> kernels_;
  std::vector<std::unique_ptr<KernelDef>> for_any_op_;
  std::map<std::string, std::unique_ptr<ResourceType>, std::less<>> resources_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<DeviceKind>> devices_;  // kind, plugin
  std::vector<std::shared_ptr<const Role>> played_;                                     // sorted
  mutable uint32_t order_ = 0;
};

}  // namespace thalweg
