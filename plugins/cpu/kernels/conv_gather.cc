#include "kernels/conv_gather.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kTile = 224;                  // the points of a tile, and the rows of weights that one task sums
constexpr int64_t kPointRow = kGemmDepth + 16;  // the row of a gathered point with a piece of the depth, channels last
constexpr int64_t kDepthRow = kTile + 16;       // the row of a depth entry with its points, channels first; neither is a large power of two
constexpr int64_t kOutStripe = 512;             // the out channels that one task of a weight gradient takes
constexpr int64_t kMaxPanel = 64;               // the widest panel of a block
static_assert(kTile <= kGemmDepth, "a tile of points is a block's depth in weight gradients");

int64_t Pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Sets [*begin, *end) to the taps t of [0, taps) for which at + t * step is in [0, size). REQUIRES:
// step > 0.
void TapsInside(int64_t at, int64_t step, int64_t taps, int64_t size, int64_t* begin, int64_t* end) {
  if (step == 1) {  // divisions would cost as much as the copies
    *begin = std::clamp<int64_t>(-at, 0, taps);
    *end = std::clamp(size - at, *begin, taps);
    return;
  }
  *begin = at >= 0 ? 0 : std::min(taps, (-at + step - 1) / step);
  *end = at >= size ? *begin : std::clamp((size - 1 - at) / step + 1, *begin, taps);
}

// Writes depth entries [d0, d1) of one point of channels-last images to `to`.
template <class T>
class PointGatherer {
 public:
  PointGatherer(const VectorTable& v, const Gather<T>& g, int64_t d0, int64_t d1)
      : vector_(v),
        g_(g),
        row_(g.w.taps * g.channels),
        first_tap_(d0 / row_),
        first_begin_(d0 % row_),
        count_(d1 - d0),
        whole_rows_(g.w.tap_step == 1 && g.channels == g.source_channels) {}

  void operator()(int64_t image, int64_t y, int64_t x, Wide<T>* to) const {
    const int64_t at_w = x * g_.w.step + g_.w.first;
    int64_t inside_begin, inside_end;
    TapsInside(at_w, g_.w.tap_step, g_.w.taps, g_.w.source, &inside_begin, &inside_end);
    inside_begin *= g_.channels;
    inside_end *= g_.channels;
    int64_t at_h = y * g_.h.step + g_.h.first + first_tap_ * g_.h.tap_step, begin = first_begin_;
    for (int64_t left = count_; left > 0; at_h += g_.h.tap_step, begin = 0) {
      const int64_t end = std::min(row_, begin + left);
      if (at_h < 0 || at_h >= g_.h.source) {
        Clear(to, end - begin);
      } else {
        const T* line = g_.source + (image * g_.h.source + at_h) * g_.w.source * g_.source_channels + g_.first_channel;
        Row(line, at_w, begin, end, inside_begin, inside_end, to);
      }
      to += end - begin;
      left -= end - begin;
    }
  }

 private:
  // Writes entries [begin, end) of one tap of h. Entries [inside_begin, inside_end) lie in the
  // image.
  void Row(const T* line, int64_t at_w, int64_t begin, int64_t end, int64_t inside_begin, int64_t inside_end, Wide<T>* to) const {
    const int64_t a = std::clamp(inside_begin, begin, end), b = std::clamp(inside_end, a, end);
    Clear(to, a - begin);
    Clear(to + (b - begin), end - b);
    to += a - begin;
    if (whole_rows_) return Widen(vector_, line + at_w * g_.source_channels + a, to, b - a);
    for (int64_t e = a; e < b;) {
      const int64_t tap = e / g_.channels, channel = e - tap * g_.channels, n = std::min(g_.channels - channel, b - e);
      Widen(vector_, line + (at_w + tap * g_.w.tap_step) * g_.source_channels + channel, to, n);
      to += n;
      e += n;
    }
  }

  const VectorTable& vector_;
  const Gather<T>& g_;
  int64_t row_;                      // the depth entries of one tap of h
  int64_t first_tap_, first_begin_;  // the position of d0
  int64_t count_;
  bool whole_rows_;  // a row is one run: its taps touch and all channels are read
};

// Gathers points [p0, p1), counted through all images, of channels-last images. Entries [d0, d1) of
// point p go to to[(p - p0) * kPointRow].
template <class T>
void GatherPoints(const VectorTable& v, const Gather<T>& g, int64_t p0, int64_t p1, int64_t d0, int64_t d1, Wide<T>* to) {
  const PointGatherer<T> gather(v, g, d0, d1);
  int64_t image = p0 / g.points(), rest = p0 % g.points(), y = rest / g.w.grid, x = rest % g.w.grid;
  for (int64_t p = p0; p < p1; ++p, to += kPointRow) {
    gather(image, y, x, to);
    if (++x < g.w.grid) continue;
    x = 0;
    if (++y < g.h.grid) continue;
    y = 0;
    ++image;
  }
}

// Gathers n points of one grid row, from x on, from the line of one channel plane.
template <class T>
void GatherLine(const VectorTable& v, const Gather<T>& g, const T* line, int64_t tap_w, int64_t x, int64_t n, Wide<T>* to) {
  const int64_t at = x * g.w.step + g.w.first + tap_w * g.w.tap_step;
  int64_t begin, end;
  TapsInside(at, g.w.step, n, g.w.source, &begin, &end);
  Clear(to, begin);
  if (g.w.step == 1) {
    if (begin < end) Widen(v, line + at + begin, to + begin, end - begin);
  } else {
    for (int64_t i = begin; i < end; ++i) to[i] = Wide<T>(line[at + i * g.w.step]);
  }
  Clear(to + end, n - end);
}

// Gathers points [p0, p1) of one channels-first image. Depth entry d goes to to[(d - d0) *
// kDepthRow + point - p0].
template <class T>
void GatherDepths(const VectorTable& v, const Gather<T>& g, int64_t image, int64_t p0, int64_t p1, int64_t d0, int64_t d1, Wide<T>* to) {
  for (int64_t d = d0; d < d1; ++d, to += kDepthRow) {
    const int64_t tap = d / g.channels, channel = g.first_channel + d % g.channels;
    const int64_t tap_h = tap / g.w.taps, tap_w = tap % g.w.taps;
    const T* plane = g.source + (image * g.source_channels + channel) * g.h.source * g.w.source;
    Wide<T>* out = to;
    int64_t y = p0 / g.w.grid, x = p0 % g.w.grid;
    for (int64_t left = p1 - p0; left > 0; x = 0, ++y) {
      const int64_t n = std::min(g.w.grid - x, left), at_h = y * g.h.step + g.h.first + tap_h * g.h.tap_step;
      if (at_h < 0 || at_h >= g.h.source)
        Clear(out, n);
      else
        GatherLine(v, g, plane + at_h * g.w.source, tap_w, x, n, out);
      out += n;
      left -= n;
    }
  }
}

// Returns how many channels-first images share a tile. One small image alone would be too narrow to
// multiply well.
int64_t ImagesTogether(int64_t tile, int64_t batch, int64_t points) {
  return std::clamp<int64_t>(tile / std::max<int64_t>(1, points), 1, std::max<int64_t>(1, batch));
}

// Returns the size of a piece of the depth. Pieces are nearly equal and depend only on the depth.
int64_t DepthPiece(int64_t depth) {
  const int64_t pieces = std::max<int64_t>(1, Pieces(depth, kGemmDepth));
  return std::max<int64_t>(1, Pieces(depth, pieces));
}

// Returns true if gathering would copy the source unchanged: one tap, no stride, no padding.
template <class T>
bool IsDirect(const Gather<T>& g) {
  auto plain = [](const GatherAxis& a) { return a.taps == 1 && a.step == 1 && a.first == 0 && a.grid == a.source; };
  // Gathered rows are better if the source's rows are a large power of two or a page apart.
  const int64_t row_bytes = (g.channels_first ? g.points() : g.source_channels) * int64_t(sizeof(T));
  const bool lies_well = g.channels_first ? row_bytes < 4096 : row_bytes % 2048 != 0;
  return std::is_same_v<T, Wide<T>> && plain(g.h) && plain(g.w) && lies_well;
}

// Returns true if grid points are the pixels of dest, so products can be written there directly.
template <class T>
bool IsDense(const Scatter<T>& to) {
  return std::is_same_v<T, Wide<T>> && to.step_h == 1 && to.step_w == 1;
}

// ---- dest = gathered * weights ----

template <class T>
struct ProductLayout {
  int64_t tile;    // points
  int64_t images;  // channels-first images in a tile; 1 if tiles are parts of an image
  bool in_place;   // products are written to dest directly; else they pass through `result`
  int64_t gathered, result;
  // Weights with an unsuitable row stride are copied once for all tiles: channels-last tiles read
  // them as panels, others as rows that are not a large power of two apart.
  bool copied;
  int64_t copied_row;
  explicit ProductLayout(const GatherProduct<T>& p) {
    // A tile of results that is first stored elsewhere should fit the second-level cache.
    tile = std::clamp<int64_t>((1 << 18) / std::max<int64_t>(1, p.out), 14, kTile);
    images = p.from.channels_first ? ImagesTogether(tile, p.from.batch, p.from.points()) : 1;
    in_place = IsDense(p.to) && images == 1;
    if (in_place) tile = kTile;
    const int64_t row_bytes = p.weights_row * int64_t(sizeof(Wide<T>));
    copied = p.from.channels_first ? row_bytes % 1024 == 0 : row_bytes >= 1024;
    copied_row = p.from.channels_first ? p.out + 16 : Pieces(p.out, kMaxPanel) * kMaxPanel;
    gathered = p.from.channels_first ? kGemmDepth * kDepthRow : tile * kPointRow;
    result = in_place ? 0 : tile * p.out;
  }
  uint64_t worker_bytes() const { return RoundUp64(uint64_t(gathered + result) * sizeof(Wide<T>)); }
  uint64_t copied_bytes(int64_t depth) const { return copied ? RoundUp64(uint64_t(depth * copied_row) * sizeof(Wide<T>)) : 0; }
};

// Copies piece by piece of the depth, in parallel.
template <class T>
void CopyWeights(const GemmTables& t, const tw_frame* f, const GatherProduct<T>& p, const ProductLayout<T>& layout, int slots,
                 Wide<T>* to) {
  const int64_t depth = p.from.depth(), piece = DepthPiece(depth);
  ForEachTask(f, Pieces(depth, piece), slots, [&](int64_t task, int) {
    const int64_t d = task * piece, k = std::min(piece, depth - d);
    const Wide<T>* from = p.weights + d * p.weights_row;
    Wide<T>* own = to + d * layout.copied_row;
    if (!p.from.channels_first) return t.entries<Wide<T>>().pack(k, p.out, from, p.weights_row, false, own);
    for (int64_t r = 0; r < k; ++r) std::memcpy(own + r * layout.copied_row, from + r * p.weights_row, size_t(p.out) * sizeof(Wide<T>));
  });
}

// Computes points [p0, p1) of channels-last images.
template <class T>
void TileOfPoints(const GemmTables& t, const GatherProduct<T>& p, const ProductLayout<T>& layout, int64_t p0, int64_t p1, char* scratch) {
  Wide<T>* gathered = reinterpret_cast<Wide<T>*>(scratch);
  Wide<T>* result = gathered + layout.gathered;
  const Gather<T>& from = p.from;
  const int64_t depth = from.depth(), piece = DepthPiece(depth);
  const bool direct = IsDirect(from);
  GemmBlock<Wide<T>> g{};
  g.m = p1 - p0;
  g.n = p.out;
  g.ldc = layout.in_place ? p.to.channels : p.out;
  g.c = result;
  if constexpr (std::is_same_v<T, Wide<T>>)
    if (layout.in_place) g.c = p.to.dest + p0 * p.to.channels + p.to.first_channel;
  for (int64_t d = 0; d < depth; d += piece) {
    g.k = std::min(piece, depth - d);
    if (direct) {
      if constexpr (std::is_same_v<T, Wide<T>>) g.a = from.source + p0 * from.source_channels + from.first_channel + d;
      g.a_row = from.source_channels;
    } else {
      GatherPoints(*t.vector, from, p0, p1, d, d + g.k, gathered);
      g.a = gathered;
      g.a_row = kPointRow;
    }
    g.a_col = 1;
    g.b = p.weights + d * p.weights_row;
    g.ldb = p.weights_row;
    g.packed = layout.copied;
    g.term = d > 0 ? g.c : nullptr;
    t.entries<Wide<T>>().block(g);
  }
  if (depth == 0)
    for (int64_t i = 0; i < g.m; ++i) std::fill(g.c + i * g.ldc, g.c + i * g.ldc + g.n, Wide<T>(0));
  if (layout.in_place) return;
  for (int64_t i = p0; i < p1; ++i, result += p.out) {
    const int64_t image = i / from.points(), rest = i % from.points();
    const int64_t y = p.to.first_h + rest / from.w.grid * p.to.step_h, x = p.to.first_w + rest % from.w.grid * p.to.step_w;
    T* dest = p.to.dest + ((image * p.to.height + y) * p.to.width + x) * p.to.channels + p.to.first_channel;
    Narrow(*t.vector, result, dest, p.out);
  }
}

// Stores the results of out channel o for points [p0, p1) of one channels-first image.
template <class T>
void StoreLines(const VectorTable& v, const GatherProduct<T>& p, int64_t image, int64_t o, int64_t p0, int64_t p1, const Wide<T>* result) {
  const int64_t grid = p.from.w.grid;
  T* plane = p.to.dest + (image * p.to.channels + p.to.first_channel + o) * p.to.height * p.to.width;
  int64_t y = p0 / grid, x = p0 % grid;
  for (int64_t left = p1 - p0; left > 0; x = 0, ++y) {
    const int64_t n = std::min(grid - x, left);
    T* line = plane + (p.to.first_h + y * p.to.step_h) * p.to.width + p.to.first_w + x * p.to.step_w;
    if (p.to.step_w == 1) {
      Narrow(v, result, line, n);
    } else {
      for (int64_t i = 0; i < n; ++i) line[i * p.to.step_w] = T(result[i]);
    }
    result += n;
    left -= n;
  }
}

// Computes points [p0, p1) of each of `images` channels-first images.
template <class T>
void TileOfImages(const GemmTables& t, const GatherProduct<T>& p, const ProductLayout<T>& layout, int64_t image, int64_t images, int64_t p0,
                  int64_t p1, char* scratch) {
  Wide<T>* gathered = reinterpret_cast<Wide<T>*>(scratch);
  Wide<T>* result = gathered + layout.gathered;
  const Gather<T>& from = p.from;
  const int64_t depth = from.depth(), piece = DepthPiece(depth), points = p1 - p0;
  const bool direct = IsDirect(from) && images == 1;
  GemmBlock<Wide<T>> g{};
  g.m = p.out;
  g.n = images * points;
  g.ldc = layout.in_place ? p.to.height * p.to.width : layout.tile;
  g.c = result;
  if constexpr (std::is_same_v<T, Wide<T>>)
    if (layout.in_place) g.c = p.to.dest + (image * p.to.channels + p.to.first_channel) * g.ldc + p0;
  for (int64_t d = 0; d < depth; d += piece) {
    g.k = std::min(piece, depth - d);
    g.a = p.weights + d * p.weights_row;
    g.a_row = 1;
    g.a_col = p.weights_row;
    if (direct) {
      if constexpr (std::is_same_v<T, Wide<T>>)
        g.b = from.source + (image * from.source_channels + from.first_channel + d) * from.points() + p0;
      g.ldb = from.points();
    } else {
      for (int64_t i = 0; i < images; ++i) GatherDepths(*t.vector, from, image + i, p0, p1, d, d + g.k, gathered + i * points);
      g.b = gathered;
      g.ldb = kDepthRow;
    }
    g.term = d > 0 ? g.c : nullptr;
    t.entries<Wide<T>>().block(g);
  }
  if (depth == 0)
    for (int64_t o = 0; o < g.m; ++o) std::fill(g.c + o * g.ldc, g.c + o * g.ldc + g.n, Wide<T>(0));
  if (layout.in_place) return;
  for (int64_t o = 0; o < p.out; ++o, result += layout.tile)
    for (int64_t i = 0; i < images; ++i) StoreLines(*t.vector, p, image + i, o, p0, p1, result + i * points);
}

// ---- weights = gathered^T * grad ----

template <class T>
struct GradientLayout {
  // Chunks of points are summed separately, so a small filter over many images is work for many
  // threads. The number of chunks depends only on sizes.
  int64_t chunk, chunks;  // the points (channels last) or images (channels first) of a chunk
  int64_t tasks_depth, tasks_out;
  int64_t images;   // the channels-first images whose points are summed at a time
  int64_t partial;  // the elements of one chunk's sums; 0 if sums are made in place
  int64_t pack, gathered, grad;

  explicit GradientLayout(const WeightGradient<T>& p) {
    const Gather<T>& g = p.from;
    tasks_depth = Pieces(g.depth(), kTile);
    tasks_out = Pieces(p.out, kOutStripe);
    images = ImagesTogether(kTile, g.batch, g.points());
    const int64_t units = g.channels_first ? g.batch : g.batch * g.points();
    const int64_t least = g.channels_first ? std::max<int64_t>(1, Pieces(4 * kTile, std::max<int64_t>(1, g.points()))) : 4 * kTile;
    const int64_t size = std::max<int64_t>(1, g.depth() * p.out);
    constexpr int64_t kTasks = 32, kPartials = 1 << 20;
    chunks = std::min({Pieces(kTasks, std::max<int64_t>(1, tasks_depth * tasks_out)), units / least, kPartials / size});
    chunks = std::max<int64_t>(1, chunks);
    chunk = std::max<int64_t>(1, Pieces(units, chunks));
    if (!g.channels_first) chunk = Pieces(chunk, kTile) * kTile;
    chunks = std::max<int64_t>(1, Pieces(units, chunk));
    partial = chunks > 1 || !std::is_same_v<T, Wide<T>> ? g.depth() * p.out : 0;
    pack = kTile * (std::min(p.out, kOutStripe) + kMaxPanel);
    gathered = std::max(kTile * kPointRow, kTile * kDepthRow);
    grad = std::is_same_v<T, Wide<T>> && (!g.channels_first || images == 1) ? 0 : kTile * std::min(p.out, kOutStripe);
  }
  uint64_t worker_bytes() const { return RoundUp64(uint64_t(pack + gathered + grad) * sizeof(Wide<T>)); }
  uint64_t partial_bytes() const { return RoundUp64(uint64_t(partial) * sizeof(Wide<T>)); }
  uint64_t bytes(int slots) const { return worker_bytes() * uint64_t(slots) + partial_bytes() * uint64_t(chunks); }
};

// The part of the weights that one task sums, and its destination.
template <class T>
struct GradientTask {
  int64_t d0, d1, o0, o1;  // depth and out channels
  Wide<T>* sum;            // the address of (d0, o0)
  int64_t sum_row;
};

template <class T>
void SumPoints(const GemmTables& t, const WeightGradient<T>& p, const GradientLayout<T>& layout, const GradientTask<T>& task, int64_t begin,
               int64_t end, char* scratch) {
  Wide<T>* pack = reinterpret_cast<Wide<T>*>(scratch);
  Wide<T>* gathered = pack + layout.pack;
  Wide<T>* widened = gathered + layout.gathered;
  const Gather<T>& from = p.from;
  GemmBlock<Wide<T>> g{};
  g.m = task.d1 - task.d0;
  g.n = task.o1 - task.o0;
  g.c = task.sum;
  g.ldc = task.sum_row;
  const bool direct = IsDirect(from);
  for (int64_t i = begin; i < end; i += kTile) {
    g.k = std::min(kTile, end - i);
    if (direct) {
      if constexpr (std::is_same_v<T, Wide<T>>) g.a = from.source + i * from.source_channels + from.first_channel + task.d0;
      g.a_col = from.source_channels;
    } else {
      GatherPoints(*t.vector, from, i, i + g.k, task.d0, task.d1, gathered);
      g.a = gathered;
      g.a_col = kPointRow;
    }
    g.a_row = 1;
    const T* grad = p.grad + i * p.grad_channels + p.first_grad_channel + task.o0;
    if constexpr (std::is_same_v<T, Wide<T>>) {
      g.b = grad;
      g.ldb = p.grad_channels;
      g.packed = g.m >= 24 && g.ldb * int64_t(sizeof(T)) >= 1024;
      if (g.packed) {
        t.entries<T>().pack(g.k, g.n, grad, g.ldb, false, pack);
        g.b = pack;
      }
    } else {
      for (int64_t r = 0; r < g.k; ++r) Widen(*t.vector, grad + r * p.grad_channels, widened + r * g.n, g.n);
      g.b = widened;
      g.ldb = g.n;
    }
    g.term = i > begin ? g.c : nullptr;
    t.entries<Wide<T>>().block(g);
  }
}

template <class T>
void SumImages(const GemmTables& t, const WeightGradient<T>& p, const GradientLayout<T>& layout, const GradientTask<T>& task, int64_t begin,
               int64_t end, char* scratch) {
  Wide<T>* pack = reinterpret_cast<Wide<T>*>(scratch);
  Wide<T>* gathered = pack + layout.pack;
  Wide<T>* copied = gathered + layout.gathered;
  const Gather<T>& from = p.from;
  GemmBlock<Wide<T>> g{};
  g.m = task.d1 - task.d0;
  g.n = task.o1 - task.o0;
  g.c = task.sum;
  g.ldc = task.sum_row;
  g.b = pack;
  g.packed = true;
  const bool direct = IsDirect(from) && layout.images == 1;
  for (int64_t image = begin; image < end; image += layout.images)
    for (int64_t i = 0; i < from.points(); i += kTile) {
      const int64_t images = std::min(layout.images, end - image), points = std::min(kTile, from.points() - i);
      g.k = images * points;
      if (direct) {
        if constexpr (std::is_same_v<T, Wide<T>>)
          g.a = from.source + (image * from.source_channels + from.first_channel + task.d0) * from.points() + i;
        g.a_row = from.points();
      } else {
        for (int64_t m = 0; m < images; ++m)
          GatherDepths(*t.vector, from, image + m, i, i + points, task.d0, task.d1, gathered + m * points);
        g.a = gathered;
        g.a_row = kDepthRow;
      }
      g.a_col = 1;
      const T* grad = p.grad + (image * p.grad_channels + p.first_grad_channel + task.o0) * from.points() + i;
      const Wide<T>* rows = copied;
      int64_t row = kTile;
      if (layout.grad == 0) {
        if constexpr (std::is_same_v<T, Wide<T>>) rows = grad;
        row = from.points();
      } else {
        for (int64_t r = 0; r < g.n; ++r)
          for (int64_t m = 0; m < images; ++m)
            Widen(*t.vector, grad + (m * p.grad_channels + r) * from.points(), copied + r * kTile + m * points, points);
      }
      t.entries<Wide<T>>().pack(g.k, g.n, rows, row, true, pack);
      g.term = image > begin || i > 0 ? g.c : nullptr;
      t.entries<Wide<T>>().block(g);
    }
}

// Adds the chunks' sums in order.
template <class T>
void AddChunks(const GemmTables& t, const tw_frame* f, const WeightGradient<T>& p, const GradientLayout<T>& layout, Wide<T>* partials) {
  const int64_t stride = int64_t(layout.partial_bytes() / sizeof(Wide<T>));
  ParallelFor(f, p.from.depth(), p.out * layout.chunks, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      Wide<T>* sum = partials + d * p.out;
      for (int64_t c = 1; c < layout.chunks; ++c) {
        const Wide<T>* more = sum + c * stride;
        for (int64_t o = 0; o < p.out; ++o) sum[o] += more[o];
      }
      Narrow(*t.vector, sum, p.weights + d * p.weights_row, p.out);
    }
  });
}

}  // namespace

template <class T>
uint64_t GatherScratch(const GatherProduct<T>& p, int slots) {
  const ProductLayout<T> layout(p);
  return layout.worker_bytes() * uint64_t(slots) + layout.copied_bytes(p.from.depth());
}

template <class T>
void RunGatherProduct(const GemmTables& t, const tw_frame* f, const GatherProduct<T>& p, int slots, char* scratch) {
  const ProductLayout<T> layout(p);
  const Gather<T>& from = p.from;
  if (from.batch == 0 || from.points() == 0 || p.out == 0) return;
  GatherProduct<T> q = p;
  if (layout.copied) {
    Wide<T>* copy = reinterpret_cast<Wide<T>*>(scratch + layout.worker_bytes() * uint64_t(slots));
    CopyWeights(t, f, p, layout, slots, copy);
    q.weights = copy;
    q.weights_row = layout.copied_row;
  }
  // Points of channels-last images are counted through all images. Channels-first images are taken
  // in groups, all cut alike.
  const int64_t points = from.channels_first ? from.points() : from.batch * from.points();
  const int64_t groups = from.channels_first ? Pieces(from.batch, layout.images) : 1;
  // Tiles are smaller if threads would be idle otherwise. The size of a tile changes no bits.
  const int64_t workers = std::min<int64_t>(slots, int64_t(f->host->run->threads(f)));
  const int64_t fair = Pieces(Pieces(points * groups, 2 * workers), 14) * 14;
  const int64_t tile = workers == 1 ? layout.tile : std::clamp<int64_t>(fair, std::min<int64_t>(56, layout.tile), layout.tile);
  const int64_t tiles = layout.images > 1 ? 1 : Pieces(points, tile);
  ForEachTask(f, tiles * groups, slots, [&](int64_t task, int slot) {
    const int64_t group = task / tiles, p0 = task % tiles * tile, p1 = tiles == 1 ? points : std::min(points, p0 + tile);
    char* own = scratch + uint64_t(slot) * layout.worker_bytes();
    if (!from.channels_first) return TileOfPoints(t, q, layout, p0, p1, own);
    const int64_t image = group * layout.images;
    TileOfImages(t, q, layout, image, std::min(layout.images, from.batch - image), p0, p1, own);
  });
}

template <class T>
uint64_t WeightGradientScratch(const WeightGradient<T>& p, int slots) {
  return GradientLayout<T>(p).bytes(slots);
}

template <class T>
void RunWeightGradient(const GemmTables& t, const tw_frame* f, const WeightGradient<T>& p, int slots, char* scratch) {
  const GradientLayout<T> layout(p);
  const Gather<T>& from = p.from;
  const int64_t depth = from.depth();
  if (depth == 0 || p.out == 0) return;
  const int64_t units = from.channels_first ? from.batch : from.batch * from.points();
  if (units == 0 || from.points() == 0) {
    for (int64_t d = 0; d < depth; ++d) std::fill(p.weights + d * p.weights_row, p.weights + d * p.weights_row + p.out, T(0));
    return;
  }
  char* partials = scratch + layout.worker_bytes() * uint64_t(slots);
  const int64_t tasks = layout.tasks_depth * layout.tasks_out;
  ForEachTask(f, tasks * layout.chunks, slots, [&](int64_t number, int slot) {
    const int64_t c = number / tasks, part = number % tasks;
    GradientTask<T> task{};
    task.d0 = part / layout.tasks_out * depth / layout.tasks_depth;
    task.d1 = (part / layout.tasks_out + 1) * depth / layout.tasks_depth;
    task.o0 = part % layout.tasks_out * kOutStripe;
    task.o1 = std::min(p.out, task.o0 + kOutStripe);
    if (layout.partial) {
      task.sum = reinterpret_cast<Wide<T>*>(partials + layout.partial_bytes() * uint64_t(c));
      task.sum_row = p.out;
    } else if constexpr (std::is_same_v<T, Wide<T>>) {
      task.sum = p.weights;
      task.sum_row = p.weights_row;
    }
    task.sum += task.d0 * task.sum_row + task.o0;
    const int64_t begin = c * layout.chunk, end = std::min(units, begin + layout.chunk);
    char* own = scratch + layout.worker_bytes() * uint64_t(slot);
    if (from.channels_first)
      SumImages(t, p, layout, task, begin, end, own);
    else
      SumPoints(t, p, layout, task, begin, end, own);
  });
  if (layout.partial) AddChunks(t, f, p, layout, reinterpret_cast<Wide<T>*>(partials));
}

#define THALWEG_INSTANTIATE(T)                                                                             \
  template uint64_t GatherScratch(const GatherProduct<T>&, int);                                           \
  template void RunGatherProduct(const GemmTables&, const tw_frame*, const GatherProduct<T>&, int, char*); \
  template uint64_t WeightGradientScratch(const WeightGradient<T>&, int);                                  \
  template void RunWeightGradient(const GemmTables&, const tw_frame*, const WeightGradient<T>&, int, char*);
THALWEG_INSTANTIATE(float)
THALWEG_INSTANTIATE(double)
THALWEG_INSTANTIATE(half)
THALWEG_INSTANTIATE(bfloat16)
#undef THALWEG_INSTANTIATE

}  // namespace thalweg::cpu
