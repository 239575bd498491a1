// Einsum: multiplies tensors two at a time, in an order that keeps intermediate results small.
// Labels of both factors that are needed later are batch axes. Labels that nothing needs are summed
// over. The remaining labels are rows of one factor and columns of the other, so each step is a
// batch of matrix products. Axes are moved only if they are not in that order already.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/factor.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

using Labels = std::vector<int>;  // a label is a character, or kDots + n for axis n of the ellipsis, counted from its end
constexpr int kDots = 256;
constexpr size_t kLookedAt = 12;  // the number of operands among which the next two are chosen

bool Has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// The labels of inputs and output of the equation, which the shape rule has checked. kDots alone is
// an ellipsis.
struct Equation {
  std::vector<Labels> in;
  Labels out;

  explicit Equation(std::string_view text) {
    const size_t arrow = text.find("->");
    in = Terms(text.substr(0, arrow));
    if (arrow != text.npos)
      out = Terms(text.substr(arrow + 2))[0];
    else
      Imply();
  }

 private:
  static std::vector<Labels> Terms(std::string_view text) {
    std::vector<Labels> terms(1);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ',') {
        terms.emplace_back();
      } else if (text[i] == '.') {
        terms.back().push_back(kDots);
        i += 2;
      } else if (text[i] != ' ') {
        terms.back().push_back(text[i]);
      }
    }
    return terms;
  }
  // Without an arrow, the output has the ellipsis and the labels that occur once, sorted.
  void Imply() {
    Labels all;
    for (const Labels& term : in) all.insert(all.end(), term.begin(), term.end());
    for (int label : all)
      if (label != kDots && std::count(all.begin(), all.end(), label) == 1) out.push_back(label);
    std::sort(out.begin(), out.end());
    if (Has(all, kDots)) out.insert(out.begin(), kDots);
  }
};

// Returns the labels with the ellipsis written out as `axes` labels.
Labels Spread(const Labels& labels, int axes) {
  Labels all;
  for (int label : labels) {
    if (label != kDots) all.push_back(label);
    if (label == kDots)
      for (int n = axes; n > 0; --n) all.push_back(kDots + n - 1);
  }
  return all;
}

// The sizes of labels; 1 if no input is longer.
class Sizes {
 public:
  Sizes() : of_(kDots + kMaxRank, 1) {}
  int64_t& operator[](int label) { return of_[size_t(label)]; }
  int64_t Count(const Labels& labels) const {
    int64_t n = 1;
    for (int label : labels)
      if (__builtin_mul_overflow(n, of_[size_t(label)], &n)) TooMany(labels);
    return n;
  }
  int64_t operator[](int label) const { return of_[size_t(label)]; }

 private:
  [[noreturn]] void TooMany(const Labels& labels) const {
    std::string text;
    for (int label : labels) text += (text.empty() ? "[" : ", ") + std::to_string(of_[size_t(label)]);
    throw tw::Error{TW_RESOURCE_EXHAUSTED, "a product on the way has shape " + text + "], which is more than can be counted"};
  }
  std::vector<int64_t> of_;
};

// A tensor or an intermediate result: its elements, its labels, no two of them equal, and the
// stride of each label.
template <class T>
struct Operand {
  const T* data = nullptr;
  Labels labels;
  std::vector<int64_t> strides;
  TempArray<T> own;

  int64_t Stride(int label) const { return strides[size_t(std::find(labels.begin(), labels.end(), label) - labels.begin())]; }
  // Returns true if the elements are dense in this order of the labels.
  bool Dense(const Sizes& sizes, const Labels& order) const {
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0; step *= sizes[order[i]])
      if (sizes[order[i]] != 1 && Stride(order[i]) != step) return false;
    return true;
  }
};

Labels Join(Labels a, const Labels& b, const Labels& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

template <class T>
T Product(T x, T y) {
  return T(Times(Wide<T>(x), Wide<T>(y)));
}

template <class T>
class Step {
 public:
  Step(const tw_frame* f, const GemmTables& tables, int slots, const Sizes& sizes) : f_(f), tables_(tables), slots_(slots), sizes_(sizes) {}

  // Returns the sum over the labels that nothing needs.
  Operand<T> SumOut(Operand<T> x, const Labels& needed) const {
    Labels kept, summed;
    for (int label : x.labels) (Has(needed, label) ? kept : summed).push_back(label);
    if (summed.empty()) return x;
    const Labels order = Join(kept, summed);
    if (!x.Dense(sizes_, order)) x = Copied(x, order);
    Operand<T> y = Empty(kept);
    T* to = y.own.get();
    const T* from = x.data;
    const int64_t n = sizes_.Count(summed);
    ParallelFor(f_, sizes_.Count(kept), Cost(2, n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = Sum(from + i * n, n);
    });
    return y;
  }

  // Returns the product, summed over the labels that nothing needs. to: its destination if its
  // labels come out as `wanted`, or NULL.
  Operand<T> Multiply(Operand<T> a, Operand<T> b, const Labels& needed, const Labels& wanted, T* to) const {
    a = SumOut(std::move(a), Join(needed, b.labels));
    b = SumOut(std::move(b), Join(needed, a.labels));
    Labels batch, inner, rows, columns;
    for (int label : a.labels) (!Has(b.labels, label) ? rows : Has(needed, label) ? batch : inner).push_back(label);
    for (int label : b.labels)
      if (!Has(a.labels, label)) columns.push_back(label);
    const Labels order = Join(batch, rows, columns);
    Operand<T> c = to && order == wanted ? Over(order, to) : Empty(order);
    T* out = to && order == wanted ? to : c.own.get();
    if (sizes_.Count(order) == 0) return c;
    if (inner.empty())
      Outer(Arranged(a, Join(batch, rows)), Arranged(b, Join(batch, columns)), batch, rows, columns, out);
    else
      Matrices(std::move(a), std::move(b), batch, rows, columns, inner, out);
    return c;
  }

  // Copies the elements of x to `to`, a dense tensor with these labels, some of which may occur
  // twice.
  void Deliver(const Operand<T>& x, const Labels& labels, const tw_view* to) const {
    if (x.data == reinterpret_cast<const T*>(Bytes(to)) || to->count == 0) return;
    Labels once;
    std::vector<int64_t> strides;
    int64_t step = 1;
    for (size_t i = labels.size(); i-- > 0; step *= sizes_[labels[i]]) {
      const size_t at = size_t(std::find(once.begin(), once.end(), labels[i]) - once.begin());
      if (at == once.size()) {
        once.push_back(labels[i]);
        strides.push_back(0);
      }
      strides[at] += step;
    }
    if (once.size() != labels.size()) FillZero(f_, to);
    Box box;
    for (size_t i = once.size(); i-- > 0;) box.Add(sizes_[once[i]], Has(x.labels, once[i]) ? x.Stride(once[i]) : 0, strides[i]);
    const tw_view from = ViewOf(x.data, to->dtype);
    CopyBox(f_, box, &from, 0, to, 0);
  }

 private:
  static tw_view ViewOf(const T* data, uint32_t dtype) {
    tw_view v{};
    v.data = const_cast<T*>(data);
    v.dtype = dtype;
    return v;
  }
  // Returns a dense operand at `data`.
  Operand<T> Over(const Labels& labels, T* data) const {
    Operand<T> x;
    x.data = data;
    x.labels = labels;
    x.strides.resize(labels.size());
    int64_t step = 1;
    for (size_t i = labels.size(); i-- > 0; step *= sizes_[labels[i]]) x.strides[i] = step;
    return x;
  }
  Operand<T> Empty(const Labels& labels) const {
    TempArray<T> own(f_, size_t(sizes_.Count(labels)));
    Operand<T> x = Over(labels, own.get());
    x.own = std::move(own);
    return x;
  }
  Operand<T> Copied(const Operand<T>& x, const Labels& order) const {
    Operand<T> y = Empty(order);
    Box box;
    for (size_t i = 0; i < order.size(); ++i) box.Add(sizes_[order[i]], x.Stride(order[i]), y.strides[i]);
    const tw_view from = ViewOf(x.data, f_->out[0]->dtype), to = ViewOf(y.data, f_->out[0]->dtype);
    CopyBox(f_, box, &from, 0, &to, 0);
    return y;
  }
  Operand<T> Arranged(Operand<T>& x, const Labels& order) const { return x.Dense(sizes_, order) ? std::move(x) : Copied(x, order); }

  static T Sum(const T* x, int64_t n) {
    using Acc = std::conditional_t<kIsFloat<T>, double, std::conditional_t<kIsComplex<T>, complex128, T>>;
    Acc sum(0);
    for (int64_t i = 0; i < n; ++i) sum = Plus(sum, Acc(Wide<T>(x[i])));
    if constexpr (kIsSmallFloat<T>)
      return T(float(sum));
    else
      return T(sum);
  }

  // Multiplies each row with each column; nothing is summed over.
  void Outer(const Operand<T>& a, const Operand<T>& b, const Labels& batch, const Labels& rows, const Labels& columns, T* to) const {
    const int64_t m = sizes_.Count(rows), n = sizes_.Count(columns), all = sizes_.Count(batch) * m;
    if (n == 1 && m == 1) {
      ParallelFor(f_, all, 2, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = Product(a.data[i], b.data[i]);
      });
      return;
    }
    ParallelFor(f_, all, Cost(2, n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T x = a.data[r];
        const T* y = b.data + r / m * n;
        for (int64_t j = 0; j < n; ++j) to[r * n + j] = Product(x, y[j]);
      }
    });
  }

  void Matrices(Operand<T> a, Operand<T> b, const Labels& batch, const Labels& rows, const Labels& columns, const Labels& inner,
                T* to) const {
    const bool trans_a = !a.Dense(sizes_, Join(batch, rows, inner)) && a.Dense(sizes_, Join(batch, inner, rows));
    const bool trans_b = !b.Dense(sizes_, Join(batch, inner, columns)) && b.Dense(sizes_, Join(batch, columns, inner));
    const Operand<T> x = trans_a ? std::move(a) : Arranged(a, Join(batch, rows, inner));
    const Operand<T> y = trans_b ? std::move(b) : Arranged(b, Join(batch, inner, columns));
    const int64_t m = sizes_.Count(rows), n = sizes_.Count(columns), k = sizes_.Count(inner), count = sizes_.Count(batch);
    auto x_at = [&x, m, k](int64_t i) { return x.data + i * m * k; };
    auto y_at = [&y, n, k](int64_t i) { return y.data + i * n * k; };
    const Factor fx{trans_a ? k : m, trans_a ? m : k, trans_a}, fy{trans_b ? n : k, trans_b ? k : n, trans_b};
    if constexpr (kIsFloat<T>) {
      const MatrixProduct<T> p = ProductOf<T>(fx, fy);
      Workspace work(f_, ProductScratch(p) * uint64_t(slots_));
      MultiplyMany(tables_, f_, p, count, x_at, y_at, to, slots_, work.data());
    } else {
      MultiplyMany(f_, PlainProductOf<T>(fx, fy, false, false), count, x_at, y_at, to);
    }
  }

  const tw_frame* f_;
  const GemmTables& tables_;
  int slots_;
  const Sizes& sizes_;
};

// Returns the labels that the output and all operands but these two have.
template <class T>
Labels NeededBeside(const std::vector<Operand<T>>& in, size_t a, size_t b, const Labels& out) {
  Labels needed = out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i == a || i == b) continue;
    for (int label : in[i].labels)
      if (!Has(needed, label)) needed.push_back(label);
  }
  return needed;
}

// Returns the two operands to multiply next, the first before the second: the pair whose product
// adds least to the elements held, or the first of equal pairs. If there are very many operands,
// only the first few are considered.
template <class T>
std::pair<size_t, size_t> NextPair(const std::vector<Operand<T>>& in, const Labels& out, const Sizes& sizes) {
  if (in.size() == 2) return {0, 1};
  const auto count = [&](const Labels& labels) {  // may exceed the range of integers
    double n = 1;
    for (int label : labels) n *= double(sizes[label]);
    return n;
  };
  std::pair<size_t, size_t> best;
  double least = HUGE_VAL;
  for (size_t a = 0; a < std::min(in.size(), kLookedAt); ++a)
    for (size_t b = a + 1; b < std::min(in.size(), kLookedAt); ++b) {
      const Labels needed = NeededBeside(in, a, b, out);
      Labels made;
      for (const Labels* labels : {&in[a].labels, &in[b].labels})
        for (int label : *labels)
          if (Has(needed, label) && !Has(made, label)) made.push_back(label);
      const double more = count(made) - count(in[a].labels) - count(in[b].labels);
      if (more >= least) continue;
      least = more;
      best = {a, b};
    }
  return best;
}

template <class T>
class Einsum {
 public:
  explicit Einsum(const tw::Node& n) : equation_(n.s("equation")), tables_(GemmTablesFor(n.host())), slots_(WorkerSlots()) {}

  void operator()(tw::Frame frame, tw::Many<T> inputs, tw::Out<T> output) const {
    Sizes sizes;
    std::vector<Operand<T>> in(inputs.size());
    int dots = 0;
    for (uint32_t i = 0; i < inputs.size(); ++i) dots = std::max(dots, Take(inputs[i], i, &in[i], &sizes));
    const Labels out = Spread(equation_.out, dots);
    const Step<T> step(frame.f, tables_, slots_, sizes);
    while (in.size() > 1) {
      const auto [a, b] = NextPair(in, out, sizes);
      in[a] = step.Multiply(std::move(in[a]), std::move(in[b]), NeededBeside(in, a, b, out), out, in.size() == 2 ? output.data() : nullptr);
      in.erase(in.begin() + int64_t(b));
    }
    step.Deliver(step.SumOut(std::move(in[0]), out), out, output.v());
  }

 private:
  // Records the sizes of an input's labels and the strides of its elements. Axes of size 1 in an
  // ellipsis repeat and are left out. Returns how many axes the ellipsis stands for.
  int Take(tw::In<T> v, uint32_t i, Operand<T>* x, Sizes* sizes) const {
    const Labels& term = equation_.in[i];
    const int dots = Has(term, kDots) ? v.rank() - int(term.size()) + 1 : 0;
    if (dots < 0 || int(term.size()) - Has(term, kDots) + dots != v.rank())
      Invalid("input " + std::to_string(i) + " is " + DimsText(v.v) + ", which does not fit its labels");
    const Labels labels = Spread(term, dots);
    const Ints strides = DenseStrides(v.dims(), v.rank());
    x->data = v.data();
    for (int axis = 0; axis < v.rank(); ++axis) {
      const int label = labels[size_t(axis)];
      const int64_t size = v.dim(axis);
      if (label >= kDots && size == 1) continue;
      const auto known = std::find(x->labels.begin(), x->labels.end(), label);
      (*sizes)[label] = size;
      if (known != x->labels.end()) {
        x->strides[size_t(known - x->labels.begin())] += strides[axis];
        continue;
      }
      x->labels.push_back(label);
      x->strides.push_back(strides[axis]);
    }
    return dots;
  }

  Equation equation_;
  GemmTables tables_;
  int slots_;
};

}  // namespace

void register_einsum(tw::Plugin& p) {
  p.kernel<Einsum<float>, Einsum<double>, Einsum<half>, Einsum<bfloat16>, Einsum<complex64>, Einsum<complex128>>("Einsum @CPU");
  p.kernel<Einsum<int8_t>, Einsum<int16_t>, Einsum<int32_t>, Einsum<int64_t>>("Einsum @CPU");
  p.kernel<Einsum<uint8_t>, Einsum<uint16_t>, Einsum<uint32_t>, Einsum<uint64_t>>("Einsum @CPU");
}

}  // namespace thalweg::cpu
