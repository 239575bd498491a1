#include "framework/registry/registry.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <tuple>

#include "framework/base/dtype.h"
#include "framework/base/strings.h"
#include "framework/registry/seal.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

tw_status* NoSave(const tw_host*, const void*, tw_sink*) { return ToC(Unimplemented("this type of resource cannot be saved")); }
tw_status* NoRestore(const tw_host*, void*, uint64_t, tw_source*, void**) {
  return ToC(Unimplemented("this type of resource cannot be restored"));
}

// The sets that a device may leave out; each is whole or not there.
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
  }
  if (def.profile) {
    RETURN_IF_ERROR(Seal(def.profile, StrCat(what, ": profile set"), &k->profile.emplace()));
    SEAL_ENTRY(profile, start);
    SEAL_ENTRY(profile, stop);
  }
  return Status();
}
#undef SEAL_ENTRY

Status Taken(std::string_view what, std::string_view name, std::string_view by, std::string_view here) {
  if (by == here) return AlreadyExists(what, " '", name, "' is registered twice by plugin '", here, "'");
  return AlreadyExists(what, " '", name, "' of plugin '", here, "' is already registered by plugin '", by,
                       "', which was loaded first; disable one of the two");
}

// ---- Argument names of a kernel, tied to its op ----

Status Mark(const std::vector<std::string>& names, const OpSchema& op, std::string_view clause, bool outputs, std::vector<uint8_t>* in,
            std::vector<uint8_t>* out) {
  for (const std::string& name : names) {
    int i = op.FindInput(name), o = outputs ? op.FindOutput(name) : -1;
    if (i < 0 && o < 0) {
      return NotFound("clause '", clause, "' names '", name, "', which is no ", outputs ? "argument" : "input", " of op '", op.name, "'");
    }
    (i >= 0 ? *in : *out)[size_t(i >= 0 ? i : o)] = 1;
  }
  return Status();
}

// To: per output argument its input, or its inputs in order of preference.
template <class To>
Status Pair(const std::vector<std::pair<std::string, std::string>>& pairs, const OpSchema& op, std::string_view clause, To* to) {
  constexpr bool kMany = !std::is_same_v<typename To::value_type, int32_t>;
  for (const auto& [y, x] : pairs) {
    int o = op.FindOutput(y), i = op.FindInput(x);
    if (o < 0) return NotFound("clause '", clause, "' names '", y, "', which is no output of op '", op.name, "'");
    if (i < 0) return NotFound("clause '", clause, "' names '", x, "', which is no input of op '", op.name, "'");
    if constexpr (kMany) {
      (*to)[size_t(o)].push_back(i);
    } else {
      if ((*to)[size_t(o)] >= 0) return InvalidArgument("clause '", clause, "' names output '", y, "' twice");
      (*to)[size_t(o)] = i;
    }
  }
  return Status();
}

Status CheckTypes(const std::vector<uint32_t>& types, const std::vector<ArgSpec>& args, const OpSchema& op, std::string_view what) {
  if (types.size() != args.size()) {
    return InvalidArgument("the spec has ", types.size(), " ", what, " types but op '", op.name, "' has ", args.size(), " ", what, "s");
  }
  for (size_t a = 0; a < args.size(); ++a) {
    if (types[a] == 0) continue;
    if (!args[a].list_attr.empty()) {
      return InvalidArgument("the type of '", args[a].name, "' must be _, because it takes a list of mixed types");
    }
    if (args[a].dtype && args[a].dtype != types[a]) {
      return InvalidArgument("the type of '", args[a].name, "' is ", DTypeName(types[a]), " in the spec but ", DTypeName(args[a].dtype),
                             " in op '", op.name, "'");
    }
    // A type that the op's attribute does not allow is no error: such a kernel is never chosen, and a plugin must not be refused because
    // the host's op takes fewer types than the one it was written for.
  }
  return Status();
}

// What the kernel opens must be able to hold a handle.
Status CheckOpened(const KernelDef& k) {
  for (size_t a = 0; a < k.op->inputs.size(); ++a) {
    const ArgSpec& arg = k.op->inputs[a];
    if (!k.read[a] && !k.update[a]) continue;
    if (k.read[a] && k.update[a]) return InvalidArgument("'", arg.name, "' stands in read and in update; update is enough");
    if (k.op->unopened[a]) return InvalidArgument("'", arg.name, "' is unopened by the op's schema; no kernel may read or update it");
    if (arg.dtype && arg.dtype != TW_RESOURCE && !arg.ref) {
      return InvalidArgument("'", arg.name, "' is ", DTypeName(arg.dtype), "; only resources can be opened with read or update");
    }
  }
  return Status();
}

Status Resolve(const OpSchema& op, KernelDef* k) {
  k->op = &op;
  size_t n_in = op.inputs.size(), n_out = op.outputs.size();
  for (uint32_t a = 0; a < op.attrs.size(); ++a) {
    if (k->host && op.attrs[a].since > k->host->minor) k->newer_attrs.push_back(a);
  }
  for (auto* v : {&k->host_in, &k->keep, &k->read, &k->update}) v->assign(n_in, 0);
  k->host_out.assign(n_out, 0);
  k->inplace.assign(n_out, {});
  k->view.assign(n_out, -1);
  RETURN_IF_ERROR(Mark(k->spec.host, op, "host", true, &k->host_in, &k->host_out));
  RETURN_IF_ERROR(Mark(k->spec.keep, op, "keep", false, &k->keep, nullptr));
  RETURN_IF_ERROR(Mark(k->spec.read, op, "read", false, &k->read, nullptr));
  RETURN_IF_ERROR(Mark(k->spec.update, op, "update", false, &k->update, nullptr));
  RETURN_IF_ERROR(Pair(k->spec.inplace, op, "inplace", &k->inplace));
  RETURN_IF_ERROR(Pair(k->spec.view, op, "view", &k->view));
  RETURN_IF_ERROR(CheckOpened(*k));
  if (!k->spec.has_types) return Status();
  RETURN_IF_ERROR(CheckTypes(k->spec.in_types, op.inputs, op, "input"));
  return k->spec.out_types.empty() ? Status() : CheckTypes(k->spec.out_types, op.outputs, op, "output");
}

// at has one entry more than there are arguments.
bool Fits(const std::vector<uint32_t>& wanted, const uint32_t* types, const std::vector<uint32_t>& at) {
  for (size_t a = 0; a < wanted.size(); ++a) {
    if (wanted[a] == 0) continue;
    for (uint32_t i = at[a]; i < at[a + 1]; ++i) {
      if (BaseType(types[i]) != BaseType(wanted[a])) return false;
    }
  }
  return true;
}

// A kernel that was written before an attribute existed computes what its default means.
bool Knows(const KernelDef& k, const std::vector<AttrValue>& attrs) {
  for (uint32_t a : k.newer_attrs) {
    if (!(attrs[a] == k.op->attrs[a].default_value)) return false;
  }
  return true;
}

bool Before(const std::shared_ptr<const Role>& a, const std::shared_ptr<const Role>& b) {
  return std::tie(a->role, a->name, a->plugin) < std::tie(b->role, b->name, b->plugin);
}

}  // namespace

// ---- Registry ----

bool Registry::Better(const KernelDef& a, const KernelDef& b) const {
  if (a.spec.any_op != b.spec.any_op) return b.spec.any_op;
  auto rank = [this](const KernelDef& k) { return std::find(preferred_.begin(), preferred_.end(), k.plugin); };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.spec.priority != b.spec.priority) return a.spec.priority > b.spec.priority;
  if (a.plugin != b.plugin) return a.plugin < b.plugin;
  return a.order < b.order;
}

void Registry::Bring(PluginSource::Part part, std::string_view name, std::string_view kind) const {
  if (PluginSource* source = source_.load(std::memory_order_acquire)) source->Bring(part, name, kind);
}

Status Registry::Commit(Registration r) {
  RETURN_IF_ERROR(r.status);
  std::unique_lock lock(mu_);
  // First everything is checked, against what is here and against itself; only then something changes.
  std::map<std::string_view, const OpSchema*> new_ops, new_roles;
  for (const auto& op : r.ops) {
    if (auto it = ops_.find(op->name); it != ops_.end()) return Taken("op", op->name, it->second->plugin, op->plugin);
    if (!new_ops.emplace(op->name, op.get()).second) return Taken("op", op->name, op->plugin, op->plugin);
    if (op->role.empty()) continue;
    if (auto it = roles_.find(op->role); it != roles_.end()) return Taken("role", op->role, it->second->plugin, op->plugin);
    if (!new_roles.emplace(op->role, op.get()).second) return Taken("role", op->role, op->plugin, op->plugin);
  }
  for (const auto& k : r.kernels) {
    if (k->spec.any_op) continue;
    const OpSchema* op = nullptr;
    if (auto it = new_ops.find(k->spec.op); it != new_ops.end()) op = it->second;
    if (auto it = ops_.find(k->spec.op); it != ops_.end()) op = it->second.get();
    if (!op) {
      return NotFound("kernel '", k->spec.text, "' of plugin '", k->plugin, "': no op '", k->spec.op,
                      "' is registered; load the plugin that defines it first");
    }
    if (Status s = Resolve(*op, k.get()); !s.ok()) return Prefix(s, StrCat("kernel '", k->spec.text, "' of plugin '", k->plugin, "':"));
  }
  std::map<std::string_view, bool> new_types, new_kinds;
  for (const auto& t : r.resources) {
    if (t->type == TW_VARIABLE_TYPE) return Taken("resource type", t->type, "the runtime itself", t->plugin);
    if (auto it = resources_.find(t->type); it != resources_.end()) return Taken("resource type", t->type, it->second->plugin, t->plugin);
    if (!new_types.emplace(t->type, true).second) return Taken("resource type", t->type, t->plugin, t->plugin);
  }
  for (const auto& d : r.devices) {
    if (!new_kinds.emplace(d->kind, true).second) return Taken("device kind", d->kind, d->plugin, d->plugin);
  }
  for (const auto& role : r.roles) RETURN_IF_ERROR(CheckRole(*role, r));

  for (auto& op : r.ops) {
    if (!op->role.empty()) roles_.emplace(op->role, op.get());
    ops_.emplace(op->name, std::move(op));
  }
  for (const auto& any : for_any_op_) {
    for (const auto& [name, op] : new_ops) AddMadeFor(*op, *any);
  }
  for (auto& k : r.kernels) {
    if (!k->spec.any_op) {
      AddKernel(std::move(k));
      continue;
    }
    for (const auto& [name, op] : ops_) AddMadeFor(*op, *k);
    for_any_op_.push_back(std::move(k));
  }
  const bool only = r.resources.size() == 1;
  for (auto& t : r.resources) {
    t->only = only;
    resources_.emplace(t->type, std::move(t));
  }
  for (auto& d : r.devices) {
    auto key = std::make_pair(d->kind, d->plugin);
    devices_.emplace(std::move(key), std::move(d));
  }
  for (auto& role : r.roles) played_.push_back(std::move(role));
  std::sort(played_.begin(), played_.end(), Before);
  return Status();
}

void Registry::AddKernel(std::unique_ptr<KernelDef> k) {
  k->order = order_++;
  auto& of_op = kernels_[k->spec.op];
  auto better = [this](const auto& a, const auto& b) { return Better(*a, *b); };
  of_op.insert(std::upper_bound(of_op.begin(), of_op.end(), k, better), std::move(k));
}

void Registry::AddMadeFor(const OpSchema& op, const KernelDef& any) {
  auto k = std::make_unique<KernelDef>(any);
  k->spec.op = op.name;
  k->def.spec = k->spec.text.data();
  (void)Resolve(op, k.get());  // names no argument, so nothing can be wrong
  AddKernel(std::move(k));
}

// A scheme leads to one plugin; a name is known within its plugin.
Status Registry::CheckRole(const Role& role, const Registration& r) const {
  const bool scheme = role.kind.empty();
  for (const auto& other : played_) {
    if (other->role == role.role && other->name == role.name && (scheme || other->plugin == role.plugin)) {
      return Taken(role.role, role.name, other->plugin, role.plugin);
    }
  }
  for (const auto& other : r.roles) {
    if (other.get() != &role && other->role == role.role && other->name == role.name) {
      return Taken(role.role, role.name, role.plugin, role.plugin);
    }
  }
  return Status();
}

void Registry::Remove(std::string_view plugin) {
  std::unique_lock lock(mu_);
  for (auto& [op, of_op] : kernels_) {
    // Also other plugins' kernels of this plugin's ops: without its schema a kernel means nothing.
    std::erase_if(of_op, [&](const auto& k) { return k->plugin == plugin || k->op->plugin == plugin; });
  }
  std::erase_if(kernels_, [](const auto& e) { return e.second.empty(); });
  std::erase_if(for_any_op_, [&](const auto& k) { return k->plugin == plugin; });
  std::erase_if(roles_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(ops_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(resources_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(devices_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(played_, [&](const auto& r) { return r->plugin == plugin; });
}

Status Registry::CheckRemovable(std::string_view plugin) const {
  std::shared_lock lock(mu_);
  for (const auto& [op, of_op] : kernels_) {
    for (const auto& k : of_op) {
      if (k->op->plugin != plugin || k->plugin == plugin || k->spec.any_op) continue;
      return FailedPrecondition("plugin '", plugin, "' cannot be unloaded: plugin '", k->plugin, "' has kernels of its op '", op,
                                "'; unload that first");
    }
  }
  for (const auto& role : played_) {
    if (role->plugin != plugin || role.use_count() == 1) continue;
    return FailedPrecondition("plugin '", plugin, "' cannot be unloaded: its ", role->role, " '", role->name, "' is in use");
  }
  return Status();
}

const OpSchema* Registry::FindOp(std::string_view name) const {
  auto find = [&]() -> const OpSchema* {
    std::shared_lock lock(mu_);
    auto it = ops_.find(name);
    return it == ops_.end() ? nullptr : it->second.get();
  };
  if (const OpSchema* op = find()) return op;
  Bring(PluginSource::Part::kOp, name);
  return find();
}

StatusOr<const OpSchema*> Registry::FindRole(std::string_view role) const {
  auto find = [&]() -> const OpSchema* {
    std::shared_lock lock(mu_);
    auto it = roles_.find(role);
    return it == roles_.end() ? nullptr : it->second;
  };
  if (const OpSchema* op = find()) return op;
  Bring(PluginSource::Part::kOpRole, role);
  if (const OpSchema* op = find()) return op;
  return FailedPrecondition("no loaded plugin has an op that plays the role '", role, "'; load one that does");
}

const KernelDef* Registry::FindKernel(const OpSchema& op, std::string_view kind, const std::vector<uint32_t>& types,
                                      const std::vector<uint32_t>& in_at, const std::vector<uint32_t>& out_at,
                                      const std::vector<AttrValue>& attrs) const {
  Bring(PluginSource::Part::kKernel, op.name, kind);  // a better one may be in a plugin that is not loaded
  std::shared_lock lock(mu_);
  auto it = kernels_.find(op.name);
  if (it == kernels_.end()) return nullptr;
  for (const auto& k : it->second) {
    if (k->spec.kind == kind && Fits(k->spec.in_types, types.data(), in_at) &&
        Fits(k->spec.out_types, types.data() + in_at.back(), out_at) && Knows(*k, attrs)) {
      return k.get();
    }
  }
  return nullptr;
}

std::vector<const KernelDef*> Registry::Kernels(std::string_view op) const {
  Bring(PluginSource::Part::kKernel, op);
  std::shared_lock lock(mu_);
  std::vector<const KernelDef*> all;
  if (auto it = kernels_.find(op); it != kernels_.end()) {
    for (const auto& k : it->second) all.push_back(k.get());
  }
  return all;
}

const ResourceType* Registry::FindResourceType(std::string_view type) const {
  auto find = [&]() -> const ResourceType* {
    std::shared_lock lock(mu_);
    auto it = resources_.find(type);
    return it == resources_.end() ? nullptr : it->second.get();
  };
  if (const ResourceType* found = find()) return found;
  Bring(PluginSource::Part::kResource, type);
  return find();
}

std::vector<const OpSchema*> Registry::Ops() const {
  Bring(PluginSource::Part::kOp, "");
  std::shared_lock lock(mu_);
  std::vector<const OpSchema*> all;
  for (const auto& [name, op] : ops_) all.push_back(op.get());
  return all;
}

std::vector<const DeviceKind*> Registry::DeviceKinds(std::string_view kind) const {
  Bring(PluginSource::Part::kDevice, kind);
  std::shared_lock lock(mu_);
  std::vector<const DeviceKind*> all;
  for (const auto& [key, d] : devices_) {
    if (kind.empty() || d->kind == kind) all.push_back(d.get());
  }
  return all;
}

std::vector<DeviceKindName> Registry::DeviceKindNames() const {
  std::map<std::string, bool> names;
  if (PluginSource* source = source_.load(std::memory_order_acquire)) {
    for (DeviceKindName& d : source->DeviceKinds()) names.emplace(std::move(d.kind), d.has_streams);
  }
  std::shared_lock lock(mu_);
  for (const auto& [key, d] : devices_) names.emplace(d->kind, d->has_streams);
  std::vector<DeviceKindName> all;
  for (const auto& [kind, has_streams] : names) all.push_back({kind, has_streams});
  return all;
}

std::vector<std::shared_ptr<const Role>> Registry::Roles(std::string_view role, std::string_view name) const {
  Bring(PluginSource::Part::kRole, name.empty() ? std::string(role) : StrCat(role, " ", name));
  std::shared_lock lock(mu_);
  std::vector<std::shared_ptr<const Role>> all;
  for (const auto& r : played_) {
    if ((role.empty() || r->role == role) && (name.empty() || r->name == name)) all.push_back(r);
  }
  return all;
}

// ---- Registrar ----

Registrar::Registrar(const tw_host* host, std::string plugin, Registration* r) : host_(host), plugin_(std::move(plugin)), out_(r) {
  c_ = {{TW_SIZED(tw_registrar), &Registrar::Op, &Registrar::Kernel, &Registrar::Resource, &Registrar::Device, &Registrar::Compiler,
         &Registrar::FileSystem, &Registrar::Transport, &Registrar::Collective, &Registrar::Membership},
        this};
}

tw_status* Registrar::Add(tw_registrar* r, Status (Registrar::*add)(const void*), const void* d) {
  Registrar* self = reinterpret_cast<C*>(r)->self;
  tw_status* s = Guard([&] { return (self->*add)(d); });
  // A plugin that does not look at what it is told still does not get through.
  if (s && self->out_->status.ok()) self->out_->status = s->status;
  return s;
}
tw_status* Registrar::Op(tw_registrar* r, const tw_op_def* d) { return Add(r, &Registrar::AddOp, d); }
tw_status* Registrar::Kernel(tw_registrar* r, const tw_kernel_def* d) { return Add(r, &Registrar::AddKernel, d); }
tw_status* Registrar::Resource(tw_registrar* r, const tw_resource_def* d) { return Add(r, &Registrar::AddResource, d); }
tw_status* Registrar::Device(tw_registrar* r, const tw_device_def* d) { return Add(r, &Registrar::AddDevice, d); }
tw_status* Registrar::Compiler(tw_registrar* r, const tw_compiler_def* d) { return Add(r, &Registrar::AddRole<tw_compiler_def>, d); }
tw_status* Registrar::FileSystem(tw_registrar* r, const tw_file_system_def* d) {
  return Add(r, &Registrar::AddRole<tw_file_system_def>, d);
}
tw_status* Registrar::Transport(tw_registrar* r, const tw_transport_def* d) { return Add(r, &Registrar::AddRole<tw_transport_def>, d); }
tw_status* Registrar::Collective(tw_registrar* r, const tw_collective_def* d) { return Add(r, &Registrar::AddRole<tw_collective_def>, d); }
tw_status* Registrar::Membership(tw_registrar* r, const tw_membership_def* d) { return Add(r, &Registrar::AddRole<tw_membership_def>, d); }

template <class Def>
Status Registrar::AddRole(const void* d) {
  ASSIGN_OR_RETURN(std::unique_ptr<Role> role, SealRole(static_cast<const Def*>(d)));
  role->host = host_;
  role->plugin = plugin_;
  out_->roles.push_back(std::move(role));
  return Status();
}

Status Registrar::AddOp(const void* d) {
  tw_op_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_op_def*>(d), "op definition", &def));
  ASSIGN_OR_RETURN(std::string_view text, SealText(def.schema, def.schema_len, "op definition: schema"));
  ASSIGN_OR_RETURN(OpSchema schema, ParseOpSchema(text));
  if (!schema.no_gradient.empty() && def.gradient) {
    return InvalidArgument("op '", schema.name, "' says no_gradient but has a gradient callback; leave one of them out");
  }
  auto op = std::make_unique<OpSchema>(std::move(schema));
  op->def = def;
  op->def.schema = op->text.data();  // the plugin's text may be gone when it is looked at
  op->host = host_;
  op->plugin = plugin_;
  out_->ops.push_back(std::move(op));
  return Status();
}

Status Registrar::AddKernel(const void* d) {
  tw_kernel_def def;
  RETURN_IF_ERROR(Seal(static_cast<const tw_kernel_def*>(d), "kernel definition", &def));
  ASSIGN_OR_RETURN(std::string_view text, SealText(def.spec, def.spec_len, "kernel definition: spec"));
  auto k = std::make_unique<KernelDef>();
  ASSIGN_OR_RETURN(k->spec, ParseKernelSpec(text));
  if (!def.execute) return Needs(false, StrCat("kernel '", text, "'"), "execute");
  k->def = def;
  k->def.spec = k->spec.text.data();
  k->host = host_;
  k->plugin = plugin_;
  out_->kernels.push_back(std::move(k));
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
  k->host = host_;
  out_->devices.push_back(std::move(k));
  return Status();
}

}  // namespace thalweg
