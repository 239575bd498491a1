// DecodeWav and EncodeWav: sound files of PCM or float samples.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "dataset.h"
#include "register.h"

namespace thalweg::data {
namespace {

constexpr float kScale = 32768;

// Formats of the chunk `fmt `. An extensible one names its format by a GUID, whose first two bytes are the number.
constexpr uint64_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe, kExtensibleBytes = 40, kGuidAt = 24;
constexpr std::string_view kGuidRest("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);

uint64_t NumberAt(std::string_view b, size_t at, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint64_t(static_cast<unsigned char>(b[at + size_t(i)])) << 8 * i;
  return n;
}

struct Wav {
  uint64_t format = 0, channels = 0, rate = 0, bits = 0;
  std::string_view samples;
  uint64_t bytes() const { return bits / 8 * channels; }  // of one sample of all channels
};

// Reads the chunk `fmt `. of: the begin of messages.
void ReadFormat(std::string_view chunk, const std::string& of, Wav* w) {
  if (chunk.size() < 16) Invalid(of + "the chunk 'fmt ' has " + std::to_string(chunk.size()) + " bytes; it needs 16");
  w->format = NumberAt(chunk, 0, 2);
  w->channels = NumberAt(chunk, 2, 2);
  w->rate = NumberAt(chunk, 4, 4);
  w->bits = NumberAt(chunk, 14, 2);
  if (w->format == kExtensible) {
    if (chunk.size() < kExtensibleBytes)
      Invalid(of + "the chunk 'fmt ' has " + std::to_string(chunk.size()) + " bytes; an extensible one needs 40");
    w->format = chunk.substr(kGuidAt + 2, kGuidRest.size()) == kGuidRest ? NumberAt(chunk, kGuidAt, 2) : kExtensible;
  }
  const bool pcm = w->format == kPcm && (w->bits == 8 || w->bits == 16 || w->bits == 24 || w->bits == 32);
  if (!pcm && !(w->format == kFloat && (w->bits == 32 || w->bits == 64))) {
    Invalid(of + "it has format " + std::to_string(w->format) + " of " + std::to_string(w->bits) +
            " bits; only PCM (1) of 8, 16, 24 and 32 bits and float (3) of 32 and 64 bits are supported");
  }
  if (w->channels == 0) Invalid(of + "it has no channels");
  if (w->rate > INT32_MAX) Invalid(of + "its sample rate is " + std::to_string(w->rate));
  if (const uint64_t bytes = NumberAt(chunk, 12, 2); bytes != w->bytes()) {
    Invalid(of + "its samples have " + std::to_string(bytes) + " bytes, but " + std::to_string(w->channels) + " channels of " +
            std::to_string(w->bits) + " bits need " + std::to_string(w->bytes()));
  }
}

// Finds the chunks `fmt ` and `data`; others are passed over.
Wav Read(std::string_view b) {
  const std::string of = "a WAV of " + std::to_string(b.size()) + " bytes: ";
  if (b.size() < 12 || b.substr(0, 4) != "RIFF" || b.substr(8, 4) != "WAVE") Invalid(of + "it has no head of RIFF and WAVE");
  Wav w;
  for (size_t at = 12; at + 8 <= b.size();) {
    const std::string_view name = b.substr(at, 4);
    const uint64_t n = NumberAt(b, at + 4, 4);
    at += 8;
    if (n > b.size() - at)
      Invalid(of + "the chunk '" + std::string(name) + "' at byte " + std::to_string(at - 8) + " has " + std::to_string(n) +
              " bytes, of which " + std::to_string(b.size() - at) + " are there");
    if (name == "fmt ") ReadFormat(b.substr(at, n), of, &w);
    if (name == "data") {
      if (w.channels == 0) Invalid(of + "its samples come before the chunk 'fmt '");
      w.samples = b.substr(at, n - n % w.bytes());
      return w;
    }
    at += std::min<uint64_t>(n + n % 2, b.size() - at);
  }
  Invalid(of + "it has no chunk 'data'");
}

// Returns the whole number of `bytes` bytes in [-1, 1).
template <int bytes>
float Whole(const char* at) {
  const auto n = uint32_t(NumberAt({at, bytes}, 0, bytes));
  if (bytes == 1) return (float(n) - 128) / 128;  // the only size without a sign
  return float(int32_t(n << (32 - 8 * bytes))) / 2147483648.0f;
}

template <class T>
float Real(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return float(v);
}

using Sample = float (*)(const char*);
Sample SampleOf(const Wav& w) {
  if (w.format == kFloat) return w.bits == 32 ? &Real<float> : &Real<double>;
  return w.bits == 8 ? &Whole<1> : w.bits == 16 ? &Whole<2> : w.bits == 24 ? &Whole<3> : &Whole<4>;
}

class DecodeWav {
 public:
  explicit DecodeWav(const tw::Node& n) : channels_(n.i("desired_channels")), samples_(n.i("desired_samples")) {}
  void operator()(tw::In<tw_string> contents, tw::Out<float> audio, tw::Out<int32_t> sample_rate) const {
    if (contents.rank() != 0) Invalid("'contents' is " + DimsText(*contents.v) + "; it must be a scalar");
    const Wav w = Read({contents[0].data, contents[0].size});
    const uint64_t have = w.samples.size() / w.bytes();
    const uint64_t n = samples_ < 0 ? have : uint64_t(samples_), channels = channels_ < 0 ? w.channels : uint64_t(channels_);
    if (audio.rank() < 0) audio.allocate({int64_t(n), int64_t(channels)});
    if (audio.dim(0) != int64_t(n) || audio.dim(1) != int64_t(channels)) Fail(TW_INTERNAL, "DecodeWav: the output has another shape");
    const Sample sample = SampleOf(w);
    const char* from = w.samples.data();
    float* to = audio.data();
    for (uint64_t i = 0; i < std::min(n, have); ++i, from += w.bytes()) {
      // Missing channels repeat the last.
      for (uint64_t k = 0; k < channels; ++k) *to++ = sample(from + std::min(k, w.channels - 1) * (w.bits / 8));
    }
    std::fill(to, audio.data() + n * channels, 0.0f);  // missing samples are silent
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
