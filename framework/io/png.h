// PNG files of images with 8 bits a channel, which summaries contain. Threads: any.
#pragma once
#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace thalweg {

// INVALID_ARGUMENT for sizes that a PNG cannot have: a side of 0 or above 2^31 - 1, other than 1 to 4
// channels, more than 1 GiB of pixels.
Status CheckPngSize(uint64_t height, uint64_t width, uint64_t channels);

// Encodes height x width pixels of `channels` bytes each: 1 grey, 2 grey and opacity, 3 RGB, 4 RGB
// and opacity. Errors: those of CheckPngSize.
StatusOr<std::string> EncodePng(const uint8_t* pixels, uint64_t height, uint64_t width, uint64_t channels);

}  // namespace thalweg
