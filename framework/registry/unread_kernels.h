// Kernels as a plugin registered them, with specs that nobody has read yet: of thousands that a plugin has, a program uses a few.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/text_store.h"
#include "thalweg/plugin/kernel.h"

namespace thalweg {

// What all kernels of a plugin have in common; see KernelDef.
struct KernelOrigin {
  const tw_host* host = nullptr;
  std::string plugin;
  std::weak_ptr<const void> in_plans;
  TextStore texts;
};

// Of one op, registered one after the other.
struct UnreadKernels {
  std::shared_ptr<const KernelOrigin> origin;
  std::string_view op;  // of the origin's texts, as the specs are
  uint32_t order = 0;   // of the first; see KernelDef
  std::vector<tw_kernel_def> defs;
};

}  // namespace thalweg
