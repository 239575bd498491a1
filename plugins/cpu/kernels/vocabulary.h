// Weights of classes out of a vocabulary file.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_

#include <string_view>
#include <vector>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

// The number behind the last comma of every line. Throws what the host's files say, and INVALID_ARGUMENT for a line without one.
// charge: counts the weights, and the file while it is read.
std::vector<float> VocabularyWeights(const tw_host* host, std::string_view path, tw::Charge* charge);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
