// Shared by the decoders: limits, the text of errors, the functions that decode images.
#ifndef THALWEG_PLUGINS_INPUT_IMAGE_H_
#define THALWEG_PLUGINS_INPUT_IMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thalweg/cpp/memory.hpp"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::input {

inline constexpr int64_t kMostPixels = int64_t{1} << 29;  // a small file can claim more than any memory holds

[[noreturn]] inline void Invalid(std::string text) { throw tw::Error{TW_INVALID_ARGUMENT, std::move(text)}; }

// Returns the only string of an input.
inline std::string_view Contents(tw::In<tw_string> contents) {
  if (contents.rank() != 0) Invalid("'contents' is " + tw::text(contents.dims(), contents.rank()) + "; it must be a scalar");
  return {contents[0].data, contents[0].size};
}

// "a PNG of 12 bytes: "
inline std::string Of(const char* kind, std::string_view bytes) {
  return std::string("a ") + kind + " of " + std::to_string(bytes.size()) + " bytes: ";
}

inline void CheckPixels(const char* kind, std::string_view bytes, int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels / height) {
    Invalid(Of(kind, bytes) + "it has " + tw::text(width) + " x " + tw::text(height) + " pixels; the limit is " + tw::text(kMostPixels));
  }
}

// The frames of an animation count together.
inline void CheckFrames(const char* kind, std::string_view bytes, int64_t frames, int64_t width, int64_t height) {
  CheckPixels(kind, bytes, width, height);
  if (frames > kMostPixels / (width * height)) {
    Invalid(Of(kind, bytes) + "it has " + tw::text(frames) + " frames of " + tw::text(width) + " x " + tw::text(height) +
            " pixels; the limit is " + tw::text(kMostPixels) + " in all");
  }
}

// Refuses other numbers than these for the attribute `channels`; 0 is the number of the file.
inline void CheckChannels(int64_t channels, std::initializer_list<int64_t> allowed) {
  std::string list;
  for (const int64_t n : allowed) {
    if (n == channels) return;
    (list += list.empty() ? "" : ", ") += tw::text(n);
  }
  Invalid("'channels' is " + tw::text(channels) + "; it must be one of " + list);
}

enum class Format { kNone, kPng, kJpeg, kBmp, kGif, kWebP };
inline Format FormatOf(std::string_view b) {
  if (b.starts_with("\x89PNG\r\n\x1a\n")) return Format::kPng;
  if (b.starts_with("\xff\xd8\xff")) return Format::kJpeg;
  if (b.starts_with("BM")) return Format::kBmp;
  if (b.starts_with("GIF8")) return Format::kGif;
  if (b.starts_with("RIFF") && b.substr(0, 12).ends_with("WEBP")) return Format::kWebP;
  return Format::kNone;
}

// Gives the memory for an image of these dims: height, width, channels, and before them the number of frames if the format can hold
// several and all are read.
using MakeImage = unsigned char* (*)(void* arg, const std::vector<int64_t>& dims);

// Decode into memory that `make` gives, of 8 or 16 bits a channel. channels: 0 is that of the file.
void ReadPng(std::string_view bytes, int64_t channels, bool wide, MakeImage make, void* arg);
struct Window {
  int64_t y = 0, x = 0, height = 0, width = 0;
};
struct JpegOptions {
  int64_t channels = 0, ratio = 1;
  bool fancy_upscaling = true, recover = false, fast = false;
};
// window: the part of the pixels to keep; NULL keeps all.
void ReadJpeg(std::string_view bytes, const JpegOptions& options, const Window* window, MakeImage make, void* arg);
// Returns height, width and channels without decoding pixels; inks are four channels.
std::vector<int64_t> JpegShape(std::string_view bytes);
void ReadBmp(std::string_view bytes, int64_t channels, MakeImage make, void* arg);
// all: every frame, else the first.
void ReadGif(std::string_view bytes, bool all, MakeImage make, void* arg);
// payer: pays for the memory of libwebp. channels: 0, 3 or 4.
void ReadWebP(std::string_view bytes, int64_t channels, bool all, tw::Payer payer, MakeImage make, void* arg);

inline std::vector<int64_t> FrameDims(bool all, int64_t frames, int64_t height, int64_t width, int64_t channels) {
  if (all) return {frames, height, width, channels};
  return {height, width, channels};
}

}  // namespace thalweg::input

#endif  // THALWEG_PLUGINS_INPUT_IMAGE_H_
