// Conv3D and its gradients: matrix products over gathered points. A tensor with channels first, or
// of half or bfloat16, is first converted as a whole to channels last and float, and the result is
// converted back.
// A forward task gathers some points of a volume under the filter's taps and multiplies them with
// the filter. If all strides are 1, the input's gradient is such a convolution too. Else a task of
// the input's gradient owns one plane of a volume, and adds up the contributions of every tap and
// every result plane that reads the plane. The filter's gradient is summed over chunks of points,
// whose number depends only on shapes: all taps of a small filter together, those of a large one
// tap by tap. No two tasks write the same element, so results have the same bits on any number of
// threads.
#include <algorithm>
#include <memory>

#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/gemm.h"
#include "kernels/register.h"
#include "kernels/slots.h"
#include "kernels/widen.h"
#include "kernels/window.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kPoints = 256;  // the largest number of points of a product

template <class V>
tw_shape ShapeOf(const V& v) {
  return {v.dims(), v.rank(), 0};
}

// The attributes, checked once when the kernel is made.
struct Settings {
  bool channels_first, same;
  int64_t stride[3], dilation[3];

  explicit Settings(const tw::Attrs& n) : channels_first(n.s("data_format") == "NCDHW"), same(n.s("padding") == "SAME") {
    Read(n, "strides", stride);
    Read(n, "dilations", dilation);
  }
  int Space(int k) const { return channels_first ? 2 + k : 1 + k; }
  int Channel() const { return channels_first ? 1 : 4; }

  WindowAxis Along(int k, int64_t in, int64_t window) const {
    for (int64_t size : {in, window})
      if (size > INT32_MAX) Invalid("the size " + tw::text(size) + " does not fit in 31 bits");
    WindowAxis a{in, 0, window, stride[k], dilation[k], 0};
    const int64_t reach = std::max<int64_t>(0, (window - 1) * a.dilation + 1);
    if (same) {
      a.out = (in + a.stride - 1) / a.stride;
      a.before = std::max<int64_t>(0, (a.out - 1) * a.stride + reach - in) / 2;
    } else {
      a.out = in < reach ? 0 : (in - reach) / a.stride + 1;
    }
    return a;
  }

 private:
  void Read(const tw::Attrs& n, const char* name, int64_t* to) const {
    const tw_attr& list = n.at(name);
    auto* v = static_cast<const int64_t*>(list.data);
    if (list.count != 5)
      throw tw::Error{TW_INTERNAL, std::string(name) + " has " + tw::text(int64_t(list.count)) + " entries; it needs one per axis, 5"};
    for (int axis = 0; axis < 5; ++axis)
      if (v[axis] < 1 || v[axis] > INT32_MAX)
        throw tw::Error{TW_INTERNAL, std::string(name) + " is " + tw::text(v, 5) + "; every entry must be at least 1 and fit in 31 bits"};
    if (v[0] != 1 || v[Channel()] != 1)
      throw tw::Error{TW_INTERNAL, std::string(name) + " is " + tw::text(v, 5) + "; along batch and channels it must be 1"};
    for (int k = 0; k < 3; ++k) to[k] = v[Space(k)];
  }
};

// The sizes of one convolution, the same for its forward pass and both gradients.
struct Geometry {
  int64_t batch, in_channels, out_channels;
  WindowAxis d, h, w;

  int64_t taps() const { return d.window * h.window * w.window; }
  int64_t depth() const { return taps() * in_channels; }  // rows of the filter as a matrix
  int64_t in_pixels() const { return d.in * h.in * w.in; }
  int64_t out_pixels() const { return d.out * h.out * w.out; }
};

// Fails unless the three shapes belong together: every size that loops later use as a bound is
// checked here.
Geometry GeometryOf(const Settings& s, const tw_shape& in, const tw_shape& filter, const tw_shape& out) {
  if (in.rank != 5 || filter.rank != 5 || out.rank != 5)
    throw tw::Error{TW_INTERNAL,
                    "input " + tw::text(in) + ", filter " + tw::text(filter) + " and output " + tw::text(out) + " must have rank 5"};
  Geometry g{in.dims[0], in.dims[s.Channel()], filter.dims[4], {}, {}, {}};
  WindowAxis* axes[] = {&g.d, &g.h, &g.w};
  for (int k = 0; k < 3; ++k) *axes[k] = s.Along(k, in.dims[s.Space(k)], filter.dims[k]);
  if (filter.dims[3] != g.in_channels)
    throw tw::Error{TW_INTERNAL, "the input " + tw::text(in) + " has " + tw::text(g.in_channels) + " channels, the filter " +
                                     tw::text(filter) + " takes " + tw::text(filter.dims[3])};
  bool fits = out.dims[0] == g.batch && out.dims[s.Channel()] == g.out_channels;
  for (int k = 0; k < 3; ++k) fits = fits && out.dims[s.Space(k)] == axes[k]->out;
  if (!fits)
    throw tw::Error{TW_INTERNAL, "input " + tw::text(in) + " and filter " + tw::text(filter) + " belong to an output of depth " +
                                     tw::text(g.d.out) + ", height " + tw::text(g.h.out) + ", width " + tw::text(g.w.out) + " and " +
                                     tw::text(g.out_channels) + " channels, but it is " + tw::text(out)};
  return g;
}

// Returns the position that tap t of window o reads; it is negative in padding.
int64_t Read(const WindowAxis& a, int64_t o, int64_t t) {
  const int64_t at = o * a.stride - a.before + t * a.dilation;
  return at < a.in ? at : -1;
}

// A tensor [batch, pixels, channels] in the type of the computation: the tensor itself, or a
// transposed and widened copy.
template <class T>
class Source {
 public:
  Source(const tw_frame* f, const T* from, int64_t batch, int64_t pixels, int64_t channels, bool channels_first) {
    if constexpr (!kIsSmallFloat<T>) data_ = from;
    if (!kIsSmallFloat<T> && !channels_first) return;
    own_ = TempArray<Wide<T>>(f, size_t(batch * pixels * channels));
    data_ = own_.get();
    const int64_t step = channels_first ? pixels : 1;
    ParallelFor(f, batch * pixels, Cost(channels, 4), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* pixel = channels_first ? from + p / pixels * pixels * channels + p % pixels : from + p * channels;
        for (int64_t c = 0; c < channels; ++c) own_[size_t(p * channels + c)] = Wide<T>(pixel[c * step]);
      }
    });
  }
  const Wide<T>* data() const { return data_; }

 private:
  TempArray<Wide<T>> own_;
  const Wide<T>* data_ = nullptr;
};

// The same for a result: Done transposes and rounds it into the tensor.
template <class T>
class Target {
 public:
  Target(const tw_frame* f, T* to, int64_t batch, int64_t pixels, int64_t channels, bool channels_first)
      : to_(to), batch_(batch), pixels_(pixels), channels_(channels), channels_first_(channels_first) {
    if (kIsSmallFloat<T> || channels_first) own_ = TempArray<Wide<T>>(f, size_t(batch * pixels * channels));
  }
  Wide<T>* data() const {
    if constexpr (!kIsSmallFloat<T>)
      if (!own_) return to_;
    return own_.get();
  }
  void Done(const tw_frame* f) const {
    if (!own_) return;
    const int64_t step = channels_first_ ? pixels_ : 1;
    ParallelFor(f, batch_ * pixels_, Cost(channels_, 4), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        T* pixel = channels_first_ ? to_ + p / pixels_ * pixels_ * channels_ + p % pixels_ : to_ + p * channels_;
        for (int64_t c = 0; c < channels_; ++c) pixel[c * step] = T(own_[size_t(p * channels_ + c)]);
      }
    });
  }

 private:
  T* to_;
  int64_t batch_, pixels_, channels_;
  bool channels_first_;
  TempArray<Wide<T>> own_;
};

// A worker's memory: two matrices of values, and the scratch of a product.
template <class V>
struct Room {
  uint64_t first, second, product;
  uint64_t bytes() const { return first + second + product; }
  static Room Of(int64_t first, int64_t second, const MatrixProduct<V>& p) {
    return {RoundUp64(uint64_t(first) * sizeof(V)), RoundUp64(uint64_t(second) * sizeof(V)), RoundUp64(ProductScratch(p))};
  }
};

// Returns the number of points that are gathered at a time, so that the matrix stays in the
// second-level cache.
int64_t PointsOf(int64_t depth) { return std::clamp<int64_t>(131072 / std::max<int64_t>(1, depth), 8, kPoints); }

// Writes the values that the taps along the last axis read at result column x of one row of a
// volume.
template <class V>
void GatherRow(const Geometry& g, const V* row, int64_t x, V* to) {
  const int64_t c = g.in_channels, first = x * g.w.stride - g.w.before;
  if (g.w.dilation == 1 && first >= 0 && first + g.w.window <= g.w.in)
    return MoveShort(row + first * c, to, size_t(g.w.window * c) * sizeof(V));
  for (int64_t k = 0; k < g.w.window; ++k, to += c) {
    const int64_t w = Read(g.w, x, k);
    if (w < 0)
      Clear(to, c);
    else
      MoveShort(row + w * c, to, size_t(c) * sizeof(V));
  }
}

// Writes rows [begin, end) of the points of one volume. A row has `depth` values: the channels of
// all taps in the filter's order.
template <class V>
void GatherPoints(const Geometry& g, const V* volume, int64_t begin, int64_t end, V* to) {
  const int64_t row = g.w.window * g.in_channels;
  for (int64_t p = begin; p < end; ++p) {
    const int64_t z = p / (g.h.out * g.w.out), y = p / g.w.out % g.h.out, x = p % g.w.out;
    for (int64_t i = 0; i < g.d.window; ++i)
      for (int64_t j = 0; j < g.h.window; ++j, to += row) {
        const int64_t d = Read(g.d, z, i), h = Read(g.h, y, j);
        if (d < 0 || h < 0)
          Clear(to, row);
        else
          GatherRow(g, volume + (d * g.h.in + h) * g.w.in * g.in_channels, x, to);
      }
  }
}

// result [batch, result points, out_channels] = the convolution of `in` with filter [taps,
// in_channels, out_channels]. `in` and `result` have channels last.
template <class V>
void Convolve(const tw_frame* f, const GemmTables& tables, int slots, const Geometry& g, const V* in, const V* filter, V* result) {
  const int64_t points = PointsOf(g.depth()), blocks = (g.out_pixels() + points - 1) / points;
  const auto product = [&](int64_t m, const V* a, V* c) {
    return MatrixProduct<V>{m, g.out_channels, g.depth(), a, g.depth(), filter, g.out_channels, c, g.out_channels, false, false};
  };
  const Room<V> room = Room<V>::Of(points * g.depth(), 0, product(points, nullptr, nullptr));
  Workspace work(f, room.bytes() * uint64_t(slots));
  ForEachTask(f, g.batch * blocks, slots, [&](int64_t task, int slot) {
    char* mine = work.data() + room.bytes() * uint64_t(slot);
    V* gathered = reinterpret_cast<V*>(mine);
    const int64_t image = task / blocks, begin = task % blocks * points, end = std::min(begin + points, g.out_pixels());
    GatherPoints(g, in + image * g.in_pixels() * g.in_channels, begin, end, gathered);
    V* to = result + (image * g.out_pixels() + begin) * g.out_channels;
    MultiplyCell(tables, product(end - begin, gathered, to), 0, end - begin, 0, g.out_channels, mine + room.first);
  });
}

template <class T>
class Conv3D {
 public:
  explicit Conv3D(const tw::Node& n) : tables_(GemmTablesFor(n.host())), settings_(n), slots_(WorkerSlots()) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> filter, tw::Out<T> output) const {
    const Geometry g = GeometryOf(settings_, ShapeOf(input), ShapeOf(filter), ShapeOf(output));
    if (output.size() == 0) return;
    const Source<T> in(frame.f, input.data(), g.batch, g.in_pixels(), g.in_channels, settings_.channels_first);
    const Source<T> by(frame.f, filter.data(), 1, g.depth(), g.out_channels, false);
    const Target<T> out(frame.f, output.data(), g.batch, g.out_pixels(), g.out_channels, settings_.channels_first);
    Convolve(frame.f, tables_, slots_, g, in.data(), by.data(), out.data());
    out.Done(frame.f);
  }

 private:
  GemmTables tables_;
  Settings settings_;
  int slots_;
};

// If windows lie side by side, the gradient of the input is a convolution of the result's gradient
// with the reversed filter, whose in and out channels are exchanged.
WindowAxis Turned(const WindowAxis& a) { return {a.out, a.in, a.window, 1, a.dilation, (a.window - 1) * a.dilation - a.before}; }
Geometry Turned(const Geometry& g) { return {g.batch, g.out_channels, g.in_channels, Turned(g.d), Turned(g.h), Turned(g.w)}; }
template <class V>
TempArray<V> TurnedFilter(const tw_frame* f, const Geometry& g, const V* filter) {
  const int64_t taps = g.taps(), in = g.in_channels, out = g.out_channels;
  TempArray<V> turned(f, size_t(taps * in * out));
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o) turned[size_t(((taps - 1 - t) * out + o) * in + i)] = filter[(t * in + i) * out + o];
  return turned;
}

template <class T>
class Conv3DBackpropInput {
 public:
  explicit Conv3DBackpropInput(const tw::Node& n) : tables_(GemmTablesFor(n.host())), settings_(n), slots_(WorkerSlots()) {}

  // The first input (sizes) has been used already, to allocate the output.
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::In<T> filter, tw::In<T> grad, tw::Out<T> output) const {
    const Geometry g = GeometryOf(settings_, ShapeOf(output), ShapeOf(filter), ShapeOf(grad));
    if (output.size() == 0) return;
    const Source<T> dy(frame.f, grad.data(), g.batch, g.out_pixels(), g.out_channels, settings_.channels_first);
    const Source<T> by(frame.f, filter.data(), 1, g.depth(), g.out_channels, false);
    const Target<T> dx(frame.f, output.data(), g.batch, g.in_pixels(), g.in_channels, settings_.channels_first);
    if (grad.size() > 0 && g.d.stride == 1 && g.h.stride == 1 && g.w.stride == 1) {
      Convolve(frame.f, tables_, slots_, Turned(g), dy.data(), TurnedFilter(frame.f, g, by.data()).get(), dx.data());
      return dx.Done(frame.f);
    }
    const Room<Wide<T>> room = Room<Wide<T>>::Of(kPoints * g.in_channels, 0, ProductOf(g, kPoints, nullptr, nullptr, nullptr));
    Workspace work(frame.f, room.bytes() * uint64_t(slots_));
    ForEachTask(frame.f, g.batch * g.d.in, slots_, [&](int64_t task, int slot) {
      const int64_t image = task / g.d.in, plane = g.h.in * g.w.in * g.in_channels;
      Wide<T>* to = dx.data() + task * plane;
      std::fill_n(to, plane, Wide<T>(0));
      AddPlane(g, dy.data() + image * g.out_pixels() * g.out_channels, by.data(), task % g.d.in, room,
               work.data() + room.bytes() * uint64_t(slot), to);
    });
    dx.Done(frame.f);
  }

 private:
  using V = Wide<T>;

  // The product that carries `m` points of the result's gradient to the channels under one tap.
  static MatrixProduct<V> ProductOf(const Geometry& g, int64_t m, const V* dy, const V* filter, V* c) {
    return {m, g.in_channels, g.out_channels, dy, g.out_channels, filter, g.out_channels, c, g.in_channels, false, true};
  }

  void AddPlane(const Geometry& g, const V* dy, const V* filter, int64_t d, const Room<V>& room, char* mine, V* to) const {
    const int64_t plane = g.h.out * g.w.out;
    for (int64_t i = 0; i < g.d.window; ++i) {
      const int64_t at = d + g.d.before - i * g.d.dilation;
      if (at < 0 || at % g.d.stride != 0 || at / g.d.stride >= g.d.out) continue;
      for (int64_t tap = 0; tap < g.h.window * g.w.window; ++tap)
        AddTap(g, dy + at / g.d.stride * plane * g.out_channels,
               filter + (i * g.h.window * g.w.window + tap) * g.in_channels * g.out_channels, tap, room, mine, to);
    }
  }

  void AddTap(const Geometry& g, const V* dy, const V* filter, int64_t tap, const Room<V>& room, char* mine, V* to) const {
    V* product = reinterpret_cast<V*>(mine);
    const int64_t plane = g.h.out * g.w.out, c = g.in_channels;
    for (int64_t begin = 0; begin < plane; begin += kPoints) {
      const int64_t m = std::min(kPoints, plane - begin);
      MultiplyCell(tables_, ProductOf(g, m, dy + begin * g.out_channels, filter, product), 0, m, 0, c, mine + room.first);
      for (int64_t p = 0; p < m; ++p) {
        const int64_t h = Read(g.h, (begin + p) / g.w.out, tap / g.w.window), w = Read(g.w, (begin + p) % g.w.out, tap % g.w.window);
        if (h < 0 || w < 0) continue;
        V* pixel = to + (h * g.w.in + w) * c;
        for (int64_t k = 0; k < c; ++k) pixel[k] += product[p * c + k];
      }
    }
  }

  GemmTables tables_;
  Settings settings_;
  int slots_;
};

template <class T>
class Conv3DBackpropFilter {
 public:
  explicit Conv3DBackpropFilter(const tw::Node& n) : tables_(GemmTablesFor(n.host())), settings_(n), slots_(WorkerSlots()) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t>, tw::In<T> grad, tw::Out<T> output) const {
    const Geometry g = GeometryOf(settings_, ShapeOf(input), ShapeOf(output), ShapeOf(grad));
    if (output.size() == 0) return;
    const Source<T> in(frame.f, input.data(), g.batch, g.in_pixels(), g.in_channels, settings_.channels_first);
    const Source<T> dy(frame.f, grad.data(), g.batch, g.out_pixels(), g.out_channels, settings_.channels_first);
    if (g.depth() * g.out_channels <= kSmallFilter) return SumAll(frame.f, g, in.data(), dy.data(), output.data());
    const int64_t size = g.in_channels * g.out_channels, blocks = g.batch * ((g.out_pixels() + kPoints - 1) / kPoints);
    const int64_t chunks = std::clamp<int64_t>(std::min(blocks / 4, (int64_t{1} << 22) / (g.taps() * size)), 1, 16);
    tw::TempVector<V> sums(size_t(chunks * g.taps() * size), frame);
    const Room<V> room = Room<V>::Of(kPoints * g.in_channels, size, ProductOf(g, kPoints, nullptr, nullptr, nullptr));
    Workspace work(frame.f, room.bytes() * uint64_t(slots_));
    ForEachTask(frame.f, chunks * g.taps(), slots_, [&](int64_t task, int slot) {
      const int64_t chunk = task / g.taps();
      for (int64_t block = chunk * blocks / chunks; block < (chunk + 1) * blocks / chunks; ++block)
        AddBlock(g, in.data(), dy.data(), block, task % g.taps(), room, work.data() + room.bytes() * uint64_t(slot),
                 sums.data() + task * size);
    });
    for (int64_t i = 0; i < g.taps() * size; ++i) {
      V sum = sums[size_t(i)];
      for (int64_t chunk = 1; chunk < chunks; ++chunk) sum += sums[size_t(chunk * g.taps() * size + i)];
      output.data()[i] = T(sum);
    }
  }

 private:
  using V = Wide<T>;
  static constexpr int64_t kSmallFilter = 1 << 16;  // elements; a product with all taps stays in the second-level cache

  // Sums all taps of a small filter at once, block by block of points, in chunks of blocks with
  // separate sums.
  void SumAll(const tw_frame* f, const Geometry& g, const V* in, const V* dy, T* output) const {
    const int64_t size = g.depth() * g.out_channels, points = PointsOf(g.depth()), per_image = (g.out_pixels() + points - 1) / points;
    const int64_t blocks = g.batch * per_image, chunks = std::clamp<int64_t>(blocks / 4, 1, 16);
    const auto product = [&](int64_t m, const V* gathered, const V* grad, V* c) {
      return MatrixProduct<V>{g.depth(), g.out_channels, m, gathered, g.depth(), grad, g.out_channels, c, g.out_channels, true, false};
    };
    tw::TempVector<V> sums(size_t(chunks * size), f);
    const Room<V> room = Room<V>::Of(points * g.depth(), size, product(points, nullptr, nullptr, nullptr));
    Workspace work(f, room.bytes() * uint64_t(slots_));
    ForEachTask(f, chunks, slots_, [&](int64_t chunk, int slot) {
      char* mine = work.data() + room.bytes() * uint64_t(slot);
      V *gathered = reinterpret_cast<V*>(mine), *part = reinterpret_cast<V*>(mine + room.first), *sum = sums.data() + chunk * size;
      for (int64_t block = chunk * blocks / chunks; block < (chunk + 1) * blocks / chunks; ++block) {
        const int64_t image = block / per_image, begin = block % per_image * points, end = std::min(begin + points, g.out_pixels());
        GatherPoints(g, in + image * g.in_pixels() * g.in_channels, begin, end, gathered);
        const V* grad = dy + (image * g.out_pixels() + begin) * g.out_channels;
        MultiplyCell(tables_, product(end - begin, gathered, grad, part), 0, g.depth(), 0, g.out_channels, mine + room.first + room.second);
        for (int64_t i = 0; i < size; ++i) sum[i] += part[i];
      }
    });
    for (int64_t i = 0; i < size; ++i) {
      V sum = sums[size_t(i)];
      for (int64_t chunk = 1; chunk < chunks; ++chunk) sum += sums[size_t(chunk * size + i)];
      output[i] = T(sum);
    }
  }

  static MatrixProduct<V> ProductOf(const Geometry& g, int64_t points, const V* gathered, const V* dy, V* c) {
    return {g.in_channels, g.out_channels, points, gathered, g.in_channels, dy, g.out_channels, c, g.out_channels, true, false};
  }

  // Adds one tap's contribution from a block of points of one volume.
  void AddBlock(const Geometry& g, const V* in, const V* dy, int64_t block, int64_t tap, const Room<V>& room, char* mine, V* sums) const {
    const int64_t per_image = (g.out_pixels() + kPoints - 1) / kPoints, image = block / per_image, begin = block % per_image * kPoints;
    const int64_t m = std::min(kPoints, g.out_pixels() - begin), c = g.in_channels;
    V *gathered = reinterpret_cast<V*>(mine), *product = reinterpret_cast<V*>(mine + room.first);
    const int64_t i = tap / (g.h.window * g.w.window), j = tap / g.w.window % g.h.window, k = tap % g.w.window;
    for (int64_t p = 0; p < m; ++p) {
      const int64_t at = begin + p;
      const int64_t d = Read(g.d, at / (g.h.out * g.w.out), i), h = Read(g.h, at / g.w.out % g.h.out, j), w = Read(g.w, at % g.w.out, k);
      if (d < 0 || h < 0 || w < 0)
        Clear(gathered + p * c, c);
      else
        MoveShort(in + (((image * g.d.in + d) * g.h.in + h) * g.w.in + w) * c, gathered + p * c, size_t(c) * sizeof(V));
    }
    MultiplyCell(tables_, ProductOf(g, m, gathered, dy + (image * g.out_pixels() + begin) * g.out_channels, product), 0, c, 0,
                 g.out_channels, mine + room.first + room.second);
    for (int64_t n = 0; n < c * g.out_channels; ++n) sums[n] += product[n];
  }

  GemmTables tables_;
  Settings settings_;
  int slots_;
};

template <class T>
void RegisterBackpropInput(tw::Plugin& p) {
  const std::string t = tw::dtype<T>;
  for (const char* sizes : {"int32", "int64"})
    p.kernel<Conv3DBackpropInput<T>>(std::string("Conv3DBackpropInputV2(") + sizes + ", " + t + ", " + t + " -> " + t + ") @CPU");
}

}  // namespace

void register_conv3d(tw::Plugin& p) {
  p.kernel<Conv3D<float>, Conv3D<double>, Conv3D<half>, Conv3D<bfloat16>>("Conv3D @CPU");
  p.kernel<Conv3DBackpropFilter<float>, Conv3DBackpropFilter<double>, Conv3DBackpropFilter<half>, Conv3DBackpropFilter<bfloat16>>(
      "Conv3DBackpropFilterV2 @CPU");
  RegisterBackpropInput<float>(p);
  RegisterBackpropInput<double>(p);
  RegisterBackpropInput<half>(p);
  RegisterBackpropInput<bfloat16>(p);
}

}  // namespace thalweg::cpu
