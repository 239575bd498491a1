// The lossless format is RFC 9649, section 3. Before the pixels a lossless stream has the transforms and, for images whose blocks differ,
// an image that names a group of prefix codes for each block. libwebp allocates a table for each group, up to 65536 of them and 20 KB each,
// and the number of groups is known only from that image. So this reads a stream as far as that, as libwebp does, and adds up what libwebp
// allocates on the way (VP8LDecodeHeader, DecodeImageStream and ReadHuffmanCodes in its src/dec/vp8l_dec.c). Where libwebp stops at an
// error this stops too; where it cannot tell it goes on, so that the sum is never too small. All other memory follows from the size.
#include "webp_memory.h"

#include <algorithm>
#include <array>
#include <optional>

namespace thalweg::input {
namespace {

constexpr int kLongestCode = 15, kLengthCodes = 19, kMostCacheBits = 11;
constexpr int kLiterals = 256, kLengths = 24, kDistances = 40;
constexpr int kMostSymbols = kLiterals + kLengths + (1 << kMostCacheBits);

// Bits of a stream, the lowest of each byte first. Behind the end they are 0: libwebp notices the end late.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  uint32_t Read(int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; ++i, ++at_) {
      if (at_ / 8 < bytes_.size()) value |= uint32_t(uint8_t(bytes_[size_t(at_ / 8)]) >> (at_ % 8) & 1) << i;
    }
    return value;
  }
  // Whether more than 64 bits behind the end were read. libwebp has noticed by then.
  bool past_end() const { return at_ > 8 * uint64_t(bytes_.size()) + 64; }

 private:
  const std::string_view bytes_;
  uint64_t at_ = 0;
};

// A canonical prefix code, decoded bit by bit.
class PrefixCode {
 public:
  // lengths: of the codes of n symbols, 0 for one that has none. Returns false for what is neither a complete code nor a single symbol.
  bool Make(const uint8_t* lengths, int n) {
    counts_.fill(0);
    for (int s = 0; s < n; ++s) ++counts_[lengths[s]];
    const int used = n - counts_[0];
    counts_[0] = 0;
    std::array<uint16_t, kLongestCode + 2> next = {};
    uint32_t filled = 0;  // of 2^kLongestCode
    for (int bits = 1; bits <= kLongestCode; ++bits) {
      next[size_t(bits) + 1] = uint16_t(next[size_t(bits)] + counts_[size_t(bits)]);
      filled += uint32_t(counts_[size_t(bits)]) << (kLongestCode - bits);
    }
    for (int s = 0; s < n; ++s) {
      if (lengths[s]) symbols_[next[lengths[s]]++] = uint16_t(s);
    }
    single_ = used == 1;
    return single_ || (used > 1 && filled == 1u << kLongestCode);
  }
  // A single symbol takes no bits.
  int Read(BitReader* bits) const {
    if (single_) return symbols_[0];
    int code = 0, first = 0, at = 0;
    for (int length = 1; length <= kLongestCode; ++length) {
      code |= int(bits->Read(1));
      const int count = counts_[size_t(length)];
      if (code - count < first) return symbols_[size_t(at + code - first)];
      at += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    return 0;  // not reached: the code is complete
  }

 private:
  std::array<uint16_t, kLongestCode + 1> counts_ = {};
  std::array<uint16_t, kMostSymbols> symbols_ = {};
  bool single_ = false;
};

// Reads the lengths of a code's symbols, which have a prefix code of their own. Returns false where libwebp finds an error.
bool ReadLengths(BitReader* bits, int n, uint8_t* lengths) {
  static constexpr uint8_t kOrder[kLengthCodes] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  uint8_t of_lengths[kLengthCodes] = {};
  const int given = int(bits->Read(4)) + 4;
  for (int i = 0; i < given; ++i) of_lengths[kOrder[i]] = uint8_t(bits->Read(3));
  PrefixCode code;
  if (!code.Make(of_lengths, kLengthCodes)) return false;
  int left = n;  // codes of lengths
  if (bits->Read(1)) {
    const int width = 2 + 2 * int(bits->Read(3));
    left = 2 + int(bits->Read(width));
    if (left > n) return false;
  }
  uint8_t before = 8;
  for (int s = 0; s < n && left > 0; --left) {
    const int length = code.Read(bits);
    if (length < 16) {
      lengths[s++] = uint8_t(length);
      if (length) before = uint8_t(length);
      continue;
    }
    const int repeat = length == 16 ? 3 + int(bits->Read(2)) : length == 17 ? 3 + int(bits->Read(3)) : 11 + int(bits->Read(7));
    if (s + repeat > n) return false;
    std::fill_n(lengths + s, repeat, length == 16 ? before : uint8_t(0));
    s += repeat;
  }
  return true;
}

// Reads a prefix code of n symbols. Returns false where libwebp finds an error.
bool ReadCode(BitReader* bits, int n, PrefixCode* code) {
  std::array<uint8_t, kMostSymbols> lengths = {};
  if (bits->Read(1)) {  // one or two symbols
    const bool two = bits->Read(1);
    const int width = bits->Read(1) ? 8 : 1;
    lengths[bits->Read(width)] = 1;
    if (two) lengths[bits->Read(8)] = 1;
  } else if (!ReadLengths(bits, n, lengths.data())) {
    return false;
  }
  return !bits->past_end() && code->Make(lengths.data(), n);
}

// Adds up what libwebp allocates for one lossless stream.
class LosslessStream {
 public:
  // bytes: without the head of an image.
  LosslessStream(std::string_view bytes, int64_t width, int64_t height) : bits_(bytes), width_(width), height_(height) {}

  uint64_t Bytes() {
    // The pixels, the row above, and 16 rows that are transformed at once, of 4 bytes each.
    bytes_ = kFixed + 4 * uint64_t(width_) * uint64_t(height_) + 4 * 17 * uint64_t(width_);
    Read();
    return bytes_;
  }

 private:
  // The decoder, its color caches, tables for a small image, lengths of codes, a color map before and after it is extended.
  static constexpr uint64_t kFixed = 128 << 10;

  static int64_t Blocks(int64_t size, int bits) { return (size + (int64_t{1} << bits) - 1) >> bits; }

  // Reads the bits of a color cache's size; nothing for a size that libwebp refuses.
  std::optional<int> ReadCacheBits() {
    if (!bits_.Read(1)) return 0;
    const int n = int(bits_.Read(4));
    return n >= 1 && n <= kMostCacheBits ? std::optional<int>(n) : std::nullopt;
  }

  // Reads an image of blocks, which has one group of codes. Sets *most to the largest number in the red and green bytes of a pixel. Only
  // a pixel that is written out can have a new value: the others are copies. Returns false where libwebp stops.
  bool ReadBlocks(int64_t width, int64_t height, uint32_t* most) {
    bytes_ += 4 * uint64_t(width) * uint64_t(height);
    const std::optional<int> cache_bits = ReadCacheBits();
    if (!cache_bits) return false;
    const int cache = *cache_bits ? 1 << *cache_bits : 0;
    const std::array<int, 5> sizes = {kLiterals + kLengths + cache, kLiterals, kLiterals, kLiterals, kDistances};
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (!ReadCode(&bits_, sizes[i], &codes_[i])) return false;
    }
    const int64_t pixels = width * height;
    for (int64_t at = 0; at < pixels;) {
      const int green = codes_[0].Read(&bits_);
      if (green < kLiterals) {
        const int red = codes_[1].Read(&bits_);
        codes_[2].Read(&bits_);
        codes_[3].Read(&bits_);
        *most = std::max(*most, uint32_t(red) << 8 | uint32_t(green));
        ++at;
      } else if (green < kLiterals + kLengths) {
        const int64_t length = ReadNumber(green - kLiterals);
        ReadNumber(codes_[4].Read(&bits_));
        if (at == 0 || length > pixels - at) return false;
        at += length;
      } else {
        ++at;  // of the color cache
      }
      if (bits_.past_end()) return false;
    }
    return true;
  }

  // Reads a length or a distance, whose prefix was read.
  int64_t ReadNumber(int prefix) {
    if (prefix < 4) return prefix + 1;
    const int extra = (prefix - 2) >> 1;
    return (int64_t{2 + (prefix & 1)} << extra) + bits_.Read(extra) + 1;
  }

  void Read() {
    enum { kPredictor, kColor, kSubtractGreen, kColorIndex };
    int64_t width = width_;  // an image with few colors has several pixels in one
    uint32_t seen = 0, unused = 0;
    while (bits_.Read(1)) {
      const uint32_t type = bits_.Read(2);
      if (seen >> type & 1) return;
      seen |= 1u << type;
      if (type == kPredictor || type == kColor) {
        const int bits = int(bits_.Read(3)) + 2;
        if (!ReadBlocks(Blocks(width, bits), Blocks(height_, bits), &unused)) return;
      } else if (type == kColorIndex) {
        const int64_t colors = int64_t(bits_.Read(8)) + 1;
        const int bits = colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3;
        if (!ReadBlocks(colors, 1, &unused)) return;
        width = Blocks(width, bits);
      }
    }
    const std::optional<int> cache_bits = ReadCacheBits();
    if (!cache_bits) return;
    uint32_t most = 0;
    if (bits_.Read(1)) {
      const int bits = int(bits_.Read(3)) + 2;
      if (!ReadBlocks(Blocks(width, bits), Blocks(height_, bits), &most)) return;
    }
    AddGroups(uint64_t(most) + 1, *cache_bits);
  }

  // libwebp has a table of fixed size for the five codes of a group, a group of 568 bytes, and a number for it. If the last code exactly
  // fills the tables of all groups, VP8LBuildHuffmanTable allocates as much once more. Newer versions allocate the tables of many groups
  // in parts.
  void AddGroups(uint64_t groups, int cache_bits) {
    static constexpr uint16_t kGreen[kMostCacheBits + 1] = {654, 656, 658, 662, 670, 686, 718, 782, 912, 1168, 1680, 2704};
    constexpr uint64_t kOthers = 3 * 630 + 410, kEntry = 4, kGroup = 640, kPart = 2600;
    const uint64_t table = kEntry * (kOthers + kGreen[cache_bits]);
    bytes_ += groups * (2 * table + kGroup) + (groups > kPart ? kPart * table + groups * table / 64 : 0);
  }

  BitReader bits_;
  const int64_t width_, height_;
  uint64_t bytes_ = 0;
  std::array<PrefixCode, 5> codes_;
};

uint32_t Number32(std::string_view at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t(uint8_t(at[i])) << (8 * i);
  return value;
}

constexpr size_t kRiffHead = 12, kChunkHead = 8;

// A chunk is its name, the size of its payload, and the payload, padded to an even size.
void SkipChunk(std::string_view* bytes) {
  const uint64_t size = Number32(bytes->substr(4));
  bytes->remove_prefix(std::min<uint64_t>(kChunkHead + size + (size & 1), bytes->size()));
}

uint64_t LosslessBytes(std::string_view stream) {
  constexpr size_t kHead = 5;  // a signature, 14 bits each of width - 1 and height - 1, a bit of alpha, a version
  if (stream.size() < kHead || uint8_t(stream[0]) != 0x2f) return 0;
  const uint32_t head = Number32(stream.substr(1));
  return LosslessStream(stream.substr(kHead), int64_t(head & 0x3fff) + 1, int64_t(head >> 14 & 0x3fff) + 1).Bytes();
}

// alpha: the payload of the chunk; empty: there is none.
uint64_t LossyBytes(std::string_view alpha, int64_t width, int64_t height) {
  // Rows of macroblocks: modes, coefficients, a cache of rows with what the filters need: 2 KB for each 16 pixels of width.
  constexpr uint64_t kFixed = 256 << 10, kColumn = 256;
  uint64_t bytes = kFixed + kColumn * uint64_t(width + 16);
  if (alpha.empty()) return bytes;
  bytes += 2 * uint64_t(width) * uint64_t(height);  // the plane, and the lines that are unfiltered
  const bool lossless = (alpha[0] & 3) == 1;
  return bytes + (lossless ? LosslessStream(alpha.substr(1), width, height).Bytes() : 0);
}

}  // namespace

uint64_t WebPDecodingBytes(std::string_view bytes, int64_t width, int64_t height) {
  if (bytes.starts_with("RIFF")) bytes.remove_prefix(std::min(kRiffHead, bytes.size()));
  if (bytes.starts_with('\x2f')) return LosslessBytes(bytes);  // a stream without a chunk around it
  std::string_view alpha;
  while (bytes.size() >= kChunkHead) {
    const std::string_view name = bytes.substr(0, 4);
    const uint64_t size = Number32(bytes.substr(4));
    const std::string_view payload = bytes.substr(kChunkHead);
    // libwebp reads on behind the end of this chunk. It may also take the bytes for a lossy stream without a chunk around it, which only
    // looks like chunks here.
    if (name == "VP8L") return std::max(LosslessBytes(payload), LossyBytes({}, width, height));
    if (name == "VP8 ") return LossyBytes(alpha, width, height);
    if (name == "ALPH") alpha = payload.substr(0, size);
    SkipChunk(&bytes);
  }
  return LossyBytes(alpha, width, height);  // a stream without a chunk around it, or a damaged file
}

uint64_t WebPIndexBytes(std::string_view bytes) {
  constexpr uint64_t kEntry = 128;  // a frame or another chunk in the lists of the demultiplexer
  if (bytes.starts_with("RIFF")) bytes.remove_prefix(std::min(kRiffHead, bytes.size()));
  uint64_t chunks = 8;
  for (; bytes.size() >= kChunkHead; ++chunks) SkipChunk(&bytes);
  return chunks * kEntry;
}

}  // namespace thalweg::input
