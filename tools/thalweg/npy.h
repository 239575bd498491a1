// NumPy's .npy format, versions 1 to 3: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// What the bytes of a .npy file hold: numbers and booleans in any byte order, texts (kinds S and U) as strings; C or Fortran order.
// Throws std::runtime_error.
tw::Tensor ParseNpy(const std::string& file);
// The file's bytes; strings become kind U or, where one is no UTF-8, S. Throws std::runtime_error for what NumPy cannot hold: types that
// it does not have (bfloat16, ...), and strings that end in a zero byte.
std::string MakeNpy(const tw::Tensor& tensor);

}  // namespace thalweg::cli
