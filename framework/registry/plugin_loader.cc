#include "framework/registry/plugin_loader.h"

#include <dlfcn.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include <sys/stat.h>

#include "framework/io/list_folder.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEntry = "tw_plugin_query_v0";

// The members that never move, in any epoch: as much as a refusal needs.
constexpr uint32_t kFrozenBytes = offsetof(tw_plugin, floor_adds_len) + sizeof(uint64_t);

std::string_view TextOr(const char* text, uint64_t len, std::string_view otherwise) {
  constexpr uint64_t kLongest = 4096;  // a field that nobody filled is likely longer
  return text && len && len <= kLongest ? std::string_view(text, len) : otherwise;
}

// "key=value; key=value": the value of a key; empty if there is none.
std::string BuildValue(std::string_view build, std::string_view key) {
  while (!build.empty()) {
    size_t end = std::min(build.find(';'), build.size());
    std::string_view entry = build.substr(0, end);
    build.remove_prefix(std::min(end + 1, build.size()));
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    size_t equals = entry.find('=');
    if (equals != entry.npos && entry.substr(0, equals) == key) return std::string(entry.substr(equals + 1));
  }
  return "";
}

bool Matches(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return fnmatch(p.c_str(), text.c_str(), 0) == 0; });
}

// Why a plugin is not loaded, and what to do about it, in one go.
Status Refuse(PluginRecord* record, Status why, std::string_view fix) {
  record->reason = Message(why);
  record->fix = fix;
  return why;
}

// dlerror in our words where it is a known story.
std::string FixFor(std::string_view reason) {
  if (reason.find("undefined symbol") != reason.npos) {
    return "link what it needs into it; from the runtime a plugin may use only what the host table offers";
  }
  if (reason.find("cannot open shared object file") != reason.npos) return "install the library that it names, or put it beside the plugin";
  if (reason.find("version `") != reason.npos) return "rebuild it on this system, or upgrade the library that it names";
  return "rebuild or reinstall it";
}

std::string SanitizerFix(std::string_view sanitizer) {
  return StrCat("build it without -fsanitize=", sanitizer, ", or the program that loads it with the same");
}

Status SanitizerClash(PluginRecord* record, std::string_view sanitizer) {
  std::string_view host = HostSanitizer();
  if (sanitizer.empty() || sanitizer == host) return Status();
  return Refuse(record,
                FailedPrecondition("it is built with the ", sanitizer, " sanitizer, this runtime with ",
                                   host.empty() ? std::string_view("none") : host),
                SanitizerFix(sanitizer));
}

// "epoch 1, minors 0 to 3"
std::string VersionText(uint32_t epoch, uint32_t from, uint32_t to) {
  return StrCat("epoch ", epoch, from == to ? ", minor " : ", minors ", from, from == to ? std::string() : StrCat(" to ", to));
}

// Epoch and minors. Everything that it quotes stands in members that never move.
Status Agree(const tw_plugin& p, PluginRecord* record) {
  std::string both =
      StrCat("it needs ABI ", VersionText(p.epoch, p.floor, p.target), " (", TextOr(p.floor_adds, p.floor_adds_len, "no reason given"),
             "), this runtime offers ", VersionText(TW_EPOCH, 0, TW_MINOR));
  if (p.epoch != TW_EPOCH) {
    return Refuse(record, FailedPrecondition(both),
                  p.epoch < TW_EPOCH ? "rebuild the plugin against this runtime's headers"
                                     : "upgrade the runtime, or rebuild the plugin against its headers");
  }
  if (p.floor > p.target)
    return Refuse(record, InvalidArgument(both, "; its floor is above its target"),
                  "set THALWEG_FLOOR_MINOR at most to THALWEG_TARGET_MINOR");
  record->minor = std::min<uint32_t>(TW_MINOR, p.target);
  if (record->minor < p.floor) {
    return Refuse(record, FailedPrecondition(both),
                  "upgrade the runtime, or rebuild the plugin with a lower THALWEG_TARGET_MINOR or THALWEG_FLOOR_MINOR");
  }
  return Status();
}

// The file or folder behind a path; two paths with one of them lead to the same.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator<(const FileId& o) const { return device != o.device ? device < o.device : inode < o.inode; }
  bool operator==(const FileId& o) const { return device == o.device && inode == o.inode; }
};
bool Identify(const std::string& path, FileId* out) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return false;
  *out = {st.st_dev, st.st_ino};
  return true;
}

bool HasSuffix(std::string_view s, std::string_view end) { return s.size() >= end.size() && s.substr(s.size() - end.size()) == end; }

// The folder `thalweg/plugins` beside the library (or program) that this code is in; empty if it cannot be told.
std::string FolderBesideUs() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&FolderBesideUs), &info) || !info.dli_fname) return "";
  std::error_code error;
  fs::path self = fs::canonical(info.dli_fname, error);
  return error ? "" : (self.parent_path() / "thalweg" / "plugins").string();
}

std::string UserFolder() {
  const char* data = secure_getenv("XDG_DATA_HOME");
  if (data && *data) return StrCat(data, "/thalweg/plugins");
  const char* home = secure_getenv("HOME");
  return home && *home ? StrCat(home, "/.local/share/thalweg/plugins") : "";
}

// A default folder counts only where it is there; one that somebody named is missed out loud when it is not.
void AddIfThere(std::vector<std::string>* folders, const std::string& folder) {
  std::error_code error;
  if (!folder.empty() && fs::is_directory(folder, error)) folders->push_back(folder);
}

}  // namespace

// secure_getenv, here and above: in a process with more rights than who started it the environment is that of a stranger.
PluginSearch DefaultPluginSearch() {
  PluginSearch search;
  const char* variable = secure_getenv("THALWEG_PLUGIN_PATH");
  std::string_view rest = variable ? variable : "";
  bool only = rest.substr(0, 5) == "only:";
  if (only) rest.remove_prefix(5);
  for (bool more = !rest.empty(); more;) {
    size_t colon = rest.find(':');
    std::string_view folder = rest.substr(0, colon);
    if (folder.empty()) {
      AddIfThere(&search.folders, FolderBesideUs());
    } else {
      search.folders.emplace_back(folder);
    }
    more = colon != rest.npos;
    if (more) rest.remove_prefix(colon + 1);
  }
  if (only) return search;
  AddIfThere(&search.folders, UserFolder());
  AddIfThere(&search.folders, FolderBesideUs());
  return search;
}

// ---- One plugin ----

// A plugin that is in: its library, its host table and what init made. Ends with the last who holds it: the loader, or memory of one of
// its devices.
struct PluginLoader::Loaded {
  std::string id, path;
  FileId file;
  void* library = nullptr;  // NULL: linked into the program
  std::unique_ptr<tw_host, void (*)(tw_host*)> host{nullptr, [](tw_host*) {}};
  void* instance = nullptr;
  void (*shutdown)(const tw_host* h, void* instance) = nullptr;  // set once init is over and well

  Loaded() = default;
  Loaded(const Loaded&) = delete;
  ~Loaded() {
    // Nothing may be thrown across C, but a plugin in C++ can do it all the same; here is nobody left to tell.
    try {
      if (shutdown) shutdown(host.get(), instance);
    } catch (...) {
    }
    host.reset();
    if (library) dlclose(library);
  }
};

// ---- Loader ----

PluginLoader::PluginLoader(Registry* registry, MakeHost make_host, bool trust_folders)
    : registry_(registry), make_host_(std::move(make_host)), trust_folders_(trust_folders) {}

PluginLoader::~PluginLoader() {
  while (!loaded_.empty()) {
    std::shared_ptr<Loaded> last = std::move(loaded_.back());
    loaded_.pop_back();
    registry_->Remove(last->id);
    // The runtime that the table leads to goes away after us. Whoever still holds the plugin must not find it.
    if (last.use_count() > 1) last->host->self = nullptr;
  }
}

std::vector<PluginRecord> PluginLoader::records() const {
  std::lock_guard lock(mu_);
  return records_;
}

void PluginLoader::Remark(std::string_view id, std::string_view text) {
  std::lock_guard lock(mu_);
  for (PluginRecord& r : records_) {
    if (r.state == PluginRecord::kLoaded && r.id == id) r.reason += StrCat(r.reason.empty() ? "" : "; ", text);
  }
}

void PluginLoader::LoadAll(const PluginSearch& search) {
  std::lock_guard lock(mu_);
  std::set<FileId> seen;  // folders that several parts of the search name count once
  for (const std::string& folder : search.folders) {
    FileId id;
    if (Identify(folder, &id) && !seen.insert(id).second) continue;
    // What goes wrong stands in the record; the search goes on.
    if (HasSuffix(folder, ".so")) {
      LoadFile(folder, search.disabled).IgnoreError();
    } else {
      LoadFolder(folder, search);
    }
  }
}

void PluginLoader::LoadFolder(const std::string& folder, const PluginSearch& search) {
  std::vector<std::string> names;
  const std::error_code error(ListFolder(folder, &names), std::generic_category());
  std::erase_if(names, [](const std::string& name) { return !HasSuffix(name, ".so"); });
  if (error) {
    PluginRecord record;
    record.path = folder;
    record.reason = StrCat("cannot read the folder: ", error.message());
    record.fix = "create it, or take it out of THALWEG_PLUGIN_PATH or of the option that names it";
    records_.push_back(std::move(record));
    return;
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) LoadFile((fs::path(folder) / name).string(), search.disabled).IgnoreError();
}

Status PluginLoader::Load(const std::string& path) {
  std::lock_guard lock(mu_);
  return LoadFile(path, {});
}

// Keeps the record of an attempt; the status tells the whole story, with name and cure.
Status PluginLoader::Finish(PluginRecord record, std::string_view who, Status s) {
  if (!s.ok()) {
    if (record.reason.empty()) record.reason = Message(s);
    if (!record.fix.empty()) s = Status(s.code(), AbslView(StrCat(Message(s), "; ", record.fix)));
    s = Prefix(s, StrCat("plugin '", record.id.empty() ? who : record.id, record.id.empty() ? "':" : StrCat("' (", who, "):")));
  }
  records_.push_back(std::move(record));
  return s;
}

Status PluginLoader::LoadFile(const std::string& path, const std::vector<std::string>& disabled) {
  PluginRecord record;
  record.path = path;
  Status s = OpenFile(path, disabled, &record);
  return Finish(std::move(record), path, std::move(s));
}

Status PluginLoader::OpenFile(const std::string& path, const std::vector<std::string>& disabled, PluginRecord* record) {
  if (Matches(disabled, fs::path(path).filename().string())) {
    record->state = PluginRecord::kDisabled;
    record->reason = "its file name is on the list of disabled plugins";
    record->fix = "take it off the list";
    return Status();
  }
  auto file = ReadPluginFile(path);
  if (!file.ok()) {
    return Refuse(record, file.status(),
                  file.status().code() == absl::StatusCode::kNotFound ? "check the path"
                                                                      : "rebuild it for this machine, or take it out of the folder");
  }
  auto plugin = std::make_unique<Loaded>();
  plugin->path = path;
  Identify(path, &plugin->file);
  for (const auto& other : loaded_) {
    if (!other->library || !(other->file == plugin->file)) continue;
    record->state = PluginRecord::kShadowed;
    record->id = other->id;
    record->reason = StrCat("the same file is loaded from '", other->path, "'");
    return Status();
  }
  RETURN_IF_ERROR(SanitizerClash(record, SanitizerOf(*file)));

  // Also what a link or a bare name leads to: the file that was examined is the one that is loaded.
  std::string real, fix;
  Status safe = CheckPluginWriters(path, &real, &fix);
  if (!safe.ok() && (real.empty() || !trust_folders_)) return Refuse(record, safe, fix);
  plugin->library = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!plugin->library) {
    const char* why = dlerror();
    std::string reason = why ? why : "dlopen gives no reason";
    return Refuse(record, FailedPrecondition(reason), FixFor(reason));
  }
  auto query = reinterpret_cast<tw_query_fn>(dlsym(plugin->library, kEntry));
  if (!query) {
    bool newer = dlsym(plugin->library, "tw_plugin_query_v1") != nullptr;
    return Refuse(record, InvalidArgument("it does not export ", kEntry, newer ? " but tw_plugin_query_v1, of a later ABI" : ""),
                  newer ? "upgrade the runtime, or rebuild the plugin against its headers"
                        : "if it is a plugin, export the symbol with TW_PLUGIN; if not, take it out of the folder");
  }
  return Enter(query, disabled, std::move(plugin), record);
}

Status PluginLoader::LoadStatic(tw_query_fn query, std::string_view name) {
  std::lock_guard lock(mu_);
  PluginRecord record;
  record.path = StrCat("linked in as ", name);
  auto plugin = std::make_unique<Loaded>();
  plugin->path = record.path;
  Status s = query ? Enter(query, {}, std::move(plugin), &record) : InvalidArgument("its query function is NULL");
  return Finish(std::move(record), StrCat("linked in as ", name), std::move(s));
}

// From the entry symbol on: who is it, do we understand each other, may it come in?
Status PluginLoader::Enter(tw_query_fn query, const std::vector<std::string>& disabled, std::unique_ptr<Loaded> plugin,
                           PluginRecord* record) {
  tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("Thalweg")};
  const tw_plugin* d = nullptr;
  try {
    d = query(&info);
  } catch (...) {
    return Refuse(record, Internal(kEntry, " threw a C++ exception"), "report it to the plugin's author");
  }
  if (!d) return Refuse(record, FailedPrecondition(kEntry, " answered NULL"), "report it to the plugin's author");
  if (d->size < kFrozenBytes) {
    return Refuse(record, InvalidArgument("its descriptor has ", d->size, " bytes; at least ", kFrozenBytes, " are needed"),
                  "fill it with TW_PLUGIN of thalweg/plugin/plugin.h");
  }
  record->epoch = d->epoch;
  record->id = TextOr(d->id, d->id_len, "");
  record->version = TextOr(d->version, d->version_len, "");
  if (record->id.empty())
    return Refuse(record, InvalidArgument("its descriptor has no id, or one that cannot be true"), "give it a reverse-DNS id");
  if (Matches(disabled, record->id)) {
    record->state = PluginRecord::kDisabled;
    record->reason = "its id is on the list of disabled plugins";
    record->fix = "take it off the list";
    return Status();
  }
  RETURN_IF_ERROR(Agree(*d, record));
  for (const auto& other : loaded_) {
    if (other->id != record->id) continue;
    record->state = PluginRecord::kShadowed;
    return Refuse(record, AlreadyExists("a plugin with this id is loaded from '", other->path, "'"), "remove one of the two");
  }

  // Behind the frozen members the descriptor grows: what it does not cover is zero.
  tw_plugin sealed{};
  std::memcpy(static_cast<void*>(&sealed), d, std::min<size_t>(d->size / 8 * 8, sizeof sealed));
  record->build = TextOr(sealed.build, sealed.build_len, "");
  if (d->flags != 0)
    return Refuse(record, InvalidArgument("its descriptor has flags ", d->flags, ", unknown to this runtime"), "upgrade the runtime");
  RETURN_IF_ERROR(SanitizerClash(record, BuildValue(record->build, "sanitizer")));
  if (!sealed.init)
    return Refuse(record, InvalidArgument("its descriptor has no init"), "fill it with TW_PLUGIN of thalweg/plugin/plugin.h");
  plugin->id = record->id;
  return Init(std::move(plugin), sealed, record);
}

// Transactional: what init registers counts only when all of it is right.
Status PluginLoader::Init(std::unique_ptr<Loaded> plugin, const tw_plugin& descriptor, PluginRecord* record) {
  std::shared_ptr<Loaded> self = std::move(plugin);
  self->host = make_host_(self->id, self->path, record->minor);
  Registration r;
  Registrar registrar(self->host.get(), self->id, &r);
  Status s;
  try {
    s = FromC(descriptor.init(self->host.get(), registrar.c(), &self->instance));
  } catch (const std::exception& e) {
    s = Internal("its init threw a C++ exception: ", e.what());
  } catch (...) {
    s = Internal("its init threw a C++ exception");
  }
  if (!s.ok()) return Refuse(record, Prefix(s, "its init failed:"), "");
  self->shutdown = descriptor.shutdown;
  for (const auto& op : r.ops) record->ops.push_back(op->name);
  for (const auto& d : r.devices) {
    record->devices.push_back(d->kind);
    d->pin = self;
  }
  for (const auto& role : r.roles) {
    record->roles.push_back(StrCat(role->role, " ", role->name));
    role->pin = self;
  }
  record->kernels = uint32_t(r.kernels.size());
  s = registry_->Commit(std::move(r));
  if (!s.ok()) {
    record->ops.clear();
    record->devices.clear();
    record->roles.clear();
    record->kernels = 0;
    return Refuse(record, s, "");
  }
  loaded_.push_back(std::move(self));
  record->state = PluginRecord::kLoaded;
  record->reason.clear();
  record->fix.clear();
  return Status();
}

}  // namespace thalweg
