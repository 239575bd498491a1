#include "framework/registry/plugin_loader.h"

#include <algorithm>
#include <new>
#include <set>

#include <sys/stat.h>

#include "framework/base/float_state.h"
#include "framework/registry/own_build.h"
#include "framework/registry/plugin_entry.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/plugin_loaded.h"
#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

constexpr uint32_t kWarning = 2;

// Fills a record from registrations. They match the manifest, unless the plugin depends on more
// than the machine.
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

// Says in the log which plugin changed the thread's floating-point state; `became` is empty where it did not.
void TellFloatState(const tw_host& host, const std::string& became, std::string_view when) {
  if (became.empty()) return;
  const std::string text = StrCat("it changed the floating-point state of its thread when ", when, " (", became,
                                  "); that is undone; link it without -ffast-math, and let init leave rounding as it is");
  host.run->log(&host, kWarning, text.data(), text.size());
}

}  // namespace

void ForgetContents(PluginRecord* record) {
  record->ops.clear();
  record->devices.clear();
  record->roles.clear();
  record->left_out.clear();
  record->kernels = 0;
}

Status SameId(PluginRecord* record, const PluginRecord& first) {
  const std::string version = first.version.empty() || first.version == record->version ? "" : StrCat(", version ", first.version, ",");
  Status why = AlreadyExists("a plugin with this id", version, " is ", first.state == PluginRecord::kLoaded ? "loaded" : "known", " from '",
                             first.path, "'");
  ForgetContents(record);
  return Refuse(record, PluginRecord::kShadowed, why, "remove one of the two");
}

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
    // The runtime behind the table is destroyed after the loader. Other owners of the plugin must
    // not reach it.
    if (last.use_count() > 1) last->host->self = nullptr;
  }
  for (const auto& l : unloaded_) {
    if (const std::shared_ptr<Loaded> kept = l.lock()) kept->host->self = nullptr;
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

// Replaces the record of an earlier attempt with the path.
std::shared_ptr<PluginRecord> PluginLoader::AddRecord(std::string path) {
  std::erase_if(records_,
                [&](const auto& r) { return r->path == path && r->state != PluginRecord::kLoaded && r->state != PluginRecord::kKnown; });
  records_.push_back(std::make_shared<PluginRecord>());
  records_.back()->path = std::move(path);
  return records_.back();
}

// Completes the record and returns a status with the plugin's name and the remedy.
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
    // A failure is recorded, and the search goes on.
    if (folder.ends_with(".so")) {
      Examine(folder, search.disabled).IgnoreError();
    } else {
      ExamineFolder(folder, search.disabled);
    }
  }
  cache_->Write();
  Settle();
}

// Makes found plugins known. Plugins that were not examined are loaded now, in rounds: a plugin
// whose kernels need ops of another one is retried after it.
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
  p->record->state = PluginRecord::kFailed;  // until it is loaded, because nothing else would load it
  s = LoadKnown(p.get());
  if (s.ok()) ForgetOthers(*p);
  return p->progress == KnownPlugin::kWaiting ? Finish(p->record, std::move(s)) : s;
}

// Removes records that the file has under other paths from before it was loaded.
void PluginLoader::ForgetOthers(const KnownPlugin& loaded) {
  std::erase_if(records_, [&](const auto& r) {
    FileStamp stamp;
    return r->id == loaded.record->id && r->state != PluginRecord::kLoaded && r->state != PluginRecord::kKnown &&
           StampOf(r->path, &stamp) && stamp == loaded.stamp;
  });
}

// Loads the plugin that the record of a second path refers to.
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
    if (s.code() == absl::StatusCode::kResourceExhausted) throw std::bad_alloc();  // or the look-up would report nothing
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
  if (s.code() == absl::StatusCode::kResourceExhausted) {  // the plugin is as good as when it was examined
    p->progress = KnownPlugin::kWaiting;
    return s;
  }
  p->progress = KnownPlugin::kDone;
  UpdateSource();
  return Finish(p->record, std::move(s));
}

// Returns true if the ops of its kernels are its own or linked in. Kernels that were valid for
// another file's schemas may be invalid for the present ones.
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
  const KeptFloatState kept;
  ASSIGN_OR_RETURN(plugin->library, OpenPluginLibrary(real, record));
  plugin->float_state = kept.Undo();
  ASSIGN_OR_RETURN(tw_query_fn query, FindPluginQuery(plugin->library, record));
  const std::string build = OwnBuild();
  const bool checked = !build.empty() && p->checked_by == build && HasOnlyOwnSchemas(p->manifest);
  RETURN_IF_ERROR(Enter(query, checked, std::move(plugin)));
  if (checked || build.empty() || p->at_once) return Status();
  cache_->SetChecked(p->real, p->stamp, build);
  cache_->Write();
  return Status();
}

// Runs the steps from the entry symbol on. Transactional: registrations are committed only if all
// of them are valid.
Status PluginLoader::Enter(tw_query_fn query, bool checked, std::shared_ptr<Loaded> self) {
  PluginRecord* record = self->record.get();
  const KeptFloatState kept;
  ASSIGN_OR_RETURN(const tw_plugin* d, AskPlugin(query, record));
  tw_plugin sealed;
  RETURN_IF_ERROR(AgreeWithPlugin(*d, record, &sealed));
  if (const Loaded* other = FindLoaded(record->id)) return SameId(record, *other->record);
  self->host = make_host_(record->id, record->path, record->minor, self);
  Registration r;
  r.read_later = checked;
  bool started = false;
  Status s = InitPlugin(sealed, self->host.get(), &r, &self->instance, &started, record);
  if (started) self->shutdown = sealed.shutdown;
  RETURN_IF_ERROR(s);
  TellFloatState(*self->host, self->float_state, "its library was opened");
  TellFloatState(*self->host, kept.Undo(), "its init ran");
  registry_->LeaveOutOrphans(&r);
  DescribeLeftOut(r, record);
  RETURN_IF_ERROR(CheckSomethingIsLeft(r, record));
  for (const std::string& l : record->left_out) {
    const std::string text = StrCat("some of what it provides is left out: ", l);
    self->host->run->log(self->host.get(), kWarning, text.data(), text.size());
  }
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
  record->reason = LeftOutText(*record);
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
      {l->in_resources.use_count() - 1, "resources of its types (reset their containers, or destroy their graphs) and handles to such"}};
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
  std::erase_if(unloaded_, [](const auto& l) { return l.expired(); });
  unloaded_.push_back(plugin);
  ForgetContents(plugin->record.get());
  plugin->record->state = PluginRecord::kDisabled;
  plugin->record->reason = "the program unloaded it";
  plugin->record->fix = "tw_plugin_load loads it again";
  for (const auto& r : records_) {  // records shadowed by it: nothing loads those plugins automatically
    if (r->state != PluginRecord::kShadowed || r->id != id) continue;
    r->reason = StrCat("'", plugin->record->path, "' went before it until the program unloaded that");
    r->fix = "tw_plugin_load loads it";
  }
  return Status();
}

}  // namespace thalweg
