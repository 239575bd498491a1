#include "framework/runtime/runtime.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "framework/runtime/host_table.h"

namespace thalweg {
namespace {

constexpr std::string_view kMemoryLimit = "memory_limit.", kPluginSetting = "plugin.";

Status Wrong(std::string_view key, std::string_view value, std::string_view wanted) {
  return InvalidArgument("runtime option '", key, "': '", value, "' is not ", wanted);
}

// A number of bytes with an optional K, M, G or T, of 1024.
bool ParseBytes(std::string_view text, uint64_t* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error != std::errc()) return false;
  std::string_view unit = text.substr(size_t(end - text.data()));
  if (unit.empty()) return true;
  size_t power = std::string_view("KMGT").find(unit[0]);
  return unit.size() == 1 && power != std::string_view::npos && !__builtin_mul_overflow(*out, uint64_t{1024} << (10 * power), out);
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// What a plugin's enumerate said; texts are copied because they end with the call.
struct Found {
  tw_device_info info;
  std::string uid, description;
};

struct DeviceList {
  tw_device_list c{TW_SIZED(tw_device_list), &Add};
  std::vector<Found> found;
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
    if (d->flags & ~uint32_t{TW_DEVICE_HOST_MEMORY}) return InvalidArgument("a device has flags ", d->flags, ", unknown to this runtime");
    Found f{};
    std::memcpy(static_cast<void*>(&f.info), d, std::min<size_t>(d->size / 8 * 8, sizeof f.info));
    f.info.size = sizeof f.info;
    if (f.info.uid) f.uid.assign(f.info.uid, f.info.uid_len);
    if (f.info.description) f.description.assign(f.info.description, f.info.description_len);
    found.push_back(std::move(f));
    return Status();
  }
};

// The devices of a kind, all or none.
StatusOr<std::vector<Found>> Enumerate(const DeviceKind& kind) {
  DeviceList list;
  RETURN_IF_ERROR(FromC(kind.def.enumerate(kind.host, kind.def.user, &list.c)));
  RETURN_IF_ERROR(list.status);
  return std::move(list.found);
}

}  // namespace

// ---- Options ----

const std::vector<OptionDoc>& RuntimeOptionDocs() {
  static const auto* docs = new std::vector<OptionDoc>{
      {"threads", "0", "threads that compute at once, the caller's included; 0: as many as the CPUs that the process may use"},
      {"load_plugins", "true", "look for plugins and load them; false leaves only those that are linked in or loaded by name"},
      {"plugin_path", "", "folders or .so files to look in before the default places, separated by ':'"},
      {"disabled_plugins", "", "patterns (as for file names) of plugin ids or files that are not loaded, separated by ','"},
      {"memory_limit.<KIND>", "0", "most bytes to hold on each device of a kind, such as memory_limit.CPU=2G; 0: no limit"},
      {"plugin.<id>.<key>", "", "a setting of a plugin; its documentation says which there are"},
  };
  return *docs;
}

Status SetRuntimeOption(RuntimeOptions* options, std::string_view key, std::string_view value) {
  if (key == "threads") {
    constexpr uint32_t kMost = 4096;  // more is a slip of the finger
    uint32_t n = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || end != value.data() + value.size() || n > kMost)
      return Wrong(key, value, StrCat("a number from 0 to ", kMost));
    options->threads = n;
  } else if (key == "load_plugins") {
    if (value != "true" && value != "false") return Wrong(key, value, "true or false");
    options->load_plugins = value == "true";
  } else if (key == "plugin_path") {
    options->plugin_path = Split(value, ':');
  } else if (key == "disabled_plugins") {
    options->disabled_plugins = Split(value, ',');
  } else if (key.substr(0, kMemoryLimit.size()) == kMemoryLimit && key.size() > kMemoryLimit.size()) {
    uint64_t bytes = 0;
    if (!ParseBytes(value, &bytes)) return Wrong(key, value, "a number of bytes, such as 1000000 or 2G");
    std::string kind(key.substr(kMemoryLimit.size()));
    for (char& c : kind) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    options->memory_limit[kind] = bytes;
  } else if (key.substr(0, kPluginSetting.size()) == kPluginSetting && key.find('.', kPluginSetting.size()) != key.npos) {
    options->plugin_settings[std::string(key)] = value;
  } else {
    std::string names;
    for (const OptionDoc& d : RuntimeOptionDocs()) names += StrCat(names.empty() ? "" : ", ", d.name);
    return InvalidArgument("there is no runtime option '", key, "'; there are ", names);
  }
  return Status();
}

// ---- Runtime ----

Runtime::Runtime(const RuntimeOptions& options) : options_(options), pool_(options.threads), resources_(&registry_) {
  loader_ = std::make_unique<PluginLoader>(
      &registry_, [this](std::string_view id, std::string_view path, uint32_t minor) { return MakeHostTable(this, id, path, minor); });
}

Runtime::~Runtime() = default;

StatusOr<std::shared_ptr<Runtime>> Runtime::Create(const RuntimeOptions& options) {
  std::shared_ptr<Runtime> r(new Runtime(options));
  for (const auto& [name, query] : options.static_plugins) RETURN_IF_ERROR(r->loader_->LoadStatic(query, name));
  if (options.load_plugins) {
    PluginSearch search = DefaultPluginSearch();
    search.folders.insert(search.folders.begin(), options.plugin_path.begin(), options.plugin_path.end());
    search.disabled = options.disabled_plugins;
    r->loader_->LoadAll(search);
  }
  return r;
}

Status Runtime::LoadPlugin(const std::string& path) { return loader_->Load(path); }

// All plugins of a kind at once, in one order: the numbers of devices do not depend on which were asked for first.
void Runtime::AddDevices(const std::string& kind) const {
  // Whoever asks for devices meanwhile waits: a driver may take its time to start.
  std::lock_guard one_at_a_time(enumerate_mu_);
  for (const DeviceKind* k : registry_.DeviceKinds()) {
    if (k->kind == kind && enumerated_.insert(k).second) AddDevicesOf(k);
  }
}

void Runtime::AddDevicesOf(const DeviceKind* kind) const {
  auto found = Enumerate(*kind);
  if (!found.ok() || found->empty()) {
    std::string what =
        StrCat("device kind '", kind->kind, "': ", found.ok() ? std::string_view("no device found") : Message(found.status()));
    loader_->Remark(kind->plugin, what);
    Log(found.ok() ? 1 : 2, StrCat("plugin '", kind->plugin, "': ", what));
    return;
  }
  auto limit = options_.memory_limit.find(kind->kind);
  std::lock_guard lock(mu_);
  auto index = int32_t(std::count_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->kind() == kind->kind; }));
  for (Found& f : *found) {
    f.info.uid = f.uid.data();
    f.info.uid_len = f.uid.size();
    f.info.description = f.description.data();
    f.info.description_len = f.description.size();
    devices_.push_back(std::make_unique<Device>(kind, index++, f.info, limit == options_.memory_limit.end() ? 0 : limit->second));
  }
}

std::vector<Device*> Runtime::devices() const {
  for (const DeviceKind* kind : registry_.DeviceKinds()) AddDevices(kind->kind);
  return ready_devices();
}

std::vector<Device*> Runtime::ready_devices() const {
  std::lock_guard lock(mu_);
  std::vector<Device*> all;
  for (const auto& d : devices_) all.push_back(d.get());
  return all;
}

StatusOr<Device*> Runtime::host_device() const {
  auto find = [this]() -> Device* {
    for (Device* d : ready_devices()) {
      if (d->host_memory()) return d;
    }
    return nullptr;
  };
  if (Device* d = find()) return d;
  // Kinds without streams first: memory that is the host's needs none, and drivers that have them are slow to start.
  std::vector<const DeviceKind*> kinds = registry_.DeviceKinds();
  std::stable_sort(kinds.begin(), kinds.end(), [](const DeviceKind* a, const DeviceKind* b) { return a->has_streams < b->has_streams; });
  for (const DeviceKind* kind : kinds) {
    AddDevices(kind->kind);
    if (Device* d = find()) return d;
  }
  return FailedPrecondition("no loaded plugin provides a device with host memory; `thalweg plugins --why` tells what became of each");
}

StatusOr<std::string> Runtime::Setting(std::string_view plugin, std::string_view key) const {
  std::string name = StrCat(kPluginSetting, plugin, ".", key);
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
  sink(arg, level, text.data(), text.size());
}

}  // namespace thalweg
