// Tensors as bytes: the binary tensor data extension of the Open Inference Protocol. Elements are little-endian and row-major; a string
// is its length, 4 bytes, and its bytes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "part.h"

namespace thalweg::cli::serve {

// Errors: HttpError 400 if the bytes are not what type and shape need; `where` names model and input for them.
tw::Tensor ReadBinary(std::string_view bytes, uint32_t dtype, const std::vector<int64_t>& dims, const std::string& where);

// Appends the values; returns the number of bytes.
uint64_t WriteBinary(const Part& part, std::string* out);

}  // namespace thalweg::cli::serve
