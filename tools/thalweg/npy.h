// NumPy's .npy files, format versions 1 to 3: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Numbers and booleans in the machine's byte order and C order. Throws std::runtime_error naming the file.
tw::Tensor ReadNpy(const std::string& path);
// Types that NumPy does not have (bfloat16, strings, ...) are an error.
void WriteNpy(const std::string& path, const tw::Tensor& tensor);

}  // namespace thalweg::cli
