// Writing images.
#ifndef THALWEG_PLUGINS_INPUT_ENCODE_H_
#define THALWEG_PLUGINS_INPUT_ENCODE_H_

#include <cstdint>
#include <string>

namespace thalweg::input {

struct JpegWriting {
  bool grayscale = false, progressive = false, optimize_size = false, chroma_downsampling = true, per_centimetre = false;
  int quality = 95, x_density = 300, y_density = 300;
};

// pixels: rows of `width` pixels of `channels` values, of 8 bits, or of 16 if `wide`.
std::string WritePng(const unsigned char* pixels, int64_t height, int64_t width, int64_t channels, bool wide, int64_t compression);
std::string WriteJpeg(const unsigned char* pixels, int64_t height, int64_t width, int64_t channels, const JpegWriting& how);

}  // namespace thalweg::input

#endif  // THALWEG_PLUGINS_INPUT_ENCODE_H_
