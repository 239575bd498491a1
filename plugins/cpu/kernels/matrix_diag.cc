// MatrixDiagV3, MatrixDiagPartV3, MatrixSetDiagV3, MatrixBandPart: copy diagonals into matrices and
// out of them.
#include <algorithm>
#include <cstring>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The diagonals low to high. Diagonal d holds the elements whose column is their row plus d.
struct Band {
  int64_t low, high;
  explicit Band(const tw::In<int32_t>& k) {
    if (k.rank() > 1 || k.size() < 1 || k.size() > 2)
      Invalid("k is " + DimsText(k.v) + "; give one diagonal, or the lowest and the highest");
    low = k[0];
    high = k[k.size() - 1];
    if (low > high)
      Invalid("k is [" + std::to_string(low) + ", " + std::to_string(high) + "]; the lowest diagonal must not be above the highest");
  }
  int64_t size() const { return high - low + 1; }
};

// The layout of the matrices' diagonals in a tensor [..., diagonals, longest].
class Layout {
 public:
  Layout(std::string_view align, const Band& k, int64_t height, int64_t width)
      : band(k),
        rows(height),
        cols(width),
        longest(std::min(height + std::min<int64_t>(k.high, 0), width - std::max<int64_t>(k.low, 0))),
        right_above_(align.substr(0, 5) == "RIGHT"),
        right_below_(align.substr(align.find('_') + 1) == "RIGHT") {}
  // Throws INVALID_ARGUMENT for diagonals that the matrices do not have.
  void WantInside() const {
    for (int64_t d : {band.low, band.high})
      if (d != 0 && (d <= -rows || d >= cols))
        Invalid("k names diagonal " + std::to_string(d) + ", which matrices of shape [" + std::to_string(rows) + ", " +
                std::to_string(cols) + "] do not have");
  }
  int64_t Length(int64_t d) const { return std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)); }
  // Returns the position in its row of `longest` elements where a diagonal begins.
  int64_t Begin(int64_t d) const {
    const bool right = d > 0 ? right_above_ : d < 0 ? right_below_ : right_above_ && right_below_;
    return right ? longest - Length(d) : 0;
  }

  Band band;
  int64_t rows, cols, longest;

 private:
  bool right_above_, right_below_;
};

// to[row, c] is element source(row, c) of `from`, or the padding if source is negative. to: `rows`
// rows of `cols`.
template <class Source>
void Pick(const tw_frame* f, const tw_view* from, const tw_view* padding, const tw_view* to, int64_t rows, int64_t cols, Source&& source) {
  CheckMovable(from->dtype);
  if (rows == 0 || cols == 0) return;
  if (from->dtype == TW_STRING) {
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t at = source(i / cols, i % cols);
      const tw_string& s = at < 0 ? StringAt(padding, 0) : StringAt(from, uint64_t(at));
      tw::check(f->host->tensor->set_string(to->tensor, uint64_t(i), s.data, s.size));
    }
    return;
  }
  BySize(ElementBytes(from->dtype), [&](auto unit) {
    using T = decltype(unit);
    const T *x = reinterpret_cast<const T*>(Bytes(from)), pad = *reinterpret_cast<const T*>(Bytes(padding));
    T* y = reinterpret_cast<T*>(Bytes(to));
    ParallelFor(f, rows, Cost(cols, 4), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t at = source(r, c);
          y[r * cols + c] = at < 0 ? pad : x[at];
        }
      }
    });
  });
}

class Aligned {
 public:
  explicit Aligned(const tw::Node& n) : align_(n.s("align")) {}

 protected:
  std::string align_;
};

class MatrixDiag : Aligned {
 public:
  using Aligned::Aligned;
  void operator()(tw::Frame f, tw::In<tw::Any> diagonal, tw::In<int32_t> k, tw::In<int32_t>, tw::In<int32_t>, tw::In<tw::Any> padding,
                  tw::Out<tw::Any> output) const {
    const Band band(k);
    if (output.rank() < 2) throw tw::Error{TW_INTERNAL, "the output was not planned"};
    const Layout layout(align_, band, output.dim(-2), output.dim(-1));
    const int64_t band_size = band.size() * layout.longest, matrices = band_size ? int64_t(diagonal.size()) / band_size : 0;
    if (output.size() && matrices * band_size != int64_t(diagonal.size()))
      throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v())};
    const int64_t rows = output.size() ? int64_t(output.size()) / layout.cols : 0;
    Pick(f.f, diagonal.v, padding.v, output.v(), rows, layout.cols, [&](int64_t row, int64_t c) {
      const int64_t r = row % layout.rows, d = c - r;
      if (d < band.low || d > band.high) return int64_t{-1};
      return row / layout.rows * band_size + (band.high - d) * layout.longest + layout.Begin(d) + std::min(r, c);
    });
  }
};

class MatrixDiagPart : Aligned {
 public:
  using Aligned::Aligned;
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<int32_t> k, tw::In<tw::Any> padding, tw::Out<tw::Any> output) const {
    const Band band(k);
    const Layout layout(align_, band, input.dim(-2), input.dim(-1));
    layout.WantInside();
    Ints dims;
    for (int i = 0; i < input.rank() - 2; ++i) dims.push(input.dim(i));
    if (band.size() > 1) dims.push(band.size());
    dims.push(layout.longest);
    Allocate(output, dims.at, dims.n);
    const int64_t rows = output.size() ? int64_t(output.size()) / layout.longest : 0, matrix = layout.rows * layout.cols;
    Pick(f.f, input.v, padding.v, output.v(), rows, layout.longest, [&](int64_t row, int64_t j) {
      const int64_t d = band.high - row % band.size(), i = j - layout.Begin(d);
      if (i < 0 || i >= layout.Length(d)) return int64_t{-1};
      return row / band.size() * matrix + (i + std::max<int64_t>(-d, 0)) * layout.cols + i + std::max<int64_t>(d, 0);
    });
  }
};

class MatrixSetDiag : Aligned {
 public:
  using Aligned::Aligned;
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> diagonal, tw::In<int32_t> k, tw::Out<tw::Any> output) const {
    const Band band(k);
    const Layout layout(align_, band, input.dim(-2), input.dim(-1));
    layout.WantInside();
    const int64_t matrix = layout.rows * layout.cols, matrices = Product(input.dims(), 0, input.rank() - 2);
    WantDiagonals(input.v, diagonal.v, band.size(), layout.longest);
    if (Bytes(input.v) != Bytes(output.v())) CopyRun(f.f, input.v, 0, output.v(), 0, int64_t(input.size()));
    if (output.size() == 0) return;
    for (int64_t d = band.low; d <= band.high; ++d) {
      Box box;
      box.Add(matrices, band.size() * layout.longest, matrix);
      box.Add(layout.Length(d), 1, layout.cols + 1);
      CopyBox(f.f, box, diagonal.v, (band.high - d) * layout.longest + layout.Begin(d), output.v(),
              std::max<int64_t>(-d, 0) * layout.cols + std::max<int64_t>(d, 0));
    }
  }

 private:
  // Throws unless `diagonal` is [..., diagonals, longest]. With one diagonal, the axis of the
  // diagonals is missing.
  static void WantDiagonals(const tw_view* input, const tw_view* diagonal, int64_t diagonals, int64_t longest) {
    const int own = diagonals > 1 ? 2 : 1, batch = input->rank - 2;
    bool fits = diagonal->rank == batch + own && diagonal->dims[diagonal->rank - 1] == longest;
    for (int i = 0; fits && i < batch; ++i) fits = diagonal->dims[i] == input->dims[i];
    if (!fits || (own == 2 && diagonal->dims[batch] != diagonals))
      Invalid("diagonal is " + DimsText(diagonal) + ", but input of shape " + DimsText(input) + " takes " + std::to_string(diagonals) +
              " diagonals of " + std::to_string(longest) + " elements for each matrix");
  }
};

// Returns how far a band reaches from the main diagonal; a negative number means the whole side.
int64_t Reach(const tw_view* v, int64_t size, const char* name) {
  const int64_t n = IndexAt(v, 0);
  if (n > size)
    Invalid(std::string(name) + " is " + std::to_string(n) + ", which must be negative (all) or at most " + std::to_string(size));
  return n < 0 ? size : n;
}

void BandPart(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> num_lower, tw::In<tw::Any> num_upper, tw::Out<tw::Any> band) {
  CheckMovable(input.v->dtype);
  const int64_t rows = input.dim(-2), cols = input.dim(-1);
  const int64_t lower = Reach(num_lower.v, rows, "num_lower"), upper = Reach(num_upper.v, cols, "num_upper");
  if (input.size() == 0) return;
  const int64_t all = int64_t(input.size()) / cols, bytes = ElementBytes(input.v->dtype);
  const auto first = [&](int64_t r) { return std::clamp<int64_t>(r - lower, 0, cols); };
  const auto last = [&](int64_t r) { return std::clamp<int64_t>(r + upper + 1, 0, cols); };
  if (bytes == 0) {
    for (int64_t i = 0; i < all * cols; ++i) {
      const int64_t r = i / cols % rows, c = i % cols;
      const bool inside = c >= first(r) && c < last(r);
      const tw_string none{"", 0}, &s = inside ? StringAt(input.v, uint64_t(i)) : none;
      if (!inside || input.data() != band.data()) tw::check(f.f->host->tensor->set_string(band.v()->tensor, uint64_t(i), s.data, s.size));
    }
    return;
  }
  ParallelFor(f.f, all, Cost(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t from = first(row % rows) * bytes, to = std::max(from, last(row % rows) * bytes);
      char* y = Bytes(band.v()) + row * cols * bytes;
      const char* x = Bytes(input.v) + row * cols * bytes;
      if (x != y) std::memcpy(y + from, x + from, size_t(to - from));
      std::memset(y, 0, size_t(from));
      std::memset(y + to, 0, size_t(cols * bytes - to));
    }
  });
}

}  // namespace

void register_matrix_diag(tw::Plugin& p) {
  p.kernel<MatrixDiag>("MatrixDiagV3 @CPU");
  p.kernel<MatrixDiagPart>("MatrixDiagPartV3 @CPU");
  p.kernel<MatrixSetDiag>("MatrixSetDiagV3 @CPU; inplace output=input");
  p.kernel<BandPart>("MatrixBandPart @CPU; inplace band=input");
}

}  // namespace thalweg::cpu
