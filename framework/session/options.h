// The options of a session. Threads: a value.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/option.h"
#include "framework/base/status.h"

namespace thalweg {

// SessionOptionRows gives the names, defaults and meanings.
struct SessionOptions {
  uint32_t threads = 0;
  int32_t priority = 0;
  std::string container;           // empty: the container of the graph
  std::vector<std::string> lease;  // with a target: containers that end with the last session that leases them
  bool optimize = true;
  std::string engine = "auto";
  std::string device;
  std::vector<std::string> map_device;  // rules FROM=TO
  std::string fallback = "fail";
  std::string prefer = "host";
  std::string placement = "simple";
  uint32_t placement_steps = 5;
  std::string placement_file;
  std::vector<std::string> disabled_passes;
  std::string compilers = "on";
  bool capture = true;
  uint32_t max_shape_plans = 8;
  uint32_t max_shapes = 64;
  uint32_t max_plans = 256;
  std::string order = "auto";
  uint64_t memory_budget = 0;
  uint32_t max_async_runs = 0;
  std::string allow_files;
  std::vector<std::string> allow_ops, deny_ops;
  bool trust_imported = false;
  uint64_t memory_limit = 0;
  uint64_t swap_memory_above = 0;
  uint32_t step_timeout_ms = 0;
  uint32_t max_call_depth = 1000;
  std::string sandbox = "off";  // "on", "strict"
  std::string target;
  uint32_t target_timeout_ms = 30000;
  uint32_t progress_timeout_ms = 0;
  std::string credentials;
  bool insecure = false;
  bool write_files = true;  // with allow_files
  std::string collective_engine, collective_store;
  uint32_t collective_rank = 0, collective_members = 0;
  uint32_t collective_timeout_ms = 300000;
  std::vector<std::string> profilers;  // each NAME or NAME:ARGUMENT
  std::string check_values = "off";    // "nan", "finite"
  bool check_feeds = true;             // with check_values: the values of feeds too; no option

  bool operator==(const SessionOptions&) const = default;
};
std::span<const OptionRow<SessionOptions>> SessionOptionRows();
// INVALID_ARGUMENT names the option, the value and the accepted values.
Status SetSessionOption(SessionOptions* options, std::string_view key, std::string_view value);

}  // namespace thalweg
