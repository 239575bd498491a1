// thalweg plugins: lists the plugins that were found, and the state of each.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "command.h"
#include "handles.h"
#include "json.h"
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

std::string Kinds(const tw_plugins* p, uint32_t i) {
  std::string kinds;
  for (uint32_t k = 0; k < tw_plugins_device_kind_count(p, i); ++k) kinds += (k ? ", " : "") + std::string(tw_plugins_device_kind(p, i, k));
  return kinds;
}

std::string Contents(const tw_plugins* p, uint32_t i) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const uint32_t ops = tw_plugins_op_count(p, i)) add(std::to_string(ops) + " ops");
  if (const uint32_t kernels = tw_plugins_kernel_count(p, i)) add(std::to_string(kernels) + " kernels");
  if (tw_plugins_device_kind_count(p, i)) add("devices " + Kinds(p, i));
  for (uint32_t k = 0; k < tw_plugins_role_count(p, i); ++k) add(OneLine(tw_plugins_role(p, i, k)));
  return text;
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
                                                         {"brings", Contents(p, i)},
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

int Run(const Args& args) {
  if (!args.positional().empty()) {
    if (args.positional()[0] != "check") throw UsageError{"unknown word '" + args.positional()[0] + "'; there is only check"};
    if (args.positional().size() < 2) throw UsageError{"check needs the FILE of a plugin"};
    return Check(args.positional()[1], args.has("--json"));
  }
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
                      OneLine(good ? Contents(p, i) : tw_plugins_reason(p, i))});
    }
    std::fputs(Table(rows).c_str(), stdout);
  }
  return kGood;
}

}  // namespace

const Command& PluginsCommand() {
  static const Command command = {"plugins",
                                  "[check FILE]",
                                  "Lists every plugin that was found and what became of it, or checks one.",
                                  "Plugins are looked for in the option plugin_path, in THALWEG_PLUGIN_PATH, in the user's folder and "
                                  "beside libthalweg.so. Those that are\n"
                                  "known are loaded when something of them is first used.\n"
                                  "check FILE runs the conformance kit, bin/thalweg-conformance, on a plugin's file.\n",
                                  {{"--why", nullptr, "for each: its file, why it is loaded or not, and what to do about it"},
                                   kJsonOption,
                                   kPluginOption,
                                   kRuntimeOption},
                                  0,
                                  2,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
