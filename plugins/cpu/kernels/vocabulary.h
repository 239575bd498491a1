// Reads the weights of classes from a vocabulary file.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_

#include <string_view>
#include <vector>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

// Returns the number after the last comma of every line. Throws the errors of the host's file
// functions, and INVALID_ARGUMENT for a line without a number. charge: is charged for the weights,
// and for the file while it is read.
std::vector<float> VocabularyWeights(const tw_host* host, std::string_view path, tw::Charge* charge);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_VOCABULARY_H_
