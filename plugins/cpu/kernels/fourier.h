// Discrete Fourier transforms of one line of complex numbers. Lengths with small prime factors are
// split into their factors (Stockham's form, which needs no reordering). Other lengths become
// convolutions of a power of two (Bluestein). Factors are computed in double.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_FOURIER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_FOURIER_H_

#include <cmath>
#include <complex>
#include <vector>

#include "kernels/common/temp.h"

namespace thalweg::cpu {

// Returns exp(2 pi i k / n). REQUIRES: 0 <= k < n. The angle is reduced to an eighth of a turn, where
// sine and cosine are exact to their last bit.
inline std::complex<double> RootOfUnity(int64_t k, int64_t n) {
  constexpr double kPi = 3.14159265358979323846;
  int64_t eighths = 8 * k;  // of a turn, in units of n
  const int octant = int(eighths / n);
  eighths -= octant * n;
  const double angle = kPi / 4 * double(octant % 2 ? n - eighths : eighths) / double(n);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (octant) {
    case 0: return {c, s};
    case 1: return {s, c};
    case 2: return {-s, c};
    case 3: return {-c, s};
    case 4: return {-c, -s};
    case 5: return {-s, -c};
    case 6: return {s, -c};
    default: return {c, -s};
  }
}

// Plain arithmetic: the operators of std::complex check for NaN in every product.
template <class T>
std::complex<T> Multiply(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
template <class T>
std::complex<T> TimesI(std::complex<T> x) {
  return {-x.imag(), x.real()};
}

// A plan for transforms of one length, in one direction: y[k] is the sum of x[j] exp(+-2 pi i j k /
// n), not scaled. Threads may share it.
template <class T>
class Fourier {
 public:
  using Complex = std::complex<T>;

  // backward: the sign of the exponent is +. Memory is charged to the payer.
  Fourier(tw::Payer payer, int64_t n, bool backward) : n_(n), sign_(backward ? 1 : -1) {
    int64_t rest = n;
    for (int64_t factor : {4, 2, 3, 5, 7, 11, 13})
      while (rest % factor == 0 && rest > 1) factors_[count_++] = factor, rest /= factor;
    if (rest > 1) {
      MakeConvolution(payer);
      return;
    }
    roots_ = TempArray<Complex>(payer, size_t(n));
    for (int64_t k = 0; k < n; ++k) roots_[size_t(k)] = Root(k, n);
  }

  int64_t size() const { return n_; }
  // The number of complex numbers of workspace that Run needs.
  size_t room() const { return size_t(inner_.empty() ? n_ : 2 * length_); }

  // Transforms x in place.
  void Run(Complex* x, Complex* room) const {
    if (!inner_.empty()) return Convolve(x, room);
    Complex *from = x, *to = room;
    int64_t length = n_, step = 1;
    for (int k = 0; k < count_; ++k) {
      const int64_t factor = factors_[k];
      length /= factor;
      switch (factor) {
        case 2: Two(from, to, length, step); break;
        case 3: Three(from, to, length, step); break;
        case 4: Four(from, to, length, step); break;
        default: Any(factor, from, to, length, step);
      }
      step *= factor;
      std::swap(from, to);
    }
    if (from != x) std::copy_n(from, n_, x);
  }

 private:
  Complex Root(int64_t k, int64_t n) const {
    const std::complex<double> root = RootOfUnity(k % n, n);
    return {T(root.real()), T(sign_ * root.imag())};
  }
  // The root for place p of a part of `length * factor` numbers, to the power k.
  Complex Twiddle(int64_t p, int64_t k, int64_t step) const { return roots_[size_t(p * k * step)]; }

  // One pass: `length` places p in each of `step` interleaved lines q. The `factor` numbers at
  // from[q + step * (p + length * j)] are transformed, multiplied by roots, and moved to
  // to[q + step * (factor * p + j)].
  void Two(const Complex* from, Complex* to, int64_t length, int64_t step) const {
    for (int64_t p = 0; p < length; ++p) {
      const Complex w = Twiddle(p, 1, step);
      const Complex *a = from + step * p, *b = a + step * length;
      Complex* y = to + step * 2 * p;
      for (int64_t q = 0; q < step; ++q) {
        const Complex u = a[q], v = b[q];
        y[q] = u + v;
        y[q + step] = Multiply(u - v, w);
      }
    }
  }
  void Three(const Complex* from, Complex* to, int64_t length, int64_t step) const {
    const T height = T(sign_ * 0.86602540378443864676);
    for (int64_t p = 0; p < length; ++p) {
      const Complex w = Twiddle(p, 1, step), w2 = Twiddle(p, 2, step);
      const Complex *a = from + step * p, *b = a + step * length, *c = b + step * length;
      Complex* y = to + step * 3 * p;
      for (int64_t q = 0; q < step; ++q) {
        const Complex sum = b[q] + c[q], middle = a[q] - T(0.5) * sum, side = TimesI(height * (b[q] - c[q]));
        y[q] = a[q] + sum;
        y[q + step] = Multiply(middle + side, w);
        y[q + 2 * step] = Multiply(middle - side, w2);
      }
    }
  }
  void Four(const Complex* from, Complex* to, int64_t length, int64_t step) const {
    for (int64_t p = 0; p < length; ++p) {
      const Complex w = Twiddle(p, 1, step), w2 = Twiddle(p, 2, step), w3 = Twiddle(p, 3, step);
      const Complex *a = from + step * p, *b = a + step * length, *c = b + step * length, *d = c + step * length;
      Complex* y = to + step * 4 * p;
      for (int64_t q = 0; q < step; ++q) {
        const Complex even = a[q] + c[q], odd = b[q] + d[q], low = a[q] - c[q], side = T(sign_) * TimesI(b[q] - d[q]);
        y[q] = even + odd;
        y[q + step] = Multiply(low + side, w);
        y[q + 2 * step] = Multiply(even - odd, w2);
        y[q + 3 * step] = Multiply(low - side, w3);
      }
    }
  }
  void Any(int64_t factor, const Complex* from, Complex* to, int64_t length, int64_t step) const {
    const int64_t turn = n_ / factor;
    for (int64_t p = 0; p < length; ++p)
      for (int64_t k = 0; k < factor; ++k) {
        const Complex w = Twiddle(p, k, step);
        for (int64_t q = 0; q < step; ++q) {
          const Complex* a = from + q + step * p;
          Complex sum = a[0];
          for (int64_t j = 1; j < factor; ++j) sum += Multiply(a[step * length * j], roots_[size_t(j * k % factor * turn)]);
          to[q + step * (factor * p + k)] = Multiply(sum, w);
        }
      }
  }

  // Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2, so the transform is a convolution with the chirp
  // exp(+-pi i j^2 / n).
  void MakeConvolution(tw::Payer payer) {
    count_ = 0;
    length_ = 1;
    while (length_ < 2 * n_ - 1) length_ *= 2;
    inner_.emplace_back(payer, length_, false);
    inner_.emplace_back(payer, length_, true);
    chirp_ = TempArray<Complex>(payer, size_t(n_));
    filter_ = TempArray<Complex>(payer, size_t(length_));
    int64_t square = 0;  // j^2 modulo 2 n
    for (int64_t j = 0; j < n_; ++j) {
      chirp_[size_t(j)] = Root(square, 2 * n_);
      square = (square + 2 * j + 1) % (2 * n_);
    }
    std::fill_n(filter_.get(), length_, Complex(0));
    for (int64_t j = 0; j < n_; ++j) filter_[size_t(j)] = filter_[size_t((length_ - j) % length_)] = std::conj(chirp_[size_t(j)]);
    const TempArray<Complex> room(payer, size_t(length_));
    inner_[0].Run(filter_.get(), room.get());
    for (int64_t j = 0; j < length_; ++j) filter_[size_t(j)] /= T(length_);
  }
  void Convolve(Complex* x, Complex* room) const {
    Complex* line = room + length_;
    for (int64_t j = 0; j < n_; ++j) line[j] = Multiply(x[j], chirp_[size_t(j)]);
    std::fill(line + n_, line + length_, Complex(0));
    inner_[0].Run(line, room);
    for (int64_t j = 0; j < length_; ++j) line[j] = Multiply(line[j], filter_[size_t(j)]);
    inner_[1].Run(line, room);
    for (int64_t j = 0; j < n_; ++j) x[j] = Multiply(line[j], chirp_[size_t(j)]);
  }

  int64_t n_, length_ = 0;
  int sign_, count_ = 0;
  int64_t factors_[64];
  TempArray<Complex> roots_, chirp_, filter_;
  std::vector<Fourier> inner_;  // of the convolution: forward and backward; two at most
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_FOURIER_H_
