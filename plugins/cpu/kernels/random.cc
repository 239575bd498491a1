// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt: TensorFlow's streams, bit for bit for the same seeds (normals as
// far as the C library's logf and sincosf agree).
//
// A kernel's stream starts where its seeds say; two seeds of 0 mean seeds from the operating system. Every execute takes the next
// 256 blocks for each element of its output, whatever it uses of them, and makes outputs in groups from a fixed place in that range. So
// the stream does not depend on threads, and concurrent executes get ranges of their own.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/philox.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr uint64_t kBlocksPerElement = 256;

// ---- Bits to numbers in [0, 1): random mantissa bits under the exponent of [1, 2), less 1 ----

float ToFloat(uint32_t x) { return std::bit_cast<float>((x & 0x7fffff) | 0x3f800000) - 1.0f; }
double ToDouble(uint32_t high, uint32_t low) {
  return std::bit_cast<double>((uint64_t{high & 0xfffff} << 32) | low | (uint64_t{1023} << 52)) - 1.0;
}
half ToHalf(uint32_t x) { return half(float(std::bit_cast<half>(uint16_t((x & 0x3ff) | (15 << 10)))) - 1.0f); }
bfloat16 ToBfloat16(uint32_t x) { return bfloat16(float(std::bit_cast<bfloat16>(uint16_t((x & 0x7f) | (127 << 7)))) - 1.0f); }

// Two normal numbers from two uniform ones (Box and Muller); very small ones are kept away from the logarithm.
void BoxMuller(uint32_t x0, uint32_t x1, float* y) {
  const float u = std::max(ToFloat(x0), 1.0e-7f);
  const float angle = float(2.0 * M_PI * double(ToFloat(x1))), radius = std::sqrt(-2.0f * std::log(u));
  float sine, cosine;
  sincosf(angle, &sine, &cosine);
  y[0] = sine * radius;
  y[1] = cosine * radius;
}
void BoxMuller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* y) {
  const double u = std::max(ToDouble(x0, x1), 1.0e-7);
  const double angle = 2 * M_PI * ToDouble(x2, x3), radius = std::sqrt(-2.0 * std::log(u));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  y[0] = sine * radius;
  y[1] = cosine * radius;
}

// ---- Distributions: a group of kGroup outputs from the stream at its place, which is kBlocks blocks after the group before ----

// Every group takes one block.
template <class T>
struct Plain {
  using Value = T;
  static constexpr int64_t kGroup = sizeof(T) == 8 ? 2 : 4, kBlocks = 1;
};

template <class T>
struct Uniform : Plain<T> {
  static constexpr int64_t kCost = 16;  // per element, in units of ParallelFor
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    if constexpr (std::is_same_v<T, double>) {
      for (size_t i = 0; i < 2; ++i) y[i] = ToDouble(x[2 * i], x[2 * i + 1]);
    } else {
      for (size_t i = 0; i < 4; ++i) {
        if constexpr (std::is_same_v<T, float>)
          y[i] = ToFloat(x[i]);
        else if constexpr (std::is_same_v<T, half>)
          y[i] = ToHalf(x[i]);
        else
          y[i] = ToBfloat16(x[i]);
      }
    }
  }
};

template <class T>
struct UniformInt : Plain<T> {
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int64_t kCost = 24;
  T low;
  Unsigned range;  // may exceed T's largest
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    for (size_t i = 0; i < size_t(Plain<T>::kGroup); ++i) {
      Unsigned bits;
      if constexpr (sizeof(T) == 8)
        bits = x[2 * i] | (uint64_t{x[2 * i + 1]} << 32);
      else
        bits = x[i];
      y[i] = T(Unsigned(low) + bits % range);
    }
  }
};

template <class T>
struct Normal : Plain<T> {
  static constexpr int64_t kCost = 80;
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    if constexpr (std::is_same_v<T, double>) {
      BoxMuller(x[0], x[1], x[2], x[3], y);
    } else {
      float f[4];
      BoxMuller(x[0], x[1], f);
      BoxMuller(x[2], x[3], f + 2);
      for (int i = 0; i < 4; ++i) y[i] = T(f[i]);
    }
  }
};

// Draws again for what lies 2 or further out, from the room that the group has for it.
template <class T>
struct TruncatedNormal {
  using Value = T;
  static constexpr int64_t kGroup = sizeof(T) == 8 ? 2 : 4, kBlocks = kGroup * int64_t(kBlocksPerElement) / 4;
  static constexpr int64_t kCost = 100;
  void operator()(Philox& stream, T* y) const {
    for (int64_t made = 0;;) {
      const Philox::Block x = stream.Next();
      Wide<T> pair[4];
      int drawn = 2;
      if constexpr (std::is_same_v<T, double>) {
        BoxMuller(x[0], x[1], x[2], x[3], pair);
      } else {
        BoxMuller(x[0], x[1], pair);
        BoxMuller(x[2], x[3], pair + 2);
        drawn = 4;
      }
      for (int i = 0; i < drawn; ++i) {
        if (!(std::abs(pair[i]) < Wide<T>(2))) continue;
        y[made++] = T(pair[i]);
        if (made == kGroup) return;
      }
    }
  }
};

// A node's stream, shared by concurrent executes.
class Stream {
 public:
  explicit Stream(const tw::Node& n) : start_(0, 0) {
    uint64_t seed = uint64_t(n.i("seed")), seed2 = uint64_t(n.i("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = (uint64_t{device()} << 32) | device();
      seed2 = (uint64_t{device()} << 32) | device();
    }
    start_ = Philox(seed, seed2);
  }
  // The range for `elements` outputs.
  Philox Take(uint64_t elements) const {
    const uint64_t blocks = elements * kBlocksPerElement;
    return start_.After(taken_.fetch_add(blocks, std::memory_order_relaxed));
  }

 private:
  Philox start_;
  mutable std::atomic<uint64_t> taken_{0};
};

template <class D>
void Fill(const tw::Frame& frame, const Stream& stream, const D& distribution, typename D::Value* y, uint64_t size) {
  const int64_t n = int64_t(size), groups = (n + D::kGroup - 1) / D::kGroup;
  const Philox start = stream.Take(size);
  ParallelFor(frame.f, groups, D::kGroup * D::kCost, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Philox at = start.After(uint64_t(g * D::kBlocks));
      typename D::Value group[D::kGroup];
      distribution(at, group);
      std::copy_n(group, std::min(D::kGroup, n - g * D::kGroup), y + g * D::kGroup);
    }
  });
}

template <class D>
class Random {
 public:
  explicit Random(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::Out<typename D::Value> output) const {
    Fill(frame, stream_, D{}, output.data(), output.size());
  }

 private:
  Stream stream_;
};

template <class T>
class RandomInt {
 public:
  explicit RandomInt(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any>, tw::In<T> minval, tw::In<T> maxval, tw::Out<T> output) const {
    if (minval.size() != 1 || maxval.size() != 1)
      Invalid("minval " + DimsText(minval.v) + " and maxval " + DimsText(maxval.v) + " must be scalars");
    if (minval[0] >= maxval[0])
      Invalid("minval is " + tw::text(int64_t(minval[0])) + ", maxval is " + tw::text(int64_t(maxval[0])) + "; minval must be the smaller");
    UniformInt<T> d;
    d.low = minval[0];
    d.range = typename UniformInt<T>::Unsigned(maxval[0]) - typename UniformInt<T>::Unsigned(minval[0]);
    Fill(frame, stream_, d, output.data(), output.size());
  }

 private:
  Stream stream_;
};

// For both types of the shape input, whose values have done their work when the output was allocated.
template <class K>
void Register(tw::Plugin& p, const std::string& op, const std::string& more_inputs, const std::string& type) {
  for (const char* shape : {"int32", "int64"}) p.kernel<K>(op + "(" + shape + more_inputs + " -> " + type + ") @CPU; nondeterministic");
}

template <template <class> class D>
void RegisterFloats(tw::Plugin& p, const std::string& op) {
  Register<Random<D<float>>>(p, op, "", "float");
  Register<Random<D<double>>>(p, op, "", "double");
  Register<Random<D<half>>>(p, op, "", "half");
  Register<Random<D<bfloat16>>>(p, op, "", "bfloat16");
}

}  // namespace

void register_random(tw::Plugin& p) {
  RegisterFloats<Uniform>(p, "RandomUniform");
  RegisterFloats<Normal>(p, "RandomStandardNormal");
  RegisterFloats<TruncatedNormal>(p, "TruncatedNormal");
  Register<RandomInt<int32_t>>(p, "RandomUniformInt", ", int32, int32", "int32");
  Register<RandomInt<int64_t>>(p, "RandomUniformInt", ", int64, int64", "int64");
}

}  // namespace thalweg::cpu
