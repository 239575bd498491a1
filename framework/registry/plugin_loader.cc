#include "framework/registry/plugin_loader.h"

#include <dlfcn.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <set>
#include <system_error>

#include <sys/stat.h>

#include "framework/io/list_folder.h"
#include "framework/registry/own_build.h"
#include "framework/registry/plugin_entry.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/plugin_probe.h"
#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

bool Matches(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return fnmatch(p.c_str(), text.c_str(), 0) == 0; });
}

// What a plugin registered; as the manifest says, unless it depends on more than the machine.
void Describe(const Registration& r, PluginRecord* record) {
  record->ops.clear();
  record->devices.clear();
  record->roles.clear();
  for (const auto& op : r.ops) record->ops.push_back(op->name);
  for (const auto& k : r.devices) record->devices.push_back(k->kind);
  for (const auto& role : r.roles) record->roles.push_back(StrCat(role->role, " ", role->name));
  record->kernels = uint32_t(r.kernels.size());
  for (const UnreadKernels& k : r.unread) record->kernels += uint32_t(k.defs.size());
}

void ForgetContents(PluginRecord* record) {
  record->ops.clear();
  record->devices.clear();
  record->roles.clear();
  record->kernels = 0;
}

// Of two files with one id the first stays.
Status SameId(PluginRecord* record, const PluginRecord& first) {
  Status why =
      AlreadyExists("a plugin with this id is ", first.state == PluginRecord::kLoaded ? "loaded" : "known", " from '", first.path, "'");
  ForgetContents(record);
  return Refuse(record, PluginRecord::kShadowed, why, "remove one of the two");
}

bool HasSuffix(std::string_view s, std::string_view end) { return s.size() >= end.size() && s.substr(s.size() - end.size()) == end; }

void Disable(PluginRecord* record, std::string_view what) {
  record->state = PluginRecord::kDisabled;
  record->reason = StrCat("its ", what, " is on the list of disabled plugins");
  record->fix = "take it off the list";
}

// What a manifest says, for people.
void Describe(const PluginManifest& m, PluginRecord* record) {
  record->id = m.id;
  record->version = m.version;
  record->build = m.build;
  record->epoch = m.epoch;
  record->minor = std::min<uint32_t>(TW_MINOR, m.target);
  record->ops = m.ops;
  record->roles.clear();
  for (const auto& role : m.roles) record->roles.push_back(role.name);
  record->devices.clear();
  for (const auto& d : m.devices) record->devices.push_back(d.kind);
  record->kernels = 0;
  for (const auto& k : m.kernels) record->kernels += k.count;
}

}  // namespace

// A plugin that is in: its library, its host table and what init made. Ends with the last who holds it: the loader, or memory of one of
// its devices.
struct PluginLoader::Loaded {
  FileStamp stamp;
  std::shared_ptr<PluginRecord> record;
  void* library = nullptr;  // NULL: linked into the program
  std::unique_ptr<tw_host, void (*)(tw_host*)> host{nullptr, [](tw_host*) {}};
  void* instance = nullptr;
  void (*shutdown)(const tw_host* h, void* instance) = nullptr;  // set once init is over and well
  // Held by the graphs that have its ops, the plans that use its kernels and devices, and the resources of its types.
  std::shared_ptr<const void> in_graphs = std::make_shared<char>(), in_plans = std::make_shared<char>();
  std::shared_ptr<const void> in_resources = std::make_shared<char>();

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

class PluginLoader::Busy {
 public:
  explicit Busy(PluginLoader* l) : l_(l), lock_(l->mu_) { l->busy_ = std::this_thread::get_id(); }
  Busy(const Busy&) = delete;
  ~Busy() { l_->busy_ = std::thread::id(); }

 private:
  PluginLoader* l_;
  std::lock_guard<std::mutex> lock_;
};

PluginLoader::PluginLoader(Registry* registry, MakeHost make_host, PluginLoading loading)
    : registry_(registry), make_host_(std::move(make_host)), loading_(std::move(loading)) {
  registry_->SetPreferred(loading_.preferred);
}

PluginLoader::~PluginLoader() {
  registry_->SetSource(nullptr);
  while (!loaded_.empty()) {
    std::shared_ptr<Loaded> last = std::move(loaded_.back());
    loaded_.pop_back();
    registry_->Remove(last->record->id);
    // The runtime that the table leads to goes away after us. Whoever still holds the plugin must not find it.
    if (last.use_count() > 1) last->host->self = nullptr;
  }
}

// ---- Records ----

std::vector<PluginRecord> PluginLoader::records() const {
  std::lock_guard lock(mu_);
  std::vector<PluginRecord> all;
  for (const auto& r : records_) all.push_back(*r);
  return all;
}

void PluginLoader::Remark(std::string_view id, std::string_view text) {
  std::lock_guard lock(mu_);
  for (const auto& r : records_) {
    if (r->state == PluginRecord::kLoaded && r->id == id) r->reason += StrCat(r->reason.empty() ? "" : "; ", text);
  }
}

// In place of what an earlier attempt with the path left.
std::shared_ptr<PluginRecord> PluginLoader::AddRecord(std::string path) {
  std::erase_if(records_,
                [&](const auto& r) { return r->path == path && r->state != PluginRecord::kLoaded && r->state != PluginRecord::kKnown; });
  records_.push_back(std::make_shared<PluginRecord>());
  records_.back()->path = std::move(path);
  return records_.back();
}

// The status tells the whole story, with name and cure.
Status PluginLoader::Finish(const std::shared_ptr<PluginRecord>& record, Status s) {
  if (s.ok()) return s;
  if (record->state == PluginRecord::kKnown) record->state = PluginRecord::kFailed;
  if (record->reason.empty()) record->reason = Message(s);
  if (!record->fix.empty()) s = Status(s.code(), AbslView(StrCat(Message(s), "; ", record->fix)));
  const std::string& id = record->id;
  return Prefix(s, StrCat("plugin '", id.empty() ? record->path : id, id.empty() ? "':" : StrCat("' (", record->path, "):")));
}

// ---- Search ----

void PluginLoader::Allow(PluginAllowList list) { allow_ = std::move(list); }

void PluginLoader::LoadAll(const PluginSearch& search) {
  Busy busy(this);
  cache_ = std::make_unique<PluginCache>(loading_.cache_folder, search.folders);
  std::set<std::pair<dev_t, ino_t>> seen;  // folders that several parts of the search name count once
  for (const std::string& folder : search.folders) {
    struct stat st;
    if (stat(folder.c_str(), &st) == 0 && !seen.emplace(st.st_dev, st.st_ino).second) continue;
    // What goes wrong stands in the record; the search goes on.
    if (HasSuffix(folder, ".so")) {
      Examine(folder, search.disabled).IgnoreError();
    } else {
      ExamineFolder(folder, search.disabled);
    }
  }
  cache_->Write();
  Settle();
}

void PluginLoader::ExamineFolder(const std::string& folder, const std::vector<std::string>& disabled) {
  std::vector<std::string> names;
  const std::error_code error(ListFolder(folder, &names), std::generic_category());
  std::erase_if(names, [](const std::string& name) { return !HasSuffix(name, ".so"); });
  if (error) {
    auto record = AddRecord(folder);
    record->reason = StrCat("cannot read the folder: ", error.message());
    record->fix = "create it, or take it out of THALWEG_PLUGIN_PATH or of the option that names it";
    return;
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) Examine((fs::path(folder) / name).string(), disabled).IgnoreError();
}

// What was found becomes what is known. Plugins that nobody looked into are loaded now, those whose ops others have kernels for first.
void PluginLoader::Settle() {
  std::vector<std::unique_ptr<KnownPlugin>> at_once;
  for (auto& p : SettleConflicts(std::move(found_), *registry_, loading_.preferred)) {
    (p->at_once ? at_once.push_back(std::move(p)) : catalogue_.Add(std::move(p)));
  }
  found_.clear();
  UpdateSource();
  for (size_t before = at_once.size() + 1; at_once.size() < before;) {
    before = at_once.size();
    std::erase_if(at_once, [this](auto& p) {
      p->progress = KnownPlugin::kWaiting;
      return LoadKnown(p.get()).code() != absl::StatusCode::kNotFound;
    });
  }
}

void PluginLoader::UpdateSource() { registry_->SetSource(catalogue_.Waiting().empty() ? nullptr : this); }

// ---- Examining ----

// The very file has a record already, under this path, and is loaded or known.
bool PluginLoader::IsRecorded(const std::string& path, const FileStamp& stamp) const {
  const auto is = [&](const FileStamp& other, const PluginRecord& record) { return other == stamp && record.path == path; };
  const std::vector<KnownPlugin*> waiting = catalogue_.Waiting();
  return std::any_of(loaded_.begin(), loaded_.end(), [&](const auto& l) { return l->library && is(l->stamp, *l->record); }) ||
         std::any_of(waiting.begin(), waiting.end(), [&](const KnownPlugin* p) { return is(p->stamp, *p->record); }) ||
         std::any_of(found_.begin(), found_.end(), [&](const auto& p) { return is(p->stamp, *p->record); });
}

// Ok with something more in found_, or with a record whose state says all there is.
Status PluginLoader::Examine(const std::string& path, const std::vector<std::string>& disabled) {
  if (FileStamp stamp; StampOf(path, &stamp) && IsRecorded(path, stamp)) return Status();
  auto p = std::make_unique<KnownPlugin>();
  p->record = AddRecord(path);
  Status s = ExamineFile(disabled, p.get());
  if (s.ok() && p->record->state == PluginRecord::kKnown) found_.push_back(std::move(p));
  return Finish(records_.back(), std::move(s));
}

Status PluginLoader::ExamineFile(const std::vector<std::string>& disabled, KnownPlugin* p) {
  PluginRecord* record = p->record.get();
  const std::string& path = record->path;
  if (Matches(disabled, fs::path(path).filename().string())) return Disable(record, "file name"), Status();
  const bool there = StampOf(path, &p->stamp);
  if (there && IsThere("the same file", [p](const FileStamp& stamp, const std::string&) { return stamp == p->stamp; }, record))
    return Status();
  // Also what a link or a bare name leads to: the file that was examined is the one that is loaded.
  std::string fix;
  Status safe = there ? CheckPluginWriters(path, &p->real, &fix) : Status();
  const CachedPlugin* known = there && safe.ok() && !allow_ ? cache_->Find(p->real, p->stamp) : nullptr;
  if (known) {
    record->digest = known->digest;
  } else {
    RETURN_IF_ERROR(CheckFile(record));
    if (!safe.ok() && (p->real.empty() || !loading_.trust_folders)) return Refuse(record, safe, fix);
    ASSIGN_OR_RETURN(known, Identify(p));
  }
  auto same = [record](const FileStamp&, const std::string& digest) { return digest == record->digest; };
  if (IsThere("a file with the same contents", same, record)) return Status();
  if (!known) {
    RETURN_IF_ERROR(Look(p));
  } else if (!known->quarantine.empty()) {
    record->id = known->manifest.id;
    return Quarantine(record, Error(absl::StatusCode::kAborted, known->quarantine));
  } else {
    p->manifest = known->manifest;
    p->checked_by = known->checked_by;
  }
  Describe(p->manifest, record);
  record->state = PluginRecord::kKnown;
  record->reason.clear();
  record->fix.clear();
  return CheckId(disabled, record);
}

Status PluginLoader::CheckFile(PluginRecord* record) {
  auto file = ReadPluginFile(record->path);
  if (file.ok()) return SanitizerClash(record, SanitizerOf(*file));
  const bool missing = file.status().code() == absl::StatusCode::kNotFound;
  return Refuse(record, file.status(), missing ? "check the path" : "rebuild it for this machine, or take it out of the folder");
}

// The digest, whether it is allowed, and what is known of a file with these contents; NULL: nothing.
StatusOr<const CachedPlugin*> PluginLoader::Identify(KnownPlugin* p) {
  PluginRecord* record = p->record.get();
  auto digest = Sha256OfFile(p->real, &p->stamp);
  if (!digest.ok()) return Refuse(record, digest.status(), "try again when that is over");
  record->digest = *digest;
  if (allow_ && !allow_->Has(*digest)) {
    Status why = Error(absl::StatusCode::kPermissionDenied, "its contents are not on the allow-list '", allow_->file(), "'");
    return Refuse(record, PluginRecord::kNotAllowed, why,
                  StrCat("if they are what you want, add this line to the list: ", *digest, "  ", p->real));
  }
  const CachedPlugin* known = cache_->FindContents(*digest);
  if (known) cache_->Put(p->real, {p->stamp, *digest, known->quarantine, known->manifest, known->checked_by});
  return known;
}

// The second of two files that are one counts for nothing, whatever its path.
bool PluginLoader::IsThere(std::string_view what, const std::function<bool(const FileStamp&, const std::string& digest)>& same,
                           PluginRecord* record) {
  const PluginRecord* first = nullptr;
  for (const auto& l : loaded_) {
    if (l->library && same(l->stamp, l->record->digest)) first = l->record.get();
  }
  for (const KnownPlugin* p : catalogue_.Waiting()) {
    if (same(p->stamp, p->record->digest)) first = p->record.get();
  }
  for (const auto& p : found_) {
    if (same(p->stamp, p->record->digest)) first = p->record.get();
  }
  if (!first) return false;
  record->state = PluginRecord::kShadowed;
  record->id = first->id;
  record->reason = StrCat(what, first->state == PluginRecord::kLoaded ? " is loaded from '" : " is known from '", first->path, "'");
  return true;
}

Status PluginLoader::Quarantine(PluginRecord* record, Status why) {
  std::string fix = "repair it: when its contents have changed, it is looked at again";
  if (!cache_->file().empty()) fix += StrCat("; or, if something else was at fault, remove '", cache_->file(), "'");
  return Refuse(record, PluginRecord::kQuarantined, std::move(why), fix);
}

// For the first time.
Status PluginLoader::Look(KnownPlugin* p) {
  PluginRecord* record = p->record.get();
  ProbeResult result = ProbePlugin({loading_.helper, p->real, loading_.patience, loading_.settings}, record);
  switch (result.outcome) {
    case ProbeOutcome::kRefused: return result.why;
    case ProbeOutcome::kBroken:
      cache_->Put(p->real, {p->stamp, record->digest, std::string(Message(result.why)), {}, ""});
      return Quarantine(record, result.why);
    case ProbeOutcome::kManifest: p->manifest = std::move(result.manifest); break;
    case ProbeOutcome::kNoHelper:
      if (loading_.without_helper == PluginProbe::kRefuse) {
        return Refuse(record, FailedPrecondition("it is new here, and nobody can look at it first: ", Message(result.why)),
                      "install the helper beside libthalweg.so, or set the runtime option plugin_probe to trust or in_process");
      }
      p->at_once = loading_.without_helper == PluginProbe::kTrust;
      ASSIGN_OR_RETURN(p->manifest, LookHere(p->real, !p->at_once, record));
      if (p->at_once) return Status();
  }
  cache_->Put(p->real, {p->stamp, record->digest, "", p->manifest, ""});
  return Status();
}

// In this process. Without `whole`, only who it is.
StatusOr<PluginManifest> PluginLoader::LookHere(const std::string& path, bool whole, PluginRecord* record) {
  Loaded plugin;  // ends with the look
  ASSIGN_OR_RETURN(plugin.library, OpenPluginLibrary(path, record));
  ASSIGN_OR_RETURN(tw_query_fn query, FindPluginQuery(plugin.library, record));
  ASSIGN_OR_RETURN(const tw_plugin* d, AskPlugin(query, record));
  tw_plugin sealed;
  RETURN_IF_ERROR(AgreeWithPlugin(*d, record, &sealed));
  Registration r;
  if (!whole) return ManifestOf(*record, sealed, r);
  plugin.host = make_host_(record->id, path, record->minor);
  bool started = false;
  Status s = InitPlugin(sealed, plugin.host.get(), &r, &plugin.instance, &started, record);
  if (started) plugin.shutdown = sealed.shutdown;
  RETURN_IF_ERROR(s);
  if (s = CheckKernelsOnce(r); !s.ok()) return Refuse(record, s, "report it to the plugin's author");
  return ManifestOf(*record, sealed, r);
}

// Ids that are disabled, and ids that another file has.
Status PluginLoader::CheckId(const std::vector<std::string>& disabled, PluginRecord* record) {
  if (Matches(disabled, record->id)) return Disable(record, "id"), Status();
  const PluginRecord* first = nullptr;
  if (const Loaded* l = FindLoaded(record->id)) first = l->record.get();
  for (const KnownPlugin* p : catalogue_.Waiting()) {
    if (p->manifest.id == record->id) first = p->record.get();
  }
  for (const auto& p : found_) {
    if (p->manifest.id == record->id) first = p->record.get();
  }
  return first ? SameId(record, *first) : Status();
}

// ---- Loading ----

Status PluginLoader::Load(const std::string& path) {
  Busy busy(this);
  if (!cache_) cache_ = std::make_unique<PluginCache>(loading_.cache_folder, std::vector<std::string>());
  FileStamp stamp;
  if (StampOf(path, &stamp)) {
    for (KnownPlugin* p : catalogue_.Waiting()) {
      if (p->stamp == stamp) return LoadKnown(p);
    }
    if (IsRecorded(path, stamp)) return Status();
  }
  Status s = Examine(path, {});
  cache_->Write();
  if (found_.empty()) return s.ok() ? LoadTwin(*records_.back()) : s;
  std::unique_ptr<KnownPlugin> p = std::move(found_.back());
  found_.clear();
  p->record->state = PluginRecord::kFailed;  // until it is loaded: nobody else would try
  s = LoadKnown(p.get());
  if (s.ok()) ForgetOthers(*p);
  return p->progress == KnownPlugin::kWaiting ? Finish(p->record, std::move(s)) : s;
}

// What the file was under its other paths while it was not loaded.
void PluginLoader::ForgetOthers(const KnownPlugin& loaded) {
  std::erase_if(records_, [&](const auto& r) {
    FileStamp stamp;
    return r->id == loaded.record->id && r->state != PluginRecord::kLoaded && r->state != PluginRecord::kKnown &&
           StampOf(r->path, &stamp) && stamp == loaded.stamp;
  });
}

// The record of a second path says that the plugin is known from another: that one it is.
Status PluginLoader::LoadTwin(const PluginRecord& record) {
  for (KnownPlugin* p : catalogue_.Waiting()) {
    if (p->manifest.id == record.id && p->record->digest == record.digest) return LoadKnown(p);
  }
  return Status();
}

Status PluginLoader::LoadStatic(tw_query_fn query, std::string_view name, bool checked) {
  Busy busy(this);
  auto plugin = std::make_shared<Loaded>();
  plugin->record = AddRecord(StrCat("linked in as ", name));
  auto record = plugin->record;
  return Finish(record, query ? Enter(query, checked, std::move(plugin)) : InvalidArgument("its query function is NULL"));
}

void PluginLoader::Bring(Part part, std::string_view name, std::string_view kind) {
  if (busy_ == std::this_thread::get_id()) return;
  Busy busy(this);
  const std::vector<KnownPlugin*> found = catalogue_.Find(part, name, kind);
  for (KnownPlugin* p : found) {
    Status s = LoadKnown(p);
    if (s.code() == absl::StatusCode::kResourceExhausted) throw std::bad_alloc();  // or the look-up would say that there is nothing
    if (!s.ok()) loading_.warn(std::string(Message(s)));
  }
}

std::vector<DeviceKindName> PluginLoader::DeviceKinds() {
  std::vector<DeviceKindName> all;
  if (busy_ == std::this_thread::get_id()) return all;
  Busy busy(this);
  for (const KnownPlugin* p : catalogue_.Waiting()) all.insert(all.end(), p->manifest.devices.begin(), p->manifest.devices.end());
  return all;
}

Status PluginLoader::LoadKnown(KnownPlugin* p) {
  if (p->progress != KnownPlugin::kWaiting) return Status();
  p->progress = KnownPlugin::kLoading;
  Status s;
  try {
    for (const auto& k : p->manifest.kernels) {
      if (k.op == "*" || registry_->HasOp(k.op)) continue;
      for (KnownPlugin* other : catalogue_.Find(Part::kOp, k.op, "")) LoadKnown(other).IgnoreError();
    }
    s = Open(p);
  } catch (...) {
    p->progress = KnownPlugin::kWaiting;
    throw;
  }
  if (s.code() == absl::StatusCode::kResourceExhausted) {  // it is as fine as it was when it was looked at
    p->progress = KnownPlugin::kWaiting;
    return s;
  }
  p->progress = KnownPlugin::kDone;
  UpdateSource();
  return Finish(p->record, std::move(s));
}

// The ops of its kernels are its own or linked in. What was found right with the schemas of another file may be wrong with what that has
// now.
bool PluginLoader::HasOnlyOwnSchemas(const PluginManifest& m) const {
  return std::none_of(loaded_.begin(), loaded_.end(), [&](const auto& l) {
    const std::vector<std::string>& ops = l->record->ops;
    return l->library && std::any_of(ops.begin(), ops.end(), [&](const std::string& op) { return HasKernel(m, op); });
  });
}

Status PluginLoader::Open(KnownPlugin* p) {
  PluginRecord* record = p->record.get();
  std::string real, fix;
  Status safe = CheckPluginWriters(p->real, &real, &fix);
  if (!safe.ok() && (real.empty() || !loading_.trust_folders)) return Refuse(record, safe, fix);
  FileStamp now;
  if (!StampOf(real, &now) || !(now == p->stamp)) {
    return Refuse(record, FailedPrecondition("it was changed after it was looked at"), "start the program again");
  }
  auto plugin = std::make_shared<Loaded>();
  plugin->stamp = p->stamp;
  plugin->record = p->record;
  ASSIGN_OR_RETURN(plugin->library, OpenPluginLibrary(real, record));
  ASSIGN_OR_RETURN(tw_query_fn query, FindPluginQuery(plugin->library, record));
  const std::string build = OwnBuild();
  const bool checked = !build.empty() && p->checked_by == build && HasOnlyOwnSchemas(p->manifest);
  RETURN_IF_ERROR(Enter(query, checked, std::move(plugin)));
  if (checked || build.empty() || p->at_once) return Status();
  cache_->SetChecked(p->real, p->stamp, build);
  cache_->Write();
  return Status();
}

// From the entry symbol on. Transactional: what init registers counts only when all of it is right.
Status PluginLoader::Enter(tw_query_fn query, bool checked, std::shared_ptr<Loaded> self) {
  PluginRecord* record = self->record.get();
  ASSIGN_OR_RETURN(const tw_plugin* d, AskPlugin(query, record));
  tw_plugin sealed;
  RETURN_IF_ERROR(AgreeWithPlugin(*d, record, &sealed));
  if (const Loaded* other = FindLoaded(record->id)) return SameId(record, *other->record);
  self->host = make_host_(record->id, record->path, record->minor);
  Registration r;
  r.read_later = checked;
  bool started = false;
  Status s = InitPlugin(sealed, self->host.get(), &r, &self->instance, &started, record);
  if (started) self->shutdown = sealed.shutdown;
  RETURN_IF_ERROR(s);
  Describe(r, record);
  for (const auto& kind : r.devices) kind->pin = self;
  for (const auto& role : r.roles) role->pin = self;
  if (self->library) {
    for (const auto& op : r.ops) op->in_graphs = self->in_graphs;
    for (const auto& k : r.kernels) k->in_plans = self->in_plans;
    if (r.origin) r.origin->in_plans = self->in_plans;
    for (const auto& kind : r.devices) kind->in_plans = self->in_plans;
    for (const auto& t : r.resources) t->in_resources = self->in_resources;
  }
  s = registry_->Commit(std::move(r));
  if (!s.ok()) {
    ForgetContents(record);
    return Refuse(record, s, "");
  }
  loaded_.push_back(self);
  record->state = PluginRecord::kLoaded;
  record->reason.clear();
  record->fix.clear();
  return Status();
}

PluginLoader::Loaded* PluginLoader::FindLoaded(std::string_view id) const {
  for (const auto& l : loaded_) {
    if (l->record->id == id) return l.get();
  }
  return nullptr;
}

// ---- Unloading ----

Status PluginLoader::CheckUnloadable(std::string_view id) const {
  std::lock_guard lock(mu_);
  const Loaded* l = FindLoaded(id);
  const std::string who = StrCat("plugin '", id, "'");
  if (!l) return NotFound(who, " is not loaded; `thalweg plugins` lists those that are");
  if (!l->library) return FailedPrecondition(who, " is linked into the program, so it stays");
  const std::pair<long, std::string_view> uses[] = {
      {l->in_graphs.use_count() - 1, "graphs, and lists of ops, that have its ops"},
      {l->in_plans.use_count() - 1, "sessions, and lists, that have its kernels or devices"},
      {l->in_resources.use_count() - 1, "resources of its types (clear their containers) and handles to such"}};
  for (const auto& [n, what] : uses) {
    if (n > 0) return FailedPrecondition(who, " cannot be unloaded: there are ", what, ": ", n, "; end them first");
  }
  return registry_->CheckRemovable(id);
}

Status PluginLoader::Unload(std::string_view id) {
  RETURN_IF_ERROR(CheckUnloadable(id));
  Busy busy(this);
  auto it = std::find_if(loaded_.begin(), loaded_.end(), [&](const auto& l) { return l->record->id == id; });
  if (it == loaded_.end()) return NotFound("plugin '", id, "' is not loaded");
  std::shared_ptr<Loaded> plugin = std::move(*it);
  loaded_.erase(it);
  registry_->Remove(id);
  ForgetContents(plugin->record.get());
  plugin->record->state = PluginRecord::kDisabled;
  plugin->record->reason = "the program unloaded it";
  plugin->record->fix = "tw_plugin_load loads it again";
  for (const auto& r : records_) {  // those that stood back for it: nothing loads them by itself
    if (r->state != PluginRecord::kShadowed || r->id != id) continue;
    r->reason = StrCat("'", plugin->record->path, "' went before it until the program unloaded that");
    r->fix = "tw_plugin_load loads it";
  }
  return Status();
}

}  // namespace thalweg
