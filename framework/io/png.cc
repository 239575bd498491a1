#include "framework/io/png.h"

#include <zlib.h>

#include <cstdlib>
#include <vector>

namespace thalweg {
namespace {

constexpr uint64_t kLargestSide = (uint64_t{1} << 31) - 1, kMostPixelBytes = uint64_t{1} << 30;

void AppendBigEndian(uint32_t n, std::string* to) {
  for (int shift = 24; shift >= 0; shift -= 8) *to += char(n >> shift);
}

void AppendChunk(const char* type, std::string_view data, std::string* to) {
  AppendBigEndian(uint32_t(data.size()), to);
  const size_t begin = to->size();
  to->append(type, 4);
  to->append(data);
  AppendBigEndian(uint32_t(crc32(0, reinterpret_cast<const Bytef*>(to->data() + begin), uInt(to->size() - begin))), to);
}

// One row under filter 0 (none), 1 (the byte one pixel to the left is subtracted) or 2 (the byte
// above). Returns the sum of the sizes of the results, which estimates how badly they compress.
uint64_t FilterRow(int filter, const uint8_t* row, const uint8_t* above, size_t n, size_t channels, uint8_t* out) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t left = i >= channels ? row[i - channels] : 0;
    out[i] = uint8_t(row[i] - (filter == 0 ? 0 : filter == 1 ? left : above[i]));
    sum += uint64_t(std::abs(int(int8_t(out[i]))));
  }
  return sum;
}

// Each row with the best of the filters, its number in front.
std::vector<uint8_t> Filtered(const uint8_t* pixels, uint64_t height, size_t row_bytes, size_t channels) {
  std::vector<uint8_t> all, tried(row_bytes), best(row_bytes);
  const std::vector<uint8_t> zeros(row_bytes);
  all.reserve(height * (row_bytes + 1));
  for (uint64_t y = 0; y < height; ++y) {
    const uint8_t* row = pixels + y * row_bytes;
    uint64_t least = UINT64_MAX;
    uint8_t chosen = 0;
    for (int filter = 0; filter < 3; ++filter) {
      const uint64_t sum = FilterRow(filter, row, y ? row - row_bytes : zeros.data(), row_bytes, channels, tried.data());
      if (sum >= least) continue;
      least = sum;
      chosen = uint8_t(filter);
      best.swap(tried);
    }
    all.push_back(chosen);
    all.insert(all.end(), best.begin(), best.end());
  }
  return all;
}

}  // namespace

Status CheckPngSize(uint64_t height, uint64_t width, uint64_t channels) {
  const bool fits = height > 0 && width > 0 && height <= kLargestSide && width <= kLargestSide && channels > 0 && channels <= 4;
  if (fits && height <= kMostPixelBytes / width / channels) return Status();
  return InvalidArgument("an image of ", height, " x ", width, " pixels with ", channels,
                         " channels does not fit into a PNG; give 1 to 4 channels, sides of at least 1, and at most 1 GiB");
}

StatusOr<std::string> EncodePng(const uint8_t* pixels, uint64_t height, uint64_t width, uint64_t channels) {
  constexpr uint8_t kColorTypes[] = {0, 4, 2, 6};
  RETURN_IF_ERROR(CheckPngSize(height, width, channels));
  const std::vector<uint8_t> rows = Filtered(pixels, height, size_t(width * channels), size_t(channels));
  uLongf packed_bytes = compressBound(uLong(rows.size()));
  std::string packed(packed_bytes, '\0');
  constexpr int kFast = 3;  // of zlib's levels: pictures of a training run are looked at once
  const int failed = compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_bytes, rows.data(), uLong(rows.size()), kFast);
  if (failed != Z_OK) return Error(absl::StatusCode::kResourceExhausted, "zlib cannot compress an image (error ", failed, ")");
  packed.resize(packed_bytes);
  std::string head, png("\x89PNG\r\n\x1a\n", 8);
  AppendBigEndian(uint32_t(width), &head);
  AppendBigEndian(uint32_t(height), &head);
  head += char(8);  // bits of a channel
  head += char(kColorTypes[channels - 1]);
  head.append(3, '\0');  // the only compression and filter methods; no interlacing
  AppendChunk("IHDR", head, &png);
  AppendChunk("IDAT", packed, &png);
  AppendChunk("IEND", {}, &png);
  return png;
}

}  // namespace thalweg
