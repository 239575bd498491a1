// The Fourier transforms over the last one, two or three axes: of complex numbers, of real numbers,
// and back to real numbers. Transforms of an even number of real numbers are done as complex ones
// of half the length.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/fourier.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kTogether = 8;  // lines that are gathered at once, so that whole cache lines are read

int64_t CostOfLine(int64_t n) { return Cost(n, 24); }

// Transforms all lines along one axis of dense data in place. Backward transforms are divided by the length.
template <class T>
void AlongAxis(const tw_frame* f, std::complex<T>* data, const int64_t* dims, int rank, int axis, bool backward) {
  using Complex = std::complex<T>;
  const int64_t n = dims[axis], inner = Product(dims, axis + 1, rank), outer = Product(dims, 0, axis);
  if (n == 0 || inner == 0 || outer == 0) return;
  const Fourier<T> plan(f, n, backward);
  const T scale = backward ? T(1.0 / double(n)) : T(1);
  const auto scaled = [&](Complex* x) {
    for (int64_t i = 0; backward && i < n; ++i) x[i] *= scale;
  };
  if (inner == 1) {
    return ParallelFor(f, outer, CostOfLine(n), [&](int64_t begin, int64_t end) {
      const TempArray<Complex> room(f, plan.room());
      for (int64_t i = begin; i < end; ++i) {
        plan.Run(data + i * n, room.get());
        scaled(data + i * n);
      }
    });
  }
  const int64_t groups = (inner + kTogether - 1) / kTogether;
  ParallelFor(f, outer * groups, CostOfLine(n * kTogether), [&](int64_t begin, int64_t end) {
    const TempArray<Complex> room(f, plan.room()), lines(f, size_t(n * kTogether));
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g % groups * kTogether, count = std::min(kTogether, inner - first);
      Complex* from = data + g / groups * n * inner + first;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < count; ++k) lines[size_t(k * n + i)] = from[i * inner + k];
      for (int64_t k = 0; k < count; ++k) {
        plan.Run(lines.get() + k * n, room.get());
        scaled(lines.get() + k * n);
      }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < count; ++k) from[i * inner + k] = lines[size_t(k * n + i)];
    }
  });
}

// What an op's name says: [I][R]FFT[2D|3D].
struct Kind {
  int rank;
  bool backward;
  explicit Kind(const tw::Node& n) {
    const std::string_view name(n.node->op, n.node->op_len);
    rank = name.back() == 'D' ? name[name.size() - 2] - '0' : 1;
    backward = name[0] == 'I';
  }
};

template <class T>
class Complexes {
 public:
  explicit Complexes(const tw::Node& n) : kind_(n) {}
  void operator()(tw::Frame f, tw::In<std::complex<T>> input, tw::Out<std::complex<T>> output) const {
    if (input.rank() < kind_.rank) Invalid("input " + DimsText(input.v) + " has fewer than " + tw::text(kind_.rank) + " axes");
    if (input.size() == 0) return;
    if (input.data() != output.data()) std::copy_n(input.data(), input.size(), output.data());
    for (int k = 1; k <= kind_.rank; ++k) AlongAxis<T>(f.f, output.data(), input.dims(), input.rank(), input.rank() - k, kind_.backward);
  }

 private:
  Kind kind_;
};

// Reads numbers of float or double, or complex ones, as T.
template <class T>
T RealAt(const tw_view* v, int64_t i) {
  return v->dtype == TW_FLOAT ? T(reinterpret_cast<const float*>(Bytes(v))[i]) : T(reinterpret_cast<const double*>(Bytes(v))[i]);
}
template <class T>
std::complex<T> ComplexAt(const tw_view* v, int64_t i) {
  return v->dtype == TW_COMPLEX64 ? std::complex<T>(reinterpret_cast<const complex64*>(Bytes(v))[i])
                                  : std::complex<T>(reinterpret_cast<const complex128*>(Bytes(v))[i]);
}

// Transforms of n real numbers to n / 2 + 1 complex ones and back.
template <class T>
class RealLine {
 public:
  using Complex = std::complex<T>;
  RealLine(const tw_frame* f, int64_t n, bool backward) : n_(n), half_(n % 2 == 0 ? n / 2 : 0), plan_(f, half_ ? half_ : n, backward) {
    if (half_ == 0) return;
    roots_ = TempArray<Complex>(f, size_t(half_ + 1));
    for (int64_t k = 0; k <= half_; ++k) {
      const std::complex<double> root = RootOfUnity(k, n);
      roots_[size_t(k)] = {T(root.real()), T(backward ? root.imag() : -root.imag())};
    }
  }
  // The number of complex numbers in `work`: the line itself, then the plan's room.
  size_t work() const { return size_t(n_) + plan_.room(); }

  // get(i): real number i. put(k, X): is called for k from 0 to n / 2.
  template <class Get, class Put>
  void Forward(Complex* work, Get&& get, Put&& put) const {
    if (half_ == 0) {
      for (int64_t i = 0; i < n_; ++i) work[i] = get(i);
      plan_.Run(work, work + n_);
      for (int64_t k = 0; k <= n_ / 2; ++k) put(k, work[k]);
      return;
    }
    for (int64_t i = 0; i < half_; ++i) work[i] = {get(2 * i), get(2 * i + 1)};
    plan_.Run(work, work + n_);
    for (int64_t k = 0; k <= half_; ++k) {
      const Complex z = work[k % half_], mirror = std::conj(work[(half_ - k) % half_]);
      const Complex even = T(0.5) * (z + mirror), odd = T(-0.5) * TimesI(z - mirror);
      put(k, even + Multiply(odd, roots_[size_t(k)]));
    }
  }
  // get(k): complex number k, up to n / 2. put(i, x): is called for all real numbers.
  template <class Get, class Put>
  void Backward(Complex* work, Get&& get, Put&& put) const {
    const T scale = T(1.0 / double(n_));
    const auto at = [&](int64_t k) { return k == 0 || 2 * k == n_ ? Complex(get(k).real()) : get(k); };
    if (half_ == 0) {
      for (int64_t k = 0; k <= n_ / 2; ++k) {
        work[k] = at(k);
        if (k > 0) work[n_ - k] = std::conj(work[k]);
      }
      plan_.Run(work, work + n_);
      for (int64_t i = 0; i < n_; ++i) put(i, work[i].real() * scale);
      return;
    }
    for (int64_t k = 0; k < half_; ++k) {
      const Complex x = at(k), mirror = std::conj(at(half_ - k));
      work[k] = x + mirror + TimesI(Multiply(x - mirror, roots_[size_t(k)]));
    }
    plan_.Run(work, work + n_);
    for (int64_t i = 0; i < half_; ++i) {
      put(2 * i, work[i].real() * scale);
      put(2 * i + 1, work[i].imag() * scale);
    }
  }

 private:
  int64_t n_, half_;
  Fourier<T> plan_;
  TempArray<Complex> roots_;
};

// Reads fft_length and returns the shape of the result. longest: the sizes that the input needs.
Ints ResultDims(const tw_view* input, const tw_view* fft_length, const Kind& kind, Ints* lengths) {
  *lengths = ReadInts(fft_length, "fft_length");
  if (lengths->n != kind.rank || input->rank < kind.rank)
    Invalid("fft_length has " + tw::text(lengths->n) + " entries and input is " + DimsText(input) + "; the op transforms " +
            tw::text(kind.rank) + " axes");
  Ints dims;
  for (int i = 0; i < input->rank; ++i) dims.push(input->dims[i]);
  for (int k = 0; k < kind.rank; ++k) {
    const int64_t n = (*lengths)[k];
    const int axis = input->rank - kind.rank + k;
    const bool last = k + 1 == kind.rank;
    if (n < 0) Invalid("fft_length[" + tw::text(k) + "] is " + tw::text(n) + "; it must not be negative");
    const int64_t needed = kind.backward && last && n > 0 ? n / 2 + 1 : n;
    if (input->dims[axis] < needed)
      Invalid("input " + DimsText(input) + " has only " + tw::text(input->dims[axis]) + " elements on axis " + tw::text(axis) +
              ", but fft_length needs " + tw::text(needed) + "; pad it with zeros");
    dims[axis] = !kind.backward && last && n > 0 ? n / 2 + 1 : n;
  }
  return dims;
}

// The places where lines of `dims` along the last axis begin in a larger tensor.
int64_t LineIn(const tw_view* larger, const Ints& dims, int64_t line) {
  int64_t at = 0, step = larger->dims[larger->rank - 1];
  for (int axis = larger->rank - 1; axis-- > 0; step *= larger->dims[axis]) {
    at += line % dims[axis] * step;
    line /= dims[axis];
  }
  return at;
}

class FromReal {
 public:
  explicit FromReal(const tw::Node& n) : kind_(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<int32_t> fft_length, tw::Out<tw::Any> output) const {
    Ints lengths;
    const Ints dims = ResultDims(input.v, fft_length.v, kind_, &lengths);
    Allocate(output, dims.at, dims.n);
    if (output.size() == 0) return;
    if (output.v()->dtype == TW_COMPLEX64)
      Run<float>(f.f, input.v, lengths, dims, output.v());
    else
      Run<double>(f.f, input.v, lengths, dims, output.v());
  }

 private:
  template <class T>
  void Run(const tw_frame* f, const tw_view* input, const Ints& lengths, const Ints& dims, const tw_view* output) const {
    const int64_t n = lengths[kind_.rank - 1], width = dims[dims.n - 1];
    auto* to = reinterpret_cast<std::complex<T>*>(Bytes(output));
    const RealLine<T> line(f, n, false);
    ParallelFor(f, int64_t(output->count) / width, CostOfLine(n), [&](int64_t begin, int64_t end) {
      const TempArray<std::complex<T>> work(f, line.work());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = LineIn(input, dims, i);
        line.Forward(
            work.get(), [&](int64_t j) { return RealAt<T>(input, at + j); }, [&](int64_t k, std::complex<T> x) { to[i * width + k] = x; });
      }
    });
    for (int axis = dims.n - 2; axis >= dims.n - kind_.rank; --axis) AlongAxis<T>(f, to, dims.at, dims.n, axis, false);
  }

  Kind kind_;
};

class ToReal {
 public:
  explicit ToReal(const tw::Node& n) : kind_(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<int32_t> fft_length, tw::Out<tw::Any> output) const {
    Ints lengths;
    const Ints dims = ResultDims(input.v, fft_length.v, kind_, &lengths);
    Allocate(output, dims.at, dims.n);
    if (output.size() == 0) return;
    if (output.v()->dtype == TW_FLOAT)
      Run<float>(f.f, input.v, dims, output.v());
    else
      Run<double>(f.f, input.v, dims, output.v());
  }

 private:
  template <class T>
  void Run(const tw_frame* f, const tw_view* input, const Ints& dims, const tw_view* output) const {
    const int64_t n = dims[dims.n - 1], width = n / 2 + 1, lines = int64_t(output->count) / n;
    T* to = reinterpret_cast<T*>(Bytes(output));
    const TempArray<std::complex<T>> copy(f, kind_.rank > 1 ? size_t(lines * width) : 0);
    if (kind_.rank > 1) {
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t at = LineIn(input, dims, i);
        for (int64_t k = 0; k < width; ++k) copy[size_t(i * width + k)] = ComplexAt<T>(input, at + k);
      }
      Ints wide = dims;
      wide[dims.n - 1] = width;
      for (int axis = dims.n - kind_.rank; axis < dims.n - 1; ++axis) AlongAxis<T>(f, copy.get(), wide.at, wide.n, axis, true);
    }
    const RealLine<T> line(f, n, true);
    ParallelFor(f, lines, CostOfLine(n), [&](int64_t begin, int64_t end) {
      const TempArray<std::complex<T>> work(f, line.work());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = kind_.rank > 1 ? i * width : LineIn(input, dims, i);
        line.Backward(
            work.get(), [&](int64_t k) { return kind_.rank > 1 ? copy[size_t(at + k)] : ComplexAt<T>(input, at + k); },
            [&](int64_t j, T x) { to[i * n + j] = x; });
      }
    });
  }

  Kind kind_;
};

}  // namespace

void register_fft(tw::Plugin& p) {
  for (const char* rank : {"", "2D", "3D"}) {
    p.kernel<Complexes<float>, Complexes<double>>("FFT" + std::string(rank) + " @CPU; inplace output=input");
    p.kernel<Complexes<float>, Complexes<double>>("IFFT" + std::string(rank) + " @CPU; inplace output=input");
    p.kernel<FromReal>("RFFT" + std::string(rank) + " @CPU");
    p.kernel<ToReal>("IRFFT" + std::string(rank) + " @CPU");
  }
}

}  // namespace thalweg::cpu
