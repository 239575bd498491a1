// Features of sound: spectrograms, and their mel-frequency cepstral coefficients.
#include <cmath>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr int64_t kLongestWindow = int64_t{1} << 30;
constexpr int64_t kMostChannels = int64_t{1} << 24;

void SpectrogramRule(const tw::Shape& s) {
  WantRank(s, 0, 2, "input");
  const int64_t window = s.i("window_size"), stride = s.i("stride");
  if (window < 2 || window > kLongestWindow)
    Fail("'window_size' is " + tw::text(window) + "; it must be from 2 to " + tw::text(kLongestWindow) + " samples");
  if (stride < 1) Fail("'stride' is " + tw::text(stride) + "; it must be at least 1 sample");
  int64_t length = 1;
  while (length < window) length *= 2;
  const Dims in = In(s, 0).value_or(Dims{-1, -1});
  s.out(0, {in[1], Known(in[0]) ? (in[0] < window ? 0 : 1 + (in[0] - window) / stride) : -1, 1 + length / 2});
}

void MfccRule(const tw::Shape& s) {
  WantRank(s, 0, 3, "spectrogram");
  WantScalar(s, 1, "sample_rate");
  const double upper = s.f("upper_frequency_limit"), lower = s.f("lower_frequency_limit");
  const int64_t channels = s.i("filterbank_channel_count"), coefficients = s.i("dct_coefficient_count");
  if (!(lower >= 0 && upper > lower && std::isfinite(upper)))
    Fail("'lower_frequency_limit' is " + Text(lower) + " and 'upper_frequency_limit' " + Text(upper) +
         "; the lower one must not be negative, and the upper one must be above it");
  if (channels < 1 || channels > kMostChannels)
    Fail("'filterbank_channel_count' is " + tw::text(channels) + "; it must be from 1 to " + tw::text(kMostChannels));
  if (coefficients < 1 || coefficients > channels)
    Fail("'dct_coefficient_count' is " + tw::text(coefficients) + "; it must be from 1 to 'filterbank_channel_count', which is " +
         tw::text(channels));
  const Dims in = In(s, 0).value_or(Dims{-1, -1, -1});
  if (Known(in[2]) && in[2] < 2)
    Fail("'spectrogram' is " + Text(in) + "; its last axis holds the frequencies, of which it needs two at least");
  s.out(0, {in[0], in[1], coefficients});
}

}  // namespace

void register_audio(tw::Plugin& p) {
  p.op<nullptr, SpectrogramRule>(
      "AudioSpectrogram(input: float) -> (spectrogram: float); window_size: int; stride: int; magnitude_squared: bool = false; "
      "?data input; no_gradient \"it is not offered, as in TensorFlow; RFFT of framed samples has one\"; "
      "doc \"magnitudes of the frequencies in overlapping windows of samples\"");
  p.op<nullptr, MfccRule>(
      "Mfcc(spectrogram: float, sample_rate: int32) -> (output: float); upper_frequency_limit: float = 4000.0; "
      "lower_frequency_limit: float = 20.0; filterbank_channel_count: int = 40; dct_coefficient_count: int = 13; "
      "?data spectrogram; no_gradient \"it is not offered, as in TensorFlow\"; "
      "doc \"mel-frequency cepstral coefficients of a spectrogram of squared magnitudes\"");
}

}  // namespace thalweg::ops
