// Role: a function of a plugin beside ops, kernels, resource types and devices: graph compiler,
// file system, transport, collective, membership, importer, rewriter. Each is a sealed definition
// under a name.
// RoleVersion: a version of a role, of all roles that a plugin can register definitions for.
// Threads: immutable once registered; a user holds a reference, which keeps the plugin loaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// A role that this runtime knows, with its version (see plugin/role.h).
struct RoleVersion {
  std::string_view name;  // "op", "device"
  uint32_t major, minor;
};
std::span<const RoleVersion> RoleVersions();
const RoleVersion* FindRoleVersion(std::string_view name);  // NULL if there is no such role
// OK if a definition of the role with that version can be used here; FAILED_PRECONDITION says what
// is missing, *fix what to do.
Status CheckRoleVersion(std::string_view name, uint32_t major, uint32_t floor, std::string* fix);

// The size of a definition in a minor of its role. Entries beyond it are of later minors: a
// definition that was registered for this minor may leave anything there.
template <class Def>
constexpr uint32_t DefinitionBytes(uint32_t /*minor*/) {
  return sizeof(Def);
}
template <>
constexpr uint32_t DefinitionBytes<tw_file_system_def>(uint32_t minor) {
  return minor < 1 ? offsetof(tw_file_system_def, identify) : sizeof(tw_file_system_def);
}
template <>
constexpr uint32_t DefinitionBytes<tw_collective_def>(uint32_t minor) {
  return minor < 1 ? offsetof(tw_collective_def, permute) : sizeof(tw_collective_def);
}

struct Role {
  std::string_view role;  // "compiler", "file_system", "transport", "collective", "membership",
                          // "importer", "rewriter"
  std::string name;       // name or scheme
  std::string kind;       // device kind, for a role that serves one kind
  std::string plugin;
  const tw_host* host = nullptr;
  std::shared_ptr<const void> pin;  // keeps the plugin mapped and running; set by the loader
  virtual ~Role() = default;

 protected:
  explicit Role(std::string_view r) : role(r) {}
};

template <class Def>
struct RoleOf final : Role {
  static const std::string_view kRole;
  RoleOf() : Role(kRole) {}
  Def def{};
  std::vector<std::unique_ptr<const std::string>> texts;  // other texts of `def`
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
template <>
const std::string_view RoleOf<tw_importer_def>::kRole;
template <>
const std::string_view RoleOf<tw_rewriter_def>::kRole;
using CompilerRole = RoleOf<tw_compiler_def>;
using FileSystemRole = RoleOf<tw_file_system_def>;
using TransportRole = RoleOf<tw_transport_def>;
using CollectiveRole = RoleOf<tw_collective_def>;
using MembershipRole = RoleOf<tw_membership_def>;
using ImporterRole = RoleOf<tw_importer_def>;
using RewriterRole = RoleOf<tw_rewriter_def>;

// Seal a definition: required entries are checked, absent optional ones are replaced by the
// defaults in the header.
StatusOr<std::unique_ptr<Role>> SealRole(const tw_compiler_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_file_system_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_transport_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_collective_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_membership_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_importer_def* d);
StatusOr<std::unique_ptr<Role>> SealRole(const tw_rewriter_def* d);

}  // namespace thalweg
