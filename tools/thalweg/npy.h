// NumPy's .npy format, versions 1 to 3: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Parses the bytes of a .npy file. Numbers and booleans may have any byte order; strings are of
// kind S or U; order is C or Fortran. Throws std::runtime_error.
tw::Tensor ParseNpy(const std::string& file);
// Returns the bytes of a file. Strings become kind U, or S if one is not UTF-8. Throws
// std::runtime_error for types that NumPy lacks (bfloat16, ...) and for strings that end in a zero
// byte.
std::string MakeNpy(const tw::Tensor& tensor);

}  // namespace thalweg::cli
