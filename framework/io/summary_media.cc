// Pictures and sound in summaries.
#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/base/checked.h"
#include "framework/io/png.h"
#include "framework/io/summary.h"
#include "framework/io/summary_parts.h"

namespace thalweg {
namespace {

enum : uint32_t { kImage = 4, kAudio = 6 };  // fields of Summary.Value

std::string TagOf(std::string_view tag, std::string_view kind, uint64_t i, uint32_t most) {
  return most == 1 ? StrCat(tag, "/", kind) : StrCat(tag, "/", kind, "/", i);
}

// The size of a picture. Of a sound, the height is the number of frames, and the width 1.
struct Block {
  uint64_t height, width, channels;
};

// Scales the numbers of one image to bytes. A pixel with a number that is not finite becomes `bad`.
void ScaleImage(const float* from, uint64_t pixels, uint64_t channels, const std::string& bad, uint8_t* to) {
  float least = INFINITY, most = -INFINITY;
  const auto finite = [&](const float* pixel) { return std::all_of(pixel, pixel + channels, [](float v) { return std::isfinite(v); }); };
  for (uint64_t i = 0; i < pixels; ++i) {
    const float* pixel = from + i * channels;
    if (!finite(pixel)) continue;
    for (uint64_t k = 0; k < channels; ++k) {
      least = std::min(least, pixel[k]);
      most = std::max(most, pixel[k]);
    }
  }
  constexpr float kZero = 1e-6f;  // an image of smaller numbers only is an image of zeros
  const bool negative = least < 0;
  const float largest = negative ? std::max(std::fabs(least), std::fabs(most)) : most, offset = negative ? 128 : 0;
  const float scale = largest < kZero ? 0 : (negative ? 127 : 255) / largest;
  for (uint64_t i = 0; i < pixels; ++i) {
    const float* pixel = from + i * channels;
    const bool good = finite(pixel);
    for (uint64_t k = 0; k < channels; ++k) {
      to[i * channels + k] = good ? uint8_t(std::clamp(pixel[k] * scale + offset, 0.0f, 255.0f)) : uint8_t(bad[k]);
    }
  }
}

// REQUIRES: `bytes` of 1, 2, 4 or 8 at a time are elements of a type that EachNumber knows.
std::vector<float> FloatsAt(const tw_view& all, uint64_t first, uint64_t n) {
  tw_view part = all;
  const uint64_t each = DTypeBytes(all.dtype);
  part.data = static_cast<char*>(all.data) + all.offset + first * each;
  part.offset = 0;
  part.count = n;
  part.bytes = n * each;
  std::vector<float> out;
  out.reserve(n);
  EachNumber(part, [&](double v) { out.push_back(float(v)); });
  return out;
}

void AppendImage(const std::string& tag, const Block& b, std::string_view png, std::string* to) {
  std::string image;
  PutVarintField(1, b.height, &image);
  PutVarintField(2, b.width, &image);
  PutVarintField(3, b.channels, &image);
  PutBytesField(4, png, &image);
  AppendValue(tag, kImage, image, {}, to);
}

// 16-bit samples, least significant byte first.
std::string Wav(const float* samples, const Block& b, uint32_t rate) {
  const uint64_t frames = b.height, channels = b.channels, bytes = 2 * frames * channels;
  std::string out;
  const auto add = [&](uint64_t n, int size) {
    for (int i = 0; i < size; ++i) out += char(n >> 8 * i);
  };
  out.reserve(44 + bytes);
  out += "RIFF";
  add(36 + bytes, 4);
  out += "WAVEfmt ";
  add(16, 4);
  add(1, 2);  // PCM
  add(channels, 2);
  add(rate, 4);
  add(uint64_t{rate} * channels * 2, 4);
  add(channels * 2, 2);
  add(16, 2);
  out += "data";
  add(bytes, 4);
  for (uint64_t i = 0; i < frames * channels; ++i) {
    const float v = std::isnan(samples[i]) ? 0 : std::clamp(std::round(samples[i] * 32768), -32768.0f, 32767.0f);
    add(uint16_t(int16_t(v)), 2);
  }
  return out;
}

}  // namespace

Status CheckImages(std::string_view tag, const tw_view& images, uint32_t most, std::string_view bad_color) {
  RETURN_IF_ERROR(CheckTag(tag));
  RETURN_IF_ERROR(CheckDense(tag, images));
  const int32_t rank = images.rank;
  const bool known = images.dtype == TW_UINT8 || images.dtype == TW_FLOAT || images.dtype == TW_DOUBLE || images.dtype == TW_HALF ||
                     images.dtype == TW_BFLOAT16;
  const int64_t channels = rank == 3 || rank == 4 ? images.dims[rank - 1] : 0;
  if (!known || (channels != 1 && channels != 3 && channels != 4)) {
    return InvalidArgument(OfTag(tag), "images are ", DTypeName(images.dtype), " ", ShapeText(images.dims, rank),
                           "; they must be uint8, float, half, bfloat16 or double [n, height, width, channels] or [height, width, "
                           "channels], with 1, 3 or 4 channels");
  }
  if (most < 1) return InvalidArgument(OfTag(tag), "the largest number of images is 0; it must be at least 1");
  if (!bad_color.empty() && bad_color.size() < size_t(channels)) {
    return InvalidArgument(OfTag(tag), "the colour of bad pixels has ", bad_color.size(), " channels, and the images have ", channels);
  }
  const Status fits = CheckPngSize(uint64_t(images.dims[rank - 3]), uint64_t(images.dims[rank - 2]), uint64_t(channels));
  return fits.ok() ? fits : Prefix(fits, StrCat("summary '", tag, "':"));
}

Status AppendImages(std::string_view tag, const tw_view& images, uint32_t most, std::string_view bad_color, std::string* to) {
  RETURN_IF_ERROR(CheckImages(tag, images, most, bad_color));
  const int32_t rank = images.rank;
  const Block b = {uint64_t(images.dims[rank - 3]), uint64_t(images.dims[rank - 2]), uint64_t(images.dims[rank - 1])};
  const uint64_t n = std::min<uint64_t>(rank == 4 ? uint64_t(images.dims[0]) : 1, most);
  std::string bad(bad_color);
  if (bad.empty()) bad = b.channels == 1 ? "\xff" : std::string("\xff\0\0\xff", b.channels);
  const uint64_t each = b.height * b.width * b.channels;
  std::string values;
  std::vector<uint8_t> scaled;
  for (uint64_t i = 0; i < n; ++i) {
    const auto* pixels = static_cast<const uint8_t*>(images.data) + images.offset + i * each;
    if (images.dtype != TW_UINT8) {
      scaled.resize(each);
      ScaleImage(FloatsAt(images, i * each, each).data(), b.height * b.width, b.channels, bad, scaled.data());
      pixels = scaled.data();
    }
    ASSIGN_OR_RETURN(const std::string png, EncodePng(pixels, b.height, b.width, b.channels));
    AppendImage(TagOf(tag, "image", i, most), b, png, &values);
  }
  *to += values;
  return Status();
}

Status CheckAudio(std::string_view tag, const tw_view& sounds, double rate, uint32_t most) {
  RETURN_IF_ERROR(CheckTag(tag));
  RETURN_IF_ERROR(CheckDense(tag, sounds));
  const int32_t rank = sounds.rank;
  if (sounds.dtype != TW_FLOAT || (rank != 2 && rank != 3)) {
    return InvalidArgument(OfTag(tag), "sounds are ", DTypeName(sounds.dtype), " ", ShapeText(sounds.dims, rank),
                           "; they must be float [n, frames, channels] or [n, frames]");
  }
  if (!(rate >= 1 && rate <= INT32_MAX)) return InvalidArgument(OfTag(tag), "the sample rate is ", rate, "; it must be at least 1 Hz");
  if (most < 1) return InvalidArgument(OfTag(tag), "the largest number of sounds is 0; it must be at least 1");
  const uint64_t frames = uint64_t(sounds.dims[1]), channels = rank == 3 ? uint64_t(sounds.dims[2]) : 1;
  if (channels >= 1 && channels <= 32767 && frames <= (uint64_t{1} << 29) / channels) return Status();
  return InvalidArgument(OfTag(tag), "sounds are ", ShapeText(sounds.dims, rank),
                         "; a WAV file has 1 to 32,767 channels, and here at most 2^29 samples");
}

Status AppendAudio(std::string_view tag, const tw_view& sounds, double rate, uint32_t most, std::string* to) {
  RETURN_IF_ERROR(CheckAudio(tag, sounds, rate, most));
  const Block b = {uint64_t(sounds.dims[1]), 1, sounds.rank == 3 ? uint64_t(sounds.dims[2]) : 1};
  const uint64_t n = std::min<uint64_t>(uint64_t(sounds.dims[0]), most), each = b.height * b.channels;
  for (uint64_t i = 0; i < n; ++i) {
    std::string audio;
    PutFloatField(1, float(rate), &audio);
    PutVarintField(2, b.channels, &audio);
    PutVarintField(3, b.height, &audio);
    PutBytesField(4, Wav(FloatsAt(sounds, i * each, each).data(), b, uint32_t(std::lround(rate))), &audio);
    PutBytesField(5, "audio/wav", &audio);
    AppendValue(TagOf(tag, "audio", i, most), kAudio, audio, {}, to);
  }
  return Status();
}

}  // namespace thalweg
