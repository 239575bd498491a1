#include "framework/registry/registrar.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/registry/profiler_role.h"
#include "framework/registry/seal.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

tw_status* NoSave(const tw_host*, const void*, tw_sink*) { return ToC(Unimplemented("this type of resource cannot be saved")); }
tw_status* NoRestore(const tw_host*, void*, uint64_t, tw_source*, void**) {
  return ToC(Unimplemented("this type of resource cannot be restored"));
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns the op's name at the begin of a schema or spec. It is called thousands of times: the loop
// takes a fifth of the time of find_first_of.
std::string_view HeadOf(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size() && IsSpace(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !IsSpace(text[end]) && text[end] != '(' && text[end] != '@' && text[end] != ';') ++end;
  return text.substr(begin, end - begin);
}

// Seals the optional sets of a device; each is complete or absent.
#define SEAL_ENTRY(set, entry) RETURN_IF_ERROR(Needs(k->set->entry != nullptr, what, #set "." #entry))
Status SealSets(const std::string& what, const tw_device_def& def, DeviceKind* k) {
  if (def.pinned) {
    RETURN_IF_ERROR(Seal(def.pinned, StrCat(what, ": pinned set"), &k->pinned.emplace()));
    SEAL_ENTRY(pinned, allocate);
    SEAL_ENTRY(pinned, release);
  }
  if (def.peer) {
    RETURN_IF_ERROR(Seal(def.peer, StrCat(what, ": peer set"), &k->peer.emplace()));
    SEAL_ENTRY(peer, reaches);
    SEAL_ENTRY(peer, copy);
  }
  if (def.events) {
    RETURN_IF_ERROR(Seal(def.events, StrCat(what, ": event set"), &k->events.emplace()));
    SEAL_ENTRY(events, wait);
    SEAL_ENTRY(events, record);
    SEAL_ENTRY(events, release);
  }
  if (def.statistics) {
    RETURN_IF_ERROR(Seal(def.statistics, StrCat(what, ": statistics set"), &k->statistics.emplace()));
    SEAL_ENTRY(statistics, read);
  }
  if (def.capture) {
    RETURN_IF_ERROR(Seal(def.capture, StrCat(what, ": capture set"), &k->capture.emplace()));
    SEAL_ENTRY(capture, begin);
    SEAL_ENTRY(capture, end);
    SEAL_ENTRY(capture, replay);
    SEAL_ENTRY(capture, release);
    const bool updates = k->capture->mark != nullptr;
    if (updates != (k->capture->update != nullptr) || updates != (k->capture->updated != nullptr)) {
      return InvalidArgument(what, ": capture.mark, update and updated only make sense together");
    }
  }
  if (def.profile) {
    RETURN_IF_ERROR(Seal(def.profile, StrCat(what, ": profile set"), &k->profile.emplace()));
    SEAL_ENTRY(profile, start);
    SEAL_ENTRY(profile, stop);
  }
  if (def.dlpack) {
    RETURN_IF_ERROR(Seal(def.dlpack, StrCat(what, ": DLPack set"), &k->dlpack.emplace()));
    SEAL_ENTRY(dlpack, id);
    SEAL_ENTRY(dlpack, take);
  }
  return Status();
}
#undef SEAL_ENTRY

}  // namespace

Registrar::Registrar(const tw_host* host, std::string plugin, Registration* r) : host_(host), plugin_(std::move(plugin)), out_(r) {
  c_ = {{TW_SIZED(tw_registrar), &Registrar::AddRole, &Registrar::Offers}, this};
}

tw_status* Registrar::AddRole(tw_registrar* r, const tw_role* d) {
  Registrar* self = reinterpret_cast<C*>(r)->self;
  tw_status* s = Guard([&] { return self->Add(d); });
  // A plugin that ignores the returned error is refused all the same.
  if (s && self->out_->status.ok()) self->out_->status = s->status;
  return s;
}

uint32_t Registrar::Offers(tw_registrar*, const char* role, uint64_t len, uint32_t major, uint32_t minor) {
  std::string fix;
  return role && CheckRoleVersion({role, len}, major, minor, &fix).ok();
}

Status Registrar::Add(const tw_role* d) {
  tw_role role;
  RETURN_IF_ERROR(Seal(d, "registration", &role));
  ASSIGN_OR_RETURN(std::string_view name, SealText(role.name, role.name_len, "registration: name of the role"));
  if (role.floor > role.minor) {
    return InvalidArgument("registration of role '", Shown(name), "': floor ", role.floor, " is above minor ", role.minor);
  }
  std::string fix;
  if (Status s = CheckRoleVersion(name, role.major, role.floor, &fix); !s.ok()) {
    out_->lacks_ops = out_->lacks_ops || name == "op";
    out_->LeaveOut(StrCat("definitions of role '", Shown(name), "': ", Message(s)), std::move(fix));
    return Status();
  }
  minor_ = std::min(role.minor, FindRoleVersion(name)->minor);
  using Adder = Status (Registrar::*)(const void*);
  static constexpr std::pair<std::string_view, Adder> kAdders[] = {
      {"op", &Registrar::AddOp},
      {"kernel", &Registrar::AddKernel},
      {"resource", &Registrar::AddResource},
      {"device", &Registrar::AddDevice},
      {"compiler", &Registrar::AddSealed<tw_compiler_def>},
      {"file_system", &Registrar::AddSealed<tw_file_system_def>},
      {"transport", &Registrar::AddSealed<tw_transport_def>},
      {"collective", &Registrar::AddSealed<tw_collective_def>},
      {"membership", &Registrar::AddSealed<tw_membership_def>},
      {"importer", &Registrar::AddSealed<tw_importer_def>},
      {"rewriter", &Registrar::AddSealed<tw_rewriter_def>},
      {"profiler", &Registrar::AddSealed<tw_profiler_def>},
  };
  for (const auto& [of, add] : kAdders) {
    if (of == name) return (this->*add)(role.definition);
  }
  return Internal("role '", name, "' has a version, but nothing takes its definitions");
}

template <class Def>
Status Registrar::AddSealed(const void* d) {
  const auto* def = static_cast<const Def*>(d);
  Def cut{};
  if (const uint32_t known = DefinitionBytes<Def>(minor_); def && def->size > known) {
    std::memcpy(static_cast<void*>(&cut), d, known);
    cut.size = known;
    def = &cut;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Role> role, SealRole(def));
  role->host = host_;
  role->plugin = plugin_;
  out_->roles.push_back(std::move(role));
  return Status();
}

Status Registrar::LeaveOut(std::string_view what, std::string_view name, const Status& why) {
  out_->lacks_ops = out_->lacks_ops || what == "op";
  out_->LeaveOut(StrCat(what, " '", Shown(name), "': ", Message(why)), "upgrade the runtime to one that has the element type");
  return Status();
}

Status Registrar::AddOp(const void* d) {
  tw_op_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_op_def*>(d), "op definition", &def));
  ASSIGN_OR_RETURN(std::string_view text, SealText(def.schema, def.schema_len, "op definition: schema"));
  auto op = std::make_unique<OpSchema>();
  op->name = HeadOf(text);
  op->text = text;
  op->unread = true;
  op->def = def;
  op->def.schema = op->text.data();  // the plugin's text may be gone when this is read
  op->host = host_;
  op->plugin = plugin_;
  // Roles are looked up by name, so the schema of an op that has one must be parsed.
  if (!out_->read_later || text.find("role") != text.npos) {
    Status s = ReadOpSchema(op.get());
    if (s.code() == absl::StatusCode::kUnimplemented) return LeaveOut("op", op->name, s);
    RETURN_IF_ERROR(s);
  }
  out_->ops.push_back(std::move(op));
  return Status();
}

Status Registrar::AddKernel(const void* d) {
  tw_kernel_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_kernel_def*>(d), "kernel definition", &def));
  ASSIGN_OR_RETURN(std::string_view text, SealText(def.spec, def.spec_len, "kernel definition: spec"));
  if (!def.execute) return Needs(false, StrCat("kernel '", text, "'"), "execute");
  if (out_->read_later && HeadOf(text) != "*") return KeepKernel(def, text);
  auto k = std::make_unique<KernelDef>();
  auto spec = ParseKernelSpec(text);
  if (spec.status().code() == absl::StatusCode::kUnimplemented) return LeaveOut("kernel", text, spec.status());
  ASSIGN_OR_RETURN(k->spec, std::move(spec));
  k->def = def;
  k->def.spec = k->spec.text.data();
  k->host = host_;
  k->plugin = plugin_;
  out_->kernels.push_back(std::move(k));
  return Status();
}

Status Registrar::KeepKernel(tw_kernel_def def, std::string_view text) {
  if (!out_->origin) {
    out_->origin = std::make_shared<KernelOrigin>();
    out_->origin->host = host_;
    out_->origin->plugin = plugin_;
  }
  def.spec = out_->origin->texts.Keep(text).data();
  const std::string_view op = HeadOf({def.spec, text.size()});
  if (out_->unread.empty() || out_->unread.back().op != op) out_->unread.push_back({out_->origin, op, 0, {}});
  out_->unread.back().defs.push_back(def);
  return Status();
}

Status Registrar::AddResource(const void* d) {
  tw_resource_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_resource_def*>(d), "resource definition", &def));
  ASSIGN_OR_RETURN(std::string_view type, SealText(def.type, def.type_len, "resource definition: type"));
  RETURN_IF_ERROR(Needs(def.destroy != nullptr, StrCat("resource type '", type, "'"), "destroy"));
  auto t = std::make_unique<ResourceType>();
  t->type = type;
  t->plugin = plugin_;
  t->def = def;
  t->def.type = t->type.data();
  t->saves = t->def.save && t->def.restore;
  if (!t->def.save) t->def.save = NoSave;
  if (!t->def.restore) t->def.restore = NoRestore;
  t->host = host_;
  out_->resources.push_back(std::move(t));
  return Status();
}

Status Registrar::AddDevice(const void* d) {
  tw_device_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_device_def*>(d), "device definition", &def));
  ASSIGN_OR_RETURN(std::string_view kind, SealText(def.kind, def.kind_len, "device definition: kind"));
  std::string what = StrCat("device kind '", kind, "'");
  for (char c : kind) {
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) return InvalidArgument(what, ": a kind is made of letters, digits and _, so that it can stand in a device's name");
  }
  RETURN_IF_ERROR(Needs(def.enumerate != nullptr, what, "enumerate"));
  RETURN_IF_ERROR(Needs(def.allocate != nullptr, what, "allocate"));
  RETURN_IF_ERROR(Needs(def.release != nullptr, what, "release"));
  RETURN_IF_ERROR(Needs(def.copy != nullptr, what, "copy"));
  auto k = std::make_unique<DeviceKind>();
  if (def.streams) {
    RETURN_IF_ERROR(Seal(def.streams, StrCat(what, ": stream set"), &k->streams));
    RETURN_IF_ERROR(Needs(k->streams.create != nullptr, what, "streams.create"));
    RETURN_IF_ERROR(Needs(k->streams.destroy != nullptr, what, "streams.destroy"));
    RETURN_IF_ERROR(Needs(k->streams.signal != nullptr, what, "streams.signal"));
    k->has_streams = true;
  }
  RETURN_IF_ERROR(SealSets(what, def, k.get()));
  k->kind = UpperCase(kind);
  k->plugin = plugin_;
  k->def = def;
  k->def.kind = k->kind.data();
  k->def.streams = k->has_streams ? &k->streams : nullptr;
  k->def.pinned = k->pinned ? &*k->pinned : nullptr;
  k->def.peer = k->peer ? &*k->peer : nullptr;
  k->def.events = k->events ? &*k->events : nullptr;
  k->def.statistics = k->statistics ? &*k->statistics : nullptr;
  k->def.capture = k->capture ? &*k->capture : nullptr;
  k->def.profile = k->profile ? &*k->profile : nullptr;
  k->def.dlpack = k->dlpack ? &*k->dlpack : nullptr;
  k->host = host_;
  out_->devices.push_back(std::move(k));
  return Status();
}

}  // namespace thalweg
