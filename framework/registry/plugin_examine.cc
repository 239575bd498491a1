// Examines a file before anything of it is used: its identity, whether it may be loaded, and what
// it would provide.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "framework/base/float_state.h"
#include "framework/files/list_folder.h"
#include "framework/registry/plugin_entry.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/plugin_loaded.h"
#include "framework/registry/plugin_loader.h"
#include "framework/registry/plugin_probe.h"
#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

bool Matches(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return fnmatch(p.c_str(), text.c_str(), 0) == 0; });
}

void Disable(PluginRecord* record, std::string_view what) {
  record->state = PluginRecord::kDisabled;
  record->reason = StrCat("its ", what, " is on the list of disabled plugins");
  record->fix = "take it off the list";
}

// Fills a record from a manifest.
void Describe(const PluginManifest& m, PluginRecord* record) {
  record->id = m.id;
  record->version = m.version;
  record->build = m.build;
  record->epoch = m.epoch;
  record->minor = std::min<uint32_t>(TW_MINOR, m.target);
  record->left_out = m.left_out;
  record->ops = m.ops;
  record->roles.clear();
  for (const auto& role : m.roles) record->roles.push_back(role.name);
  record->devices.clear();
  for (const auto& d : m.devices) record->devices.push_back(d.kind);
  record->kernels = 0;
  for (const auto& k : m.kernels) record->kernels += k.count;
}

// Takes the part of a version up to the next '.': its number, and what follows it.
std::pair<uint64_t, std::string_view> NextPart(std::string_view* version) {
  const size_t end = std::min(version->find('.'), version->size());
  std::string_view part = version->substr(0, end);
  version->remove_prefix(std::min(end + 1, version->size()));
  uint64_t number = 0;
  while (!part.empty() && part[0] >= '0' && part[0] <= '9' && number < UINT64_MAX / 16) {
    number = number * 10 + uint64_t(part[0] - '0');
    part.remove_prefix(1);
  }
  return {number, part};
}

// Returns true if version `a` is newer than `b`: 1.10 than 1.9, and 2.0 than 2.0-rc1.
bool IsNewer(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto [number_a, rest_a] = NextPart(&a);
    const auto [number_b, rest_b] = NextPart(&b);
    if (number_a != number_b) return number_a > number_b;
    if (rest_a == rest_b) continue;
    return rest_a.empty() || (!rest_b.empty() && rest_a > rest_b);
  }
  return false;
}

}  // namespace

void PluginLoader::ExamineFolder(const std::string& folder, const std::vector<std::string>& disabled) {
  std::vector<std::string> names;
  const std::error_code error(ListFolder(folder, &names), std::generic_category());
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".so"); });
  if (error) {
    auto record = AddRecord(folder);
    record->reason = StrCat("cannot read the folder: ", error.message());
    record->fix = "create it, or take it out of THALWEG_PLUGIN_PATH or of the option that names it";
    return;
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) Examine((fs::path(folder) / name).string(), disabled).IgnoreError();
}

// Returns true if this file has a record under this path and is loaded or known.
bool PluginLoader::IsRecorded(const std::string& path, const FileStamp& stamp) const {
  const auto is = [&](const FileStamp& other, const PluginRecord& record) { return other == stamp && record.path == path; };
  const std::vector<KnownPlugin*> waiting = catalogue_.Waiting();
  return std::any_of(loaded_.begin(), loaded_.end(), [&](const auto& l) { return l->library && is(l->stamp, *l->record); }) ||
         std::any_of(waiting.begin(), waiting.end(), [&](const KnownPlugin* p) { return is(p->stamp, *p->record); }) ||
         std::any_of(found_.begin(), found_.end(), [&](const auto& p) { return is(p->stamp, *p->record); });
}

// On success the plugin is in found_, or the record's state is the whole result.
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
  // Covers the target of a link or a bare name too, so that the examined file is the one that is
  // loaded.
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
  } else if (!known->quarantine.empty() && IsDue(*known)) {
    RETURN_IF_ERROR(Look(p, known->timeouts));
  } else if (!known->quarantine.empty()) {
    record->id = known->manifest.id;
    return Quarantine(record, Error(absl::StatusCode::kAborted, known->quarantine), known->probe_at);
  } else {
    p->manifest = known->manifest;
    p->checked_by = known->checked_by;
  }
  Describe(p->manifest, record);
  record->state = PluginRecord::kKnown;
  record->reason = LeftOutText(*record);
  record->fix.clear();
  return CheckId(disabled, record);
}

Status PluginLoader::CheckFile(PluginRecord* record) {
  auto file = ReadPluginFile(record->path);
  if (file.ok()) return SanitizerClash(record, SanitizerOf(*file));
  switch (file.status().code()) {
    case absl::StatusCode::kNotFound: return Refuse(record, file.status(), "check the path");
    case absl::StatusCode::kPermissionDenied:
      return Refuse(
          record, file.status(),
          StrCat("let this user read the file and enter its folders (chmod a+r '", record->path, "'), or take it out of the folder"));
    default: return Refuse(record, file.status(), "rebuild it for this machine, or take it out of the folder");
  }
}

// Computes the digest, checks it against the allow-list, and returns the cache entry for these
// contents; NULL if there is none.
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
  if (known) {
    CachedPlugin copy = *known;
    copy.stamp = p->stamp;
    cache_->Put(p->real, std::move(copy));
  }
  return known;
}

// Returns true if another record has the same file or contents; this record is then shadowed,
// whatever its path.
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

// probe_at: as in CachedPlugin.
Status PluginLoader::Quarantine(PluginRecord* record, Status why, int64_t probe_at) {
  std::string fix = "repair it: when its contents have changed, it is looked at again";
  if (probe_at) fix += StrCat("; also from ", std::max<int64_t>(probe_at - Now(), 0), " s from now on, in case the machine was busy");
  if (!cache_->file().empty()) fix += StrCat("; or, if something else was at fault, remove '", cache_->file(), "'");
  return Refuse(record, PluginRecord::kQuarantined, std::move(why), fix);
}

// Quarantines a plugin that exceeded the time limit now, and `timeouts` times in a row before. The
// doubled time bounds the cost of a plugin that always hangs.
Status PluginLoader::QuarantineForNow(KnownPlugin* p, const Status& why, uint32_t timeouts) {
  std::chrono::seconds wait = loading_.retry_after;
  for (uint32_t i = 0; i < timeouts && wait < loading_.retry_after_at_most; ++i) wait *= 2;
  const int64_t probe_at = Now() + std::min(wait, loading_.retry_after_at_most).count();
  cache_->Put(p->real, {p->stamp, p->record->digest, std::string(Message(why)), {}, "", timeouts + 1, probe_at});
  return Quarantine(p->record.get(), why, probe_at);
}

// Returns the Unix time in seconds.
int64_t PluginLoader::Now() const { return std::chrono::duration_cast<std::chrono::seconds>(loading_.now().time_since_epoch()).count(); }

// Returns true if a quarantined plugin is to be probed again. A time that lies too far ahead comes
// from a clock that was wrong.
bool PluginLoader::IsDue(const CachedPlugin& quarantined) const {
  const int64_t now = Now();
  return quarantined.probe_at != 0 && (quarantined.probe_at <= now || quarantined.probe_at > now + loading_.retry_after_at_most.count());
}

// Examines a plugin for the first time, or after `timeouts` probes in a row that took too long.
Status PluginLoader::Look(KnownPlugin* p, uint32_t timeouts) {
  PluginRecord* record = p->record.get();
  ProbeResult result = ProbePlugin({loading_.helper, p->real, loading_.patience, loading_.settings}, record);
  switch (result.outcome) {
    case ProbeOutcome::kRefused: return result.why;
    case ProbeOutcome::kBroken:
      cache_->Put(p->real, {p->stamp, record->digest, std::string(Message(result.why)), {}, ""});
      return Quarantine(record, result.why, 0);
    case ProbeOutcome::kLate: return QuarantineForNow(p, result.why, timeouts);
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

// Examines a plugin in this process. Without `whole`, reads only its identity.
StatusOr<PluginManifest> PluginLoader::LookHere(const std::string& path, bool whole, PluginRecord* record) {
  const KeptFloatState kept;
  Loaded plugin;  // closed on return
  ASSIGN_OR_RETURN(plugin.library, OpenPluginLibrary(path, record));
  ASSIGN_OR_RETURN(tw_query_fn query, FindPluginQuery(plugin.library, record));
  ASSIGN_OR_RETURN(const tw_plugin* d, AskPlugin(query, record));
  tw_plugin sealed;
  RETURN_IF_ERROR(AgreeWithPlugin(*d, record, &sealed));
  Registration r;
  if (!whole) return ManifestOf(*record, sealed, r);
  plugin.host = make_host_(record->id, path, record->minor, {});
  bool started = false;
  Status s = InitPlugin(sealed, plugin.host.get(), &r, &plugin.instance, &started, record);
  if (started) plugin.shutdown = sealed.shutdown;
  RETURN_IF_ERROR(s);
  if (s = CheckKernelsOnce(r); !s.ok()) return Refuse(record, s, "report it to the plugin's author");
  return ManifestOf(*record, sealed, r);
}

// Checks for disabled ids and for ids that another file has.
Status PluginLoader::CheckId(const std::vector<std::string>& disabled, PluginRecord* record) {
  if (Matches(disabled, record->id)) return Disable(record, "id"), Status();
  const PluginRecord* first = nullptr;
  if (const Loaded* l = FindLoaded(record->id)) first = l->record.get();
  for (const KnownPlugin* p : catalogue_.Waiting()) {
    if (p->manifest.id == record->id) first = p->record.get();
  }
  const auto found = std::find_if(found_.begin(), found_.end(), [record](const auto& p) { return p->manifest.id == record->id; });
  if (found == found_.end()) return first ? SameId(record, *first) : Status();
  PluginRecord* other = (*found)->record.get();
  if (!IsNewer(record->version, other->version)) return SameId(record, *other);
  // If one search finds two files of a plugin, the newer version wins, whatever their order.
  SameId(other, *record).IgnoreError();
  found_.erase(found);
  return Status();
}

}  // namespace thalweg
