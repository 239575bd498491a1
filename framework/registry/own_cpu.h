// The CPU of this machine, compared with the one that a plugin was built for. Threads: any.
#pragma once
#include <string>
#include <string_view>

namespace thalweg {

// cpu: TW_BUILD_CPU of a plugin, such as "x86-64 avx avx2". Returns the instruction sets among these
// that this CPU lacks, separated by spaces; "" if it has all of them, or they are unknown here.
std::string MissingOnThisCpu(std::string_view cpu);

}  // namespace thalweg
