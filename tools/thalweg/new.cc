// thalweg new: a folder to begin a plugin with, made from the texts of plugins/templates, which the build puts into this program.
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>

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

// Lines between {{if WORD}} and {{end}} stay where WORD is "yes", those behind {{else}} where it is not.
std::string Chosen(const std::string& text, const Words& words) {
  std::string out;
  bool keep = true;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
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

// {{word}} becomes what it stands for.
std::string Filled(const std::string& text, const Words& words) {
  std::string out;
  size_t at = 0;
  for (size_t open; (open = text.find("{{", at)) != text.npos;) {
    const size_t close = text.find("}}", open);
    out += text.substr(at, open - at) + words.at(text.substr(open + 2, close - open - 2));
    at = close + 2;
  }
  return out + text.substr(at);
}

// Where this program's installation has its headers, so that the commands in README.md can be used as they stand.
std::string Prefix() {
  std::error_code failed;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
  return std::filesystem::exists(prefix / "include/thalweg/plugin/plugin.h", failed) ? prefix.string() : "/usr/local";
}

// Capital letters first keep clear of keywords; of a device's kind all are capital by custom.
void CheckName(const std::string& kind, const std::string& name) {
  const bool device = kind == "device";
  bool good = name.size() <= 64 && !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
  for (const unsigned char c : name) {
    good &= (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (!device && c >= 'a' && c <= 'z');
  }
  if (good) return;
  throw UsageError{"'" + name + "' cannot name " + (device ? "a device" : "an op") + ": use a capital letter, then " +
                   (device ? "capital letters" : "letters") + ", digits and _, 64 at most"};
}

void CheckFree(const Args& args, const std::string& kind, const std::string& name) {
  const tw::Runtime runtime = MakeRuntime(args);
  const auto taken = [&](const std::string& by) {
    throw std::runtime_error("there is a" + std::string(kind == "op" ? "n op '" : " device kind '") + name + "' already, of plugin '" + by +
                             "'; choose another name");
  };
  if (kind == "op") {
    const Ops ops(runtime);
    for (uint32_t i = 0; i < tw_ops_count(ops.c()); ++i) {
      if (name == tw_ops_name(ops.c(), i)) taken(tw_ops_plugin(ops.c(), i));
    }
  } else {
    const Plugins plugins(runtime);
    for (uint32_t i = 0; i < tw_plugins_count(plugins.c()); ++i) {
      for (uint32_t k = 0; k < tw_plugins_device_kind_count(plugins.c(), i); ++k) {
        if (name == tw_plugins_device_kind(plugins.c(), i, k)) taken(tw_plugins_id(plugins.c(), i));
      }
    }
  }
}

Words WordsFor(const Args& args, const std::string& name) {
  const bool cpp = args.has("--cpp");
  std::string lower = name;
  for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  return {{"name", name},
          {"lower", lower},
          {"file", name + (cpp ? ".cc" : ".c")},
          {"compiler", cpp ? "c++ -std=c++17" : "cc -std=c11"},
          {"exports", cpp ? "-Wl,--version-script=\"$prefix/include/thalweg/plugin.map\" " : ""},
          {"language", cpp ? "CXX" : "C"},
          {"gradient", args.has("--gradient") ? "yes" : "no"},
          {"shape_rule", cpp ? "`p.op<Gradient, Rule>`" : "`.shape = rule` of the `tw_op_def`"},
          {"prefix", Prefix()},
          {"libdir", kLibraryFolder}};
}

int Run(const Args& args) {
  const std::string kind = args.positional()[0], name = args.positional()[1];
  if (kind != "op" && kind != "device") throw UsageError{"'" + kind + "' is neither op nor device"};
  for (const char* option : {"--c", "--cpp", "--gradient"}) {
    if (kind != "op" && args.has(option)) throw UsageError{std::string(option) + " is for ops; leave it out"};
  }
  if (args.has("--c") && args.has("--cpp")) throw UsageError{"--c and --cpp exclude each other; give one"};
  CheckName(kind, name);
  CheckFree(args, kind, name);
  std::error_code failed;
  if (!std::filesystem::create_directory(name, failed)) {
    throw std::runtime_error("cannot make the folder '" + name + "': " + (failed ? failed.message() : "there is one already") +
                             "; go to another folder or choose another name");
  }
  const Words words = WordsFor(args, name);
  const std::string source = kind + "/" + kind + (args.has("--cpp") ? ".cc" : ".c");
  const std::pair<std::string, std::string> files[] = {{source, words.at("file")},
                                                       {kind + "/test.c", "test.c"},
                                                       {kind + "/CMakeLists.txt", "CMakeLists.txt"},
                                                       {kind + "/README.md", "README.md"}};
  std::printf("%s/\n", name.c_str());
  for (const auto& [from, to] : files) {
    WriteFile(name + "/" + to, Filled(Chosen(Text(from), words), words));
    std::printf("  %s\n", to.c_str());
  }
  std::printf("README.md in it has the commands to build, test and check it.\n");
  return kGood;
}

}  // namespace

const Command& NewCommand() {
  static const Command command = {"new",
                                  "op|device NAME",
                                  "Writes the folder NAME with a plugin to begin with: source, test, CMake file, README.",
                                  "A plugin needs the public headers and nothing else; it builds with one compiler command.\n",
                                  {{"--c", nullptr, "an op in C, which is what you get if nothing is said"},
                                   {"--cpp", nullptr, "an op in C++"},
                                   {"--gradient", nullptr, "an op with a gradient"},
                                   kRuntimeOption},
                                  2,
                                  2,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
