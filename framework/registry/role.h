// Roles that a plugin plays beside ops, kernels, resource types and devices: graph compilers, file systems, transports, collectives,
// membership. Each is a sealed definition under a name.
// Threads: immutable once registered; whoever uses one holds it, and so its plugin.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

struct Role {
  std::string_view role;  // "compiler", "file_system", "transport", "collective", "membership"
  std::string name;       // or scheme
  std::string kind;       // of devices, where it works for one kind
  std::string plugin;
  const tw_host* host = nullptr;
  std::shared_ptr<const void> pin;  // keeps the plugin mapped and not yet shut down; set by the loader
  virtual ~Role() = default;

 protected:
  explicit Role(std::string_view r) : role(r) {}
};

template <class Def>
struct RoleOf final : Role {
  static const std::string_view kRole;
  RoleOf() : Role(kRole) {}
  Def def{};
};
template <>
const std::string_view RoleOf<tw_compiler_def>::kRole;
template <>
const std::string_view RoleOf<tw_file_system_def>::kRole;
template <>
const std::string_view RoleOf<tw_transport_def>::kRole;
template <>
const std::string_view RoleOf<tw_collective_def>::kRole;
template <>
const std::string_view RoleOf<tw_membership_def>::kRole;
using CompilerRole = RoleOf<tw_compiler_def>;
using FileSystemRole = RoleOf<tw_file_system_def>;
using TransportRole = RoleOf<tw_transport_def>;
using CollectiveRole = RoleOf<tw_collective_def>;
using MembershipRole = RoleOf<tw_membership_def>;

// Sealed: required entries are there, absent optional ones replaced by what the header says.
StatusOr<std::unique_ptr<Role>> SealRole(const tw_compiler_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_file_system_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_transport_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_collective_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_membership_def* d);

}  // namespace thalweg
