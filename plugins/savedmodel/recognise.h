// Tells SavedModels and GraphDefs apart from other files, by their first bytes. Threads: any.
#pragma once
#include <cstdint>
#include <string_view>

namespace thalweg::savedmodel {

enum class Kind { kOther, kSavedModel, kGraphDef };

// head: the first bytes of a file of `bytes` bytes.
Kind KindOf(std::string_view head, uint64_t bytes);

}  // namespace thalweg::savedmodel
