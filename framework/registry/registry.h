// Registry: ops, kernels, resource types, device kinds and other roles of one runtime. Plugins commit all of what they register or nothing.
// Threads: look-ups from any; commits are serialised.
#pragma once
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

class Registry {
 public:
  // All or nothing. Errors: ALREADY_EXISTS naming both plugins; NOT_FOUND for a kernel of an unknown op or an unknown argument name.
  Status Commit(Registration r);
  // Takes back whatever the plugin registered. REQUIRES: nothing of it is in use.
  void Remove(std::string_view plugin);

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
  // By kind, then by plugin: several plugins may have devices of one kind.
  std::vector<const DeviceKind*> DeviceKinds() const;
  // By role, then name, then plugin.
  std::vector<std::shared_ptr<const Role>> Roles() const;
  // All of one role; of that name, unless it is empty.
  template <class T>
  std::vector<std::shared_ptr<const T>> RolesOf(std::string_view name = {}) const {
    std::vector<std::shared_ptr<const T>> out;
    for (auto& r : Roles()) {
      if (r->role == T::kRole && (name.empty() || r->name == name)) out.push_back(std::static_pointer_cast<const T>(std::move(r)));
    }
    return out;
  }

 private:
  Status CheckRole(const Role& role, const Registration& r) const;
  mutable std::shared_mutex mu_;
  std::map<std::string, std::unique_ptr<OpSchema>, std::less<>> ops_;
  std::map<std::string, const OpSchema*, std::less<>> roles_;
  std::map<std::string, std::vector<std::unique_ptr<KernelDef>>, std::less<>> kernels_;
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
