// Register-tiled matrix products, compiled once per instruction set. A tile of c (up to 14 x 2
// vectors with AVX-512, 6 x 2 below) stays in registers while k runs. Elements of a are broadcast
// straight from memory, and b is read as whole vectors. Neither needs packing if its rows have a
// good stride, which makes small products fast.
// Uses only vector extensions and a few load and store intrinsics: nothing inline may leave this
// file (see cpu_isa_kernels).
#include "kernels/gemm_block.h"
#include "kernels/simd.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 14, kWideRows = 6;  // 14 * 2 sums + 2 of b + 1 of a out of 32 registers; 6 * 4 + 4 + 1
constexpr int kTurnedVectors = 6;         // 4 * 6 sums + 6 of a + 1 of b
constexpr int kDotColumns = 4;            // 4 * 4 sums + 4 of a + 1 of b
#else
constexpr int kRows = 6, kWideRows = 2;  // 6 * 2 + 2 + 1 out of 16; 2 * 4 + 4 + 1
constexpr int kTurnedVectors = 2;        // 4 * 2 + 2 + 1
constexpr int kDotColumns = 2;           // 4 * 2 + 4 + 1
#endif
constexpr int kDotRows = 4;
constexpr int64_t kShallow = 64;
constexpr int kTurnedColumns = 4;
constexpr int kPanelVectors = 2;      // the panel's vectors for tiles of up to kRows rows
constexpr int kWidePanelVectors = 4;  // for tiles of up to kWideRows rows, which would otherwise have too few sums in flight

template <class T>
struct TileArgs {
  int64_t k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  const T* term;  // rows ldc apart, or NULL
  int last;       // used lanes of the last vector
};

// c[kR rows, kV vectors] = term + a b. kPart: the last vector has only `last` lanes in b and c.
template <class T, int kR, int kV, bool kPart>
void Tile(const TileArgs<T>& t) {
  constexpr int L = kLanes<T>;
  const int last = t.last;
  const int64_t a_row = t.a_row, a_col = t.a_col, ldb = t.ldb;
  const T* a = t.a;
  const T* b = t.b;
  Vec<T> sum[kR][kV];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) {
      sum[r][v] = Vec<T>{};
      __builtin_prefetch(t.c + r * t.ldc + v * L, 1);  // needed after the loop over k
    }
  }
  for (int64_t p = t.k; p > 0; --p) {
    Vec<T> y[kV];
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) y[v] = kPart && v == kV - 1 ? LoadFirst(b + v * L, last) : Load(b + v * L);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const Vec<T> x = Splat(a[r * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sum[r][v] += x * y[v];
    }
    a += a_col;
    b += ldb;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    T* c = t.c + r * t.ldc;
    const T* term = t.term ? t.term + r * t.ldc : nullptr;
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) {
      if (kPart && v == kV - 1) {
        if (term) sum[r][v] += LoadFirst(term + v * L, last);
        StoreFirst(c + v * L, sum[r][v], last);
      } else {
        if (term) sum[r][v] += Load(term + v * L);
        Store(c + v * L, sum[r][v]);
      }
    }
  }
}

template <class T>
using TileFn = void (*)(const TileArgs<T>&);

// The tiles by height - 1, vectors - 1, and whether the last vector is whole. A height without a
// wide tile repeats its widest one; Block never asks for that.
template <class T, int kR>
struct TileRow {
  static constexpr int kWide = kR <= kWideRows ? kWidePanelVectors : kPanelVectors;
  static constexpr TileFn<T> kTiles[kWidePanelVectors][2] = {
      {Tile<T, kR, 1, false>, Tile<T, kR, 1, true>},
      {Tile<T, kR, 2, false>, Tile<T, kR, 2, true>},
      {Tile < T, kR, kWide - 1 < 2 ? 2 : kWide - 1, false >, Tile<T, kR, kWide - 1 < 2 ? 2 : kWide - 1, true>},
      {Tile<T, kR, kWide, false>, Tile<T, kR, kWide, true>}};
};

template <class T>
TileFn<T> FindTile(int64_t rows, int vectors, bool part) {
  switch (rows) {
#define THALWEG_TILE_ROW(R) \
  case R: return TileRow<T, R>::kTiles[vectors - 1][part];
    THALWEG_TILE_ROW(1)
    THALWEG_TILE_ROW(2)
    THALWEG_TILE_ROW(3)
    THALWEG_TILE_ROW(4)
    THALWEG_TILE_ROW(5)
    THALWEG_TILE_ROW(6)
#if defined(__AVX512F__)
    THALWEG_TILE_ROW(7)
    THALWEG_TILE_ROW(8)
    THALWEG_TILE_ROW(9)
    THALWEG_TILE_ROW(10)
    THALWEG_TILE_ROW(11)
    THALWEG_TILE_ROW(12)
    THALWEG_TILE_ROW(13)
    THALWEG_TILE_ROW(14)
#endif
#undef THALWEG_TILE_ROW
  }
  return nullptr;
}

// c[kV vectors of rows, columns] = term + a b, for a stored column by column and few columns of c.
// A tile as above would use only as many lanes as there are columns. kPart: the last vector has
// only `last` rows.
template <class T, int kV, bool kPart>
void TurnedTile(const TileArgs<T>& t, int columns) {
  constexpr int L = kLanes<T>;
  const int last = t.last;
  int64_t column[kTurnedColumns];  // past the end, the last column again, which is not stored
  for (int j = 0; j < kTurnedColumns; ++j) column[j] = j < columns ? j : columns - 1;
  const T* a = t.a;
  const T* b = t.b;
  Vec<T> sum[kTurnedColumns][kV];
#pragma GCC unroll 16
  for (int j = 0; j < kTurnedColumns; ++j)
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) sum[j][v] = Vec<T>{};
  for (int64_t p = t.k; p > 0; --p) {
    Vec<T> x[kV];
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) x[v] = kPart && v == kV - 1 ? LoadFirst(a + v * L, last) : Load(a + v * L);
#pragma GCC unroll 16
    for (int j = 0; j < kTurnedColumns; ++j) {
      const Vec<T> y = Splat(b[column[j]]);
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sum[j][v] += x[v] * y;
    }
    a += t.a_col;
    b += t.ldb;
  }
  for (int v = 0; v < kV; ++v) {
    const int rows = kPart && v == kV - 1 ? last : L;
    for (int j = 0; j < columns; ++j) {
      for (int l = 0; l < rows; ++l) {
        const int64_t at = (v * L + l) * t.ldc + j;
        t.c[at] = t.term ? sum[j][v][l] + t.term[at] : sum[j][v][l];
      }
    }
  }
}

template <class T, int kV>
void TurnedTileOf(const TileArgs<T>& t, int vectors, int columns) {
  if constexpr (kV > 1) {
    if (vectors < kV) return TurnedTileOf<T, kV - 1>(t, vectors, columns);
  }
  if (t.last < kLanes<T>)
    TurnedTile<T, kV, true>(t, columns);
  else
    TurnedTile<T, kV, false>(t, columns);
}

template <class T>
void Down(TileArgs<T>* t, int64_t rows) {
  t->c += rows * t->ldc;
  if (t->term) t->term += rows * t->ldc;
}

// Computes all rows of a block for at most kTurnedColumns columns.
template <class T>
void TurnedPanel(TileArgs<T> t, int64_t m, int columns) {
  constexpr int L = kLanes<T>;
  // The tiles have nearly equal heights, as in Block.
  const int64_t vectors = (m + L - 1) / L, tiles = (vectors + kTurnedVectors - 1) / kTurnedVectors, height = vectors / tiles;
  for (int64_t i = 0, done = 0, rows; i < tiles; ++i, done += rows, t.a += rows, Down(&t, rows)) {
    const int64_t here = height + (i < vectors % tiles);
    rows = here * L;
    t.last = int(m - done < rows ? m - done - (here - 1) * L : L);
    TurnedTileOf<T, kTurnedVectors>(t, int(here), columns);
  }
}

// Exchanges the off-diagonal step x step blocks of each pair of vectors `step` apart. Steps 1, 2,
// 4.. together transpose.
template <class T, int kStep>
void Swap(Vec<T>* rows) {
  constexpr int L = kLanes<T>;
  typename Simd<T>::Index low, high;
  for (int i = 0; i < L; ++i) {
    low[i] = (i & kStep) ? i - kStep + L : i;
    high[i] = (i & kStep) ? i + L : i + kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) {
    if (i & kStep) continue;
    Vec<T> x = rows[i], y = rows[i + kStep];
#if defined(__clang__)
    // Clang has no shuffle by a vector that the optimiser has folded. From this lane-by-lane code
    // it generates the same instructions.
    for (int l = 0; l < L; ++l) {
      rows[i][l] = (l & kStep) ? y[l - kStep] : x[l];
      rows[i + kStep][l] = (l & kStep) ? y[l] : x[l + kStep];
    }
#else
    rows[i] = __builtin_shuffle(x, y, low);
    rows[i + kStep] = __builtin_shuffle(x, y, high);
#endif
  }
}

// to[p * width + j] = b[j * ldb + p].
template <class T>
void TurnPanel(int64_t k, int64_t columns, int64_t width, const T* b, int64_t ldb, T* to) {
  constexpr int L = kLanes<T>;
  int64_t j = 0;
  for (; j + L <= columns; j += L) {
    int64_t p = 0;
    for (; p + L <= k; p += L) {
      Vec<T> rows[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) rows[i] = Load(b + (j + i) * ldb + p);
      Swap<T, 1>(rows);
      if constexpr (L > 2) Swap<T, 2>(rows);
      if constexpr (L > 4) Swap<T, 4>(rows);
      if constexpr (L > 8) Swap<T, 8>(rows);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) Store(to + (p + i) * width + j, rows[i]);
    }
    for (; p < k; ++p)
      for (int64_t i = j; i < j + L; ++i) to[p * width + i] = b[i * ldb + p];
  }
  for (; j < columns; ++j)
    for (int64_t p = 0; p < k; ++p) to[p * width + j] = b[j * ldb + p];
}

template <class T>
void Pack(int64_t k, int64_t n, const T* b, int64_t ldb, bool turned, T* to) {
  constexpr int L = kLanes<T>;
  constexpr int64_t kWidth = kPanelVectors * L;
  if (turned) {
    for (int64_t j = 0; j < n; j += kWidth) TurnPanel(k, n - j < kWidth ? n - j : kWidth, kWidth, b + j * ldb, ldb, to + j * k);
    return;
  }
  // Copies row by row through all panels, in the memory order of b.
  for (int64_t p = 0; p < k; ++p, b += ldb) {
    int64_t j = 0;
    for (; j + L <= n; j += L) Store(to + (j / kWidth * k + p) * kWidth + j % kWidth, Load(b + j));
    if (j < n) Store(to + (j / kWidth * k + p) * kWidth + j % kWidth, LoadFirst(b + j, int(n - j)));
  }
}

// The tiles of a block, `width` columns wide and of nearly equal height. A short last tile would
// have too few sums in flight.
struct Tiles {
  int64_t width, strips, height, taller;
  int64_t rows(int64_t strip) const { return height + (strip < taller); }
};

template <class T>
TileArgs<T> PanelOf(const GemmBlock<T>& g, const Tiles& tiles, int64_t j, int* vectors) {
  constexpr int L = kLanes<T>;
  const int64_t columns = g.n - j < tiles.width ? g.n - j : tiles.width;
  *vectors = int((columns + L - 1) / L);
  const T* b = g.packed ? g.b + j * g.k : g.b + j;
  return {g.k,
          g.a,
          g.a_row,
          g.a_col,
          b,
          g.packed ? tiles.width : g.ldb,
          g.c + j,
          g.ldc,
          g.term ? g.term + j : nullptr,
          int(columns - (*vectors - 1) * L)};
}

// Goes strip by strip, each from left to right. If k is short, all of b is in the first-level
// cache, and access to c dominates, whose rows are walked in order.
template <class T>
void ShallowBlock(const GemmBlock<T>& g, const Tiles& tiles) {
  for (int64_t s = 0, i = 0; s < tiles.strips; i += tiles.rows(s), ++s)
    for (int64_t j = 0; j < g.n; j += tiles.width) {
      int vectors;
      TileArgs<T> t = PanelOf(g, tiles, j, &vectors);
      t.a += i * g.a_row;
      Down(&t, i);
      FindTile<T>(tiles.rows(s), vectors, t.last < kLanes<T>)(t);
    }
}

template <class T>
void Block(const GemmBlock<T>& g) {
  constexpr int L = kLanes<T>;
  const int64_t strips = (g.m + kRows - 1) / kRows;
  const Tiles tiles{(g.m <= kWideRows && !g.packed ? kWidePanelVectors : kPanelVectors) * L, strips, g.m / strips, g.m % strips};
  if (g.k <= kShallow && g.n > kTurnedColumns) return ShallowBlock(g, tiles);
  for (int64_t j = 0; j < g.n; j += tiles.width) {
    int vectors;
    TileArgs<T> t = PanelOf(g, tiles, j, &vectors);
    const int64_t columns = (vectors - 1) * L + t.last;
    if (columns <= kTurnedColumns && g.a_row == 1 && g.m >= L) {
      TurnedPanel(t, g.m, int(columns));
      continue;
    }
    for (int64_t s = 0; s < strips; ++s) {
      const int64_t rows = tiles.rows(s);
      FindTile<T>(rows, vectors, t.last < L)(t);
      t.a += rows * g.a_row;
      Down(&t, rows);
    }
  }
}

// Takes eight rows of b at a time: y is read and written once for all of them, and b streams in
// address order. Eight streams, often a power of two apart, are more than processors prefetch by
// themselves, so the code prefetches.
template <class T>
void VectorMatrix(int64_t k, int64_t n, const T* x, const T* b, int64_t ldb, T* y) {
  constexpr int L = kLanes<T>, kDepth = 8, kAhead = 16 * L;
  for (int64_t j = 0; j < n; ++j) y[j] = 0;
  int64_t p = 0;
  for (; p + kDepth <= k; p += kDepth, b += kDepth * ldb) {
    int64_t j = 0;
    for (; j + L <= n; j += L) {
      Vec<T> sum = Load(y + j);
#pragma GCC unroll 8
      for (int i = 0; i < kDepth; ++i) {
        __builtin_prefetch(b + i * ldb + j + kAhead);
        sum += Splat(x[p + i]) * Load(b + i * ldb + j);
      }
      Store(y + j, sum);
    }
    if (j == n) continue;
    Vec<T> sum = LoadFirst(y + j, int(n - j));
    for (int i = 0; i < kDepth; ++i) sum += Splat(x[p + i]) * LoadFirst(b + i * ldb + j, int(n - j));
    StoreFirst(y + j, sum, int(n - j));
  }
  for (; p < k; ++p, b += ldb) {
    int64_t j = 0;
    for (; j + L <= n; j += L) Store(y + j, Load(y + j) + Splat(x[p]) * Load(b + j));
    if (j < n) StoreFirst(y + j, LoadFirst(y + j, int(n - j)) + Splat(x[p]) * LoadFirst(b + j, int(n - j)), int(n - j));
  }
}

// Every row is summed in the same way, in eight vectors, so the bits do not depend on which rows a
// caller takes together.
template <class T>
void MatrixVector(int64_t m, int64_t k, const T* a, int64_t lda, const T* x, T* y) {
  constexpr int L = kLanes<T>, kSums = 8;
  for (; m > 0; --m, a += lda, ++y) {
    Vec<T> sum[kSums];
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v) sum[v] = Vec<T>{};
    int64_t p = 0;
    for (; p + kSums * L <= k; p += kSums * L)
#pragma GCC unroll 8
      for (int v = 0; v < kSums; ++v) sum[v] += Load(x + p + v * L) * Load(a + p + v * L);
    for (; p + L <= k; p += L) sum[0] += Load(x + p) * Load(a + p);
    if (p < k) sum[1] += LoadFirst(x + p, int(k - p)) * LoadFirst(a + p, int(k - p));
#pragma GCC unroll 8
    for (int v = 1; v < kSums; ++v) sum[0] += sum[v];
    T total = 0;
    for (int i = 0; i < L; ++i) total += sum[0][i];
    *y = total;
  }
}

// c[kM rows, kN columns] = term + a b, for b stored column by column. Sums run along the rows of
// both in one vector each, so the bits do not depend on kM and kN.
template <class T, int kM, int kN>
void Dots(const TileArgs<T>& t) {
  constexpr int L = kLanes<T>;
  Vec<T> sum[kM][kN];
#pragma GCC unroll 16
  for (int i = 0; i < kM; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < kN; ++j) sum[i][j] = Vec<T>{};
  int64_t p = 0;
  for (; p + L <= t.k; p += L) {
    Vec<T> x[kM];
#pragma GCC unroll 16
    for (int i = 0; i < kM; ++i) x[i] = Load(t.a + i * t.a_row + p);
#pragma GCC unroll 16
    for (int j = 0; j < kN; ++j) {
      const Vec<T> y = Load(t.b + j * t.ldb + p);
#pragma GCC unroll 16
      for (int i = 0; i < kM; ++i) sum[i][j] += x[i] * y;
    }
  }
  if (p < t.k) {
    const int rest = int(t.k - p);
#pragma GCC unroll 16
    for (int j = 0; j < kN; ++j) {
      const Vec<T> y = LoadFirst(t.b + j * t.ldb + p, rest);
#pragma GCC unroll 16
      for (int i = 0; i < kM; ++i) sum[i][j] += LoadFirst(t.a + i * t.a_row + p, rest) * y;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kM; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kN; ++j) {
      T total = 0;
      for (int l = 0; l < L; ++l) total += sum[i][j][l];
      const int64_t at = i * t.ldc + j;
      t.c[at] = t.term ? t.term[at] + total : total;
    }
  }
}

template <class T, int kN>
void DotsOfRows(TileArgs<T> t, int64_t m) {
  while (m > 0) {
    const int64_t rows = m < kDotRows ? m : kDotRows;
    switch (rows) {
      case 1: Dots<T, 1, kN>(t); break;
      case 2: Dots<T, 2, kN>(t); break;
      case 3: Dots<T, 3, kN>(t); break;
      default: Dots<T, kDotRows, kN>(t);
    }
    t.a += rows * t.a_row;
    Down(&t, rows);
    m -= rows;
  }
}

template <class T>
void FewRows(const GemmBlock<T>& g) {
  TileArgs<T> t{g.k, g.a, g.a_row, 1, g.b, g.ldb, g.c, g.ldc, g.term, 0};
  for (int64_t j = 0; j < g.n;) {
    const bool all = g.n - j >= kDotColumns;
    const int64_t columns = all ? kDotColumns : 1;
    if (all)
      DotsOfRows<T, kDotColumns>(t, g.m);
    else
      DotsOfRows<T, 1>(t, g.m);
    j += columns;
    t.b += columns * t.ldb;
    t.c += columns;
    if (t.term) t.term += columns;
  }
}

template <class T>
constexpr GemmEntries<T> kEntries = {Block<T>, Pack<T>, VectorMatrix<T>, MatrixVector<T>, FewRows<T>, kRows, kPanelVectors* kLanes<T>};

}  // namespace

const GemmTable& Gemm() {
  static constexpr GemmTable table = {kEntries<float>, kEntries<double>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
