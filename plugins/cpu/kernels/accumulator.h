// Accumulator: the object of an accumulator resource. It holds a sum of gradients, dense or by
// rows. Threads: one, which has the resource open for update.
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
  // Throws unless a node with the options `asked` may use the accumulator of this name.
  void CheckSame(const AccumulatorOptions& asked, const std::string& name) const;

  bool sparse;
  uint32_t dtype;
  bool mean, ranked;
  std::vector<int64_t> dims;  // -1: any size
};

// The sum of `count` gradients. If a mean is wanted and all gradients so far have the same bits,
// `values` holds one gradient instead of the sum. The mean of equal gradients is then exactly that
// gradient; rounded sums of three of them would not give it.
struct GradientSum {
  int64_t count = 0;
  bool same = false;                  // `values` is one gradient, and all gradients have its bits
  std::vector<unsigned char> values;  // elements of the accumulator's type

  template <class T>
  void Add(const T* from, uint64_t n, bool mean);
  // Writes the mean or the sum to `to`, which has room for all elements.
  template <class T>
  void Get(bool mean, T* to) const;
};

struct Accumulator {
  explicit Accumulator(const AccumulatorOptions& o) : options(o) {}

  const AccumulatorOptions options;
  std::vector<int64_t> dims;            // of the sum; in a sparse accumulator, of a row
  GradientSum dense;                    // of a dense accumulator
  std::map<int64_t, GradientSum> rows;  // of a sparse accumulator; each sum counts the gradients that have the row
  int64_t count = 0, step = 0;
  tw::Holding held;

  // The heap bytes of a row of a sparse accumulator: a node of the map, and its values. A small
  // block takes 32 bytes.
  static constexpr uint64_t HeapOf(uint64_t bytes) { return bytes <= 16 ? 32 : bytes + tw::kHeapBlock; }
  static constexpr uint64_t RowBytes(uint64_t values) {
    return HeapOf(sizeof(std::pair<const int64_t, GradientSum>) + 32) + HeapOf(values);
  }
  // Throws unless the kernel's element type and sparsity match the accumulator's.
  void Check(uint32_t dtype, bool sparse) const;
  // Starts a new sum after the gradients have been taken.
  void Begin() {
    if (options.sparse) held.sub(held.bytes());
    rows.clear();
    dense.count = count = 0;
    ++step;
  }
};

inline Accumulator& AccumulatorAt(const tw::Var<tw::Any>& handle) { return *static_cast<Accumulator*>(handle.handle()); }

// The kernel that opens the accumulator that its node's attributes name.
template <bool kSparse>
class AccumulatorHandle {
 public:
  explicit AccumulatorHandle(const tw::Node& n);
  void operator()(tw::Frame f, tw::Out<tw::Any> handle) const;

 private:
  const AccumulatorOptions options_;
  std::string container_, name_;
};

// Returns true if num_required gradients have arrived and no other call waits before this one. Else
// puts the call in the wait queue of the resource and returns false.
bool HasEnough(tw::Frame f, const Accumulator& a, tw::In<int32_t> num_required);

// Returns the number by which a sum of n gradients is divided.
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
