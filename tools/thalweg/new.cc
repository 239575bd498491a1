// thalweg new: makes the folder of a new plugin from the templates in plugins/templates, which are
// built into this program.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "handles.h"
#include "templates.h"

namespace thalweg::cli {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;

std::string Text(const std::string& path) {
  for (const Template& t : kTemplates) {
    if (path == t.path) return t.text;
  }
  throw std::logic_error("no template " + path);
}

// Keeps the lines between {{if WORD}} and {{end}} if WORD is "yes", and the lines after {{else}} if
// not.
std::string Chosen(const std::string& text, const Words& words) {
  std::string out;
  bool keep = true;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.rfind("{{if ", 0) == 0) {
      keep = words.at(line.substr(5, line.size() - 7)) == "yes";
    } else if (line == "{{else}}") {
      keep = !keep;
    } else if (line == "{{end}}") {
      keep = true;
    } else if (keep) {
      out += line + "\n";
    }
  }
  return out;
}

// Replaces each {{word}} by its value; other braces are code and stay.
std::string Filled(const std::string& text, const Words& words) {
  std::string out;
  size_t at = 0;
  for (size_t open; (open = text.find("{{", at)) != text.npos;) {
    const size_t close = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 2);
    const bool word = close != text.npos && close > open + 2 && text.compare(close, 2, "}}") == 0;
    out += text.substr(at, open - at) + (word ? words.at(text.substr(open + 2, close - open - 2)) : "{{");
    at = word ? close + 2 : open + 2;
  }
  return out + text.substr(at);
}

// Returns the prefix of the installed headers, so that the commands in README.md work without
// changes.
std::string Prefix() {
  std::error_code failed;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
  return std::filesystem::exists(prefix / "include/thalweg/plugin/plugin.h", failed) ? prefix.string() : "/usr/local";
}

// The rules for a name.
struct NameRule {
  const char* first;
  const char* rest;
  const char* text;
};
// A leading capital letter avoids keywords. By custom, device kinds use capitals only and address
// schemes use none.
constexpr NameRule kOpName = {"A-Z", "A-Za-z0-9_", "a capital letter, then letters, digits and _"};
constexpr NameRule kDeviceName = {"A-Z", "A-Z0-9_", "a capital letter, then capital letters, digits and _"};
constexpr NameRule kScheme = {"a-z", "a-z0-9", "a small letter, then small letters and digits"};
constexpr NameRule kRoleName = {"a-z", "a-z0-9_", "a small letter, then small letters, digits and _"};

// A kind of plugin. has_cpp: the template exists in C++, too. ops: what follows the plugin's name in
// the names of its ops.
struct Kind {
  const char* name;
  const NameRule& rule;
  bool has_cpp;
  std::vector<const char*> ops;
};
const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> all = {
      {"op", kOpName, true, {""}},         {"optimizer", kOpName, true, {""}}, {"resource", kOpName, true, {"", "Add", "Value"}},
      {"device", kDeviceName, true, {}},   {"compiler", kRoleName, true, {}},  {"rewriter", kRoleName, true, {}},
      {"importer", kRoleName, true, {}},   {"profiler", kRoleName, true, {}},  {"file_system", kScheme, true, {}},
      {"collective", kRoleName, true, {}}, {"membership", kScheme, true, {}},  {"transport", kScheme, false, {}}};
  return all;
}

const Kind& KindOf(const std::string& name) {
  std::string known;
  for (const Kind& kind : Kinds()) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw UsageError{"'" + name + "' is no kind of plugin; there are: " + known};
}

// Returns the kind with its article.
std::string With(const Kind& kind) { return (std::strchr("aeiou", kind.name[0]) ? "an " : "a ") + std::string(kind.name); }

// Returns true if c is in a set such as "A-Z0-9_".
bool IsIn(char c, const char* set) {
  for (; *set; ++set) {
    if (set[1] == '-' ? c >= set[0] && c <= set[2] : c == *set) return true;
    if (set[1] == '-') set += 2;
  }
  return false;
}

void CheckName(const Kind& kind, const std::string& name) {
  bool good = !name.empty() && name.size() <= 64 && IsIn(name[0], kind.rule.first);
  for (const char c : name) good = good && IsIn(c, kind.rule.rest);
  if (!good) throw UsageError{"'" + name + "' cannot name " + With(kind) + ": use " + kind.rule.text + ", 64 at most"};
  if (name == "test") throw UsageError{"'test' cannot name " + With(kind) + ": test.c is the file that tests it; choose another name"};
}

[[noreturn]] void Taken(const std::string& what, const std::string& name, const std::string& by) {
  throw std::runtime_error(what + " '" + name + "' is there already, of plugin '" + by + "'; choose another name");
}

void CheckFree(const Args& args, const Kind& kind, const std::string& name) {
  const tw::Runtime runtime = MakeRuntime(args);
  const Ops ops(runtime);
  for (uint32_t i = 0; !kind.ops.empty() && i < tw_ops_count(ops.c()); ++i) {
    for (const char* end : kind.ops) {
      if (name + end == tw_ops_name(ops.c(), i)) Taken("op", name + end, tw_ops_plugin(ops.c(), i));
    }
  }
  const Plugins plugins(runtime);
  const tw_plugins* p = plugins.c();
  for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
    for (uint32_t k = 0; kind.name == std::string_view("device") && k < tw_plugins_device_kind_count(p, i); ++k) {
      if (name == tw_plugins_device_kind(p, i, k)) Taken("device kind", name, tw_plugins_id(p, i));
    }
    for (uint32_t k = 0; k < tw_plugins_role_count(p, i); ++k) {
      if (kind.name + (" " + name) == tw_plugins_role(p, i, k)) Taken(kind.name, name, tw_plugins_id(p, i));
    }
  }
}

// The options without which the kit cannot check a plugin of the kind, in the folder where its test has run.
std::string KitOptions(const Kind& kind, const std::string& name) {
  if (kind.name == std::string_view("membership")) return "--at members";
  if (kind.name == std::string_view("importer")) return "--at sample." + name;
  return "";
}

Words WordsFor(const Args& args, const Kind& kind, const std::string& name) {
  const bool cpp = args.has("--cpp");
  std::string lower = name;
  for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  std::string dashed = lower;  // names of packages have no underscore
  for (char& c : dashed) c = c == '_' ? '-' : c;
  return {{"name", name},
          {"lower", lower},
          {"dashed", dashed},
          {"file", name + (cpp ? ".cc" : ".c")},
          {"compilers", cpp ? "g++ clang++" : "gcc clang"},
          {"standard", cpp ? "-std=c++17" : "-std=c11"},
          {"kit", KitOptions(kind, name)},
          {"compiler", cpp ? "c++ -std=c++17" : "cc -std=c11"},
          {"exports", cpp ? "-Wl,--version-script=\"$prefix/include/thalweg/plugin.map\" " : ""},
          {"language", cpp ? "CXX" : "C"},
          {"gradient", args.has("--gradient") ? "yes" : "no"},
          {"shape_rule", cpp ? "`p.op<Gradient, Rule>`" : "`.shape = rule` of the `tw_op_def`"},
          {"prefix", Prefix()},
          {"libdir", kLibraryFolder}};
}

void MakeFolder(const std::string& name) {
  std::error_code failed;
  if (std::filesystem::create_directory(name, failed)) return;
  throw std::runtime_error("cannot make the folder '" + name + "': " + (failed ? failed.message() : "there is one already") +
                           "; go to another folder or choose another name");
}

// The files of a plugin: the template's name, then the name in the plugin's folder.
std::vector<std::pair<std::string, std::string>> FilesOf(const Kind& kind, const Args& args, const Words& words) {
  const std::string folder = std::string(kind.name) + "/";
  std::vector<std::pair<std::string, std::string>> files = {{folder + kind.name + (args.has("--cpp") ? ".cc" : ".c"), words.at("file")}};
  if (folder == "optimizer/") files.push_back({folder + "optimizer.py", words.at("lower") + ".py"});
  files.push_back({folder + "test.c", "test.c"});
  files.push_back({"CMakeLists.txt", "CMakeLists.txt"});
  files.push_back({folder + "README.md", "README.md"});
  for (const char* file : {"pyproject.toml", "make_wheel.py", "make_deb.sh", "ci.sh", "ci.yml"}) {
    if (args.has("--packages")) files.push_back({std::string("packages/") + file, file});
  }
  return files;
}

int Run(const Args& args) {
  const Kind& kind = KindOf(args.positional()[0]);
  const std::string name = args.positional()[1];
  if (args.has("--gradient") && std::strcmp(kind.name, "op") != 0) throw UsageError{"--gradient is for ops; leave it out"};
  if (args.has("--cpp") && !kind.has_cpp) throw UsageError{"there is no template of " + With(kind) + " in C++; leave out --cpp"};
  if (args.has("--c") && args.has("--cpp")) throw UsageError{"--c and --cpp exclude each other; give one"};
  CheckName(kind, name);
  CheckFree(args, kind, name);
  MakeFolder(name);
  const Words words = WordsFor(args, kind, name);
  std::printf("%s/\n", name.c_str());
  for (const auto& [from, to] : FilesOf(kind, args, words)) {
    WriteFile(name + "/" + to, Filled(Chosen(Text(from), words), words));
    std::printf("  %s\n", to.c_str());
  }
  std::printf("README.md in it has the commands to build, test and check it.\n");
  return kGood;
}

}  // namespace

const Command& NewCommand() {
  static const Command command = {
      "new",
      "op|optimizer|resource|device|compiler|rewriter|importer|profiler|file_system|collective|membership|transport NAME",
      "Writes the folder NAME with a plugin to begin with: source, test, CMake file, README.",
      "Each is a small plugin that works, of the kind that is named. It needs the public headers and nothing else,\n"
      "and builds with one compiler command.\n",
      {{"--c", nullptr, "in C, which is what you get if nothing is said"},
       {"--cpp", nullptr, "in C++; for every kind but transport"},
       {"--gradient", nullptr, "an op with a gradient"},
       {"--packages", nullptr, "also files that make a wheel and a .deb of it, and check it with two compilers on several versions"},
       kRuntimeOption},
      2,
      2,
      Run};
  return command;
}

}  // namespace thalweg::cli
