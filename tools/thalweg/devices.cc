// thalweg devices: lists the devices on which operations can run.
#include <cstdio>

#include "command.h"
#include "handles.h"
#include "json.h"
#include "json_value.h"

namespace thalweg::cli {
namespace {

// Returns the statistics of device i as JSON; "null" if it reports none.
std::string Statistics(const tw_devices* d, uint32_t i) {
  tw_buffer* json = nullptr;
  if (tw_status* s = tw_devices_statistics_json(d, i, &json)) {
    const bool none = tw_status_code(s) == TW_UNIMPLEMENTED;
    if (!none) tw::raise(s);
    tw_status_release(s);
    return "null";
  }
  std::string text = tw::take_text(json);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Bytes that the runtime's pool has in use, their peak, and the pool's limit.
struct Pool {
  Pool(const tw_devices* d, uint32_t i) {
    if (tw_status* s = tw_devices_memory_use(d, i, &now, &peak, &limit)) tw::raise(s);
  }
  uint64_t now = 0, peak = 0, limit = 0;
};

// Returns the known parts of a text such as "1.5 MiB of 2 GiB, at most 3 MiB".
std::string MemoryText(const tw_devices* d, uint32_t i) {
  const uint64_t all = tw_devices_memory(d, i);
  const JsonValue numbers = JsonValue::Parse(Statistics(d, i));
  std::string text = all ? BytesText(all) : "";
  if (!numbers["memory_used"].null()) text = BytesText(uint64_t(numbers["memory_used"].number())) + " of " + (all ? text : "?") + " used";
  if (!numbers["memory_peak"].null()) text += ", " + BytesText(uint64_t(numbers["memory_peak"].number())) + " at the peak";
  if (const Pool pool(d, i); pool.limit) text += (text.empty() ? "" : ", ") + std::string("limit ") + BytesText(pool.limit);
  return text;
}

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
      const Pool pool(d, i);
      json.Text("capabilities", tw_devices_capabilities(d, i));
      json.Number("pool_used", int64_t(pool.now)).Number("pool_peak", int64_t(pool.peak)).Number("pool_limit", int64_t(pool.limit));
      json.Raw("statistics", Statistics(d, i));
      json.End();
    }
    std::fputs(json.End().text().c_str(), stdout);
    return kGood;
  }
  std::vector<std::vector<std::string>> rows;
  for (uint32_t i = 0; i < n; ++i) {
    rows.push_back({Coloured(kBold, tw_devices_name(d, i)), MemoryText(d, i), tw_devices_description(d, i), tw_devices_capabilities(d, i),
                    Coloured(kQuiet, tw_devices_plugin(d, i))});
  }
  std::fputs(Table(rows).c_str(), stdout);
  if (n == 0) throw std::runtime_error("no plugin provides a device; see thalweg plugins --why");
  return kGood;
}

}  // namespace

const Command& DevicesCommand() {
  static constexpr const char* kMore = "THALWEG_VISIBLE_DEVICES, or the runtime option visible_devices, says which are used.\n";
  static const Command command = {"devices",
                                  "",
                                  "Lists the devices that the plugins found, with memory, driver and capabilities.",
                                  kMore,
                                  {kJsonOption, kPluginOption, kRuntimeOption},
                                  0,
                                  0,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
