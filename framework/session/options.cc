#include "framework/session/options.h"

#include "framework/planner/placement/device_map.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/option_members.h"
#include "framework/runtime/run_gate.h"

namespace thalweg {
namespace {

constexpr const char* kEngines[] = {"auto", "fixed", "counted"};
constexpr const char* kCompilers[] = {"on", "off", "require"};
constexpr const char* kPlacements[] = {"simple", "cost", "learned"};
constexpr const char* kPreferences[] = {"auto", "accelerator", "host"};
constexpr const char* kSandboxes[] = {"off", "on", "strict"};
constexpr const char* kOrders[] = {"auto", "given", "smallest_peak"};

std::span<const char* const> OptionalPasses() {
  static const auto* names = [] {
    auto* list = new std::vector<const char*>;
    for (const Pass& pass : Passes()) {
      if (pass.optional) list->push_back(pass.name.data());
    }
    return list;
  }();
  return *names;
}

bool SetSoftPlacement(SessionOptions* options, const tw_option& about, std::string_view, std::string_view value) {
  bool soft = false;
  if (!ParseOption(about, value, &soft)) return false;
  options->fallback = soft ? "warn" : "fail";
  return true;
}

// Each use of the option appends to the list.
template <auto kMember>
bool AddAllToMember(SessionOptions* options, const tw_option& about, std::string_view, std::string_view value) {
  std::vector<std::string> more;
  if (!ParseOption(about, value, &more)) return false;
  auto& member = options->*kMember;
  member.insert(member.end(), more.begin(), more.end());
  return true;
}

// Each use of the option adds a rule.
bool AddDeviceRule(SessionOptions* options, const tw_option& about, std::string_view key, std::string_view value) {
  if (!ParseDeviceRule(value).ok()) return false;
  return AddToMember<&SessionOptions::map_device>(options, about, key, value);
}

// A profiler; each use of the option adds one.
bool AddProfiler(SessionOptions* options, const tw_option& about, std::string_view key, std::string_view value) {
  if (value.empty() || value[0] == ':') return false;
  return AddToMember<&SessionOptions::profilers>(options, about, key, value);
}

// Names of containers; each use of the option appends to the list.
bool AddLeases(SessionOptions* options, const tw_option& about, std::string_view key, std::string_view value) {
  SessionOptions read;
  if (!AddAllToMember<&SessionOptions::lease>(&read, about, key, value)) return false;
  for (const std::string& name : read.lease) {
    if (name.empty() || !CheckContainerName(name).ok()) return false;
  }
  options->lease.insert(options->lease.end(), read.lease.begin(), read.lease.end());
  return true;
}

}  // namespace

std::span<const OptionRow<SessionOptions>> SessionOptionRows() {
  using O = SessionOptions;
  static const OptionRow<O> rows[] = {
      {IntOption(
           "threads", "0", 0, UINT32_MAX,
           "threads that compute for a run at once, the caller's included; 1: the caller's alone; 0, or more than the runtime has: all"),
       SetMember<&O::threads>},
      {IntOption("priority", "0", kLowestPriority, kHighestPriority,
                 "the threads of the runtime help sessions of a higher priority first; of eight looks for work, the lowest has one"),
       SetMember<&O::priority>},
      {TextOption("container", "",
                  "name of the container of state whose ops name none; sessions with the same name share it; empty: the graph's own, which "
                  "sessions of the graph share, or with a target `localhost` of its tasks"),
       SetContainerMember<&O::container>},
      {Repeating(ListOption("lease", ',',
                            "with a target: containers of state, separated by ','. A task empties such a container when the last session "
                            "that leases it there has ended, also by the death of its program")),
       AddLeases},
      {BoolOption("optimize", "true", "fold constants, merge equal nodes, leave out what changes nothing"), SetMember<&O::optimize>},
      {Repeating(ChoiceOption("disable_pass", "", OptionalPasses(), "an optimisation pass to leave out")),
       AddToMember<&O::disabled_passes>},
      {ChoiceOption("engine", "auto", kEngines, "fixed: one node after the other; counted: nodes side by side; auto: whichever suits"),
       SetMember<&O::engine>},
      {ChoiceOption(
           "compilers", "on", kCompilers,
           "graph compilers of plugins may run several nodes as one; where one fails the nodes run one by one, with a log line, or, "
           "with require, the run fails"),
       SetMember<&O::compilers>},
      {BoolOption(
           "capture", "true",
           "what several nodes give to a device's queue is recorded when it is the same in the third step, and given as one from then "
           "on, where the device's plugin can record; plans that are mostly of such nodes then run one node after the other"),
       SetMember<&O::capture>},
      {TextOption("device", "",
                  "where nodes run that do not say it themselves, such as CPU:0 or a kind alone; empty: wherever there is a kernel"),
       SetDeviceMember<&O::device>},
      {Repeating(TextOption("map_device", "",
                            "FROM=TO: where the graph, such as a stored one, names a device that has all parts of FROM, it means TO, such "
                            "as /job:ps=CPU:0; an empty TO: any device. The first rule that fits counts")),
       AddDeviceRule},
      {ChoiceOption("fallback", "fail", kFallbackChoices,
                    "what becomes of a node whose device has no kernel for it, or is not there. fail: the run fails; warn: it runs "
                    "elsewhere, with copies and a log line per node and plan; allow: the same without the log line. Plans tell of each. "
                    "A variable then moves to the device of whoever opens it"),
       SetMember<&O::fallback>},
      {ChoiceOption(
           "prefer", "host", kPreferences,
           "which devices come first for nodes that may run on several and name none. accelerator: those with memory of their "
           "own, but for those that are available on request only, such as drivers that run on the host's processors; host: those in host "
           "memory; auto: accelerators for graphs whose values are known to take a mebibyte or more, else the host"),
       SetMember<&O::prefer>},
      {ChoiceOption("placement", "simple", kPlacements,
                    "which device nodes get that may run on several. simple: the first that has kernels, see prefer; cost: by what "
                    "kernels and copies take, measured in runs with step statistics, else estimated, and by the devices' memory; learned: "
                    "the first runs of a plan try what the measurements suggest, and the fastest is kept. A variable then moves to the "
                    "device of whoever opens it"),
       SetMember<&O::placement>},
      {IntOption("placement_steps", "5", 1, 1000, "of placement=learned: runs in which each suggestion is measured"),
       SetMember<&O::placement_steps>},
      {TextOption("placement_file", "",
                  "a file that keeps what placement=cost and learned have measured and found, for later sessions; empty: `placements` in "
                  "the runtime's compile_cache, or, without one, none"),
       SetMember<&O::placement_file>},
      {BoolOption("soft_placement", "false", "another name of fallback: true is warn, false is fail"), SetSoftPlacement},
      {ChoiceOption(
           "order", "auto", kOrders,
           "given: nodes run in the order in which they were added, higher priorities first; smallest_peak: so that few values are in "
           "use at once, one node after the other; auto: given, or smallest_peak where memory_budget asks for it"),
       SetMember<&O::order>},
      {BytesOption("memory_budget", "0",
                   "most bytes that the planned values of one step may take, all devices together; values of sizes that only running tells "
                   "are not counted; 0: any"),
       SetMember<&O::memory_budget>},
      {IntOption("max_plans", "256", 1, UINT32_MAX,
                 "plans kept for runs without a callable; beyond, those of the signature that was not run for longest are dropped"),
       SetMember<&O::max_plans>},
      {IntOption("max_shape_plans", "8", 1, UINT32_MAX,
                 "plans per signature that are made for certain feed shapes, where no other plan fits; beyond, one serves all shapes"),
       SetMember<&O::max_shape_plans>},
      {IntOption("max_shapes", "64", 1, UINT32_MAX,
                 "feed shapes per signature whose sizes and offsets are kept; the one that was not run for longest is dropped"),
       SetMember<&O::max_shapes>},
      {IntOption("max_async_runs", "0", 0, UINT32_MAX,
                 "runs started without waiting that may be under way; starting one more waits; 0: twice the runtime's threads"),
       SetMember<&O::max_async_runs>},
      {IntOption(
           "max_call_depth", "1000", 1, UINT32_MAX,
           "calls of functions that may lie within each other; recursion beyond fails, as it does where the thread's stack is too small"),
       SetMember<&O::max_call_depth>},
      {TextOption("allow_files", "",
                  "a folder, of the machine or `scheme://...`, beneath which nodes of imported graphs may read and write files; relative "
                  "paths start there; empty: no files"),
       SetMember<&O::allow_files>},
      {BoolOption("write_files", "true", "with allow_files: nodes of imported graphs may also write there; false: they only read"),
       SetMember<&O::write_files>},
      {Repeating(ListOption("allow_ops", ',',
                            "the only ops that nodes of imported graphs may have where they run, separated by ','; empty: all")),
       AddAllToMember<&O::allow_ops>},
      {Repeating(ListOption("deny_ops", ',', "ops that nodes of imported graphs may not have where they run, separated by ','")),
       AddAllToMember<&O::deny_ops>},
      {BoolOption("trust_imported", "false",
                  "nodes of imported graphs may do what the program's own may: files (with allow_files, only there), network, all memory"),
       SetMember<&O::trust_imported>},
      {BytesOption("memory_limit", "0",
                   "most bytes, of host and devices together, that the session's steps may hold; 0: no limit, or three quarters of the "
                   "machine's memory while the graph has imported nodes that are not trusted"),
       SetMember<&O::memory_limit>},
      {BytesOption("swap_memory_above", "0",
                   "bytes of a device's memory: while more are in use, what loops push there onto lists, such as what they keep for their "
                   "gradients, goes to host memory and comes back before it is popped; 0: three quarters of what the device may hold"),
       SetMember<&O::swap_memory_above>},
      {ChoiceOption("sandbox", "off", kSandboxes,
                    "on: the graph runs in a process of its own that has no network, writes no files and reads those of allow_files alone, "
                    "all its nodes as imported ones; it is ended when a step exceeds step_timeout_ms and does not end by itself. The "
                    "session is refused where the machine cannot hold it to that; strict: also where memory and threads cannot be limited"),
       SetMember<&O::sandbox>},
      {TextOption("target", "",
                  "the address of a server of a cluster, `scheme:address`: runs go to its tasks; empty: everything runs in this process"),
       SetMember<&O::target>},
      {IntOption("target_timeout_ms", "30000", 1, UINT32_MAX,
                 "milliseconds to wait for tasks of a cluster that cannot be reached yet, when a run first needs them"),
       SetMember<&O::target_timeout_ms>},
      {IntOption(
           "progress_timeout_ms", "0", 0, UINT32_MAX,
           "milliseconds after which a step over a cluster fails in which tasks are alive, but none has handed on a value or come to its "
           "end; more than the slowest operation and the longest wait at a queue take; 0: any"),
       SetMember<&O::progress_timeout_ms>},
      {TextOption(
           "credentials", "",
           "what proves to the tasks of a cluster who this program is, and who they are: a folder as `thalweg cluster init` makes one; "
           "empty: the folder that the environment variable THALWEG_CREDENTIALS names, or else tasks on this machine alone"),
       SetMember<&O::credentials>},
      {BoolOption("insecure", "false", "tasks of a cluster need not prove who they are, and what is said to them is not encrypted"),
       SetMember<&O::insecure>},
      {TextOption("collective_store", "",
                  "a folder in which the processes of collective operations find each other, new for each start; empty: that of the "
                  "environment variable THALWEG_COLLECTIVE_STORE, with rank and number in THALWEG_COLLECTIVE_RANK and _MEMBERS; neither: "
                  "collective operations fail"),
       SetMember<&O::collective_store>},
      {IntOption("collective_rank", "0", 0, UINT32_MAX, "with collective_store: the number of this session among the members, from 0"),
       SetMember<&O::collective_rank>},
      {IntOption("collective_members", "0", 0, UINT32_MAX, "with collective_store: the number of members, each with its own rank"),
       SetMember<&O::collective_members>},
      {TextOption(
           "collective_engine", "",
           "the collective engine of a plugin: shm for members on one host, levels or ring for members on several; empty: that of the "
           "environment variable THALWEG_COLLECTIVE_ENGINE, or else shm, or else the first by name that serves the device"),
       SetMember<&O::collective_engine>},
      {IntOption("collective_timeout_ms", "300000", 1, UINT32_MAX,
                 "milliseconds that a collective operation may wait for the other members, and the first one for them to start"),
       SetMember<&O::collective_timeout_ms>},
      {Repeating(
           TextOption("profiler", "",
                      "NAME or NAME:ARGUMENT of a profiler of a plugin, which gets the record of each step: its nodes, copies, waits, "
                      "spans and counters of kernels. Steps are then recorded as with step statistics")),
       AddProfiler},
      {ChoiceOption("check_values", "off", kValueCheckChoices,
                    "a run fails at its first value with NaN (nan), or with NaN or infinities (finite): in a feed, in a result of a node, "
                    "or in a variable after its update; the error names the node, its line and the ranges of its inputs. Nodes then run "
                    "one by one, without graph compilers, and the results of none are computed beforehand"),
       SetMember<&O::check_values>},
      {IntOption("step_timeout_ms", "0", 0, UINT32_MAX, "milliseconds that a run may take which was given no time of its own; 0: no limit"),
       SetMember<&O::step_timeout_ms>},
  };
  return rows;
}

Status SetSessionOption(SessionOptions* options, std::string_view key, std::string_view value) {
  return SetOption("session", SessionOptionRows(), options, key, value);
}

}  // namespace thalweg
