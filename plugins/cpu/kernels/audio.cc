// AudioSpectrogram and Mfcc, computed in double as in TensorFlow.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/fourier.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class AudioSpectrogram {
 public:
  explicit AudioSpectrogram(const tw::Node& n) : window_(n.i("window_size")), stride_(n.i("stride")), squared_(n.b("magnitude_squared")) {}

  void operator()(tw::Frame f, tw::In<float> input, tw::Out<float> spectrogram) const {
    const int64_t channels = spectrogram.dim(0), slices = spectrogram.dim(1), bins = spectrogram.dim(2), length = 2 * (bins - 1);
    if (channels == 0 || slices == 0) return;
    if (input.rank() != 2 || input.dim(1) != channels || input.dim(0) < (slices - 1) * stride_ + window_)
      Invalid("input " + DimsText(input.v) + " is shorter than its spectrogram " + DimsText(spectrogram.v()) + " needs");
    const Fourier<double> plan(f, length, false);
    const TempArray<double> hann(f, size_t(window_));
    for (int64_t i = 0; i < window_; ++i) hann[size_t(i)] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(window_));
    ParallelFor(f.f, channels * slices, Cost(length, 40), [&](int64_t begin, int64_t end) {
      const TempArray<std::complex<double>> line(f, size_t(length)), room(f, plan.room());
      for (int64_t k = begin; k < end; ++k) {
        const int64_t channel = k / slices, first = k % slices * stride_;
        for (int64_t i = 0; i < length; ++i)
          line[size_t(i)] = i < window_ ? hann[size_t(i)] * double(input.data()[(first + i) * channels + channel]) : 0.0;
        plan.Run(line.get(), room.get());
        float* to = spectrogram.data() + k * bins;
        for (int64_t i = 0; i < bins; ++i) {
          const double re = line[size_t(i)].real(), im = line[size_t(i)].imag();
          const float square = float(re * re + im * im);
          to[i] = squared_ ? square : std::sqrt(square);
        }
      }
    });
  }

 private:
  const int64_t window_, stride_;
  const bool squared_;
};

double Mel(double hertz) { return 1127 * std::log1p(hertz / 700); }

// Triangular filters, evenly spaced in mel. A frequency belongs to the falling side of one filter and
// the rising side of the next.
class MelFilters {
 public:
  MelFilters(const tw_frame* f, int64_t bins, double sample_rate, int64_t filters, double lower, double upper)
      : filters_(filters), below_(f, size_t(bins)), weight_(f, size_t(bins)) {
    const double hertz_per_bin = 0.5 * sample_rate / double(bins - 1);
    if (upper / hertz_per_bin >= double(bins))
      Invalid("upper_frequency_limit is " + std::to_string(upper) + " Hz, above " + std::to_string(sample_rate / 2) +
              " Hz, the highest frequency of a spectrogram at this sample_rate");
    first_ = int64_t(1.5 + lower / hertz_per_bin);  // never the mean, as in HTK
    last_ = int64_t(upper / hertz_per_bin);
    const double low = Mel(lower), spacing = (Mel(upper) - low) / double(filters + 1);
    const auto center = [&](int64_t k) { return low + spacing * double(k + 1); };
    int64_t next = 0;  // the first filter whose center is not below the bin
    for (int64_t i = first_; i <= last_; ++i) {
      const double mel = Mel(double(i) * hertz_per_bin);
      while (next < filters && center(next) < mel) ++next;
      below_[size_t(i)] = next - 1;
      weight_[size_t(i)] = next > 0 ? (center(next) - mel) / (center(next) - center(next - 1)) : (center(0) - mel) / (center(0) - low);
    }
  }

  // power: squared magnitudes. to: a number for each filter.
  void Apply(const float* power, double* to) const {
    std::fill_n(to, filters_, 0.0);
    for (int64_t i = first_; i <= last_; ++i) {
      const double magnitude = std::sqrt(double(power[i])), falling = magnitude * weight_[size_t(i)];
      const int64_t below = below_[size_t(i)];
      if (below >= 0) to[below] += falling;
      if (below + 1 < filters_) to[below + 1] += magnitude - falling;
    }
  }

 private:
  int64_t filters_, first_ = 0, last_ = 0;
  TempArray<int64_t> below_;
  TempArray<double> weight_;
};

class Mfcc {
 public:
  explicit Mfcc(const tw::Node& n)
      : upper_(n.f("upper_frequency_limit")),
        lower_(n.f("lower_frequency_limit")),
        filters_(n.i("filterbank_channel_count")),
        coefficients_(n.i("dct_coefficient_count")) {}

  void operator()(tw::Frame f, tw::In<float> spectrogram, tw::In<int32_t> sample_rate, tw::Out<float> output) const {
    const int32_t rate = sample_rate[0];
    if (rate <= 0) Invalid("sample_rate is " + std::to_string(rate) + "; it must be above 0");
    const int64_t frames = output.dim(0) * output.dim(1), bins = spectrogram.dim(2);
    if (spectrogram.rank() != 3 || int64_t(spectrogram.size()) != frames * bins || bins < 2)
      Invalid("spectrogram " + DimsText(spectrogram.v) + " does not fit the output " + DimsText(output.v()));
    if (frames == 0) return;
    const MelFilters filters(f.f, bins, rate, filters_, lower_, upper_);
    int64_t terms;
    if (__builtin_mul_overflow(coefficients_, filters_, &terms) || terms > INT64_MAX / int64_t(sizeof(double)))
      throw tw::Error{TW_RESOURCE_EXHAUSTED, "the table of cosines does not fit in memory; reduce filterbank_channel_count"};
    const TempArray<double> cosines(f, size_t(terms));
    for (int64_t i = 0; i < coefficients_; ++i)
      for (int64_t j = 0; j < filters_; ++j)
        cosines[size_t(i * filters_ + j)] =
            std::sqrt(2 / double(filters_)) * std::cos(double(i) * (std::numbers::pi / double(filters_)) * (double(j) + 0.5));
    ParallelFor(f.f, frames, Cost(filters_, coefficients_) + Cost(bins, 8), [&](int64_t begin, int64_t end) {
      const TempArray<double> mel(f, size_t(filters_));
      for (int64_t k = begin; k < end; ++k) {
        filters.Apply(spectrogram.data() + k * bins, mel.get());
        for (int64_t j = 0; j < filters_; ++j) mel[size_t(j)] = std::log(mel[size_t(j)] < kFloor ? kFloor : mel[size_t(j)]);
        for (int64_t i = 0; i < coefficients_; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < filters_; ++j) sum += cosines[size_t(i * filters_ + j)] * mel[size_t(j)];
          output.data()[k * coefficients_ + i] = float(sum);
        }
      }
    });
  }

 private:
  static constexpr double kFloor = 1e-12;
  const double upper_, lower_;
  const int64_t filters_, coefficients_;
};

}  // namespace

void register_audio(tw::Plugin& p) {
  p.kernel<AudioSpectrogram>("AudioSpectrogram @CPU");
  p.kernel<Mfcc>("Mfcc @CPU");
}

}  // namespace thalweg::cpu
