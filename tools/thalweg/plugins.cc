// thalweg plugins: lists the plugins that were found, and the state of each; adds plugins from an
// index, and removes them.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "command.h"
#include "handles.h"
#include "json.h"
#include "loaded_plugin.h"
#include "plugin_index.h"
#include "plugin_store.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

const char* StateText(uint32_t state) {
  switch (state) {
    case TW_PLUGIN_LOADED: return "loaded";
    case TW_PLUGIN_DISABLED: return "disabled";
    case TW_PLUGIN_SHADOWED: return "shadowed";
    case TW_PLUGIN_KNOWN: return "known";
    case TW_PLUGIN_QUARANTINED: return "quarantined";
    case TW_PLUGIN_NOT_ALLOWED: return "not allowed";
    default: return "failed";
  }
}

std::string ColouredState(uint32_t state) {
  const bool good = state == TW_PLUGIN_LOADED || state == TW_PLUGIN_KNOWN,
             bad = state == TW_PLUGIN_FAILED || state == TW_PLUGIN_QUARANTINED;
  return Coloured(good ? kGreen : bad ? kRed : kYellow, StateText(state));
}

// Returns the plugin's id, or its file name if the id is not known.
std::string Name(const tw_plugins* p, uint32_t i) {
  const std::string id = tw_plugins_id(p, i), path = tw_plugins_path(p, i);
  return OneLine(!id.empty() ? id : path.substr(path.rfind('/') + 1));
}

void PrintJson(const tw_plugins* p) {
  Json json;
  json.Array();
  for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
    json.Object().Text("id", tw_plugins_id(p, i)).Text("version", tw_plugins_version(p, i));
    json.Text("state", StateText(tw_plugins_state(p, i))).Text("path", tw_plugins_path(p, i));
    json.Text("reason", tw_plugins_reason(p, i)).Text("fix", tw_plugins_fix(p, i));
    json.Text("build", tw_plugins_build(p, i)).Number("kernels", tw_plugins_kernel_count(p, i));
    json.Array("ops");
    for (uint32_t k = 0; k < tw_plugins_op_count(p, i); ++k) json.Text("", tw_plugins_op(p, i, k));
    json.End().Array("devices");
    for (uint32_t k = 0; k < tw_plugins_device_kind_count(p, i); ++k) json.Text("", tw_plugins_device_kind(p, i, k));
    json.End().Array("roles");
    for (uint32_t k = 0; k < tw_plugins_role_count(p, i); ++k) json.Text("", tw_plugins_role(p, i, k));
    json.End().Text("digest", tw_plugins_digest(p, i)).End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

void PrintWhy(const tw_plugins* p) {
  for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
    const std::string state = ColouredState(tw_plugins_state(p, i));
    std::printf("%s %s  %s\n", Coloured(kBold, Name(p, i)).c_str(), OneLine(tw_plugins_version(p, i)).c_str(), state.c_str());
    const std::string path = tw_plugins_path(p, i);
    const std::pair<const char*, std::string> lines[] = {{"file", path.empty() ? "(linked in)" : path},
                                                         {"why", tw_plugins_reason(p, i)},
                                                         {"fix", tw_plugins_fix(p, i)},
                                                         {"brings", ContentsOf(p, i)},
                                                         {"build", tw_plugins_build(p, i)},
                                                         {"sha256", tw_plugins_digest(p, i)}};
    for (const auto& [what, text] : lines) {
      if (!text.empty()) std::printf("  %-7s %s\n", what, OneLine(text).c_str());
    }
  }
}

// Executes the conformance kit, a program beside this one. Returns only if it cannot be started.
int Check(const std::string& file, bool json) {
  const std::string kit = (std::filesystem::canonical("/proc/self/exe").parent_path() / "thalweg-conformance").string();
  std::fflush(stdout);
  std::vector<const char*> words = {kit.c_str()};
  if (json) words.push_back("--json");
  words.insert(words.end(), {file.c_str(), nullptr});
  execv(kit.c_str(), const_cast<char* const*>(words.data()));
  throw std::runtime_error("check: the conformance kit '" + kit + "' cannot be started: " + std::strerror(errno) +
                           "; install it, or build the target thalweg-conformance");
}

// ---- Plugins of an index ----

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Source IndexOf(const Args& args) {
  const std::string place = args.get("--index", FromEnvironment("THALWEG_PLUGIN_INDEX"));
  if (place.empty()) throw UsageError{"say where the plugins are: --index FOLDER or ADDRESS, or THALWEG_PLUGIN_INDEX"};
  return Source(place);
}

std::vector<IndexedPlugin> Indexed(const Args& args, const Source& source) {
  const std::string signers = args.get("--signers", FromEnvironment("THALWEG_PLUGIN_SIGNERS"));
  if (signers.empty() && !args.has("--unsigned"))
    throw UsageError{"say whose index is trusted: --signers FILE of allowed signers (ssh-keygen(1)), or --unsigned to trust everybody"};
  return ReadIndex(source, args.has("--unsigned") ? "" : signers);
}

int MakeIndexOf(const Args& args, const std::vector<std::string>& words) {
  if (words.size() != 1) throw UsageError{"index needs one FOLDER"};
  const std::string path = words[0] + "/index.json";
  WriteFile(path, MakeIndex(args, words[0]));
  std::printf("%s\nto sign it: ssh-keygen -Y sign -f KEY -n thalweg-index %s\n", OneLine(path).c_str(), OneLine(path).c_str());
  return kGood;
}

bool Mentions(const IndexedPlugin& plugin, const std::string& word) {
  return plugin.id.find(word) != std::string::npos || plugin.contents.find(word) != std::string::npos;
}

int Search(const Args& args, const std::vector<std::string>& words) {
  if (words.size() > 1) throw UsageError{"search takes one WORD"};
  const PluginStore store(args.get("--to"), PluginStore::kRead);
  std::vector<std::vector<std::string>> rows;
  Json json;
  json.Array();
  for (const IndexedPlugin& plugin : Indexed(args, IndexOf(args))) {
    if (!words.empty() && !Mentions(plugin, words[0])) continue;
    const AddedPlugin* added = store.Find(plugin.id);
    const bool here = added && added->version == plugin.version;
    rows.push_back(
        {Coloured(kBold, OneLine(plugin.id)), OneLine(plugin.version), here ? Coloured(kGreen, "added") : "", OneLine(plugin.contents)});
    json.Object().Text("id", plugin.id).Text("version", plugin.version).Bool("added", here).Text("contents", plugin.contents);
    json.Text("build", plugin.build).End();
  }
  std::fputs(args.has("--json") ? json.End().text().c_str() : Table(rows).c_str(), stdout);
  if (rows.empty()) throw std::runtime_error("the index has no plugin that mentions '" + (words.empty() ? "" : words[0]) + "'");
  return kGood;
}

// Adds the newest version that this runtime can use, or the one after '='.
int Add(const Args& args, const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError{"add needs the ID of a plugin, or ID=VERSION"};
  const Source source = IndexOf(args);
  const std::vector<IndexedPlugin> index = Indexed(args, source);
  PluginStore store(args.get("--to"), PluginStore::kChange);
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string id = word.substr(0, equals), version = equals == word.npos ? "" : word.substr(equals + 1);
    const std::vector<IndexedPlugin> versions = VersionsOf(index, id, version);
    if (versions.empty())
      throw std::runtime_error("the index of '" + source.place() + "' has no plugin '" + word +
                               "'; `thalweg plugins search` lists its plugins");
    for (size_t i = 0; i < versions.size(); ++i) {
      try {
        store.Add(args, source, versions[i]);
        std::printf("%s %s is in %s\n", OneLine(id).c_str(), OneLine(versions[i].version).c_str(), OneLine(store.folder()).c_str());
        break;
      } catch (const UnusablePlugin& error) {
        if (i + 1 == versions.size()) throw;
        std::fprintf(stderr, "%s %s: %s\n", OneLine(id).c_str(), OneLine(versions[i].version).c_str(), OneLine(error.what()).c_str());
      }
    }
  }
  return kGood;
}

int Remove(const Args& args, const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError{"remove needs the ID of a plugin"};
  PluginStore store(args.get("--to"), PluginStore::kChange);
  for (const std::string& id : words) store.Remove(id);
  return kGood;
}

int Verify(const Args& args, const std::vector<std::string>& words) {
  if (!words.empty()) throw UsageError{"verify takes no further word"};
  const PluginStore store(args.get("--to"), PluginStore::kRead);
  std::vector<std::vector<std::string>> rows;
  bool good = true;
  for (const AddedPlugin& plugin : store.added()) {
    const std::string fault = store.Fault(plugin);
    good = good && fault.empty();
    rows.push_back({Coloured(kBold, OneLine(plugin.id)), OneLine(plugin.version),
                    fault.empty() ? Coloured(kGreen, "intact") : Coloured(kRed, OneLine(fault)), OneLine(plugin.source)});
  }
  std::fputs(Table(rows).c_str(), stdout);
  return good ? kGood : kFailed;
}

int RunWord(const Args& args) {
  const std::vector<std::string> words(args.positional().begin() + 1, args.positional().end());
  const std::string& first = args.positional()[0];
  if (first == "index") return MakeIndexOf(args, words);
  if (first == "search") return Search(args, words);
  if (first == "add") return Add(args, words);
  if (first == "remove") return Remove(args, words);
  if (first == "verify") return Verify(args, words);
  if (first != "check") throw UsageError{"unknown word '" + first + "'; there are check, index, search, add, remove and verify"};
  if (words.size() != 1) throw UsageError{"check needs the FILE of a plugin"};
  return Check(words[0], args.has("--json"));
}

int Run(const Args& args) {
  if (!args.positional().empty()) return RunWord(args);
  const tw::Runtime runtime = MakeRuntime(args);
  // a device plugin reports that it finds no device only when its devices are queried
  if (args.has("--why")) const Devices asked(runtime);
  const Plugins plugins(runtime);
  const tw_plugins* p = plugins.c();
  if (args.has("--json")) {
    PrintJson(p);
  } else if (args.has("--why")) {
    PrintWhy(p);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (uint32_t i = 0; i < tw_plugins_count(p); ++i) {
      const bool good = tw_plugins_state(p, i) == TW_PLUGIN_LOADED || tw_plugins_state(p, i) == TW_PLUGIN_KNOWN;
      rows.push_back({Coloured(kBold, Name(p, i)), OneLine(tw_plugins_version(p, i)), ColouredState(tw_plugins_state(p, i)),
                      OneLine(good ? ContentsOf(p, i) : tw_plugins_reason(p, i))});
    }
    std::fputs(Table(rows).c_str(), stdout);
  }
  return kGood;
}

}  // namespace

const Command& PluginsCommand() {
  static const Command command = {
      "plugins",
      "[check|index|search|add|remove|verify] [ARGUMENT...]",
      "Lists every plugin that was found and what became of it; adds plugins, removes and checks them.",
      "Plugins are looked for in the option plugin_path, in THALWEG_PLUGIN_PATH, in the user's folder and "
      "beside libthalweg.so. Those that are\n"
      "known are loaded when something of them is first used.\n"
      "check FILE      runs the conformance kit, bin/thalweg-conformance, on a plugin's file\n"
      "search [WORD]   lists the plugins of an index\n"
      "add ID[=VERSION]... puts plugins of an index into the user's folder: the newest version that can be used\n"
      "remove ID...    removes plugins that were added\n"
      "verify          compares the files of the plugins that were added with their digests; status 1 if one differs\n"
      "index FOLDER    writes FOLDER/index.json, the index of its files libNAME.so, and says how to sign it\n"
      "THALWEG_PLUGIN_INDEX and THALWEG_PLUGIN_SIGNERS stand for --index and --signers.\n",
      {{"--why", nullptr, "for each: its file, why it is loaded or not, and what to do about it"},
       {"--index", "PLACE", "search, add: a folder, or an address that begins with https:// or http://"},
       {"--signers", "FILE", "search, add: who may have signed the index, as `ssh-keygen -Y verify` reads it"},
       {"--unsigned", nullptr, "search, add: take an index that nobody signed"},
       {"--to", "FOLDER", "another folder than the user's"},
       kJsonOption,
       kPluginOption,
       kRuntimeOption},
      0,
      100,
      Run};
  return command;
}

}  // namespace thalweg::cli
