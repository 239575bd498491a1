// The machine code that is built into the plugin, in several modules, and the names of its functions.
#ifndef THALWEG_PLUGINS_CUDA_MODULES_H_
#define THALWEG_PLUGINS_CUDA_MODULES_H_

#include <cstddef>
#include <set>
#include <string>

namespace thalweg::cuda {

inline constexpr size_t kShards = THALWEG_CUDA_SHARDS;

// Which module holds the program of that text, and what its function `name` is called there.
size_t ShardOf(const std::string& text);
std::string FunctionName(const std::string& text, const char* name);
const void* ModuleImage(size_t shard);
// The program as nvcc and NVRTC get it, behind prelude.cuh: its functions under names of their own, its macros only for itself.
std::string ProgramSource(const std::string& text, const std::set<std::string>& names);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_MODULES_H_
