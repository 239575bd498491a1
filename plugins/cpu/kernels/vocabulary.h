// Weights of classes out of a vocabulary file.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_

#include <string_view>
#include <vector>

#include "thalweg/plugin/plugin.h"

namespace thalweg::cpu {

// The number behind the last comma of every line. Throws what the host's files say, and INVALID_ARGUMENT for a line without one.
std::vector<float> VocabularyWeights(const tw_host* host, std::string_view path);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
