// Accumulator: what an accumulator resource holds: a sum of gradients, dense or by rows. Threads: one, which has the resource open for
// update.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_

#include <map>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/types.h"

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

struct Accumulator {
  struct Row {
    int64_t count = 0;  // gradients that have it
    std::vector<unsigned char> sum;
  };

  explicit Accumulator(const AccumulatorOptions& o) : options(o) {}

  const AccumulatorOptions options;
  std::vector<int64_t> dims;       // of the sum; of a sparse one, of a row
  std::vector<unsigned char> sum;  // elements of options.dtype
  std::map<int64_t, Row> rows;     // of a sparse one
  int64_t count = 0, step = 0;

  // Throws unless the kernel works on such accumulators.
  void Check(uint32_t dtype, bool sparse) const;
  // The gradients have been taken.
  void Begin() {
    rows.clear();
    count = 0;
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

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ACCUMULATOR_H_
