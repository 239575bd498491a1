// The attributes of VHLO's ops in the order in which bytecode of version 5 and later stores them as properties,
// without their names: sorted by name.
// Source: the op definitions of StableHLO 1.20, all versions of each op since 0.9.0. Threads: safe.
#pragma once
#include <string_view>

namespace thalweg::stablehlo {

// The names of the attributes of "compare_v1", separated by spaces; empty: there are none, or the op is unknown.
std::string_view PropertiesOf(std::string_view op);

}  // namespace thalweg::stablehlo
