#include "framework/registry/registry.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>

#include "framework/base/dtype.h"
#include "framework/base/meant.h"
#include "framework/registry/resolve_kernel.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

Status OfKernel(std::string_view spec, std::string_view plugin, const Status& why) {
  return Prefix(why, StrCat("kernel '", spec, "' of plugin '", plugin, "':"));
}

Status NoOp(std::string_view spec, std::string_view plugin, std::string_view op) {
  return OfKernel(spec, plugin, NotFound("no op '", op, "' is registered; load the plugin that defines it first"));
}

Status Taken(std::string_view what, std::string_view name, std::string_view by, std::string_view here) {
  if (by == here) return AlreadyExists(what, " '", name, "' is registered twice by plugin '", here, "'");
  return AlreadyExists(what, " '", name, "' of plugin '", here, "' is already registered by plugin '", by,
                       "', which was loaded first; disable one of the two");
}

// Parses one of the kernels and resolves it against the op.
StatusOr<std::unique_ptr<KernelDef>> ReadKernel(const OpSchema& op, const UnreadKernels& of, size_t i) {
  auto k = std::make_unique<KernelDef>();
  ASSIGN_OR_RETURN(k->spec, ParseKernelSpec({of.defs[i].spec, of.defs[i].spec_len}));
  k->def = of.defs[i];
  k->def.spec = k->spec.text.data();
  k->host = of.origin->host;
  k->plugin = of.origin->plugin;
  k->in_plans = of.origin->in_plans;
  k->order = of.order + uint32_t(i);
  RETURN_IF_ERROR(ResolveKernel(op, k.get()));
  return k;
}

// `at` has one entry more than there are arguments.
bool Fits(const std::vector<uint32_t>& wanted, const uint32_t* types, const std::vector<uint32_t>& at) {
  for (size_t a = 0; a < wanted.size(); ++a) {
    if (wanted[a] == 0) continue;
    for (uint32_t i = at[a]; i < at[a + 1]; ++i) {
      if (BaseType(types[i]) != BaseType(wanted[a])) return false;
    }
  }
  return true;
}

// A kernel that was written before an attribute existed computes what the attribute's default
// means.
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

void Registration::LeaveOut(std::string why, std::string fix) {
  for (LeftOut& l : left_out) {
    if (l.why == why) return void(++l.count);
  }
  left_out.push_back({std::move(why), std::move(fix)});
}

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
  // Everything is checked first, against the registry and within the registration; only then is
  // anything changed.
  std::map<std::string_view, const OpSchema*> new_ops, new_roles;
  for (const auto& op : r.ops) {
    if (auto it = ops_.find(op->name); it != ops_.end()) return Taken("op", op->name, it->second->plugin, op->plugin);
    if (!new_ops.emplace(op->name, op.get()).second) return Taken("op", op->name, op->plugin, op->plugin);
    if (op->role.empty()) continue;
    if (auto it = roles_.find(op->role); it != roles_.end()) return Taken("role", op->role, it->second->plugin, op->plugin);
    if (!new_roles.emplace(op->role, op.get()).second) return Taken("role", op->role, op->plugin, op->plugin);
  }
  auto find = [&](std::string_view name) -> const OpSchema* {
    if (auto it = new_ops.find(name); it != new_ops.end()) return it->second;
    return ReadOp(name);
  };
  for (const auto& k : r.kernels) {
    if (k->spec.any_op) continue;
    const OpSchema* op = find(k->spec.op);
    if (!op) return NoOp(k->spec.text, k->plugin, k->spec.op);
    if (Status s = ResolveKernel(*op, k.get()); !s.ok()) return OfKernel(k->spec.text, k->plugin, s);
  }
  for (const UnreadKernels& k : r.unread) {
    if (new_ops.count(k.op) || ops_.count(k.op)) continue;
    return NoOp({k.defs[0].spec, k.defs[0].spec_len}, k.origin->plugin, k.op);
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

  std::vector<std::string> for_any;  // copies, because parsing a schema moves its name
  for (const auto& op : r.ops) {
    if (!for_any_op_.empty()) for_any.push_back(op->name);
  }
  for (auto& op : r.ops) {
    if (!op->role.empty()) roles_.emplace(op->role, op.get());
    ops_.emplace(op->name, std::move(op));
  }
  for (const std::string& name : for_any) {
    const OpSchema* op = ReadOp(name);
    for (size_t i = 0; op && i < for_any_op_.size(); ++i) AddMadeFor(*op, *for_any_op_[i]);
  }
  for (auto& k : r.kernels) {
    if (!k->spec.any_op) {
      k->order = order_++;
      AddKernel(std::move(k));
      continue;
    }
    ReadAllOps();
    for (const auto& [name, op] : ops_) AddMadeFor(*op, *k);
    for_any_op_.push_back(std::move(k));
  }
  for (UnreadKernels& k : r.unread) {
    k.order = order_;
    order_ += uint32_t(k.defs.size());
    auto& of_op = kernels_[std::string(k.op)];
    of_op.unread.push_back(std::move(k));
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

void Registry::LeaveOutOrphans(Registration* r) const {
  if (!r->lacks_ops) return;
  std::set<std::string_view> own;
  for (const auto& op : r->ops) own.insert(op->name);
  const auto orphan = [&](std::string_view op) {
    if (op == "*" || own.count(op) || HasOp(op)) return false;
    r->LeaveOut(StrCat("kernels of op '", op, "': there is no such op"), "load the plugin that defines it");
    return true;
  };
  std::erase_if(r->kernels, [&](const auto& k) { return orphan(k->spec.op); });
  std::erase_if(r->unread, [&](const auto& k) { return orphan(k.op); });
}

void Registry::AddKernel(std::unique_ptr<KernelDef> k) const {
  auto& of_op = kernels_[k->spec.op].best_first;
  auto better = [this](const auto& a, const auto& b) { return Better(*a, *b); };
  of_op.insert(std::upper_bound(of_op.begin(), of_op.end(), k, better), std::move(k));
}

void Registry::AddMadeFor(const OpSchema& op, const KernelDef& any) {
  auto k = std::make_unique<KernelDef>(any);
  k->spec.op = op.name;
  k->def.spec = k->spec.text.data();
  k->order = order_++;
  (void)ResolveKernel(op, k.get());  // it names no argument, so this cannot fail
  AddKernel(std::move(k));
}

void Registry::Warn(const Status& why) const {
  if (warn_) warn_(std::string(Message(why)));
}

const OpSchema* Registry::ReadOp(std::string_view name) const {
  auto it = ops_.find(name);
  if (it == ops_.end()) return nullptr;
  if (Status s = ReadOpSchema(it->second.get()); !s.ok()) {
    Warn(Prefix(s, StrCat("op '", name, "' of plugin '", it->second->plugin, "' is left out:")));
    ops_.erase(it);
    return nullptr;
  }
  return it->second.get();
}

void Registry::ReadAllOps() const {
  for (auto it = ops_.begin(); it != ops_.end();) {
    const std::string& name = (it++)->first;  // reading may remove the op
    ReadOp(name);
  }
}

void Registry::ReadKernels(std::string_view name) const {
  auto it = kernels_.find(name);
  if (it == kernels_.end() || it->second.unread.empty()) return;
  std::vector<std::unique_ptr<KernelDef>> read;
  const OpSchema* op = ReadOp(name);
  for (const UnreadKernels& unread : it->second.unread) {
    for (size_t i = 0; op && i < unread.defs.size(); ++i) {
      auto k = ReadKernel(*op, unread, i);
      if (k.ok()) {
        read.push_back(*std::move(k));
      } else {
        const tw_kernel_def& def = unread.defs[i];
        Warn(OfKernel({def.spec, def.spec_len}, unread.origin->plugin, Prefix(k.status(), "it is left out:")));
      }
    }
  }
  it->second.best_first.reserve(it->second.best_first.size() + read.size());
  for (auto& k : read) AddKernel(std::move(k));
  it->second.unread.clear();
}

std::shared_lock<std::shared_mutex> Registry::LockKernels(std::string_view op) const {
  {
    std::shared_lock lock(mu_);
    auto it = kernels_.find(op);
    if (it == kernels_.end() || it->second.unread.empty()) return lock;
  }
  {
    std::unique_lock lock(mu_);
    ReadKernels(op);
  }
  return std::shared_lock(mu_);
}

// A scheme belongs to one plugin; other names are unique within their plugin.
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
  for (auto& [name, of_op] : kernels_) {
    // Removes other plugins' kernels of this plugin's ops too: a kernel is useless without the op's
    // schema.
    const auto op = ops_.find(name);
    const bool all = op == ops_.end() || op->second->plugin == plugin;
    std::erase_if(of_op.best_first, [&](const auto& k) { return all || k->plugin == plugin; });
    std::erase_if(of_op.unread, [&](const auto& k) { return all || k.origin->plugin == plugin; });
  }
  std::erase_if(kernels_, [](const auto& e) { return e.second.best_first.empty() && e.second.unread.empty(); });
  std::erase_if(for_any_op_, [&](const auto& k) { return k->plugin == plugin; });
  std::erase_if(roles_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(ops_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(resources_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(devices_, [&](const auto& e) { return e.second->plugin == plugin; });
  std::erase_if(played_, [&](const auto& r) { return r->plugin == plugin; });
}

Status Registry::CheckRemovable(std::string_view plugin) const {
  std::shared_lock lock(mu_);
  for (const auto& [name, of_op] : kernels_) {
    const auto op = ops_.find(name);
    if (op == ops_.end() || op->second->plugin != plugin) continue;
    std::string_view other;
    for (const auto& k : of_op.best_first) other = k->plugin == plugin || k->spec.any_op ? other : k->plugin;
    for (const auto& k : of_op.unread) other = k.origin->plugin == plugin ? other : k.origin->plugin;
    if (other.empty()) continue;
    return FailedPrecondition("plugin '", plugin, "' cannot be unloaded: plugin '", other, "' has kernels of its op '", name,
                              "'; unload that first");
  }
  for (const auto& role : played_) {
    if (role->plugin != plugin || role.use_count() == 1) continue;
    return FailedPrecondition("plugin '", plugin, "' cannot be unloaded: its ", role->role, " '", role->name, "' is in use");
  }
  return Status();
}

const OpSchema* Registry::FindOp(std::string_view name) const {
  auto find = [&]() -> const OpSchema* {
    {
      std::shared_lock lock(mu_);
      auto it = ops_.find(name);
      if (it == ops_.end()) return nullptr;
      if (!it->second->unread) return it->second.get();
    }
    std::unique_lock lock(mu_);
    return ReadOp(name);
  };
  if (const OpSchema* op = find()) return op;
  Bring(PluginSource::Part::kOp, name);
  return find();
}

bool Registry::HasOp(std::string_view name) const {
  std::shared_lock lock(mu_);
  return ops_.count(name) != 0;
}

std::string Registry::MeantOp(std::string_view name) const {
  std::shared_lock lock(mu_);
  Meant meant(name);
  for (const auto& [there, op] : ops_) meant.Consider(there);
  return meant.text();
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
                                      const std::vector<AttrValue>& attrs, const KernelDef* after) const {
  if (!after) Bring(PluginSource::Part::kKernel, op.name, kind);  // a plugin that is not loaded may have a better kernel
  std::shared_lock lock(mu_);
  auto it = kernels_.find(op.name);
  if (it != kernels_.end() && !it->second.unread.empty()) {
    lock.unlock();
    lock = LockKernels(op.name);
    it = kernels_.find(op.name);
  }
  if (it == kernels_.end()) return nullptr;
  bool reached = !after;
  for (const auto& k : it->second.best_first) {
    if (!reached) {
      reached = k.get() == after;
      continue;
    }
    if (k->spec.kind == kind && Fits(k->spec.in_types, types.data(), in_at) &&
        Fits(k->spec.out_types, types.data() + in_at.back(), out_at) && Knows(*k, attrs)) {
      return k.get();
    }
  }
  return nullptr;
}

std::vector<const KernelDef*> Registry::Kernels(std::string_view op) const {
  Bring(PluginSource::Part::kKernel, op);
  const auto lock = LockKernels(op);
  std::vector<const KernelDef*> all;
  if (auto it = kernels_.find(op); it != kernels_.end()) {
    for (const auto& k : it->second.best_first) all.push_back(k.get());
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
  std::unique_lock lock(mu_);
  ReadAllOps();
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

std::vector<std::shared_ptr<const Role>> Registry::Roles(std::string_view role, std::string_view name, std::string_view kind) const {
  Bring(PluginSource::Part::kRole, name.empty() ? std::string(role) : StrCat(role, " ", name), kind);
  std::shared_lock lock(mu_);
  std::vector<std::shared_ptr<const Role>> all;
  for (const auto& r : played_) {
    const bool fits = (role.empty() || r->role == role) && (name.empty() || r->name == name) && (kind.empty() || r->kind == kind);
    if (fits) all.push_back(r);
  }
  return all;
}

}  // namespace thalweg
