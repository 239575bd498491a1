// KernelSpec: what plugin/kernel.h's spec text says, parsed; and KernelDef, a registered kernel.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/plugin/kernel.h"

namespace thalweg {

struct KernelSpec {
  std::string op, kind;  // kind: device kind
  bool any_op = false;   // for every op that has no other kernel on that kind; op is "*" until it is made for one
  bool has_types = false;
  std::vector<uint32_t> in_types, out_types;  // per argument; 0: any. Empty out_types: any
  bool cheap = false, may_block = false, async = false, async_calls = false, capture_safe = false, nondeterministic = false,
       strided = false;
  // Argument names, checked against the op when the kernel is committed.
  std::vector<std::string> host, keep, gives, anywhere, read, update, replace;
  std::vector<std::pair<std::string, std::string>> inplace, view;  // output, input
  std::vector<std::string> prefers;                                // orders of axes in which it is faster
  int32_t priority = 0;
  std::string text;
};

// INVALID_ARGUMENT with the column of what is wrong.
StatusOr<KernelSpec> ParseKernelSpec(std::string_view text);

struct OpSchema;

// A kernel that can be chosen. Argument names are resolved: per argument of the op.
struct KernelDef {
  KernelSpec spec;
  const OpSchema* op = nullptr;
  std::vector<uint8_t> host_in, host_out, keep, read, update;  // 1: yes
  std::vector<uint8_t> replace;                                // of update: 1 where it stands in that clause
  std::vector<std::vector<int32_t>> inplace;                   // per output argument: input arguments, the preferred first
  std::vector<int32_t> view;                                   // per output argument: input argument, or -1
  std::vector<uint8_t> gives;                                  // per output argument: 1: the kernel brings its memory; empty: none
  std::vector<uint8_t> anywhere_in, anywhere_out;              // 1: taken, or given, in whatever memory it lies; empty: none is
  std::vector<uint32_t> newer_attrs;  // attributes of the op that came after the minor that the plugin was written for
  // The sealed definition and the table it is called with.
  tw_kernel_def def{};
  const tw_host* host = nullptr;
  std::string plugin;
  std::weak_ptr<const void> in_plans;  // held by every plan that uses it, so that the plugin is not unloaded; empty: it never is
  uint32_t order = 0;                  // of registration; ties of priority go to the smaller plugin id, then to the earlier
};

}  // namespace thalweg
