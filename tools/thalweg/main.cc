// The `thalweg` command: runs and inspects graphs, and says what a runtime is made of. Uses the public C API only.
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "command.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {
namespace {

std::vector<const Command*> Commands() {
  return {&RunCommand(), &InspectCommand(), &OpsCommand(), &PluginsCommand(), &DevicesCommand(), &CkptCommand(), &DoctorCommand()};
}

std::string Help() {
  std::string text = "usage: thalweg COMMAND [arguments]\n";
  for (const Command* c : Commands()) text += "  " + std::string(c->name) + std::string(10 - std::strlen(c->name), ' ') + c->summary + "\n";
  return text +
         "`thalweg COMMAND --help` says more; `thalweg --version` says which one this is.\n"
         "Environment: THALWEG_PLUGIN_PATH, THALWEG_OPTIONS (see thalweg doctor --help).\n"
         "Exit status: 0 good, 1 failed, 2 wrong arguments.\n";
}

bool AsksForHelp(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

int Dispatch(const Command& command, const std::vector<std::string>& words) {
  if (AsksForHelp(words)) {
    std::fputs(command.Help().c_str(), stdout);
    return kGood;
  }
  try {
    const int status = command.run(command.Parse(words));
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
    std::fprintf(stderr, "thalweg %s: cannot write to standard output\n", command.name);
    return kFailed;
  } catch (const UsageError& e) {
    std::fprintf(stderr, "thalweg %s: %s; see thalweg %s --help\n", command.name, e.text.c_str(), command.name);
    return kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "thalweg %s: %s\n", command.name, e.what());
    return kFailed;
  }
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(Help().c_str(), stderr);
    return kUsage;
  }
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(Help().c_str(), stdout);
    return kGood;
  }
  if (name == "--version") {
    std::printf("thalweg %s, plugin ABI draft %u\n", tw_version_string(), tw_version_plugin_epoch());
    return kGood;
  }
  for (const Command* c : Commands()) {
    if (name == c->name) return Dispatch(*c, std::vector<std::string>(argv + 2, argv + argc));
  }
  std::fprintf(stderr, "thalweg: unknown command '%s'; see thalweg --help\n", name.c_str());
  return kUsage;
}

}  // namespace
}  // namespace thalweg::cli

int main(int argc, char** argv) { return thalweg::cli::Main(argc, argv); }
