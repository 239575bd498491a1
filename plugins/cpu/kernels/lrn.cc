// LRN and its gradient: windows along the channels, all of them in float. A pixel's squares are summed window by window, each in its own
// order: nothing is subtracted again, so nothing cancels.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Settings {
  int64_t radius;
  float bias, alpha, beta;
  explicit Settings(const tw::Attrs& n)
      : radius(n.i("depth_radius")), bias(float(n.f("bias"))), alpha(float(n.f("alpha"))), beta(float(n.f("beta"))) {
    if (radius < 0) Invalid("depth_radius is " + tw::text(radius) + "; it must not be negative");
  }

  static constexpr int64_t kNarrow = 16;
  bool wide() const { return radius > kNarrow; }
  int64_t extra_rows() const { return wide() ? 2 : 0; }

  // sum[c] = the sum of v around channel c. room: extra_rows() pixels.
  void Around(const float* v, int64_t channels, float* sum, float* room) const {
    if (wide()) return AroundWide(v, channels, sum, room, room + channels);
    // Sixteen channels side by side, with zeros before the first channel and after the last.
    constexpr int64_t kBlock = 16;
    for (int64_t first = 0; first < channels; first += kBlock) {
      float near[kBlock + 2 * kNarrow] = {}, s[kBlock] = {};
      const int64_t begin = std::max<int64_t>(0, first - radius), end = std::min(channels, first + kBlock + radius);
      std::copy(v + begin, v + end, near + (begin - first + radius));
      for (int64_t k = 0; k <= 2 * radius; ++k)
        for (int64_t c = 0; c < kBlock; ++c) s[c] += near[c + k];
      std::copy_n(s, std::min(kBlock, channels - first), sum + first);
    }
  }
  // In blocks as long as a window, which touches two at most: from its first channel to the end of that block, and from the beginning of
  // the next to its last channel. Nothing is subtracted, so small numbers beside large ones stay.
  void AroundWide(const float* v, int64_t channels, float* sum, float* from_begin, float* to_end) const {
    const int64_t reach = std::min(radius, channels), block = 2 * reach + 1;
    for (int64_t begin = 0; begin < channels; begin += block) {
      const int64_t end = std::min(channels, begin + block);
      float s = 0;
      for (int64_t c = begin; c < end; ++c) from_begin[c] = s += v[c];
      s = 0;
      for (int64_t c = end; c-- > begin;) to_end[c] = s += v[c];
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t first = std::max<int64_t>(0, c - reach), last = std::min(channels - 1, c + reach);
      if (first / block != last / block) {
        sum[c] = to_end[first] + from_begin[last];
      } else {
        sum[c] = first % block == 0 ? from_begin[last] : to_end[first];  // cut off at the first channel, or the last
      }
    }
  }
  // bias + alpha * the squares around each channel; squares: room for one pixel; room: as Around.
  template <class T>
  void Norms(const T* x, int64_t channels, float* squares, float* norms, float* room) const {
    for (int64_t c = 0; c < channels; ++c) squares[c] = float(x[c]) * float(x[c]);
    Around(squares, channels, norms, room);
    for (int64_t c = 0; c < channels; ++c) norms[c] = bias + alpha * norms[c];
  }
  // n[c] = n[c]^-beta
  void Powers(float* n, int64_t channels) const {
    if (beta == 0.5f)
      for (int64_t c = 0; c < channels; ++c) n[c] = 1 / std::sqrt(n[c]);
    else if (beta == 1)
      for (int64_t c = 0; c < channels; ++c) n[c] = 1 / n[c];
    else
      for (int64_t c = 0; c < channels; ++c) n[c] = std::pow(n[c], -beta);
  }
  int64_t Cost(int64_t channels) const { return cpu::Cost(channels, 2 * std::min(radius, wide() ? 4 : channels) + 60); }
};

int64_t PixelsOf(const tw_view* v) {
  if (v->rank != 4) Invalid("the image " + DimsText(v) + " must have rank 4");
  return Product(v->dims, 0, 3);
}

// Pixels in pieces, body(pixel, room) with room for `rows` pixels of floats of the piece's own. The room is made before the loop.
template <class F>
void ForPixels(const tw_frame* f, int64_t pixels, int64_t channels, int64_t cost, int64_t rows, F&& body) {
  const int64_t pieces = std::clamp<int64_t>(pixels * cost / kGrain, 1, 256);
  const std::unique_ptr<float[]> room(new float[size_t(pieces * rows * channels)]);
  ParallelFor(f, pieces, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece)
      for (int64_t p = piece * pixels / pieces; p < (piece + 1) * pixels / pieces; ++p) body(p, room.get() + piece * rows * channels);
  });
}

template <class T>
class Lrn {
 public:
  explicit Lrn(const tw::Node& n) : settings_(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::Out<T> output) const {
    const int64_t pixels = PixelsOf(input.v), channels = input.dim(3);
    if (input.size() == 0) return;
    ForPixels(frame.f, pixels, channels, settings_.Cost(channels), 2 + settings_.extra_rows(), [&](int64_t p, float* room) {
      const T* x = input.data() + p * channels;
      T* y = output.data() + p * channels;
      float *squares = room, *norms = room + channels;
      settings_.Norms(x, channels, squares, norms, room + 2 * channels);
      settings_.Powers(norms, channels);
      for (int64_t c = 0; c < channels; ++c) y[c] = T(float(x[c]) * norms[c]);
    });
  }

 private:
  Settings settings_;
};

// dx = dy n^-beta - 2 alpha beta x W(dy y / n), W the sum over neighbours.
template <class T>
class LrnGrad {
 public:
  explicit LrnGrad(const tw::Node& n) : settings_(n) {}

  void operator()(tw::Frame frame, tw::In<T> grads, tw::In<T> image, tw::In<T> result, tw::Out<T> output) const {
    if (!SameDims(grads.v, image.v) || !SameDims(image.v, result.v))
      Invalid("input_grads " + DimsText(grads.v) + ", input_image " + DimsText(image.v) + " and output_image " + DimsText(result.v) +
              " must have the same shape");
    const int64_t pixels = PixelsOf(image.v), channels = image.dim(3);
    if (image.size() == 0) return;
    const float factor = 2 * settings_.alpha * settings_.beta;
    ForPixels(frame.f, pixels, channels, 2 * settings_.Cost(channels), 3 + settings_.extra_rows(), [&](int64_t p, float* room) {
      const T *dy = grads.data() + p * channels, *x = image.data() + p * channels, *y = result.data() + p * channels;
      T* dx = output.data() + p * channels;
      float *ratios = room, *norms = room + channels, *sums = room + 2 * channels;
      settings_.Norms(x, channels, ratios, norms, room + 3 * channels);
      for (int64_t c = 0; c < channels; ++c) ratios[c] = float(dy[c]) * float(y[c]) / norms[c];
      settings_.Around(ratios, channels, sums, room + 3 * channels);
      settings_.Powers(norms, channels);
      for (int64_t c = 0; c < channels; ++c) dx[c] = T(float(dy[c]) * norms[c] - factor * float(x[c]) * sums[c]);
    });
  }

 private:
  Settings settings_;
};

}  // namespace

void register_lrn(tw::Plugin& p) {
  p.kernel<Lrn<float>, Lrn<half>, Lrn<bfloat16>>("LRN @CPU");
  p.kernel<LrnGrad<float>, LrnGrad<half>, LrnGrad<bfloat16>>("LRNGrad @CPU");
}

}  // namespace thalweg::cpu
