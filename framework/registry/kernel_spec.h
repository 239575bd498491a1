// KernelSpec: the parsed form of a spec text (see plugin/kernel.h). KernelDef: a registered kernel.
// Threads: immutable once registered.
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
  bool any_op = false;   // serves every op that has no other kernel on that kind; op is "*" until it is copied for one
  bool has_types = false;
  std::vector<uint32_t> in_types, out_types;  // per argument; 0: any. Empty out_types: any
  bool cheap = false, may_block = false, async = false, async_calls = false, capture_safe = false, nondeterministic = false,
       strided = false;
  // Argument names, checked against the op when the kernel is committed.
  std::vector<std::string> host, keep, gives, anywhere, read, update, replace;
  std::vector<std::pair<std::string, std::string>> inplace, view;  // pairs of output and input
  std::vector<std::string> prefers;                                // orders of axes for which it is faster
  int32_t priority = 0;
  std::string text;
};

// INVALID_ARGUMENT gives the column of the error; UNIMPLEMENTED that of a word that is no element
// type here.
StatusOr<KernelSpec> ParseKernelSpec(std::string_view text);

struct OpSchema;

// A kernel that can be chosen. Argument names are resolved to positions: vectors are per argument
// of the op.
struct KernelDef {
  KernelSpec spec;
  const OpSchema* op = nullptr;
  std::vector<uint8_t> host_in, host_out, keep, read, update;  // 1: yes
  std::vector<uint8_t> replace;                                // part of update: 1 if named by `replace`
  std::vector<std::vector<int32_t>> inplace;                   // per output argument: input arguments, the preferred first
  std::vector<int32_t> view;                                   // per output argument: input argument, or -1
  std::vector<uint8_t> gives;                                  // per output argument: 1 if the kernel provides its memory; empty: none
  std::vector<uint8_t> anywhere_in, anywhere_out;              // 1 if accepted, or given, in any memory; empty: none
  std::vector<uint32_t> newer_attrs;  // attributes of the op that are newer than the minor that the plugin was built for
  // The sealed definition and the host table for its calls.
  tw_kernel_def def{};
  const tw_host* host = nullptr;
  std::string plugin;
  std::weak_ptr<const void> in_plans;  // held by every plan that uses the kernel and keeps the plugin loaded; empty: never unloaded
  uint32_t order = 0;                  // of registration; equal priorities are ordered by plugin id, then by this
};

}  // namespace thalweg
