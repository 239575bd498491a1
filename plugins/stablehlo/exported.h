// Reads what `jax.export.Exported.serialize` writes: a flatbuffer with a module and what JAX knows of its inputs and outputs. The contents
// are not trusted: every offset is compared with the bytes that are there. Threads: safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::stablehlo {

// The shape of an input or output, a text for each axis: "3", or an expression of symbolic sizes such as "b" or "2*b + 1".
struct Aval {
  std::vector<std::string> dims;
};

struct Exported {
  bool present = false;
  std::string function;                // the name of the function that was exported
  std::vector<std::string> platforms;  // "cpu", "cuda", ...
  uint32_t devices = 1;
  uint16_t calling_convention = 0;
  std::vector<Aval> in, out;   // of all inputs and outputs
  std::vector<uint16_t> kept;  // the inputs that `main` takes, by their indices in `in`
  std::string_view module;     // the bytes of the module
};

// Whether the bytes, which are the first ones of a file of `size` bytes, look like an export.
bool IsExported(std::string_view head, uint64_t size);
// Throws Error (INVALID_ARGUMENT) naming the byte.
Exported ReadExported(std::string_view bytes);

}  // namespace thalweg::stablehlo
