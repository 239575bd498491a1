#include "framework/runtime/runtime.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "framework/base/shown.h"
#include "framework/io/scheme_files.h"
#include "framework/json/utf8.h"
#include "framework/registry/plugin_loader.h"
#include "framework/registry/user_folders.h"
#include "framework/runtime/devices/give_memory_back.h"
#include "framework/runtime/devices/missing_device.h"
#include "framework/runtime/host/host_table.h"
#include "framework/runtime/state/container.h"
#include "framework/runtime/step/evaluate.h"
#include "thalweg/log.h"

namespace thalweg {
namespace {

struct DeviceList {
  tw_device_list c{TW_SIZED(tw_device_list), &Add};
  std::vector<FoundDevice> found;
  Status status;  // the first refusal, even if the plugin ignored it

  static tw_status* Add(tw_device_list* l, const tw_device_info* d) {
    auto* self = reinterpret_cast<DeviceList*>(l);
    tw_status* s = Guard([&] { return self->Take(d); });
    if (s && self->status.ok()) self->status = s->status;
    return s;
  }

  Status Take(const tw_device_info* d) {
    static_assert(sizeof(tw_device_info) % 8 == 0);
    if (!d || d->size < 8) return InvalidArgument("a device's description is NULL or has no size");
    constexpr uint32_t kKnown = TW_DEVICE_HOST_MEMORY | TW_DEVICE_POOLS_ITSELF | TW_DEVICE_ON_REQUEST;
    if (d->flags & ~kKnown) return InvalidArgument("a device has flags ", d->flags, ", unknown to this runtime");
    FoundDevice f{};
    std::memcpy(static_cast<void*>(&f.info), d, std::min<size_t>(d->size / 8 * 8, sizeof f.info));
    f.info.size = sizeof f.info;
    if (f.info.uid) f.uid.assign(f.info.uid, f.info.uid_len);
    if (f.info.description) f.description.assign(f.info.description, f.info.description_len);
    found.push_back(std::move(f));
    return Status();
  }
};

// Returns the devices of a kind, all or none.
StatusOr<std::vector<FoundDevice>> Enumerate(const DeviceKind& kind) {
  DeviceList list;
  RETURN_IF_ERROR(FromC(kind.def.enumerate(kind.host, kind.def.user, &list.c)));
  RETURN_IF_ERROR(list.status);
  return std::move(list.found);
}

// Removes blanks around the text.
std::string_view Trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Returns the entries of THALWEG_VISIBLE_DEVICES.
std::vector<std::string> VisibleByEnvironment() {
  const char* text = secure_getenv("THALWEG_VISIBLE_DEVICES");
  std::vector<std::string> all;
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (comma > 0) all.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  return all;
}

PluginLoading LoadingOf(const RuntimeOptions& options, std::function<void(const std::string& text)> warn) {
  PluginLoading loading;
  loading.trust_folders = options.trust_plugin_folders;
  loading.without_helper = options.plugin_probe;
  loading.helper = PluginHelperBesideUs();
  loading.cache_folder = options.plugin_cache.empty() ? UserCacheFolder() : options.plugin_cache == "off" ? "" : options.plugin_cache;
  loading.preferred = options.plugin_prefer;
  loading.settings = options.plugin_settings;
  loading.warn = std::move(warn);
  return loading;
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : options_(options),
      pool_(options.threads, options.program_threads ? &*options.program_threads : nullptr),
      gate_(pool_.threads()),
      files_(std::make_unique<SchemeFiles>(&registry_)),
      resources_(&registry_) {
  registry_.SetWarn([this](const std::string& text) { Log(TW_LOG_WARNING, text); });
  loader_ = std::make_unique<PluginLoader>(
      &registry_,
      [this](std::string_view id, std::string_view path, uint32_t minor, std::weak_ptr<const void> plugin) {
        return MakeHostTable(this, id, path, minor, std::move(plugin));
      },
      LoadingOf(options, [this](const std::string& text) { Log(TW_LOG_WARNING, text); }));
}

Runtime::~Runtime() = default;

StatusOr<std::shared_ptr<Runtime>> Runtime::Create(const RuntimeOptions& options) {
  std::shared_ptr<Runtime> r(new Runtime(options));
  r->SetLog(options.log, options.log_arg, options.log_level);
  if (!options.plugin_allow.empty()) {
    ASSIGN_OR_RETURN(PluginAllowList list, PluginAllowList::Read(options.plugin_allow, options.trust_plugin_folders));
    r->loader_->Allow(std::move(list));
  }
  for (const auto& p : options.static_plugins) RETURN_IF_ERROR(r->loader_->LoadStatic(p.query, p.name, p.checked));
  if (options.load_plugins) {
    PluginSearch search = DefaultPluginSearch();
    search.folders.insert(search.folders.begin(), options.plugin_path.begin(), options.plugin_path.end());
    search.disabled = options.disabled_plugins;
    r->loader_->LoadAll(search);
  }
  r->pool_.ReleaseAtEnd();
  return r;
}

std::vector<PluginRecord> Runtime::plugins() const { return loader_->records(); }

Status Runtime::LoadPlugin(const std::string& path) { return loader_->Load(path); }

// Checks that nothing of a plugin is in use outside of graphs and plans.
Status Runtime::CheckUnused(std::string_view plugin) const {
  const std::string who = StrCat("plugin '", plugin, "' cannot be unloaded: ");
  if (const size_t n = resources_.CountOnDevicesOf(plugin)) {
    return FailedPrecondition(who, n, n == 1 ? " variable lives" : " variables live",
                              " on its devices; reset their containers, or destroy their graphs, first");
  }
  for (const Device* d : ready_devices()) {
    const uint64_t bytes = d->plugin() == plugin ? d->pool()->stats().in_use : 0;
    if (bytes > 0) return FailedPrecondition(who, "tensors hold ", bytes, " bytes on ", d->kind(), ":", d->index(), "; release them first");
  }
  return Status();
}

Status Runtime::UnloadPlugin(std::string_view id) {
  std::lock_guard one_at_a_time(enumerate_mu_);
  RETURN_IF_ERROR(loader_->CheckUnloadable(id));
  RETURN_IF_ERROR(CheckUnused(id));
  {
    std::lock_guard lock(mu_);
    std::erase_if(devices_, [&](const auto& d) { return d->plugin() == id; });
  }
  std::erase_if(enumerated_, [&](const DeviceKind* k) { return k->plugin == id; });
  return loader_->Unload(id);
}

// Enumerates all plugins of a kind at once, in a fixed order, so that device numbers do not depend
// on which device was requested first.
Status Runtime::AddDevices(const std::string& kind) const {
  // Other callers wait meanwhile, because a driver may take long to start.
  std::lock_guard one_at_a_time(enumerate_mu_);
  for (const DeviceKind* k : registry_.DeviceKinds(kind)) {
    if (!enumerated_.insert(k).second) continue;
    Status s;
    try {
      s = AddDevicesOf(k);
    } catch (...) {
      s = Thrown();
    }
    if (s.ok()) continue;
    enumerated_.erase(k);  // the next caller tries again
    return s;
  }
  return Status();
}

// Removes the devices of a kind that are not visible. Logs entries of the list that name no device,
// with the number of devices.
void Runtime::KeepVisible(const DeviceKind& kind, std::vector<FoundDevice>* found) const {
  const std::vector<std::string> list = options_.visible_devices.empty() ? VisibleByEnvironment() : options_.visible_devices;
  if (list.empty()) return;
  std::vector<uint8_t> visible(found->size(), 0);
  for (const std::string& name : list) {
    auto spec = ParseDeviceSpec(Trimmed(name));
    if (!spec.ok()) {
      Log(TW_LOG_WARNING, StrCat("visible devices: ", Message(spec.status())));
      continue;
    }
    if (!spec->kind.empty() && spec->kind != kind.kind) continue;
    for (size_t i = 0; i < visible.size(); ++i) visible[i] = visible[i] || spec->index < 0 || spec->index == int32_t(i);
    if (spec->index < int32_t(found->size())) continue;
    Log(TW_LOG_WARNING,
        StrCat("visible devices: there is no '", Shown(name), "'; there are ", found->size(), " of kind ", kind.kind, ", numbered from 0"));
  }
  size_t kept = 0;
  for (size_t i = 0; i < found->size(); ++i) {
    const uint32_t flags = (*found)[i].info.flags;
    const bool always = (flags & TW_DEVICE_HOST_MEMORY) && !(flags & TW_DEVICE_ON_REQUEST);
    if (!visible[i] && !always) continue;
    if (kept != i) (*found)[kept] = std::move((*found)[i]);
    ++kept;
  }
  found->resize(kept);
}

// Fails only for lack of memory. Any other failure is recorded for the plugin, which then has no
// devices.
Status Runtime::AddDevicesOf(const DeviceKind* kind) const {
  auto found = Enumerate(*kind);
  if (found.status().code() == absl::StatusCode::kResourceExhausted) return found.status();
  if (!found.ok() || found->empty()) {
    std::string what =
        StrCat("device kind '", kind->kind, "': ", found.ok() ? std::string_view("no device found") : Message(found.status()));
    loader_->Remark(kind->plugin, what);
    const bool none = found.ok() || found.status().code() == absl::StatusCode::kNotFound;  // there is no hardware, or no driver for it
    Log(none ? 1 : 2, StrCat("plugin '", kind->plugin, "': ", what));
    return Status();
  }
  const size_t all = found->size();
  KeepVisible(*kind, &*found);
  if (found->empty()) {
    loader_->Remark(kind->plugin, StrCat("device kind '", kind->kind, "': visible_devices, or THALWEG_VISIBLE_DEVICES, leaves out all ",
                                         all, " that there are"));
  }
  const auto limit = [&](int32_t index) {
    const auto& limits = options_.memory_limit;
    auto it = limits.find(StrCat(kind->kind, ":", index));
    if (it == limits.end()) it = limits.find(kind->kind);
    return it == limits.end() ? 0 : it->second;
  };
  std::lock_guard lock(mu_);
  auto index = int32_t(std::count_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->kind() == kind->kind; }));
  std::vector<std::unique_ptr<Device>> added;  // all or none
  for (FoundDevice& f : *found) {
    f.info.uid = f.uid.data();
    f.info.uid_len = f.uid.size();
    f.info.description = f.description.data();
    f.info.description_len = f.description.size();
    added.push_back(std::make_unique<Device>(kind, index, f.info, limit(index)));
    ++index;
  }
  devices_.reserve(devices_.size() + added.size());
  std::move(added.begin(), added.end(), std::back_inserter(devices_));
  return Status();
}

std::vector<Device*> Runtime::devices() const {
  for (const DeviceKindName& kind : registry_.DeviceKindNames()) (void)AddDevices(kind.kind);
  return ready_devices();
}

std::vector<Device*> Runtime::ready_devices() const {
  std::lock_guard lock(mu_);
  std::vector<Device*> all;
  for (const auto& d : devices_) all.push_back(d.get());
  return all;
}

StatusOr<Device*> FindDevice(const Runtime& runtime, std::string_view name) {
  ASSIGN_OR_RETURN(const DeviceSpec spec, ParseDeviceSpec(name));
  for (Device* d : runtime.devices()) {
    if (spec.Admits(d->spec())) return d;
  }
  return MissingDevice(runtime, name, spec.kind);
}

StatusOr<Device*> Runtime::host_device() const {
  auto find = [this]() -> Device* {
    for (Device* d : ready_devices()) {
      if (d->host_memory() && !d->on_request()) return d;
    }
    return nullptr;
  };
  if (Device* d = find()) return d;
  // Kinds without streams come first: host memory needs no streams, and drivers that have them are
  // slow to start.
  std::vector<DeviceKindName> kinds = registry_.DeviceKindNames();
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.has_streams < b.has_streams; });
  for (const DeviceKindName& kind : kinds) {
    RETURN_IF_ERROR(AddDevices(kind.kind));
    if (Device* d = find()) return d;
  }
  return FailedPrecondition("no loaded plugin provides a device with host memory; `thalweg plugins --why` tells what became of each");
}

StatusOr<std::string> Runtime::Setting(std::string_view plugin, std::string_view key) const {
  std::string name = StrCat("plugin.", plugin, ".", key);
  auto it = options_.plugin_settings.find(name);
  if (it == options_.plugin_settings.end()) return NotFound("the runtime option '", name, "' is not set");
  return it->second;
}

void Runtime::SetLog(LogSink sink, void* arg, uint32_t min_level) {
  std::lock_guard lock(log_mu_);
  log_ = sink;
  log_arg_ = arg;
  log_level_ = min_level;
}

void Runtime::Log(uint32_t level, std::string_view text) const {
  LogSink sink;
  void* arg;
  {
    std::lock_guard lock(log_mu_);
    if (!log_ || level < log_level_) return;
    sink = log_;
    arg = log_arg_;
  }
  const std::string line = OneLine(text);
  sink(arg, level, line.data(), line.size());
}

StatusOr<std::vector<Tensor>> Runtime::Evaluate(const Node& node, std::span<const tw_shape> shapes, std::span<const Tensor> values,
                                                MemoryBudget* budget) {
  return EvaluateOnHost(*this, node, shapes, values, budget);
}

std::string Runtime::NewContainer() { return NewGraphContainer(); }

void Runtime::EndContainer(const std::string& container) noexcept {
  if (resources_.EndContainer(container) > 0) GiveMemoryBack(*this);
}

}  // namespace thalweg
