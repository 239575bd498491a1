// BMP: uncompressed images of 8 (grey), 24 or 32 bits a pixel, from the bottom up or the top down.
#include "image.h"

namespace thalweg::input {
namespace {

int64_t NumberAt(std::string_view b, size_t at, int bytes) {
  uint32_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint32_t(static_cast<unsigned char>(b[at + size_t(i)])) << 8 * i;
  return bytes == 4 ? int64_t(int32_t(n)) : int64_t(n);
}

}  // namespace

void ReadBmp(std::string_view b, int64_t channels, MakeImage make, void* arg) {
  constexpr size_t kHead = 54;
  const std::string of = Of("BMP", b);
  if (b.size() < kHead || !b.starts_with("BM")) Invalid(of + "it has no head of 54 bytes that begins with BM");
  const int64_t begin = NumberAt(b, 10, 4), width = NumberAt(b, 18, 4), tall = NumberAt(b, 22, 4), bits = NumberAt(b, 28, 2),
                method = NumberAt(b, 30, 4);
  const int64_t height = tall < 0 ? -tall : tall;
  if (bits != 8 && bits != 24 && bits != 32) Invalid(of + "it has " + tw::text(bits) + " bits a pixel; 8, 24 and 32 are supported");
  if (method != 0 && !(method == 3 && bits == 32))
    Invalid(of + "it is compressed (method " + tw::text(method) + "), which is not supported");
  CheckPixels("BMP", b, width, height);
  const int64_t have = bits / 8;
  if (channels == 0) channels = have;
  if (channels != have) Invalid(of + "it has " + tw::text(have) + " channels, and 'channels' is " + tw::text(channels));
  const int64_t row = (width * have + 3) / 4 * 4;
  if (begin < int64_t(kHead) || begin > int64_t(b.size()) || row > (int64_t(b.size()) - begin) / height)
    Invalid(of + "it ends before its " + tw::text(height) + " rows of " + tw::text(row) + " bytes");
  unsigned char* to = make(arg, {height, width, channels});
  for (int64_t y = 0; y < height; ++y) {
    const char* from = b.data() + begin + (tall < 0 ? y : height - 1 - y) * row;
    for (int64_t x = 0; x < width; ++x, from += have) {
      if (have == 1) {
        *to++ = static_cast<unsigned char>(from[0]);
        continue;
      }
      for (int k = 2; k >= 0; --k) *to++ = static_cast<unsigned char>(from[k]);  // stored as blue, green, red
      if (have == 4) *to++ = static_cast<unsigned char>(from[3]);
    }
  }
}

}  // namespace thalweg::input
