// thalweg ops: which ops the loaded plugins define.
#include <fnmatch.h>

#include <cstdio>

#include "command.h"
#include "handles.h"
#include "json.h"

namespace thalweg::cli {
namespace {

void PrintOne(const tw_ops* o, uint32_t i) {
  std::printf("%s\n", Coloured(kBold, tw_ops_name(o, i)).c_str());
  if (*tw_ops_doc(o, i)) std::printf("  %s\n", tw_ops_doc(o, i));
  std::printf("  schema    %s\n  plugin    %s\n", tw_ops_schema(o, i), tw_ops_plugin(o, i));
  const std::string why = tw_ops_no_gradient(o, i);
  std::printf("  gradient  %s\n", why.empty() ? "yes" : ("none: " + why).c_str());
  for (uint32_t k = 0; k < tw_ops_kernel_count(o, i); ++k) std::printf("  %s%s\n", k ? "          " : "kernels   ", tw_ops_kernel(o, i, k));
}

void AddJson(const tw_ops* o, uint32_t i, Json* json) {
  tw_buffer* made = nullptr;
  tw::raise(tw_ops_json(o, i, &made));
  std::string_view text(tw_buffer_data(made), tw_buffer_bytes(made));
  json->Raw("", text.substr(0, text.find_last_not_of('\n') + 1));
  tw_buffer_release(made);
}

int Run(const Args& args) {
  const tw::Runtime runtime = MakeRuntime(args);
  const Ops ops(runtime);
  const tw_ops* o = ops.c();
  const std::string pattern = args.positional().empty() ? "*" : args.positional()[0];
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < tw_ops_count(o); ++i) {
    if (fnmatch(pattern.c_str(), tw_ops_name(o, i), 0) == 0) chosen.push_back(i);
  }
  if (args.has("--json")) {
    Json json;
    json.Array();
    for (const uint32_t i : chosen) AddJson(o, i, &json);
    std::fputs(json.End().text().c_str(), stdout);
  } else if (chosen.size() == 1 || args.has("--long")) {
    for (const uint32_t i : chosen) PrintOne(o, i);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const uint32_t i : chosen) {
      const uint32_t kernels = tw_ops_kernel_count(o, i);
      rows.push_back(
          {Coloured(kBold, tw_ops_name(o, i)), std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels"), tw_ops_doc(o, i)});
    }
    std::fputs(Table(rows).c_str(), stdout);
  }
  if (chosen.empty()) throw std::runtime_error("no op is called '" + pattern + "'; thalweg ops lists all");
  return kGood;
}

}  // namespace

const Command& OpsCommand() {
  static const Command command = {"ops",
                                  "[NAME]",
                                  "Lists ops, or shows one: schema, gradient, kernels. NAME may be a pattern: 'Conv*'.",
                                  "",
                                  {{"--long", nullptr, "show every op that fits in full"}, kJsonOption, kPluginOption, kRuntimeOption},
                                  0,
                                  1,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
