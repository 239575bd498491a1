// Reads a portable artifact of StableHLO: MLIR bytecode, versions 0 to 6, of the dialect VHLO, versions 0.9.0 to 1.20. The contents are not
// trusted: all sizes are compared with the bytes that are there, nesting is bounded, and a failure names the byte. Threads: safe.
#pragma once
#include <memory>
#include <string_view>

#include "module.h"

namespace thalweg::stablehlo {

// bytes: a module; constants stay where they are, so `keep` must hold the bytes. Throws Error (INVALID_ARGUMENT for damage, UNIMPLEMENTED
// for versions that are unknown here).
std::unique_ptr<Module> ReadModule(std::string_view bytes, std::shared_ptr<const void> keep);

// Whether the bytes begin like MLIR bytecode.
bool IsBytecode(std::string_view bytes);

}  // namespace thalweg::stablehlo
