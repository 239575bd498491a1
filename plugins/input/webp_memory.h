// The memory that libwebp takes to decode an image, computed from the file before it is decoded.
#ifndef THALWEG_PLUGINS_INPUT_WEBP_MEMORY_H_
#define THALWEG_PLUGINS_INPUT_WEBP_MEMORY_H_

#include <cstdint>
#include <string_view>

namespace thalweg::input {

// Returns a bound on the heap bytes that libwebp holds at once while it decodes one image into memory that the caller gives. bytes: the
// file of a still image, or the chunks of one frame of an animation; hostile ones included. width, height: those that libwebp reports.
// Decodes no pixels. Takes no memory; the time is at most that of decoding three images of a sixteenth of the pixels.
uint64_t WebPDecodingBytes(std::string_view bytes, int64_t width, int64_t height);

// Returns a bound on the heap bytes of libwebp's list of the chunks of a file.
uint64_t WebPIndexBytes(std::string_view bytes);

}  // namespace thalweg::input

#endif  // THALWEG_PLUGINS_INPUT_WEBP_MEMORY_H_
