// Kernels as a plugin registered them, with unparsed specs: a program uses only a few of a plugin's
// thousands. Threads: guarded by the registry.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/text_store.h"
#include "thalweg/plugin/kernel.h"

namespace thalweg {

// The properties that all kernels of a plugin share; see KernelDef.
struct KernelOrigin {
  const tw_host* host = nullptr;
  std::string plugin;
  std::weak_ptr<const void> in_plans;
  TextStore texts;
};

// Kernels of one op that were registered one after the other.
struct UnreadKernels {
  std::shared_ptr<const KernelOrigin> origin;
  std::string_view op;  // in the origin's texts, as are the specs
  uint32_t order = 0;   // registration order of the first; see KernelDef
  std::vector<tw_kernel_def> defs;
};

}  // namespace thalweg
