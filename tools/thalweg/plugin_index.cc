#include "plugin_index.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "framework/base/sha256.h"
#include "json_value.h"
#include "loaded_plugin.h"

namespace thalweg::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "thalweg-index 1";
constexpr double kMostBytes = double(uint64_t{1} << 31);  // of one file of a plugin

// A name that is safe to append to the path of a folder.
bool IsPlainName(const std::string& name, const char* ending) {
  const size_t n = std::strlen(ending);
  if (name.rfind("lib", 0) != 0 || name.size() <= n + 3 || name.compare(name.size() - n, n, ending) != 0) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._+-", c); });
}

IndexedFile FileOf(const fs::path& path) {
  const std::string bytes = ReadFile(path.string());
  return {path.filename().string(), Sha256(bytes), bytes.size()};
}

[[noreturn]] void Malformed(const std::string& what) {
  throw std::runtime_error("the index is malformed: " + what + "; `thalweg plugins index` makes one");
}

IndexedFile ParseFile(const JsonValue& json, const char* ending) {
  IndexedFile file{json["name"].text(), json["sha256"].text(), 0};
  if (!IsPlainName(file.name, ending)) Malformed("'" + file.name + "' is no name of the form libNAME" + ending);
  if (file.sha256.size() != 64) Malformed("the file '" + file.name + "' has no digest");
  if (!(json["bytes"].number() >= 1 && json["bytes"].number() <= kMostBytes))
    Malformed("the file '" + file.name + "' has no size between 1 and 2^31");
  file.bytes = uint64_t(json["bytes"].number());
  return file;
}

std::vector<IndexedPlugin> Parse(const std::string& text) {
  const JsonValue json = JsonValue::Parse(text);
  if (json["format"].text() != kFormat) Malformed("its format is '" + json["format"].text() + "', not '" + kFormat + "'");
  std::vector<IndexedPlugin> plugins;
  for (const JsonValue& p : json["plugins"].items()) {
    IndexedPlugin plugin{p["id"].text(), p["version"].text(), p["build"].text(), p["contents"].text(), {}};
    if (plugin.id.empty() || plugin.version.empty()) Malformed("a plugin has no id or no version");
    const std::vector<JsonValue>& files = p["files"].items();
    if (files.empty() || files.size() > 2) Malformed("'" + plugin.id + "' does not list a library and at most one manual");
    plugin.files.push_back(ParseFile(files[0], ".so"));
    if (files.size() == 2) plugin.files.push_back(ParseFile(files[1], ".md"));
    plugins.push_back(plugin);
  }
  return plugins;
}

// A file that exists while this object does.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) : path_((fs::temp_directory_path() / "thalweg-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error("cannot make a file in '" + fs::temp_directory_path().string() + "': " + std::strerror(errno));
    close(file);
    WriteFile(path_, bytes);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void CheckSignature(const std::string& text, const std::string& signature, const std::string& signers, const std::string& place) {
  if (!fs::exists(signers)) throw std::runtime_error("the file of allowed signers '" + signers + "' does not exist");
  const TemporaryFile index(text), signed_by(signature);
  Program program;
  program.remedy = "install ssh-keygen (Debian's package openssh-client)";
  program.quiet = true;
  program.words = {"ssh-keygen", "-Y", "find-principals", "-s", signed_by.path(), "-f", signers};
  std::string principal;
  const bool known = program.Run(&principal) == 0;
  principal.resize(std::min(principal.size(), principal.find('\n')));
  if (!known || principal.empty()) throw std::runtime_error("nobody in '" + signers + "' has signed the index of '" + place + "'");
  program.input = index.path();
  program.words = {"ssh-keygen", "-Y", "verify", "-f", signers, "-I", principal, "-n", "thalweg-index", "-s", signed_by.path()};
  if (program.Run(nullptr) != 0)
    throw std::runtime_error("the signature of '" + principal + "' does not fit the index of '" + place +
                             "'; it was changed or is damaged");
}

}  // namespace

void WriteFiles(Json* json, const std::vector<IndexedFile>& files) {
  json->Array("files");
  for (const IndexedFile& file : files)
    json->Object().Text("name", file.name).Text("sha256", file.sha256).Number("bytes", int64_t(file.bytes)).End();
  json->End();
}

std::string MakeIndex(const Args& args, const std::string& folder) {
  std::vector<fs::path> libraries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (IsPlainName(entry.path().filename().string(), ".so")) libraries.push_back(entry.path());
  }
  if (libraries.empty()) throw std::runtime_error("'" + folder + "' has no file with a name of the form libNAME.so");
  std::sort(libraries.begin(), libraries.end());
  Json json;
  json.Object().Text("format", kFormat).Array("plugins");
  for (const fs::path& library : libraries) {
    const LoadedPlugin plugin = LoadPlugin(args, library.string());
    json.Object().Text("id", plugin.id).Text("version", plugin.version).Text("build", plugin.build).Text("contents", plugin.contents);
    std::vector<IndexedFile> files = {FileOf(library)};
    const fs::path manual = fs::path(library).replace_extension(".md");
    if (fs::exists(manual)) files.push_back(FileOf(manual));
    WriteFiles(&json, files);
    json.End();
  }
  return json.End().End().text();
}

std::vector<IndexedPlugin> ReadIndex(const Source& source, const std::string& signers) {
  const std::string text = source.Fetch("index.json", kMostConfig);
  if (!signers.empty()) CheckSignature(text, source.Fetch("index.json.sig", kMostConfig), signers, source.place());
  return Parse(text);
}

std::vector<IndexedPlugin> VersionsOf(const std::vector<IndexedPlugin>& index, const std::string& id, const std::string& version) {
  std::vector<IndexedPlugin> found;
  for (const IndexedPlugin& plugin : index) {
    if (plugin.id == id && (version.empty() || plugin.version == version)) found.push_back(plugin);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const IndexedPlugin& a, const IndexedPlugin& b) { return strverscmp(a.version.c_str(), b.version.c_str()) > 0; });
  return found;
}

}  // namespace thalweg::cli
