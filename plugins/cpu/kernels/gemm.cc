#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

// A cell is processed in stripes of columns; the stripe's part of b (kGemmDepth deep) stays in the
// second-level cache. A stripe is processed in blocks of rows, whose part of a stays in the
// second-level cache too.
constexpr int64_t kBlockRows = 224;
constexpr int64_t kStripe = 512, kSmallFloatStripe = 256;
// The row stride of a compacted block: a multiple of a cache line, but not of a large power of two.
constexpr int64_t kCompactRow = kGemmDepth + 16;
constexpr int64_t kMaxPanel = 64;  // the widest panel
constexpr int64_t kFewRows = 8, kLeastDots = 128;

// Returns the size of a piece of k. Pieces are nearly equal and depend only on k.
int64_t Depth(int64_t k) {
  int64_t pieces = (k + kGemmDepth - 1) / kGemmDepth;
  return pieces ? (k + pieces - 1) / pieces : 1;
}

// Returns true for few rows of a against the rows of b in order. Packing b would then cost more
// than the product.
template <class T>
bool HasFewRows(const MatrixProduct<T>& p) {
  return !kIsSmallFloat<T> && p.trans_b && !p.trans_a && p.m <= kFewRows && p.k >= kLeastDots;
}

// Tiles read b in panels of two vectors. If the rows of b are far apart, each row of a panel needs
// a page of its own, and they share few cache sets.
template <class T>
bool PacksB(const MatrixProduct<T>& p) {
  if (kIsSmallFloat<T>) return p.trans_b;  // widened blocks have a good stride
  if (HasFewRows(p)) return false;
  return p.trans_b || (p.m >= 24 && p.ldb * int64_t(sizeof(T)) >= 1024);
}

// Tiles read up to 14 rows of a side by side. If the stride is a large power of two, these rows
// share a cache set, which holds 8 to 12 lines.
template <class T>
bool CompactsA(const MatrixProduct<T>& p) {
  const int64_t row_bytes = p.lda * int64_t(sizeof(T));
  if (p.m < 8 || p.n < 64) return false;
  return p.trans_a ? row_bytes >= 4096 : row_bytes % 2048 == 0;
}

// The layout of one worker's scratch, in elements of the type of the sums.
template <class T>
struct Layout {
  int64_t pack, a, b, c;
  explicit Layout(const MatrixProduct<T>& p) {
    constexpr bool kSmall = kIsSmallFloat<T>;
    const int64_t stripe = std::min(p.n, kSmall ? kSmallFloatStripe : kStripe), rows = std::min(p.m, kBlockRows), depth = Depth(p.k);
    pack = PacksB(p) ? depth * (stripe + kMaxPanel) : 0;
    a = CompactsA(p) || kSmall ? (p.trans_a ? depth * kBlockRows : rows * kCompactRow) : 0;
    b = kSmall ? kGemmDepth * kSmallFloatStripe : 0;
    c = kSmall ? rows * kSmallFloatStripe : 0;
  }
  uint64_t bytes() const { return RoundUp64(uint64_t(pack + a + b + c) * sizeof(Wide<T>)); }
};

// Copies `rows` runs of `run` elements from stride `from_step` to stride `to_step`.
template <class T>
void WidenRows(const GemmTables& t, int64_t rows, int64_t run, const T* from, int64_t from_step, Wide<T>* to, int64_t to_step) {
  for (; rows > 0; --rows, from += from_step, to += to_step) Widen(*t.vector, from, to, run);
}

// Computes a product with a vector in one pass over the matrix, because tiles would waste their
// width on it. Returns whether it was one.
template <class T>
bool MultiplyVector(const GemmEntries<T>& e, const MatrixProduct<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  if (p.m == 1 && (!p.trans_a || p.lda == 1)) {
    if (p.trans_b)
      e.matrix_vector(j1 - j0, p.k, p.b + j0 * p.ldb, p.ldb, p.a, p.c + j0);
    else
      e.vector_matrix(p.k, j1 - j0, p.a, p.b + j0, p.ldb, p.c + j0);
    return true;
  }
  if (p.n == 1 && p.ldc == 1 && (p.trans_b || p.ldb == 1)) {
    if (p.trans_a)
      e.vector_matrix(p.k, i1 - i0, p.b, p.a + i0, p.lda, p.c + i0);
    else
      e.matrix_vector(i1 - i0, p.k, p.a + i0 * p.lda, p.lda, p.b, p.c + i0);
    return true;
  }
  return false;
}

template <class T>
void MultiplyDirect(const GemmTables& t, const MatrixProduct<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char* scratch) {
  const GemmEntries<T>& e = t.entries<T>();
  if (MultiplyVector(e, p, i0, i1, j0, j1)) return;
  if (HasFewRows(p)) {
    GemmBlock<T> g{};
    g.m = i1 - i0, g.n = j1 - j0, g.k = p.k;
    g.a = p.a + i0 * p.lda;
    g.a_row = p.lda;
    g.b = p.b + j0 * p.ldb;
    g.ldb = p.ldb;
    g.c = p.c + i0 * p.ldc + j0;
    g.ldc = p.ldc;
    g.term = p.term ? p.term + i0 * p.ldc + j0 : nullptr;
    return e.few_rows(g);
  }
  const Layout<T> layout(p);
  T* pack = reinterpret_cast<T*>(scratch);
  T* compact = pack + layout.pack;
  const int64_t depth = Depth(p.k);
  for (int64_t j = j0; j < j1; j += kStripe)
    for (int64_t q = 0; q < p.k; q += depth) {
      GemmBlock<T> g{};
      g.n = std::min(kStripe, j1 - j);
      g.k = std::min(depth, p.k - q);
      g.b = p.trans_b ? p.b + j * p.ldb + q : p.b + q * p.ldb + j;
      g.ldb = p.ldb;
      g.ldc = p.ldc;
      if (layout.pack) {
        e.pack(g.k, g.n, g.b, p.ldb, p.trans_b, pack);
        g.b = pack;
        g.packed = true;
      }
      for (int64_t i = i0; i < i1; i += kBlockRows) {
        g.m = std::min(kBlockRows, i1 - i);
        g.a = p.trans_a ? p.a + q * p.lda + i : p.a + i * p.lda + q;
        int64_t step = p.lda;
        if (layout.a) {
          step = p.trans_a ? kBlockRows : kCompactRow;
          WidenRows(t, p.trans_a ? g.k : g.m, p.trans_a ? g.m : g.k, g.a, p.lda, compact, step);
          g.a = compact;
        }
        g.a_row = p.trans_a ? 1 : step;
        g.a_col = p.trans_a ? step : 1;
        g.c = p.c + i * p.ldc + j;
        g.term = q > 0 ? g.c : p.term ? p.term + i * p.ldc + j : nullptr;
        e.block(g);
      }
    }
}

// Half and bfloat16: widens blocks of a and b when they are needed, and keeps a block of c in float
// until its sums are complete.
template <class T>
void MultiplyWidened(const GemmTables& t, const MatrixProduct<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char* scratch) {
  const Layout<T> layout(p);
  float* pack = reinterpret_cast<float*>(scratch);
  float* a = pack + layout.pack;
  float* b = a + layout.a;
  float* c = b + layout.b;
  const int64_t depth = Depth(p.k);
  for (int64_t j = j0; j < j1; j += kSmallFloatStripe)
    for (int64_t i = i0; i < i1; i += kBlockRows) {
      const int64_t m = std::min(kBlockRows, i1 - i), n = std::min(kSmallFloatStripe, j1 - j);
      for (int64_t q = 0; q < p.k; q += depth) {
        const int64_t k = std::min(depth, p.k - q);
        if (p.trans_a)
          WidenRows(t, k, m, p.a + q * p.lda + i, p.lda, a, kBlockRows);
        else
          WidenRows(t, m, k, p.a + i * p.lda + q, p.lda, a, kCompactRow);
        if (p.trans_b)
          WidenRows(t, n, k, p.b + j * p.ldb + q, p.ldb, b, kGemmDepth);
        else
          WidenRows(t, k, n, p.b + q * p.ldb + j, p.ldb, b, kSmallFloatStripe);
        GemmBlock<float> g{};
        g.m = m, g.n = n, g.k = k;
        g.a = a;
        g.a_row = p.trans_a ? 1 : kCompactRow;
        g.a_col = p.trans_a ? kBlockRows : 1;
        g.b = b;
        g.ldb = kSmallFloatStripe;
        if (p.trans_b) {
          t.gemm->f32.pack(k, n, b, kGemmDepth, true, pack);
          g.b = pack;
          g.packed = true;
        }
        g.c = c;
        g.ldc = kSmallFloatStripe;
        g.term = q > 0 ? c : nullptr;
        t.gemm->f32.block(g);
      }
      for (int64_t r = 0; r < m; ++r) Narrow(*t.vector, c + r * kSmallFloatStripe, p.c + (i + r) * p.ldc + j, n);
    }
}

// The division of c into cells: enough for every worker, but none too small to be worth a
// hand-over.
struct Cut {
  int64_t rows = 1, columns = 1;  // the number of cells down and across
};
Cut CutFor(int64_t m, int64_t n, int64_t k, int64_t panel, int64_t workers) {
  const double work = 2.0 * double(m) * double(n) * double(k);
  constexpr double kCellWork = 1e6;  // several microseconds on any machine
  const int64_t wanted = int64_t(std::min(double(workers) * (work > 1e8 ? 4 : 1), work / kCellWork));
  Cut cut;
  if (workers == 1 || wanted <= 1) return cut;
  cut.rows = std::clamp<int64_t>(m / 24, 1, wanted);
  cut.columns = std::clamp<int64_t>((n + panel - 1) / panel, 1, (wanted + cut.rows - 1) / cut.rows);
  return cut;
}

}  // namespace

GemmTables GemmTablesFor(const tw_host* host) {
  const Isa isa = DetectIsa(host);
  return {&TW_CPU_FOR_ISA(isa, Gemm), &TW_CPU_FOR_ISA(isa, Vectors)};
}

template <class T>
uint64_t ProductScratch(const MatrixProduct<T>& p) {
  return Layout<T>(p).bytes();
}

template <class T>
void MultiplyCell(const GemmTables& t, const MatrixProduct<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char* scratch) {
  if (i0 >= i1 || j0 >= j1) return;
  if (p.k == 0) {
    for (int64_t i = i0; i < i1; ++i) std::memset(static_cast<void*>(p.c + i * p.ldc + j0), 0, size_t(j1 - j0) * sizeof(T));
    return;
  }
  if constexpr (kIsSmallFloat<T>)
    MultiplyWidened(t, p, i0, i1, j0, j1, scratch);
  else
    MultiplyDirect(t, p, i0, i1, j0, j1, scratch);
}

template <class T>
void Multiply(const GemmTables& t, const tw_frame* f, const MatrixProduct<T>& p, int slots, char* scratch) {
  const int64_t panel = t.entries<Wide<T>>().columns;
  const int64_t workers = std::min<int64_t>(slots, int64_t(f->host->run->threads(f)));
  const Cut cut = CutFor(p.m, p.n, p.k, panel, workers);
  const uint64_t bytes = ProductScratch(p);
  const int64_t panels = (p.n + panel - 1) / panel;
  ForEachTask(f, cut.rows * cut.columns, slots, [&](int64_t task, int slot) {
    const int64_t r = task / cut.columns, c = task % cut.columns;
    MultiplyCell(t, p, r * p.m / cut.rows, (r + 1) * p.m / cut.rows, c * panels / cut.columns * panel,
                 std::min(p.n, (c + 1) * panels / cut.columns * panel), scratch + uint64_t(slot) * bytes);
  });
}

#define THALWEG_INSTANTIATE(T)                                                                                       \
  template uint64_t ProductScratch(const MatrixProduct<T>&);                                                         \
  template void MultiplyCell(const GemmTables&, const MatrixProduct<T>&, int64_t, int64_t, int64_t, int64_t, char*); \
  template void Multiply(const GemmTables&, const tw_frame*, const MatrixProduct<T>&, int, char*);
THALWEG_INSTANTIATE(float)
THALWEG_INSTANTIATE(double)
THALWEG_INSTANTIATE(half)
THALWEG_INSTANTIATE(bfloat16)
#undef THALWEG_INSTANTIATE

}  // namespace thalweg::cpu
