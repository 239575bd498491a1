#include "folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

namespace thalweg::cli::serve {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostFiles = 100000;  // of a version, that are looked at for changes

// Returns false for a name that is no version: a whole number without a sign or leading zeros.
bool ToVersion(const std::string& name, uint64_t* version) {
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), *version);
  return error == std::errc() && end == name.data() + name.size() && std::to_string(*version) == name;
}

bool IsModel(const tw::Runtime& runtime, const fs::path& path) {
  tw_buffer* importer = nullptr;
  tw_status* status = tw_model_recognise(runtime.c(), path.c_str(), &importer);
  tw_buffer_release(importer);
  const bool good = !status;
  tw_status_release(status);
  return good;
}

}  // namespace

std::map<std::string, Versions> ListModels(const std::string& folder) {
  std::map<std::string, Versions> models;
  for (const fs::directory_entry& model : fs::directory_iterator(folder)) {
    const std::string name = model.path().filename();
    std::error_code error;
    if (name[0] == '.' || !model.is_directory(error)) continue;
    Versions& versions = models[name];
    for (const fs::directory_entry& entry : fs::directory_iterator(model.path(), error)) {
      uint64_t version = 0;
      std::error_code gone;
      if (ToVersion(entry.path().filename(), &version) && entry.is_directory(gone)) versions[version] = entry.path();
    }
  }
  return models;
}

std::string FindModel(const tw::Runtime& runtime, const std::string& folder) {
  if (fs::exists(fs::path(folder) / "saved_model.pb")) return folder;
  std::vector<fs::path> entries;
  std::string names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().native()[0] != '.') entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) names += (names.empty() ? "'" : ", '") + entry.filename().string() + "'";
  if (entries.size() > 1)
    entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const fs::path& p) { return !IsModel(runtime, p); }), entries.end());
  if (entries.size() == 1) return entries[0];
  throw std::runtime_error("'" + folder + "' must hold one model; it holds " + (names.empty() ? "nothing" : names) +
                           (entries.empty() ? "" : ", of which " + std::to_string(entries.size()) + " are models"));
}

std::string Fingerprint(const std::string& folder) {
  std::vector<std::string> lines;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end && lines.size() < kMostFiles; at.increment(error)) {
    std::error_code none;
    const auto time = at->last_write_time(none).time_since_epoch().count();
    const auto size = at->is_regular_file(none) ? at->file_size(none) : 0;
    lines.push_back(at->path().string() + " " + std::to_string(size) + " " + std::to_string(time));
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace thalweg::cli::serve
