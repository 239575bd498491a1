// Registry: the ops, kernels, resource types, device kinds and other roles of one runtime. A
// plugin's registrations are committed all or none. Threads: look-ups from any; commits are
// serialised.
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
#include "framework/registry/device_kind.h"
#include "framework/registry/kernel_spec.h"
#include "framework/registry/role.h"
#include "framework/registry/unread_kernels.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

struct ResourceType {
  std::string type, plugin;
  tw_resource_def def{};
  const tw_host* host = nullptr;
  bool saves = false;                      // has save and restore
  bool only = true;                        // the only resource type of its plugin
  std::weak_ptr<const void> in_resources;  // held by every resource of the type; see KernelDef
};
struct DeviceKindName {
  std::string kind;
  bool has_streams = false;
};

// The registrations of one plugin's init, not visible to anybody yet.
struct Registration {
  // The same registrations were validated before, so schemas and specs are parsed on first use.
  bool read_later = false;
  std::vector<std::unique_ptr<OpSchema>> ops;
  std::vector<std::unique_ptr<KernelDef>> kernels;
  std::shared_ptr<KernelOrigin> origin;  // of the unread kernels
  std::vector<UnreadKernels> unread;
  std::vector<std::unique_ptr<ResourceType>> resources;
  std::vector<std::unique_ptr<DeviceKind>> devices;
  std::vector<std::shared_ptr<Role>> roles;
  // Definitions that this runtime cannot use: a newer version of their role, an element type that it
  // does not know. Each reason stands here once, with what to do.
  struct LeftOut {
    std::string why, fix;
    uint32_t count = 1;  // definitions
  };
  std::vector<LeftOut> left_out;
  bool lacks_ops = false;  // some of them are ops, so kernels of unknown ops are left out, too
  void LeaveOut(std::string why, std::string fix);
  bool empty() const { return ops.empty() && kernels.empty() && unread.empty() && resources.empty() && devices.empty() && roles.empty(); }
  Status status;  // the first refusal, even if the plugin ignored it
};

// Plugins that are known but not loaded yet. A registry asks the source before it reports that
// something is missing, and before it lists everything.
class PluginSource {
 public:
  enum class Part { kOp, kOpRole, kKernel, kResource, kDevice, kRole };
  virtual ~PluginSource() = default;
  // Loads the plugins that provide the part of that name: an op; the role of an op; kernels of an
  // op for a device kind; a resource type; a device kind; a role, as "compiler" or "file_system
  // mem", for a device kind. An empty name or kind means all. The source reports failures itself.
  virtual void Bring(Part part, std::string_view name, std::string_view kind) = 0;
  virtual std::vector<DeviceKindName> DeviceKinds() = 0;
};

class Registry {
 public:
  // NULL: no source. The registry holds none of its locks while it calls the source.
  void SetSource(PluginSource* source) { source_.store(source, std::memory_order_release); }
  // Sets plugins whose kernels take precedence over others whatever the priority, in this order.
  // REQUIRES: nothing is committed yet.
  void SetPreferred(std::vector<std::string> plugins) { preferred_ = std::move(plugins); }
  // Sets a function that is told about items that prove invalid when they are parsed later; such
  // items are left out. REQUIRES: nothing is committed yet.
  void SetWarn(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }
  // Commits all or nothing. ALREADY_EXISTS names both plugins; NOT_FOUND for a kernel of an unknown
  // op or an unknown argument name.
  Status Commit(Registration r);
  // Leaves out kernels of ops that neither the registration nor the registry has, if the former lacks
  // ops.
  void LeaveOutOrphans(Registration* r) const;
  // Removes all registrations of the plugin. REQUIRES: nothing of it is in use.
  void Remove(std::string_view plugin);
  // FAILED_PRECONDITION if another plugin has kernels of the plugin's ops, or somebody holds one of
  // its roles.
  Status CheckRemovable(std::string_view plugin) const;

  const OpSchema* FindOp(std::string_view name) const;
  // Looks among the registered ops only; calls no source and parses nothing.
  bool HasOp(std::string_view name) const;
  // Returns "; did you mean 'x'?" for a registered op, or "".
  std::string MeantOp(std::string_view name) const;
  // Returns the op that plays a role; FAILED_PRECONDITION if no loaded plugin has one.
  StatusOr<const OpSchema*> FindRole(std::string_view role) const;
  // Returns the best kernel of the op for these types (flat, inputs then outputs) and attributes
  // (in schema order) on a device kind; NULL if there is none. after: the best of those that rank
  // behind this one. Does not ask kernels whether they decline: see runtime/choose_kernel.h.
  const KernelDef* FindKernel(const OpSchema& op, std::string_view kind, const std::vector<uint32_t>& types,
                              const std::vector<uint32_t>& in_at, const std::vector<uint32_t>& out_at, const std::vector<AttrValue>& attrs,
                              const KernelDef* after = nullptr) const;
  // Returns all kernels of the op, best first.
  std::vector<const KernelDef*> Kernels(std::string_view op) const;
  const ResourceType* FindResourceType(std::string_view type) const;
  std::vector<const OpSchema*> Ops() const;  // sorted by name
  // Sorted by kind, then by plugin: several plugins may have devices of one kind. An empty kind
  // means all.
  std::vector<const DeviceKind*> DeviceKinds(std::string_view kind = {}) const;
  // Returns the kinds of loaded and known plugins, sorted by name; loads nothing.
  std::vector<DeviceKindName> DeviceKindNames() const;
  // Sorted by role, then name, then plugin. An empty role, name or kind means all.
  std::vector<std::shared_ptr<const Role>> Roles(std::string_view role = {}, std::string_view name = {}, std::string_view kind = {}) const;
  // Returns all of one role; `name` and `kind` filter unless they are empty.
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
  // Adds a copy of a kernel for any op, made for this op.
  void AddMadeFor(const OpSchema& op, const KernelDef& any);
  // Parses the op if it is unread. REQUIRES: mu_ is held exclusively. Returns NULL if there is no
  // such op or it is invalid.
  const OpSchema* ReadOp(std::string_view name) const;
  void ReadKernels(std::string_view op) const;
  void ReadAllOps() const;
  // Parses all kernels of the op, then returns mu_ locked shared.
  std::shared_lock<std::shared_mutex> LockKernels(std::string_view op) const;
  void Warn(const Status& why) const;
  bool Better(const KernelDef& a, const KernelDef& b) const;
  // Calls the source, if there is one.
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
