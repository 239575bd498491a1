// Registry: ops, kernels, resource types, device kinds and other roles of one runtime. Plugins commit all of what they register or nothing.
// Threads: look-ups from any; commits are serialised.
#pragma once
#include <atomic>
#include <cstdint>
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
  std::vector<std::unique_ptr<OpSchema>> ops;
  std::vector<std::unique_ptr<KernelDef>> kernels;
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
  // device kind; a role, as "compiler" or "file_system mem". Without a name or kind: of all names, for all kinds. What fails is the
  // source's to report.
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
  // All or nothing. Errors: ALREADY_EXISTS naming both plugins; NOT_FOUND for a kernel of an unknown op or an unknown argument name.
  Status Commit(Registration r);
  // Takes back whatever the plugin registered. REQUIRES: nothing of it is in use.
  void Remove(std::string_view plugin);
  // FAILED_PRECONDITION if another plugin has kernels of its ops, or somebody holds a role of it.
  Status CheckRemovable(std::string_view plugin) const;

  const OpSchema* FindOp(std::string_view name) const;
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
  // By role, then name, then plugin. Without a role or name: all.
  std::vector<std::shared_ptr<const Role>> Roles(std::string_view role = {}, std::string_view name = {}) const;
  // All of one role; of that name, unless it is empty.
  template <class T>
  std::vector<std::shared_ptr<const T>> RolesOf(std::string_view name = {}) const {
    std::vector<std::shared_ptr<const T>> out;
    for (auto& r : Roles(T::kRole, name)) out.push_back(std::static_pointer_cast<const T>(std::move(r)));
    return out;
  }

 private:
  Status CheckRole(const Role& role, const Registration& r) const;
  void AddKernel(std::unique_ptr<KernelDef> k);
  // A kernel for any op, made one for this.
  void AddMadeFor(const OpSchema& op, const KernelDef& any);
  bool Better(const KernelDef& a, const KernelDef& b) const;
  // Asks the source, if there is one.
  void Bring(PluginSource::Part part, std::string_view name, std::string_view kind = {}) const;
  std::atomic<PluginSource*> source_{nullptr};
  std::vector<std::string> preferred_;
  mutable std::shared_mutex mu_;
  std::map<std::string, std::unique_ptr<OpSchema>, std::less<>> ops_;
  std::map<std::string, const OpSchema*, std::less<>> roles_;
  std::map<std::string, std::vector<std::unique_ptr<KernelDef>>, std::less<>> kernels_;
  std::vector<std::unique_ptr<KernelDef>> for_any_op_;
  std::map<std::string, std::unique_ptr<ResourceType>, std::less<>> resources_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<DeviceKind>> devices_;  // kind, plugin
  std::vector<std::shared_ptr<const Role>> played_;                                     // sorted
  uint32_t order_ = 0;
};

// The registrar that a plugin's init is given; writes into `r`. Copies and seals each definition: min(sizes) into zeroed memory, required
// entries checked, absent optional ones replaced.
class Registrar {
 public:
  Registrar(const tw_host* host, std::string plugin, Registration* r);
  tw_registrar* c() { return &c_.base; }

 private:
  struct C {
    tw_registrar base;
    Registrar* self;
  };
  static tw_status* Op(tw_registrar* r, const tw_op_def* d);
  static tw_status* Kernel(tw_registrar* r, const tw_kernel_def* d);
  static tw_status* Resource(tw_registrar* r, const tw_resource_def* d);
  static tw_status* Device(tw_registrar* r, const tw_device_def* d);
  static tw_status* Compiler(tw_registrar* r, const tw_compiler_def* d);
  static tw_status* FileSystem(tw_registrar* r, const tw_file_system_def* d);
  static tw_status* Transport(tw_registrar* r, const tw_transport_def* d);
  static tw_status* Collective(tw_registrar* r, const tw_collective_def* d);
  static tw_status* Membership(tw_registrar* r, const tw_membership_def* d);
  // Calls `add` with the definition, catches what it throws and remembers the first refusal.
  static tw_status* Add(tw_registrar* r, Status (Registrar::*add)(const void*), const void* d);
  Status AddOp(const void* d);
  Status AddKernel(const void* d);
  Status AddResource(const void* d);
  Status AddDevice(const void* d);
  template <class Def>
  Status AddRole(const void* d);

  C c_;
  const tw_host* host_;
  std::string plugin_;
  Registration* out_;
};

}  // namespace thalweg
