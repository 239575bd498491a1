// LRN and its gradient: windows along the channels, all computed in float. Narrow windows are in
// lrn_isa.cc. Sums never subtract an element again, so nothing cancels.
#include "kernels/lrn.h"

#include <algorithm>
#include <memory>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Settings : LrnWindow {
  const LrnTable* table;
  explicit Settings(const tw::Node& n)
      : LrnWindow{n.i("depth_radius"), float(n.f("bias")), float(n.f("alpha")), float(n.f("beta"))},
        table(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Lrn)) {
    if (radius < 0) Invalid("depth_radius is " + tw::text(radius) + "; it must not be negative");
  }

  static constexpr int64_t kNarrow = 16;
  bool wide() const { return radius > kNarrow; }
  // Returns the floats of temporary room for a pixel.
  int64_t room(int64_t channels) const { return wide() ? 5 * channels : LrnRoom(*this, channels); }

  // sum[c] = the sum of v around channel c. Channels are cut into blocks as long as a window, so a
  // window touches two blocks at most. Its sum is that from its first channel to the end of that
  // block, plus that from the beginning of the next block to its last channel.
  void Around(const float* v, int64_t channels, float* sum, float* from_begin, float* to_end) const {
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
        sum[c] = first % block == 0 ? from_begin[last] : to_end[first];  // the window is cut off at the first or the last channel
      }
    }
  }
  // Computes y = x n^-beta for a pixel.
  void Wide(const float* x, float* y, int64_t channels, float* room) const {
    Norms(x, channels, room);
    table->powers(room, beta, channels);
    for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * room[c];
  }
  void WideGrad(const float* dy, const float* x, const float* y, float* dx, int64_t channels, float* room) const {
    float *norms = room, *ratios = room + channels, *sums = room + 2 * channels;
    Norms(x, channels, room);
    for (int64_t c = 0; c < channels; ++c) ratios[c] = dy[c] * y[c] / norms[c];
    Around(ratios, channels, sums, room + 3 * channels, room + 4 * channels);
    table->powers(norms, beta, channels);
    const float factor = 2 * alpha * beta;
    for (int64_t c = 0; c < channels; ++c) dx[c] = dy[c] * norms[c] - factor * x[c] * sums[c];
  }
  // Writes bias + alpha * the squares around each channel to the beginning of `room`.
  void Norms(const float* x, int64_t channels, float* room) const {
    float* squares = room + channels;
    for (int64_t c = 0; c < channels; ++c) squares[c] = x[c] * x[c];
    Around(squares, channels, room, room + 3 * channels, room + 4 * channels);
    for (int64_t c = 0; c < channels; ++c) room[c] = bias + alpha * room[c];
  }
  int64_t Cost(int64_t channels) const { return cpu::Cost(channels, wide() ? 70 : 4 + radius / 4); }
};

int64_t PixelsOf(const tw_view* v) {
  if (v->rank != 4) Invalid("the image " + DimsText(v) + " must have rank 4");
  return Product(v->dims, 0, 3);
}

// Calls body(begin, end, room) for pieces of the pixels. Each piece has `floats` floats of room of
// its own, all 0, allocated before the loop.
template <class F>
void ForPieces(const tw_frame* f, int64_t pixels, int64_t cost, int64_t floats, F&& body) {
  const int64_t pieces = std::clamp<int64_t>(pixels * cost / kGrain, 1, 64);
  tw::TempVector<float> room(size_t(pieces * floats), 0.f, f);
  ParallelFor(f, pieces, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece)
      body(piece * pixels / pieces, (piece + 1) * pixels / pieces, room.data() + piece * floats);
  });
}

template <class T>
class LocalResponse {
 public:
  explicit LocalResponse(const tw::Node& n) : settings_(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::Out<T> output) const {
    const int64_t pixels = PixelsOf(input.v), channels = input.dim(3), own = settings_.room(channels);
    if (input.size() == 0) return;
    ForPieces(frame.f, pixels, settings_.Cost(channels), own + 2 * channels, [&](int64_t begin, int64_t end, float* room) {
      const T* from = input.data() + begin * channels;
      T* to = output.data() + begin * channels;
      if constexpr (std::is_same_v<T, float>) return Pixels(from, to, end - begin, channels, room);
      float *x = room + own, *y = x + channels;
      for (; begin < end; ++begin, from += channels, to += channels) {
        for (int64_t c = 0; c < channels; ++c) x[c] = float(from[c]);
        Pixels(x, y, 1, channels, room);
        for (int64_t c = 0; c < channels; ++c) to[c] = T(y[c]);
      }
    });
  }

 private:
  void Pixels(const float* x, float* y, int64_t n, int64_t channels, float* room) const {
    if (!settings_.wide()) return settings_.table->narrow(settings_, x, y, n, channels, room);
    for (; n > 0; --n, x += channels, y += channels) settings_.Wide(x, y, channels, room);
  }

  Settings settings_;
};

// dx = dy n^-beta - 2 alpha beta x W(dy y / n), W the sum over neighbours.
template <class T>
class LocalResponseGrad {
 public:
  explicit LocalResponseGrad(const tw::Node& n) : settings_(n) {}

  void operator()(tw::Frame frame, tw::In<T> grads, tw::In<T> image, tw::In<T> result, tw::Out<T> output) const {
    if (!SameDims(grads.v, image.v) || !SameDims(image.v, result.v))
      Invalid("input_grads " + DimsText(grads.v) + ", input_image " + DimsText(image.v) + " and output_image " + DimsText(result.v) +
              " must have the same shape");
    const int64_t pixels = PixelsOf(image.v), channels = image.dim(3), own = settings_.room(channels);
    if (image.size() == 0) return;
    ForPieces(frame.f, pixels, 2 * settings_.Cost(channels), own + 4 * channels, [&](int64_t begin, int64_t end, float* room) {
      const int64_t at = begin * channels;
      const T *from_dy = grads.data() + at, *from_x = image.data() + at, *from_y = result.data() + at;
      T* to = output.data() + at;
      if constexpr (std::is_same_v<T, float>) return Pixels(from_dy, from_x, from_y, to, end - begin, channels, room);
      float *dy = room + own, *x = dy + channels, *y = x + channels, *dx = y + channels;
      for (; begin < end; ++begin, from_dy += channels, from_x += channels, from_y += channels, to += channels) {
        for (int64_t c = 0; c < channels; ++c) dy[c] = float(from_dy[c]), x[c] = float(from_x[c]), y[c] = float(from_y[c]);
        Pixels(dy, x, y, dx, 1, channels, room);
        for (int64_t c = 0; c < channels; ++c) to[c] = T(dx[c]);
      }
    });
  }

 private:
  void Pixels(const float* dy, const float* x, const float* y, float* dx, int64_t n, int64_t channels, float* room) const {
    if (!settings_.wide()) return settings_.table->narrow_grad(settings_, dy, x, y, dx, n, channels, room);
    for (; n > 0; --n, dy += channels, x += channels, y += channels, dx += channels) settings_.WideGrad(dy, x, y, dx, channels, room);
  }

  Settings settings_;
};

}  // namespace

void register_lrn(tw::Plugin& p) {
  p.kernel<LocalResponse<float>, LocalResponse<half>, LocalResponse<bfloat16>>("LRN @CPU");
  p.kernel<LocalResponseGrad<float>, LocalResponseGrad<half>, LocalResponseGrad<bfloat16>>("LRNGrad @CPU");
}

}  // namespace thalweg::cpu
