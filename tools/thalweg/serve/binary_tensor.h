// Tensors as bytes: the binary tensor data extension of the Open Inference Protocol. Elements are little-endian and row-major; a string
// is its length, 4 bytes, and its bytes.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "charged_text.h"
#include "part.h"

namespace thalweg::cli::serve {

// storage: holds the bytes. A large tensor of numbers whose bytes are well aligned uses them without a copy, and keeps the storage.
// charge: pays for the memory of other tensors.
// Errors: HttpError 400 if the bytes are not what type and shape need; `where` names model and input for them; those of Charge::Add.
tw::Tensor ReadBinary(std::string_view bytes, const std::shared_ptr<const std::string>& storage, uint32_t dtype,
                      const std::vector<int64_t>& dims, const std::string& where, Charge* charge);

// Returns the number of bytes that WriteBinary appends. Throws HttpError 500 for a string that the protocol has no room for.
uint64_t BinaryBytes(const Part& part);
// Appends the values.
void WriteBinary(const Part& part, ChargedText* out);

}  // namespace thalweg::cli::serve
