// MatrixDiagV3 makes matrices from bands of diagonals, MatrixDiagPartV3 extracts a band, and
// MatrixSetDiagV3 replaces one. MatrixBandPart sets the elements outside a band to 0.
//
// Diagonal d holds the elements whose column is d more than their row. `k` is one d, or the lowest
// and the highest d. A band of one diagonal is a vector [n] per matrix; a band of several is
// [diagonals, n], the highest first. n is the length of the longest diagonal. `align` says at which
// end the shorter ones are aligned.
#include <algorithm>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Band {
  bool known = false;
  int64_t low = 0, high = 0;
  // The number of diagonals; -1 if unknown.
  int64_t diagonals = -1;
};

Band ReadBand(const tw::Shape& s, uint32_t i) {
  if (s.known(i) && s.rank(i) > 1) Fail("'k' must be a scalar or a vector but has shape " + tw::text(s.in(i)));
  const int64_t entries = !s.known(i) ? -1 : s.rank(i) == 0 ? 1 : s.dim(i, 0);
  if (Known(entries) && entries != 1 && entries != 2)
    Fail("'k' has " + tw::text(entries) + " entries; give one diagonal, or the lowest and the highest");
  Band band;
  Dims k;
  if (entries == 1) band.diagonals = 1;
  if (!s.value(i, &k)) return band;
  band = {true, k.front(), k.back(), k.back() - k.front() + 1};
  if (band.low > band.high) Fail("'k' is " + Text(k) + "; the lowest diagonal must not be above the highest");
  return band;
}

// Returns the length of the longest diagonal of the band in a matrix; -1 if unknown.
int64_t LongestDiagonal(const tw::Shape& s, const Band& band, int64_t rows, int64_t cols) {
  for (int64_t d : {band.low, band.high}) {
    const bool below = Known(rows) && d <= -rows, above = Known(cols) && d >= cols;
    if (d != 0 && (below || above))
      Fail("'k' names diagonal " + tw::text(d) + ", which matrices of shape " + Text(Dims{rows, cols}) + " do not have");
  }
  const int64_t down = s.calc('-', rows, std::max<int64_t>(-band.high, 0)), across = s.calc('-', cols, std::max<int64_t>(band.low, 0));
  return Known(down) && Known(across) ? std::min(down, across) : -1;
}

// The shape of one matrix's band.
Dims BandDims(const Band& band, int64_t longest) { return band.diagonals == 1 ? Dims{longest} : Dims{band.diagonals, longest}; }

void PartRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 2, "input");
  WantScalar(s, 2, "padding_value");
  const Band band = ReadBand(s, 1);
  const MaybeDims in = In(s, 0);
  if (!in) return;
  const Dims batch = Sub(*in, 0, in->size() - 2);
  if (band.known)
    s.out(0, Join(batch, BandDims(band, LongestDiagonal(s, band, s.dim(0, -2), s.dim(0, -1)))));
  else if (band.diagonals == 1)
    s.out(0, Join(batch, {-1}));
}

void SetRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 2, "input");
  WantRankAtLeast(s, 1, 1, "diagonal");
  const Band band = ReadBand(s, 2);
  const MaybeDims in = In(s, 0);
  Set(s, 0, in);
  if (!in || !band.known) return;
  const Dims wanted = BandDims(band, LongestDiagonal(s, band, s.dim(0, -2), s.dim(0, -1)));
  Merge(s, In(s, 1), Join(Sub(*in, 0, in->size() - 2), wanted), "the shape of 'diagonal' and what 'input' and 'k' ask for");
}

// The number of rows and columns of the matrices that a band makes. A number that is not given is
// as small as possible.
struct Size {
  int64_t rows = -1, cols = -1;
};
Size MatrixSize(const tw::Shape& s, const Band& band, int64_t longest, std::optional<int64_t> rows, std::optional<int64_t> cols) {
  if (!Known(longest)) return {rows && *rows >= 0 ? *rows : -1, cols && *cols >= 0 ? *cols : -1};
  const Size least{s.calc('+', longest, std::max<int64_t>(-band.high, 0)), s.calc('+', longest, std::max<int64_t>(band.low, 0))};
  auto check = [](const char* name, std::optional<int64_t> given, int64_t least_size) {
    if (given && *given != -1 && *given < least_size)
      Fail("'" + std::string(name) + "' is " + tw::text(*given) + ", but the diagonals reach over " + tw::text(least_size) +
           "; give that or -1");
  };
  check("num_rows", rows, least.rows);
  check("num_cols", cols, least.cols);
  if (!rows || !cols) return {};
  Size size{*rows, *cols};
  if (size.rows == -1 && size.cols == -1) return {std::max(least.rows, least.cols), std::max(least.rows, least.cols)};
  if (size.rows == -1) size.rows = least.rows;
  if (size.cols == -1) size.cols = least.cols;
  if (size.rows != least.rows && size.cols != least.cols)
    Fail("matrices of shape " + Text(Dims{size.rows, size.cols}) + " have longer diagonals than " + tw::text(longest) + "; give " +
         tw::text(least.rows) + " rows or " + tw::text(least.cols) + " columns");
  return size;
}

void DiagRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "diagonal");
  const Band band = ReadBand(s, 1);
  const std::optional<int64_t> rows = ScalarValue(s, 2, "num_rows"), cols = ScalarValue(s, 3, "num_cols");
  WantScalar(s, 4, "padding_value");
  for (const auto& [name, given] : {std::pair{"num_rows", rows}, {"num_cols", cols}})
    if (given && *given < -1)
      Fail("'" + std::string(name) + "' is " + tw::text(*given) + "; it must be -1 (as few as possible) or not negative");
  const MaybeDims in = In(s, 0);
  if (!in || !Known(band.diagonals)) return;
  const size_t own = band.diagonals == 1 ? 1 : 2;
  if (in->size() < own || (own == 2 && Known(s.dim(0, -2)) && s.dim(0, -2) != band.diagonals))
    Fail("'diagonal' is " + Text(in) + ", but 'k' names " + tw::text(band.diagonals) + " diagonals, each of which takes a row");
  const Size size = band.known ? MatrixSize(s, band, in->back(), rows, cols) : Size{};
  s.out(0, Join(Sub(*in, 0, in->size() - own), {size.rows, size.cols}));
}

void BandPartRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 2, "input");
  const MaybeDims in = In(s, 0);
  Set(s, 0, in);
  for (uint32_t i : {1u, 2u}) {
    const char* name = i == 1 ? "num_lower" : "num_upper";
    const std::optional<int64_t> n = ScalarValue(s, i, name);
    const int64_t most = in ? s.dim(0, i == 1 ? -2 : -1) : -1;
    if (n && Known(most) && *n > most)
      Fail("'" + std::string(name) + "' is " + tw::text(*n) + " for matrices of shape " + Text(Sub(*in, in->size() - 2, in->size())) +
           "; it must be negative (all) or at most " + tw::text(most));
  }
}

tw_edge Part(const tw::Grad& g, tw_edge matrix, tw_edge k, tw_edge padding) {
  return g.op("MatrixDiagPartV3", {matrix, k, padding}, {{"align", g.s("align")}});
}
// The size of input i at axis -back, as a scalar.
tw_edge SizeFromEnd(const tw::Grad& g, uint32_t i, int64_t back) {
  return g.op("StridedSlice", {g.shape(i), Ints(g, {-back}), Ints(g, {-back + 1}), Ints(g, {1})},
              {{"shrink_axis_mask", 1}, {"end_mask", back == 1 ? 1 : 0}});
}
tw_edge False(const tw::Grad& g, uint32_t i) { return g.op("Fill", {g.shape(i), g.scalar(0, TW_BOOL)}); }

// The gradient of the padding value is the sum of dy over the padded places. The same op on a
// tensor of false, padded with true, marks these places.
void DiagGradient(const tw::Grad& g) {
  g.dx(0, Part(g, g.dy(), g.x(1), Number(g, 0, g.dy())));
  const tw_edge padded = g.op("MatrixDiagV3", {False(g, 0), g.x(1), g.x(2), g.x(3), g.scalar(1, TW_BOOL)}, {{"align", g.s("align")}});
  g.dx(4, SumWhere(g, padded, g.dy()));
}

void PartGradient(const tw::Grad& g) {
  const tw_edge rows = SizeFromEnd(g, 0, 2), cols = SizeFromEnd(g, 0, 1);
  g.dx(0, g.op("MatrixDiagV3", {g.dy(), g.x(1), rows, cols, Number(g, 0, g.dy())}, {{"align", g.s("align")}}));
  g.dx(2, SumWhere(g, Part(g, False(g, 0), g.x(1), g.scalar(1, TW_BOOL)), g.dy()));
}

void SetGradient(const tw::Grad& g) {
  const tw_edge taken = Part(g, g.dy(), g.x(2), Number(g, 0, g.dy()));
  g.dx(0, g.op("MatrixSetDiagV3", {g.dy(), g.op("ZerosLike", {taken}), g.x(2)}, {{"align", g.s("align")}}));
  g.dx(1, taken);
}

void BandPartGradient(const tw::Grad& g) { g.dx(0, g.op("MatrixBandPart", {g.dy(), g.x(1), g.x(2)})); }

}  // namespace

#define ALIGN "T: type; align: {\"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", \"RIGHT_RIGHT\"} = \"RIGHT_LEFT\"; "

void register_matrix_diag(tw::Plugin& p) {
  p.op<DiagGradient, DiagRule>(
      "MatrixDiagV3(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> (output: T); " ALIGN
      "doc \"matrices of padding with these diagonals: k, or k[0] to k[1]; sizes of -1 are as small as possible; align: where the "
      "diagonals "
      "above and below the main one stand in `diagonal`\"");
  p.op<PartGradient, PartRule>(
      "MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> (diagonal: T); " ALIGN
      "doc \"the diagonals k, or k[0] to k[1], of matrices, the highest first, padded to one length on the side that align leaves free\"");
  p.op<SetGradient, SetRule>("MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> (output: T); " ALIGN
                             "doc \"matrices with the diagonals k, or k[0] to k[1], replaced; align as in MatrixDiagPartV3\"");
  p.op<BandPartGradient, BandPartRule>(
      "MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> (band: T); T: type; Tindex: " OPS_INDEX
      " = int64; doc \"matrices with zeros outside num_lower diagonals below and num_upper above the main "
      "one; below 0: all of them\"");
}

}  // namespace thalweg::ops
