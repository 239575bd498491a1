// The layout of string tensors in a checkpoint: all lengths as varints, the masked checksum of the
// lengths, then the bytes of all strings. The checksums cover each length as a number of four bytes
// (eight from 2^32 on), not the varints.
#pragma once
#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// Returns all that precedes the bytes of the strings, and the unmasked checksum up to there.
std::string EncodeStringLengths(const tw_string* strings, uint64_t n, uint32_t* out_crc);

// Fills a string tensor from `size` stored bytes; *out_crc is the unmasked checksum of all.
// DATA_LOSS if tensor and bytes do not fit each other.
Status DecodeStrings(const void* bytes, uint64_t size, Tensor* out, uint32_t* out_crc);

}  // namespace thalweg
