// thalweg devices: where operations can run.
#include <cstdio>

#include "command.h"
#include "handles.h"
#include "json.h"

namespace thalweg::cli {
namespace {

int Run(const Args& args) {
  const tw::Runtime runtime = MakeRuntime(args);
  const Devices devices(runtime);
  const tw_devices* d = devices.c();
  const uint32_t n = tw_devices_count(d);
  if (args.has("--json")) {
    Json json;
    json.Array();
    for (uint32_t i = 0; i < n; ++i) {
      json.Object();
      json.Text("name", tw_devices_name(d, i)).Text("kind", tw_devices_kind(d, i)).Text("description", tw_devices_description(d, i));
      json.Text("uid", tw_devices_uid(d, i)).Text("plugin", tw_devices_plugin(d, i)).Number("memory", int64_t(tw_devices_memory(d, i)));
      json.End();
    }
    std::fputs(json.End().text().c_str(), stdout);
    return kGood;
  }
  std::vector<std::vector<std::string>> rows;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t memory = tw_devices_memory(d, i);
    rows.push_back({Coloured(kBold, tw_devices_name(d, i)), memory ? BytesText(memory) : "", tw_devices_description(d, i),
                    Coloured(kQuiet, tw_devices_plugin(d, i))});
  }
  std::fputs(Table(rows).c_str(), stdout);
  if (n == 0) throw std::runtime_error("no plugin provides a device; see thalweg plugins --why");
  return kGood;
}

}  // namespace

const Command& DevicesCommand() {
  static const Command command = {
      "devices", "", "Lists the devices that the plugins found.", "", {kJsonOption, kPluginOption, kRuntimeOption}, 0, 0, Run};
  return command;
}

}  // namespace thalweg::cli
