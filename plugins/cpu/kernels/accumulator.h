// Accumulator: what an accumulator resource holds: a sum of gradients, dense or by rows. Threads: one, which has the resource open for
// update.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/types.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

inline constexpr char kAccumulatorType[] = "org.thalweg.accumulator";

struct AccumulatorOptions {
  AccumulatorOptions(const tw::Node& n, bool of_rows);
  // Of another that asks for the accumulator of this name. Throws unless it may have it.
  void CheckSame(const AccumulatorOptions& asked, const std::string& name) const;

  bool sparse;
  uint32_t dtype;
  bool mean, ranked;
  std::vector<int64_t> dims;  // -1: any size
};

// The sum of `count` gradients. Where a mean is asked for, and for as long as all have the same bits, one of them: the mean of a gradient
// that is given again is that gradient, which rounded sums of three of it are not.
struct GradientSum {
  int64_t count = 0;
  bool same = false;                  // all have the bits of `values`
  std::vector<unsigned char> values;  // elements of the accumulator's type

  template <class T>
  void Add(const T* from, uint64_t n, bool mean);
  // The mean or the sum, of as many elements as there are.
  template <class T>
  void Get(bool mean, T* to) const;
};

struct Accumulator {
  explicit Accumulator(const AccumulatorOptions& o) : options(o) {}

  const AccumulatorOptions options;
  std::vector<int64_t> dims;            // of the sum; of a sparse one, of a row
  GradientSum dense;                    // of a dense one
  std::map<int64_t, GradientSum> rows;  // of a sparse one; each counts the gradients that have the row
  int64_t count = 0, step = 0;
  tw::Holding held;

  // What the heap takes for a row of a sparse one: a node of the map, and its values. A small block takes 32 bytes.
  static constexpr uint64_t HeapOf(uint64_t bytes) { return bytes <= 16 ? 32 : bytes + tw::kHeapBlock; }
  static constexpr uint64_t RowBytes(uint64_t values) {
    return HeapOf(sizeof(std::pair<const int64_t, GradientSum>) + 32) + HeapOf(values);
  }
  // Throws unless the kernel works on such accumulators.
  void Check(uint32_t dtype, bool sparse) const;
  // The gradients have been taken.
  void Begin() {
    if (options.sparse) held.sub(held.bytes());
    rows.clear();
    dense.count = count = 0;
    ++step;
  }
};

inline Accumulator& AccumulatorAt(const tw::Var<tw::Any>& handle) { return *static_cast<Accumulator*>(handle.handle()); }

// Opens the accumulator that its node's attributes name.
template <bool kSparse>
class AccumulatorHandle {
 public:
  explicit AccumulatorHandle(const tw::Node& n);
  void operator()(tw::Frame f, tw::Out<tw::Any> handle) const;

 private:
  const AccumulatorOptions options_;
  std::string container_, name_;
};

// Waits for as many gradients as are required; true: they are there, and nobody comes before this call.
bool HasEnough(tw::Frame f, const Accumulator& a, tw::In<int32_t> num_required);

// What the sum of n is divided by.
template <class T>
Wide<T> Divisor(int64_t n) {
  return Wide<T>(T(float(n)));
}

template <class T>
void GradientSum::Add(const T* from, uint64_t n, bool mean) {
  const uint64_t bytes = n * sizeof(T);
  if (count++ == 0) {
    values.resize(bytes);
    if (bytes) std::memcpy(values.data(), from, bytes);
    same = mean;
    return;
  }
  if (same && (bytes == 0 || std::memcmp(values.data(), from, bytes) == 0)) return;
  T* sum = reinterpret_cast<T*>(values.data());
  for (uint64_t i = 0; i < n; ++i) {
    const T one = sum[i];
    for (int64_t k = 2; same && k < count; ++k) sum[i] = T(Wide<T>(sum[i]) + Wide<T>(one));
    sum[i] = T(Wide<T>(sum[i]) + Wide<T>(from[i]));
  }
  same = false;
}

template <class T>
void GradientSum::Get(bool mean, T* to) const {
  const T* sum = reinterpret_cast<const T*>(values.data());
  const uint64_t n = values.size() / sizeof(T);
  for (uint64_t i = 0; i < n; ++i) to[i] = mean && !same ? T(Wide<T>(sum[i]) / Divisor<T>(count)) : sum[i];
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_
