// ResizeBilinear, ResizeNearestNeighbor and their gradients. Positions are computed in float with
// TensorFlow's steps, so ties select the same pixels. Forward, one task makes each row of the
// result. Backward, each row of the image gathers its share from the rows that use it, in order.
// Results have the same bits on any number of threads.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/alignment.h"
#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

using common::Alignment;
using common::Mix;

std::vector<Mix> BilinearMixes(const Alignment& a, int64_t in, int64_t out) {
  const float scale = a.Scale(in, out);
  std::vector<Mix> mixes;
  for (int64_t o = 0; o < out; ++o) mixes.push_back(a.Bilinear(o, in, scale));
  return mixes;
}

std::vector<Mix> NearestMixes(const Alignment& a, int64_t in, int64_t out) {
  const float scale = a.Scale(in, out);
  std::vector<Mix> mixes;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t nearest = a.Nearest(o, in, scale);
    mixes.push_back({nearest, nearest, 0});
  }
  return mixes;
}

// The results [begin, end) that use position i of the image. Positions never decrease, so all
// results in the range use it.
struct Users {
  int64_t begin, end;
};
std::vector<Users> UsersOf(const std::vector<Mix>& mixes, int64_t in) {
  std::vector<Users> users(size_t(in), Users{int64_t(mixes.size()), 0});
  for (size_t o = 0; o < mixes.size(); ++o)
    for (int64_t i : {mixes[o].low, mixes[o].high}) {
      Users& u = users[size_t(i)];
      u = {std::min(u.begin, int64_t(o)), int64_t(o) + 1};
    }
  return users;
}

// The sizes of a tensor of original images and of the tensor of resized images.
struct Images {
  int64_t batch, channels, height, width;  // of the original
  std::vector<Mix> rows, columns;          // of the resized image
  std::unique_ptr<tw::Charge> charge;      // for all tables
  int64_t out_height() const { return int64_t(rows.size()); }
  int64_t out_width() const { return int64_t(columns.size()); }
};
Images ImagesOf(tw::Frame frame, const Alignment& a, const tw_view* original, const tw_view* resized, bool bilinear) {
  if (original->rank != 4 || resized->rank != 4)
    Invalid("images must have rank 4, but they are " + DimsText(original) + " and " + DimsText(resized));
  const int64_t *in = original->dims, *out = resized->dims;
  if (in[0] != out[0] || in[3] != out[3])
    Invalid("images of " + DimsText(original) + " and " + DimsText(resized) + " must agree in number and channels");
  if (original->count == 0 && resized->count != 0) Invalid("images of " + DimsText(original) + " have no pixels to make others from");
  Images g{in[0], in[3], in[1], in[2], {}, {}, {}};
  if (original->count == 0 || resized->count == 0) return g;
  g.charge = std::make_unique<tw::Charge>(frame, 2 * uint64_t(out[1] + out[2]) * sizeof(Mix) + uint64_t(in[1] + in[2]) * sizeof(Users));
  const auto mixes = bilinear ? BilinearMixes : NearestMixes;
  g.rows = mixes(a, in[1], out[1]);
  g.columns = mixes(a, in[2], out[2]);
  return g;
}

template <class T>
class Bilinear {
 public:
  explicit Bilinear(const tw::Node& n) : alignment_(n) {}

  // The second input (size) has been used already, to allocate the output.
  void operator()(tw::Frame frame, tw::In<T> images, tw::In<int32_t>, tw::Out<float> resized) const {
    const Images g = ImagesOf(frame, alignment_, images.v, resized.v(), true);
    if (resized.size() == 0) return;
    const int64_t row = g.width * g.channels, out_row = g.out_width() * g.channels;
    ParallelFor(frame.f, g.batch * g.out_height(), Cost(out_row, 8), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const Mix& y = g.rows[size_t(r % g.out_height())];
        const T* image = images.data() + r / g.out_height() * g.height * row;
        MakeRow(g, image + y.low * row, image + y.high * row, y.weight, resized.data() + r * out_row);
      }
    });
  }

 private:
  static void MakeRow(const Images& g, const T* above, const T* below, float weight, float* to) {
    for (const Mix& x : g.columns) {
      const int64_t left = x.low * g.channels, right = x.high * g.channels;
      for (int64_t c = 0; c < g.channels; ++c) {
        const float a = float(above[left + c]), b = float(above[right + c]), d = float(below[left + c]), e = float(below[right + c]);
        const float top = a + (b - a) * x.weight, bottom = d + (e - d) * x.weight;
        to[c] = top + (bottom - top) * weight;
      }
      to += g.channels;
    }
  }

  Alignment alignment_;
};

template <class T>
class BilinearGrad {
 public:
  explicit BilinearGrad(const tw::Node& n) : alignment_(n) {}

  void operator()(tw::Frame frame, tw::In<float> grads, tw::In<T>, tw::Out<T> output) const {
    const Images g = ImagesOf(frame, alignment_, output.v(), grads.v, true);
    if (output.size() == 0) return;
    const std::vector<Users> above = UsersOf(g.rows, g.height), beside = UsersOf(g.columns, g.width);
    const int64_t out_row = g.out_width() * g.channels;
    const int64_t uses = g.out_height() / std::max<int64_t>(1, g.height) + 1;
    ParallelFor(frame.f, g.batch * g.height, Cost(g.width, g.channels, uses, 8), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r % g.height;
        const float* image = grads.data() + r / g.height * g.out_height() * out_row;
        for (int64_t j = 0; j < g.width; ++j)
          Gather(g, image, above[size_t(i)], beside[size_t(j)], i, j, output.data() + (r * g.width + j) * g.channels);
      }
    });
  }

 private:
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

  // Returns the weight of position i in a result.
  static Sum Share(const Mix& m, int64_t i) { return (m.low == i ? 1 - Sum(m.weight) : 0) + (m.high == i ? Sum(m.weight) : 0); }

  static void Gather(const Images& g, const float* image, const Users& rows, const Users& columns, int64_t i, int64_t j, T* to) {
    constexpr int64_t kTogether = 64;
    for (int64_t first = 0; first < g.channels; first += kTogether) {
      const int64_t n = std::min(kTogether, g.channels - first);
      Sum sum[kTogether] = {};
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          const Sum share = Share(g.rows[size_t(y)], i) * Share(g.columns[size_t(x)], j);
          const float* from = image + (y * g.out_width() + x) * g.channels + first;
          for (int64_t c = 0; c < n; ++c) sum[c] += Sum(from[c]) * share;
        }
      for (int64_t c = 0; c < n; ++c) to[first + c] = T(sum[c]);
    }
  }

  Alignment alignment_;
};

template <class T>
class Nearest {
 public:
  explicit Nearest(const tw::Node& n) : alignment_(n) {}

  void operator()(tw::Frame frame, tw::In<T> images, tw::In<int32_t>, tw::Out<T> resized) const {
    const Images g = ImagesOf(frame, alignment_, images.v, resized.v(), false);
    if (resized.size() == 0) return;
    const int64_t row = g.width * g.channels, out_row = g.out_width() * g.channels;
    ParallelFor(frame.f, g.batch * g.out_height(), Cost(out_row, 2), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = images.data() + r / g.out_height() * g.height * row + g.rows[size_t(r % g.out_height())].low * row;
        T* to = resized.data() + r * out_row;
        for (const Mix& x : g.columns) to = std::copy_n(from + x.low * g.channels, g.channels, to);
      }
    });
  }

 private:
  Alignment alignment_;
};

template <class T>
class NearestGrad {
 public:
  explicit NearestGrad(const tw::Node& n) : alignment_(n) {}

  void operator()(tw::Frame frame, tw::In<T> grads, tw::In<int32_t>, tw::Out<T> output) const {
    const Images g = ImagesOf(frame, alignment_, output.v(), grads.v, false);
    if (output.size() == 0) return;
    const std::vector<Users> above = UsersOf(g.rows, g.height), beside = UsersOf(g.columns, g.width);
    const int64_t uses = g.out_height() / std::max<int64_t>(1, g.height) + 1;
    ParallelFor(frame.f, g.batch * g.height, Cost(g.width, g.channels, uses, 2), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* image = grads.data() + r / g.height * g.out_height() * g.out_width() * g.channels;
        for (int64_t j = 0; j < g.width; ++j)
          Gather(g, image, above[size_t(r % g.height)], beside[size_t(j)], output.data() + (r * g.width + j) * g.channels);
      }
    });
  }

 private:
  static void Gather(const Images& g, const T* image, const Users& rows, const Users& columns, T* to) {
    constexpr int64_t kTogether = 64;
    for (int64_t first = 0; first < g.channels; first += kTogether) {
      const int64_t n = std::min(kTogether, g.channels - first);
      Wide<T> sum[kTogether] = {};
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          const T* from = image + (y * g.out_width() + x) * g.channels + first;
          for (int64_t c = 0; c < n; ++c) sum[c] = Plus(sum[c], Wide<T>(from[c]));
        }
      for (int64_t c = 0; c < n; ++c) to[first + c] = T(sum[c]);
    }
  }

  Alignment alignment_;
};

template <template <class> class Kernel, class... T>
void Register(tw::Plugin& p, const char* spec) {
  p.kernel<Kernel<T>...>(spec);
}

}  // namespace

void register_resize(tw::Plugin& p) {
  Register<Bilinear, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, float, double, bfloat16>(p, "ResizeBilinear @CPU");
  Register<BilinearGrad, float, double, half, bfloat16>(p, "ResizeBilinearGrad @CPU");
  Register<Nearest, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, float, double, bfloat16>(p, "ResizeNearestNeighbor @CPU");
  Register<NearestGrad, int8_t, uint8_t, int32_t, half, float, double, bfloat16>(p, "ResizeNearestNeighborGrad @CPU");
}

}  // namespace thalweg::cpu
