// DecodeWav and EncodeWav: sound files of 16-bit PCM samples.
#include <algorithm>
#include <cmath>
#include <string>

#include "dataset.h"
#include "register.h"

namespace thalweg::data {
namespace {

constexpr float kScale = 32768;

uint64_t NumberAt(std::string_view b, size_t at, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint64_t(static_cast<unsigned char>(b[at + size_t(i)])) << 8 * i;
  return n;
}

struct Wav {
  uint64_t channels = 0, rate = 0;
  std::string_view samples;
};

// Finds the chunks `fmt ` and `data`; others are passed over.
Wav Read(std::string_view b) {
  const std::string of = "a WAV of " + std::to_string(b.size()) + " bytes: ";
  if (b.size() < 12 || b.substr(0, 4) != "RIFF" || b.substr(8, 4) != "WAVE") Invalid(of + "it has no head of RIFF and WAVE");
  Wav w;
  bool found = false;
  for (size_t at = 12; at + 8 <= b.size();) {
    const std::string_view name = b.substr(at, 4);
    const uint64_t n = NumberAt(b, at + 4, 4);
    at += 8;
    if (n > b.size() - at)
      Invalid(of + "the chunk '" + std::string(name) + "' at byte " + std::to_string(at - 8) + " has " + std::to_string(n) +
              " bytes, of which " + std::to_string(b.size() - at) + " are there");
    if (name == "fmt ") {
      if (n < 16) Invalid(of + "the chunk 'fmt ' has " + std::to_string(n) + " bytes; it needs 16");
      const uint64_t format = NumberAt(b, at, 2), bits = NumberAt(b, at + 14, 2);
      w.channels = NumberAt(b, at + 2, 2);
      w.rate = NumberAt(b, at + 4, 4);
      if ((format != 1 && format != 0xfffe) || bits != 16)
        Invalid(of + "it has format " + std::to_string(format) + " of " + std::to_string(bits) + " bits; only PCM of 16 bits is supported");
      if (w.channels == 0) Invalid(of + "it has no channels");
      if (w.rate > INT32_MAX) Invalid(of + "its sample rate is " + std::to_string(w.rate));
    } else if (name == "data") {
      if (w.channels == 0) Invalid(of + "its samples come before the chunk 'fmt '");
      w.samples = b.substr(at, n - n % (2 * w.channels));
      found = true;
      break;
    }
    at += std::min<uint64_t>(n + n % 2, b.size() - at);
  }
  if (!found) Invalid(of + "it has no chunk 'data'");
  return w;
}

class DecodeWav {
 public:
  explicit DecodeWav(const tw::Node& n) : channels_(n.i("desired_channels")), samples_(n.i("desired_samples")) {}
  void operator()(tw::In<tw_string> contents, tw::Out<float> audio, tw::Out<int32_t> sample_rate) const {
    if (contents.rank() != 0) Invalid("'contents' is " + DimsText(*contents.v) + "; it must be a scalar");
    const Wav w = Read({contents[0].data, contents[0].size});
    const uint64_t have = w.samples.size() / (2 * w.channels);
    const uint64_t n = samples_ < 0 ? have : uint64_t(samples_), channels = channels_ < 0 ? w.channels : uint64_t(channels_);
    if (audio.rank() < 0) audio.allocate({int64_t(n), int64_t(channels)});
    if (audio.dim(0) != int64_t(n) || audio.dim(1) != int64_t(channels)) Fail(TW_INTERNAL, "DecodeWav: the output has another shape");
    float* to = audio.data();
    for (uint64_t i = 0; i < n; ++i) {
      for (uint64_t k = 0; k < channels; ++k) {
        // Missing channels repeat the last, missing samples are silent.
        *to++ = i < have ? float(int16_t(NumberAt(w.samples, 2 * (i * w.channels + std::min(k, w.channels - 1)), 2))) / kScale : 0;
      }
    }
    sample_rate[0] = int32_t(w.rate);
  }

 private:
  const int64_t channels_, samples_;
};

void EncodeWav(tw::In<float> audio, tw::In<int32_t> sample_rate, tw::Out<tw_string> contents) {
  if (audio.rank() != 2) Invalid("'audio' is " + DimsText(*audio.v) + "; it must have the axes samples, channels");
  const int64_t channels = audio.dim(1), rate = sample_rate.size() == 1 ? sample_rate[0] : 0;
  if (channels < 1 || channels > 65535 / 2) Invalid("'audio' is " + DimsText(*audio.v) + "; so many channels cannot be stored");
  if (rate < 1) Invalid("'sample_rate' is " + tw::text(rate) + "; it must be a scalar of at least 1");
  const uint64_t bytes = 2 * audio.size();
  if (bytes > UINT32_MAX - 36) Invalid("'audio' is " + DimsText(*audio.v) + "; a WAV file has at most 4 GiB");
  std::string out;
  const auto add = [&](uint64_t n, int size) {
    for (int i = 0; i < size; ++i) out += char(n >> 8 * i);
  };
  out.reserve(44 + bytes);
  out += "RIFF";
  add(36 + bytes, 4);
  out += "WAVEfmt ";
  add(16, 4);
  add(1, 2);
  add(uint64_t(channels), 2);
  add(uint64_t(rate), 4);
  add(uint64_t(rate) * uint64_t(channels) * 2, 4);
  add(uint64_t(channels) * 2, 2);
  add(16, 2);
  out += "data";
  add(bytes, 4);
  for (uint64_t i = 0; i < audio.size(); ++i) {
    const float v = std::isnan(audio[i]) ? 0 : std::round(audio[i] * kScale);
    add(uint64_t(uint16_t(int16_t(std::clamp(v, -32768.0f, 32767.0f)))), 2);
  }
  contents.set(0, out);
}

}  // namespace

void register_wav(tw::Plugin& p) {
  p.kernel<DecodeWav>("DecodeWav @CPU");
  p.kernel<EncodeWav>("EncodeWav @CPU");
}

}  // namespace thalweg::data
