// The machine code built into the plugin, in several modules, and the names of its functions.
#ifndef THALWEG_PLUGINS_CUDA_MODULES_H_
#define THALWEG_PLUGINS_CUDA_MODULES_H_

#include <cstddef>
#include <set>
#include <string>

namespace thalweg::cuda {

inline constexpr size_t kShards = THALWEG_CUDA_SHARDS;

// Returns the module that contains a program text, and the name of its function `name` there.
size_t ShardOf(const std::string& text);
std::string FunctionName(const std::string& text, const char* name);
const void* ModuleImage(size_t shard);
// Returns the source of a program for nvcc and NVRTC, to follow prelude.cuh. Its functions have
// unique names, and its macros are undefined at the end.
std::string ProgramSource(const std::string& text, const std::set<std::string>& names);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_MODULES_H_
