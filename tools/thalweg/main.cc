// The `thalweg` command: runs and inspects graphs, and reports the parts of a runtime. Uses the
// public C API only.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "command.h"
#include "dispatch.h"
#include "framework/base/meant.h"
#include "thalweg/cpp/thalweg.hpp"
#include "utf8.h"

namespace thalweg::cli {

const std::vector<const Command*>& Commands() {
  static const std::vector<const Command*> all = {
      &RunCommand(),        &ReplayCommand(), &BenchCommand(),   &InspectCommand(), &DebugCommand(),   &ConvertCommand(), &TraceCommand(),
      &PlotCommand(),       &OpsCommand(),    &PluginsCommand(), &NewCommand(),     &DevicesCommand(), &CkptCommand(),    &DoctorCommand(),
      &CompletionCommand(), &ServeCommand(),  &WorkerCommand(),  &LaunchCommand(),  &ClusterCommand()};
  return all;
}

namespace {

std::string Help() {
  std::string text = "usage: thalweg COMMAND [arguments]\n";
  for (const Command* c : Commands()) text += "  " + std::string(c->name) + std::string(12 - std::strlen(c->name), ' ') + c->summary + "\n";
  return text +
         "`thalweg COMMAND --help` says more; `thalweg --version` says which one this is.\n"
         "Environment: THALWEG_PLUGIN_PATH, THALWEG_OPTIONS (see thalweg doctor --help).\n"
         "Exit status: 0 good, 1 failed, 2 wrong arguments.\n";
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(Help().c_str(), stderr);
    return kUsage;
  }
  const std::string name = argv[1];
  std::string help = "--help";
  if (name == "help" && argc > 2) return Main(3, std::vector<char*>{argv[0], argv[2], help.data()}.data());
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(Help().c_str(), stdout);
    return kGood;
  }
  if (name == "--version" || name == "-V" || name == "version") {
    std::printf("thalweg %s, plugin ABI draft %u\n", tw_version_string(), tw_version_plugin_epoch());
    return kGood;
  }
  for (const Command* c : Commands()) {
    if (name == c->name) return Dispatch(*c, std::vector<std::string>(argv + 2, argv + argc));
  }
  Meant meant(name);
  for (const Command* c : Commands()) meant.Consider(c->name);
  const std::string close = meant.text();
  std::fprintf(stderr, "thalweg: unknown command '%s'%s see thalweg --help\n", OneLine(name).c_str(), close.empty() ? ";" : close.c_str());
  return kUsage;
}

}  // namespace
}  // namespace thalweg::cli

int main(int argc, char** argv) { return thalweg::cli::Finish(thalweg::cli::Main(argc, argv)); }
