// WebP, lossy, lossless and animated, by libwebp.
#include <algorithm>
#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "image.h"
#include "webp_memory.h"

namespace thalweg::input {
namespace {

constexpr uint64_t kCanvasBytes = 8;  // a pixel, of the two canvases on which libwebp composes the frames of an animation

[[noreturn]] void Fail(std::string_view bytes, VP8StatusCode status) {
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw tw::Error{TW_RESOURCE_EXHAUSTED, Of("WebP", bytes) + "not enough memory to decode it"};
  const bool ended = bytes.empty() || status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED;
  const char* text = ended                                      ? "the file ends too early"
                     : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "it has a feature that libwebp does not know"
                                                                : "libwebp cannot read it";
  Invalid(Of("WebP", bytes) + text + "; it is damaged or no WebP");
}

void ReadStill(std::string_view bytes, int64_t width, int64_t height, int64_t channels, unsigned char* to) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) throw tw::Error{TW_INTERNAL, "libwebp has another version than its headers"};
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {to, int(width * channels), size_t(width * height * channels)};
  const VP8StatusCode status = WebPDecode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) Fail(bytes, status);
}

class Animation {
 public:
  explicit Animation(std::string_view bytes)
      : bytes_(bytes), data_{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, chunks_(WebPDemux(&data_), &WebPDemuxDelete) {
    if (!chunks_) Invalid(Of("WebP", bytes) + "its frames are not complete; it is damaged");
  }
  int64_t frames() const { return WebPDemuxGetI(chunks_.get(), WEBP_FF_FRAME_COUNT); }
  int64_t width() const { return WebPDemuxGetI(chunks_.get(), WEBP_FF_CANVAS_WIDTH); }
  int64_t height() const { return WebPDemuxGetI(chunks_.get(), WEBP_FF_CANVAS_HEIGHT); }

  // Returns a bound on the bytes that libwebp holds for any of the first frames while it decodes it.
  uint64_t DecodingBytes(int64_t frames) const {
    uint64_t most = 0;
    for (int64_t k = 1; k <= frames; ++k) {
      WebPIterator frame = {};
      if (!WebPDemuxGetFrame(chunks_.get(), int(k), &frame))
        Invalid(Of("WebP", bytes_) + "frame " + tw::text(k) + " of " + tw::text(this->frames()) + " is not there; it is damaged");
      const std::string_view chunks(reinterpret_cast<const char*>(frame.fragment.bytes), frame.fragment.size);
      most = std::max(most, WebPDecodingBytes(chunks, frame.width, frame.height));
      WebPDemuxReleaseIterator(&frame);
    }
    return most;
  }

  void Read(int64_t frames, int64_t channels, unsigned char* to) const {
    const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(WebPAnimDecoderNew(&data_, nullptr),
                                                                                     &WebPAnimDecoderDelete);
    if (!decoder) throw tw::Error{TW_RESOURCE_EXHAUSTED, Of("WebP", bytes_) + "not enough memory to decode it"};
    const int64_t pixels = width() * height();
    for (int64_t k = 0; k < frames; ++k, to += pixels * channels) {
      uint8_t* canvas = nullptr;
      int shown_until = 0;
      if (!WebPAnimDecoderGetNext(decoder.get(), &canvas, &shown_until))
        Invalid(Of("WebP", bytes_) + "frame " + tw::text(k) + " of " + tw::text(this->frames()) + " cannot be read; it is damaged");
      if (channels == 4) {
        std::memcpy(to, canvas, size_t(4 * pixels));
      } else {
        for (int64_t i = 0; i < pixels; ++i) std::memcpy(to + 3 * i, canvas + 4 * i, 3);
      }
    }
  }

 private:
  const std::string_view bytes_;
  const WebPData data_;
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> chunks_;
};

}  // namespace

void ReadWebP(std::string_view bytes, int64_t channels, bool all, tw::Payer payer, MakeImage make, void* arg) {
  WebPBitstreamFeatures head;
  const VP8StatusCode status = WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &head);
  if (status != VP8_STATUS_OK) Fail(bytes, status);
  CheckPixels("WebP", bytes, head.width, head.height);
  const uint64_t pixels = uint64_t(head.width) * uint64_t(head.height);
  if (!head.has_animation) {
    if (channels == 0) channels = head.has_alpha ? 4 : 3;
    unsigned char* to = make(arg, FrameDims(all, 1, head.height, head.width, channels));
    const tw::Charge charge(payer, WebPDecodingBytes(bytes, head.width, head.height));
    return ReadStill(bytes, head.width, head.height, channels, to);
  }
  tw::Charge charge(payer, 2 * WebPIndexBytes(bytes));  // the decoder of animations makes one of its own
  const Animation animation(bytes);
  if (channels == 0) channels = 4;
  const int64_t frames = all ? animation.frames() : 1;
  if (animation.width() != head.width || animation.height() != head.height || animation.frames() < 1)
    Invalid(Of("WebP", bytes) + "its heads have different sizes, or it has no frame; it is damaged");
  CheckFrames("WebP", bytes, frames, head.width, head.height);
  unsigned char* to = make(arg, FrameDims(all, frames, head.height, head.width, channels));
  charge.add(kCanvasBytes * pixels + animation.DecodingBytes(frames));
  animation.Read(frames, channels, to);
}

}  // namespace thalweg::input
