// thalweg-probe FILE: loads a plugin that a runtime does not know yet, so that a crash or hang of
// the plugin happens in this process. The runtime finds the program beside libthalweg.so;
// framework/registry/plugin_probe.h specifies the protocol. People use `thalweg plugins`.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "framework/registry/plugin_entry.h"
#include "framework/registry/plugin_manifest.h"
#include "framework/registry/plugin_probe.h"
#include "framework/runtime/host/host_table.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

void Say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(kProbeDescriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the reader is gone
    text.remove_prefix(size_t(n));
  }
}

std::string ReadAll() {
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = read(kProbeDescriptor, block, sizeof block)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) _exit(2);
    text.append(block, size_t(n));
  }
  return text;
}

// Makes a runtime with one thread, without plugins of its own, and with the settings of the runtime
// that asks.
StatusOr<std::shared_ptr<Runtime>> MakeHost(std::string_view settings) {
  RuntimeOptions options;
  options.threads = 1;
  options.load_plugins = false;
  while (!settings.empty()) {
    const size_t end = std::min(settings.find('\n'), settings.size());
    std::string line;
    if (!UnescapeLine(settings.substr(0, end), &line)) return InvalidArgument("a setting is damaged");
    settings.remove_prefix(std::min(end + 1, settings.size()));
    const size_t equals = line.find('=');
    if (equals != line.npos) options.plugin_settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return Runtime::Create(options);
}

// Loads the plugin up to the end of init; nobody sees what init registers.
Status Look(Runtime* runtime, const std::string& path, PluginRecord* record) {
  Say("stage dlopen\n");
  ASSIGN_OR_RETURN(void* library, OpenPluginLibrary(path, record));
  Say("stage query\n");
  ASSIGN_OR_RETURN(tw_query_fn query, FindPluginQuery(library, record));
  ASSIGN_OR_RETURN(const tw_plugin* d, AskPlugin(query, record));
  tw_plugin sealed;
  RETURN_IF_ERROR(AgreeWithPlugin(*d, record, &sealed));
  Say("stage init\n");
  auto host = MakeHostTable(runtime, record->id, path, record->minor);
  Registration r;
  void* instance = nullptr;
  bool started = false;
  Status s = InitPlugin(sealed, host.get(), &r, &instance, &started, record);
  if (s.ok() && !(s = CheckKernelsOnce(r)).ok()) Refuse(record, s, "report it to the plugin's author").IgnoreError();
  const PluginManifest m = s.ok() ? ManifestOf(*record, sealed, r) : PluginManifest();
  Say("stage shutdown\n");
  r = Registration();
  if (started && sealed.shutdown) sealed.shutdown(host.get(), instance);
  RETURN_IF_ERROR(s);
  Say(StrCat("manifest\n", ManifestText(m)));
  return Status();
}

int Main(const std::string& path) {
  // No process of a plugin that crashes or hangs may stay behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  auto runtime = MakeHost(ReadAll());
  if (!runtime.ok()) return 2;
  PluginRecord record;
  Status s = Look(runtime->get(), path, &record);
  if (!s.ok()) {
    if (record.reason.empty()) record.reason = Message(s);
    Say(RefusalText(record, s));
  }
  Say("over\n");
  return 0;
}

}  // namespace
}  // namespace thalweg

// Ends without the library's destructors: they are not under test, and the plugin's threads may
// still use the library.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: thalweg-probe FILE, by a runtime; people use `thalweg plugins`\n");
    return 2;
  }
  _exit(thalweg::Main(argv[1]));
}
