#include "framework/registry/role.h"

#include <algorithm>
#include <iterator>

#include "framework/base/strings.h"
#include "framework/registry/profiler_role.h"
#include "framework/registry/seal.h"

namespace thalweg {

template <>
const std::string_view CompilerRole::kRole = "compiler";
template <>
const std::string_view FileSystemRole::kRole = "file_system";
template <>
const std::string_view TransportRole::kRole = "transport";
template <>
const std::string_view CollectiveRole::kRole = "collective";
template <>
const std::string_view MembershipRole::kRole = "membership";
template <>
const std::string_view ImporterRole::kRole = "importer";
template <>
const std::string_view RewriterRole::kRole = "rewriter";
template <>
const std::string_view ProfilerRole::kRole = "profiler";

namespace {

tw_status* Absent(const char* entry) { return ToC(Unimplemented("the plugin has no '", entry, "'")); }

// Seals the definition and takes its name. what: receives the name of the definition for messages.
template <class Def>
StatusOr<std::unique_ptr<RoleOf<Def>>> Begin(const Def* d, const char* Def::* name, uint64_t Def::* len, std::string* what) {
  auto r = std::make_unique<RoleOf<Def>>();
  RETURN_IF_ERROR(Seal(d, StrCat(r->role, " definition"), &r->def));
  ASSIGN_OR_RETURN(std::string_view text, SealText(r->def.*name, r->def.*len, StrCat(r->role, " definition: name")));
  r->name = text;
  r->def.*name = r->name.data();
  *what = StrCat(r->role, " '", r->name, "'");
  return r;
}

struct Entry {
  bool present;
  const char* name;
};
Status NeedsAll(const std::string& what, std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) RETURN_IF_ERROR(Needs(e.present, what, e.name));
  return Status();
}
#define ENTRY(field) {r->def.field != nullptr, #field}

Status CheckScheme(const std::string& what, std::string_view scheme) {
  auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool good = letter(scheme[0]) && std::all_of(scheme.begin(), scheme.end(), [&](char c) {
                return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
              });
  if (good) return Status();
  return InvalidArgument(what, ": a scheme is a lower-case letter, then lower-case letters, digits, '+', '-' and '.'");
}

// The name of a role that a program chooses by name.
Status CheckRoleName(const std::string& what, std::string_view name) {
  const bool good =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  return good ? Status() : InvalidArgument(what, ": a name is made of lower-case letters, digits and _");
}

template <class Def>
Status TakeKind(const std::string& what, RoleOf<Def>* r) {
  ASSIGN_OR_RETURN(std::string_view kind, SealText(r->def.kind, r->def.kind_len, StrCat(what, ": device kind")));
  r->kind = UpperCase(kind);
  r->def.kind = r->kind.data();
  return Status();
}

constexpr RoleVersion kRoles[] = {
    {"op", TW_OP_MAJOR, TW_OP_MINOR},
    {"kernel", TW_KERNEL_MAJOR, TW_KERNEL_MINOR},
    {"resource", TW_RESOURCE_MAJOR, TW_RESOURCE_MINOR},
    {"device", TW_DEVICE_MAJOR, TW_DEVICE_MINOR},
    {"compiler", TW_COMPILER_MAJOR, TW_COMPILER_MINOR},
    {"file_system", TW_FILE_SYSTEM_MAJOR, TW_FILE_SYSTEM_MINOR},
    {"transport", TW_TRANSPORT_MAJOR, TW_TRANSPORT_MINOR},
    {"collective", TW_COLLECTIVE_MAJOR, TW_COLLECTIVE_MINOR},
    {"membership", TW_MEMBERSHIP_MAJOR, TW_MEMBERSHIP_MINOR},
    {"importer", TW_IMPORTER_MAJOR, TW_IMPORTER_MINOR},
    {"rewriter", TW_REWRITER_MAJOR, TW_REWRITER_MINOR},
    {"profiler", TW_PROFILER_MAJOR, TW_PROFILER_MINOR},
};

}  // namespace

std::span<const RoleVersion> RoleVersions() { return kRoles; }

const RoleVersion* FindRoleVersion(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRoles), std::end(kRoles), [name](const RoleVersion& r) { return r.name == name; });
  return found == std::end(kRoles) ? nullptr : found;
}

Status CheckRoleVersion(std::string_view name, uint32_t major, uint32_t floor, std::string* fix) {
  const RoleVersion* here = FindRoleVersion(name);
  if (here && major == here->major && floor <= here->minor) return Status();
  *fix = here && major < here->major ? "rebuild the plugin against this runtime's headers"
                                     : "upgrade the runtime, or rebuild the plugin against its headers";
  if (!here) return FailedPrecondition("this runtime does not know the role");
  return FailedPrecondition("they need version ", major, ".", floor, ", this runtime has ", here->major, ".", here->minor);
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_compiler_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_compiler_def::name, &tw_compiler_def::name_len, &what));
  RETURN_IF_ERROR(TakeKind(what, r.get()));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(claim), ENTRY(compile), ENTRY(execute), ENTRY(destroy)}));
  bool stores = r->def.serialize != nullptr;
  if (stores != (r->def.load != nullptr) || stores != (r->def.tag != nullptr)) {
    return InvalidArgument(what, ": serialize, load and tag only make sense together");
  }
  if (!r->def.usable) r->def.usable = [](const tw_host*, void*, void*, const char*, uint64_t) -> uint32_t { return 0; };
  if (!r->def.inplace) r->def.inplace = [](const tw_host*, const void*, uint32_t, uint32_t) -> uint32_t { return 0; };
  return r;  // without `prepare`, a state serves only the shapes that it was compiled for
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_file_system_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_file_system_def::scheme, &tw_file_system_def::scheme_len, &what));
  RETURN_IF_ERROR(CheckScheme(what, r->name));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(create), ENTRY(append), ENTRY(sync), ENTRY(close), ENTRY(open), ENTRY(read), ENTRY(release),
                                  ENTRY(rename), ENTRY(remove), ENTRY(list)}));
  if ((r->def.lock_folder_of != nullptr) != (r->def.unlock != nullptr)) {
    return InvalidArgument(what, ": lock_folder_of and unlock only make sense together");
  }
  auto nothing = [](const tw_host*, void*, const char*, uint64_t) -> tw_status* { return nullptr; };
  if (!r->def.make_folder) r->def.make_folder = nothing;
  if (!r->def.remove_folder) r->def.remove_folder = nothing;
  if (!r->def.sync_folder_of) r->def.sync_folder_of = nothing;
  return r;  // without `lock_folder_of`, the host locks within the process
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_transport_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_transport_def::scheme, &tw_transport_def::scheme_len, &what));
  RETURN_IF_ERROR(CheckScheme(what, r->name));
  RETURN_IF_ERROR(
      NeedsAll(what, {ENTRY(listen), ENTRY(connect), ENTRY(call), ENTRY(cancel), ENTRY(answer), ENTRY(close_peer), ENTRY(close)}));
  if (r->def.security < TW_TRANSPORT_AUTHENTICATED || r->def.security > TW_TRANSPORT_OPEN) {
    return InvalidArgument(what, ": security is ", r->def.security, "; it must be one of TW_TRANSPORT_*");
  }
  if (bool(r->def.register_memory) != bool(r->def.unregister_memory)) {
    return InvalidArgument(what, ": register_memory and unregister_memory go together; give both or none");
  }
  if (!r->def.register_memory) {
    r->def.register_memory = [](const tw_host*, void*, const char*, uint64_t, void*, uint64_t, void**) {
      return Absent("register_memory");
    };
  }
  if (!r->def.unregister_memory) r->def.unregister_memory = [](const tw_host*, void*, void*) {};
  if (bool(r->def.poll) != bool(r->def.wake)) return InvalidArgument(what, ": poll and wake go together; give both or none");
  if (!r->def.poll) r->def.poll = [](const tw_host*, void*, uint64_t, uint32_t (*)(void*), void*) -> uint32_t { return 0; };
  if (!r->def.wake) r->def.wake = [](const tw_host*, void*) {};
  return r;
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_collective_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_collective_def::name, &tw_collective_def::name_len, &what));
  RETURN_IF_ERROR(TakeKind(what, r.get()));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(create), ENTRY(destroy), ENTRY(abort), ENTRY(all_reduce), ENTRY(broadcast), ENTRY(all_gather)}));
  if (!r->def.reduce_scatter)
    r->def.reduce_scatter = [](const tw_host*, void*, const tw_collective_call*) { return Absent("reduce_scatter"); };
  if (!r->def.all_to_all) r->def.all_to_all = [](const tw_host*, void*, const tw_collective_call*) { return Absent("all_to_all"); };
  return r;
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_membership_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_membership_def::scheme, &tw_membership_def::scheme_len, &what));
  RETURN_IF_ERROR(CheckScheme(what, r->name));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(join), ENTRY(leave), ENTRY(put), ENTRY(get), ENTRY(remove), ENTRY(watch), ENTRY(unwatch)}));
  return r;
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_importer_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_importer_def::name, &tw_importer_def::name_len, &what));
  RETURN_IF_ERROR(CheckRoleName(what, r->name));
  ASSIGN_OR_RETURN(std::string_view doc, SealText(r->def.doc, r->def.doc_len, StrCat(what, ": doc")));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(recognise), ENTRY(load)}));
  auto copy = [&](const char** text, uint64_t* len) {
    const std::string_view from(*text ? *text : "", *text ? *len : 0);
    *text = r->texts.emplace_back(std::make_unique<const std::string>(from))->c_str();
    *len = from.size();
  };
  for (auto [text, len] : {std::pair{&r->def.files, &r->def.files_len}, {&r->def.options, &r->def.options_len}}) {
    if (*len == 0) continue;
    RETURN_IF_ERROR(SealText(*text, *len, what).status());
  }
  r->def.doc_len = doc.size();
  copy(&r->def.doc, &r->def.doc_len);
  copy(&r->def.files, &r->def.files_len);
  copy(&r->def.options, &r->def.options_len);
  return r;
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_rewriter_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_rewriter_def::name, &tw_rewriter_def::name_len, &what));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(rewrite)}));
  return r;
}

StatusOr<std::unique_ptr<Role>> SealRole(const tw_profiler_def* d) {
  std::string what;
  ASSIGN_OR_RETURN(auto r, Begin(d, &tw_profiler_def::name, &tw_profiler_def::name_len, &what));
  RETURN_IF_ERROR(CheckRoleName(what, r->name));
  RETURN_IF_ERROR(NeedsAll(what, {ENTRY(start), ENTRY(step), ENTRY(span), ENTRY(stop)}));
  if (!r->def.count) r->def.count = [](const tw_host*, void*, const tw_profiled_count*) -> tw_status* { return nullptr; };
  if (!r->def.done) r->def.done = [](const tw_host*, void*) -> tw_status* { return nullptr; };
  return r;
}

}  // namespace thalweg
