// The file has one row per line, with tabs between words and "%XX" for '%' and control characters.
// The last line holds the number of rows, so that a torn file is detected.
#include "framework/session/placement_store.h"

#include <filesystem>
#include <vector>

#include "framework/base/shown.h"
#include "framework/files/whole_file.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

constexpr std::string_view kHead = "thalweg-placements 1";
constexpr uint64_t kMostBytes = 256 << 20;

void AddRow(const std::vector<std::string>& row, std::string* text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (size_t k = 0; k < row.size(); ++k) {
    if (k) *text += '\t';
    for (const char c : row[k]) {
      if (c == '%' || static_cast<unsigned char>(c) < ' ') {
        *text += {'%', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
      } else {
        *text += c;
      }
    }
  }
  *text += '\n';
}

int Digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t') {
      words.emplace_back();
    } else if (line[i] == '%' && i + 2 < line.size() && Digit(line[i + 1]) >= 0 && Digit(line[i + 2]) >= 0) {
      words.back() += char(Digit(line[i + 1]) * 16 + Digit(line[i + 2]));
      i += 2;
    } else {
      words.back() += line[i];
    }
  }
  return words;
}

std::string PathOf(const SessionOptions& options, const Runtime& runtime) {
  if (!options.placement_file.empty()) return options.placement_file;
  const std::string& folder = runtime.options().compile_cache;
  return folder.empty() ? "" : folder + "/placements";
}

StatusOr<std::string> ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, LocalFiles().Open(path));
  if (file->size() > kMostBytes) return InvalidArgument("it is larger than any that is written");
  std::string text(file->size(), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, text.data(), text.size()));
  return text;
}

}  // namespace

PlacementStore::PlacementStore(const SessionOptions& options, Runtime* runtime) : runtime_(runtime), path_(PathOf(options, *runtime)) {
  if (path_.empty()) return;
  if (Status s = Load(); !s.ok()) {
    runtime_->Log(1, StrCat("placement file '", Shown(path_), "': ", Message(s), "; nothing is known from before"));
  }
}

Status PlacementStore::Load() {
  std::error_code none;
  if (!std::filesystem::exists(path_, none)) return Status();
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(path_));
  return Take(text);
}

// Accepts the whole text or none of it.
Status PlacementStore::Take(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  bool ended = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == text.npos || ended) return InvalidArgument("it is torn or no such file");
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (rows.empty() && line != kHead) return InvalidArgument("it is torn or no such file");
    rows.push_back(WordsOf(line));
    ended = rows.back()[0] == "end";
  }
  if (!ended || rows.back().size() != 2 || rows.back()[1] != std::to_string(rows.size() - 2))
    return InvalidArgument("it is torn or no such file");
  std::map<std::string, std::string> uids;
  for (Device* d : runtime_->devices()) uids[d->name()] = d->uid();
  std::map<std::string, std::shared_ptr<Places>> places;
  for (const auto& row : rows) {
    if (row[0] == "device" && (row.size() != 3 || !uids.count(row[1]) || uids[row[1]] != row[2])) {
      return FailedPrecondition("it is about other devices than there are, such as '", Shown(row[1]), "'");
    }
    if (row[0] == "place" && row.size() == 4) {
      auto& all = places[row[1]];
      if (!all) all = std::make_shared<Places>();
      (*all)[row[2]] = row[3];
    }
  }
  for (const auto& row : rows) (void)costs_->AddRow(row);  // ignores rows that are not of the cost model
  std::lock_guard lock(mu_);
  for (auto& [signature, all] : places) places_[signature] = std::move(all);
  return Status();
}

std::shared_ptr<const Places> PlacementStore::Find(const std::string& signature) const {
  std::lock_guard lock(mu_);
  const auto it = places_.find(signature);
  return it == places_.end() ? nullptr : it->second;
}

void PlacementStore::Keep(const std::string& signature, std::shared_ptr<const Places> places) {
  {
    std::lock_guard lock(mu_);
    places_[signature] = std::move(places);
  }
  SaveOrSay();
}

void PlacementStore::SaveOrSay() const {
  if (Status s = Save(); !s.ok()) runtime_->Log(1, StrCat("placement file '", Shown(path_), "': ", Message(s), "; nothing is kept"));
}

std::string PlacementStore::Text() const {
  std::string text(kHead);
  text += '\n';
  size_t rows = 0;
  const auto add = [&](const std::vector<std::string>& row) {
    AddRow(row, &text);
    ++rows;
  };
  for (Device* d : runtime_->devices()) add({"device", d->name(), d->uid()});
  for (const auto& row : costs_->Rows()) add(row);
  std::lock_guard lock(mu_);
  for (const auto& [signature, places] : places_) {
    for (const auto& [node, device] : *places) add({"place", signature, node, device});
  }
  AddRow({"end", std::to_string(rows)}, &text);
  return text;
}

Status PlacementStore::Save() const {
  if (path_.empty()) return Status();
  return ReplaceFile(path_, TemporaryName(path_, "placements"), Text(), LocalFiles());
}

}  // namespace thalweg
