#include "framework/io/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "framework/io/checkpoint.h"

namespace thalweg {
namespace {

constexpr std::string_view kIndex = ".index";

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Returns true for `name` and a step.
bool IsNumbered(std::string_view prefix, std::string_view name) {
  return StepOfCheckpoint(prefix) >= 0 && (name.empty() || prefix.substr(0, prefix.rfind('-')) == name);
}

// The final name of a temporary file, such as "m-1.index"; "" for any other file.
std::string_view TargetOf(std::string_view file) {
  constexpr std::string_view kMark = ".tmp-";
  constexpr size_t kDigits = 16;
  if (file.size() < kDigits || file.substr(file.size() - kDigits).find_first_not_of("0123456789abcdef") != file.npos) return {};
  file.remove_suffix(kDigits);
  return file.ends_with(kMark) ? file.substr(0, file.size() - kMark.size()) : std::string_view();
}

// The checkpoint that a data file belongs to; "" for any other file.
std::string_view PrefixOfData(std::string_view file) {
  constexpr std::string_view kForm = ".data-00000-of-00000";
  if (file.size() < kForm.size()) return {};
  const std::string_view end = file.substr(file.size() - kForm.size());
  for (size_t i = 0; i < end.size(); ++i) {
    if (kForm[i] == '0' ? end[i] < '0' || end[i] > '9' : end[i] != kForm[i]) return {};
  }
  return file.substr(0, file.size() - kForm.size());
}

// "m-1" of "m-1.part0of2": the checkpoint that a part is of; "" for any other name.
std::string_view WholeOf(std::string_view part) {
  constexpr std::string_view kMark = ".part", kDigits = "0123456789";
  const size_t mark = part.rfind(kMark);
  if (mark == part.npos) return {};
  const std::string_view numbers = part.substr(mark + kMark.size());
  const size_t of = numbers.find("of");
  if (of == 0 || of == numbers.npos || of + 2 == numbers.size()) return {};
  if (numbers.substr(0, of).find_first_not_of(kDigits) != numbers.npos) return {};
  return numbers.substr(of + 2).find_first_not_of(kDigits) == numbers.npos ? part.substr(0, mark) : std::string_view();
}

// The part that a file belongs to; "" for any other file.
std::string_view PartOfFile(std::string_view file) {
  if (const std::string_view target = TargetOf(file); !target.empty()) file = target;
  const std::string_view data = PrefixOfData(file);
  if (!data.empty()) return data;
  for (std::string_view end : {kIndex, std::string_view(".data")}) {
    if (file.ends_with(end)) return file.substr(0, file.size() - end.size());
  }
  return {};
}

// Returns the checkpoint of a path in the state file. Folders may be moved: if a file is not at its
// absolute path, it is looked up in this folder.
std::string Resolve(const std::string& folder, const std::string& path, const std::set<std::string>& names) {
  const std::string here(LastPart(path));
  if (names.count(StrCat(here, kIndex)) || path.empty()) return StrCat(folder, "/", here);
  return IsAbsolute(path) ? path : StrCat(folder, "/", path);
}

// Returns the entries of other names: `state` without those of `name`.
CheckpointState OfOthers(CheckpointState state, const std::string& name) {
  const auto is_ours = [&](std::string_view path) { return IsNumbered(LastPart(path), name); };
  const bool listed = std::any_of(state.all.begin(), state.all.end(), [&](auto& c) { return c.path == state.latest; });
  if (!listed && !state.latest.empty()) state.all.push_back({state.latest, 0, {}});
  std::erase_if(state.all, [&](const SavedCheckpoint& c) { return is_ours(c.path); });
  std::erase_if(state.removed, is_ours);
  state.preserved.erase(name);
  return state;
}

// Merges both lists, oldest first, each in its own order, with the one saved just now last.
// REQUIRES: ours is not empty.
std::vector<SavedCheckpoint> Together(const std::vector<SavedCheckpoint>& others, const std::vector<SavedCheckpoint>& ours) {
  std::vector<SavedCheckpoint> all;
  auto other = others.begin();
  for (const SavedCheckpoint& c : ours) {
    while (other != others.end() && (&c == &ours.back() || other->time <= c.time)) all.push_back(*other++);
    all.push_back(c);
  }
  return all;
}

bool Better(const SavedCheckpoint& a, const SavedCheckpoint& b, bool smaller) {
  return smaller ? *a.metric < *b.metric : *a.metric > *b.metric;
}

// Returns the checkpoints that have a metric, best first; among equals the newest first.
std::vector<const SavedCheckpoint*> ByMetric(const CheckpointState& state, bool smaller) {
  std::vector<const SavedCheckpoint*> ranked;
  for (auto it = state.all.rbegin(); it != state.all.rend(); ++it) {
    if (it->metric && !std::isnan(*it->metric)) ranked.push_back(&*it);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](auto* a, auto* b) { return Better(*a, *b, smaller); });
  return ranked;
}

}  // namespace

std::string CheckpointPart(std::string_view prefix, size_t k, size_t n) { return StrCat(prefix, ".part", k, "of", n); }

int64_t StepOfCheckpoint(std::string_view prefix) {
  const size_t dash = prefix.rfind('-');
  if (dash == prefix.npos || dash == 0 || dash + 1 == prefix.size()) return -1;
  const std::string_view digits = prefix.substr(dash + 1);
  if (digits.find_first_not_of("0123456789") != digits.npos) return -1;
  int64_t step = -1;
  return std::from_chars(digits.data(), digits.data() + digits.size(), step).ec == std::errc() ? step : -1;
}

StatusOr<std::unique_ptr<CheckpointFolder>> CheckpointFolder::Open(const std::string& folder, const std::string& name,
                                                                   const CheckpointKeep& keep, FileSystem& files) {
  if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos) {
    return InvalidArgument("checkpoints in '", folder, "': '", name.c_str(), "' is no file name; give one such as 'model.ckpt'");
  }
  std::unique_ptr<CheckpointFolder> made(new CheckpointFolder(folder, name, keep, files));
  if (Status s = made->Load(); !s.ok()) return Prefix(s, StrCat("checkpoints in '", folder, "':"));
  return made;
}

Status CheckpointFolder::Load() {
  RETURN_IF_ERROR(files_.MakeFolder(folder_));
  // Under the lock: files that another name is writing now were not left by a crash.
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, files_.LockFolderOf(StrCat(folder_, "/checkpoint")));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(folder_));
  Sweep(names);
  auto state = ReadCheckpointState(folder_, files_);
  if (!state.ok() && !absl::IsNotFound(state.status()) && !absl::IsDataLoss(state.status())) return state.status();
  // Unlisted checkpoints are not ours to remove: somebody may have put them there.
  if (!state.ok()) return Status();
  const std::set<std::string> there(names.begin(), names.end());
  const auto preserved = state->preserved.find(name_);
  if (preserved != state->preserved.end()) state_.last_preserved = preserved->second;
  if (state->preserved.empty()) state_.last_preserved = state->last_preserved;
  // A crash or a failure may have prevented their removal.
  for (const std::string& path : state->removed) {
    if (IsNumbered(path, name_) && path.find('/') == path.npos) condemned_.insert(path);
  }
  for (SavedCheckpoint& c : state->all) {
    c.path = LastPart(c.path);
    if (IsNumbered(c.path, name_) && there.count(StrCat(c.path, kIndex))) state_.all.push_back(std::move(c));
  }
  return Status();
}

// Removes temporary files, data files without an index, and parts.
void CheckpointFolder::Sweep(const std::vector<std::string>& names) {
  const std::set<std::string> there(names.begin(), names.end());
  for (const std::string& file : names) {
    const std::string_view target = TargetOf(file), data = PrefixOfData(file);
    bool left = target == "checkpoint.state";
    for (std::string_view end : {std::string_view(".data"), kIndex}) {
      left |= target.ends_with(end) && IsNumbered(target.substr(0, target.size() - end.size()), name_);
    }
    const bool orphan = IsNumbered(data, name_) && !there.count(StrCat(data, kIndex));
    const std::string_view whole = WholeOf(PartOfFile(file));
    left |= !whole.empty() && IsNumbered(whole, name_);
    if (left || orphan) files_.Remove(StrCat(folder_, "/", file)).IgnoreError();
  }
}

std::set<std::string> CheckpointFolder::Best() const {
  std::set<std::string> best;
  for (const SavedCheckpoint* c : ByMetric(state_, keep_.smaller_is_better)) {
    if (best.size() == keep_.best) break;
    best.insert(c->path);
  }
  return best;
}

// Removes the checkpoints that the rules do not keep from the list.
void CheckpointFolder::Drop(double now) {
  if (keep_.last == 0) return;
  if (keep_.every_seconds > 0 && state_.last_preserved == 0) state_.last_preserved = now;
  const std::set<std::string> best = Best();
  std::vector<SavedCheckpoint> kept;
  for (size_t i = 0; i < state_.all.size(); ++i) {
    SavedCheckpoint& c = state_.all[i];
    if (i + keep_.last >= state_.all.size() || best.count(c.path)) {
      kept.push_back(std::move(c));
    } else if (keep_.every_seconds > 0 && c.time >= state_.last_preserved + keep_.every_seconds) {
      state_.last_preserved = c.time;
    } else {
      condemned_.insert(c.path);
    }
  }
  state_.all = std::move(kept);
  for (const SavedCheckpoint& c : state_.all) condemned_.erase(c.path);  // a file may list a path as both, or twice
}

// Several names share the file, so the lock is held from reading to replacing it.
Status CheckpointFolder::Publish() const {
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, files_.LockFolderOf(StrCat(folder_, "/checkpoint")));
  auto there = ReadCheckpointState(folder_, files_);
  if (!there.ok() && !absl::IsNotFound(there.status()) && !absl::IsDataLoss(there.status())) return there.status();
  CheckpointState shared = there.ok() ? OfOthers(*std::move(there), name_) : CheckpointState();
  shared.latest = state_.latest;
  shared.all = Together(shared.all, state_.all);
  shared.last_preserved = state_.last_preserved;
  if (state_.last_preserved != 0) shared.preserved[name_] = state_.last_preserved;
  shared.removed.insert(shared.removed.end(), condemned_.begin(), condemned_.end());
  return WriteCheckpointState(shared, folder_, files_);
}

// Removes the index first: without it there is no checkpoint. If a removal fails, the next save
// tries again.
void CheckpointFolder::RemoveCondemned() {
  if (condemned_.empty()) return;
  auto names = files_.List(folder_);
  if (!names.ok()) return;
  for (auto it = condemned_.begin(); it != condemned_.end();) {
    const std::string index = StrCat(folder_, "/", *it, kIndex);
    Status s = files_.Remove(index);
    bool gone = s.ok() || absl::IsNotFound(s);
    for (const std::string& file : *names) {
      if (gone && PrefixOfData(file) == *it) gone = files_.Remove(StrCat(folder_, "/", file)).ok();
    }
    it = gone ? condemned_.erase(it) : std::next(it);
  }
}

StatusOr<uint64_t> CheckpointFolder::Save(int64_t step, std::optional<double> metric, double now, const NamedTensors& values,
                                          int32_t shards) {
  return Add(step, metric, now, [&](const std::string& prefix) -> StatusOr<uint64_t> {
    ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(prefix, files_, shards));
    for (const auto& [name, value] : values) RETURN_IF_ERROR(writer->Add(name, value.view()));
    const uint64_t bytes = writer->bytes();
    RETURN_IF_ERROR(writer->Commit());
    return bytes;
  });
}

// Removes the parts that a save left.
void CheckpointFolder::RemoveParts(const std::string& path) {
  auto names = files_.List(folder_);
  if (!names.ok()) return;
  for (const std::string& file : *names) {
    if (WholeOf(PartOfFile(file)) == path) files_.Remove(StrCat(folder_, "/", file)).IgnoreError();
  }
}

StatusOr<uint64_t> CheckpointFolder::SaveBy(int64_t step, std::optional<double> metric, double now, const Writer& write) {
  const StatusOr<uint64_t> bytes = Add(step, metric, now, write);
  RemoveParts(StrCat(name_, "-", step));
  return bytes;
}

StatusOr<uint64_t> CheckpointFolder::Add(int64_t step, std::optional<double> metric, double now, const Writer& write) {
  if (step < 0) return InvalidArgument("checkpoints in '", folder_, "': step is ", step, "; it must not be negative");
  const std::string path = StrCat(name_, "-", step);
  ASSIGN_OR_RETURN(const uint64_t bytes, write(StrCat(folder_, "/", path)));
  std::erase_if(state_.all, [&](const SavedCheckpoint& c) { return c.path == path; });
  condemned_.erase(path);
  state_.all.push_back({path, now, metric});
  state_.latest = path;
  Drop(now);
  if (Status s = Publish(); !s.ok()) return Prefix(s, StrCat("checkpoint '", folder_, "/", path, "':"));
  RemoveCondemned();
  return bytes;
}

StatusOr<std::vector<std::string>> FindCheckpoints(const std::string& folder, std::string_view name, FileSystem& files,
                                                   std::vector<std::string>* notes) {
  std::vector<std::string> found;
  ASSIGN_OR_RETURN(const std::vector<std::string> listed, files.List(folder));
  const std::set<std::string> names(listed.begin(), listed.end());
  std::set<std::string> known;
  auto add = [&](const std::string& prefix) {
    if (known.insert(prefix).second) found.push_back(prefix);
  };
  auto add_named = [&](const std::string& path) {
    if (name.empty() || LastPart(path) == name || IsNumbered(LastPart(path), name)) add(Resolve(folder, path, names));
  };
  auto state = ReadCheckpointState(folder, files);
  if (state.ok()) {
    add_named(state->latest);
    for (auto it = state->all.rbegin(); it != state->all.rend(); ++it) {
      if (it->path != state->latest) add_named(it->path);
    }
  } else if (!absl::IsNotFound(state.status()) ||
             std::any_of(names.begin(), names.end(), [](auto& file) { return file.ends_with(kIndex); })) {
    notes->push_back(std::string(Message(state.status())));
  }
  std::vector<std::pair<int64_t, std::string>> numbered;
  for (const std::string& file : names) {
    if (!file.ends_with(kIndex)) continue;
    const std::string prefix = file.substr(0, file.size() - kIndex.size());
    if (IsNumbered(prefix, name)) numbered.emplace_back(StepOfCheckpoint(prefix), prefix);
  }
  std::sort(numbered.rbegin(), numbered.rend());
  for (const auto& [step, prefix] : numbered) add(StrCat(folder, "/", prefix));
  return found;
}

bool IsNoWholeCheckpoint(const Status& s) {
  // INVALID_ARGUMENT: the name belongs to something that is no file.   UNKNOWN: EIO.
  return absl::IsNotFound(s) || absl::IsDataLoss(s) || absl::IsInvalidArgument(s) || absl::IsUnknown(s);
}

StatusOr<std::string> BestCheckpoint(const std::string& folder, std::string_view name, bool smaller_is_better, FileSystem& files) {
  ASSIGN_OR_RETURN(CheckpointState state, ReadCheckpointState(folder, files));
  std::erase_if(state.all, [&](const SavedCheckpoint& c) { return !IsNumbered(LastPart(c.path), name); });
  const auto ranked = ByMetric(state, smaller_is_better);
  if (ranked.empty()) return NotFound("checkpoints in '", folder, "': none of '", name, "' was saved with a metric");
  const std::string& path = ranked[0]->path;
  return IsAbsolute(path) ? path : StrCat(folder, "/", path);
}

}  // namespace thalweg
