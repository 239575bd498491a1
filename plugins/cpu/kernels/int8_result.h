// The results of products of 8 bits that continue behind them: a bias, Relu, and sums, floats or
// numbers of 8 bits of another range. Threads: pure once constructed.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_INT8_RESULT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_INT8_RESULT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/common/temp.h"
#include "kernels/int8_block.h"
#include "kernels/quantised.h"

namespace thalweg::cpu {

// The inputs of such an op, in the words of its arguments. step_a: the float from one number of a to
// the next. b is SCALED qint8, with a range for all columns or one for each.
struct Int8ResultArgs {
  int64_t columns;
  double step_a;
  const tw_view *bias, *min_b, *max_b;  // bias: float, or qint32 in steps of a's step times b's
  const char *min_b_name, *max_b_name;
  const tw_view *min_out, *max_out;
};

// Checks that an input has an entry for each column of the result, or, if `one` allows it, a single
// entry.
inline void CheckColumns(const tw_view* v, uint64_t columns, const char* name, bool one) {
  if (v->count == columns || (one && v->count == 1)) return;
  Invalid(std::string("'") + name + "' has " + std::to_string(v->count) + " entries, but the result has " + std::to_string(columns) +
          (one ? " columns; give one entry, or one for each column" : " columns; give one for each"));
}

// The float that one step of column j's sums stands for.
inline double StepOfSums(const Int8ResultArgs& args, uint64_t j) {
  return args.step_a * ScaledStep(RangeAt(args.min_b, args.max_b, j, args.min_b_name, args.max_b_name), true);
}

// result[j] = sums[j] * scale[j] + offset[j].
class Int8Result {
 public:
  // out: TW_QUINT8, TW_QINT8 or TW_FLOAT.
  Int8Result(const Int8Table& t, const tw_frame* f, const Int8ResultArgs& args, uint32_t out, bool relu)
      : table_(t), scale_(f, size_t(args.columns)), offset_(f, size_t(args.columns)) {
    const auto columns = uint64_t(args.columns);
    CheckColumns(args.bias, columns, "bias", false);
    CheckColumns(args.min_b, columns, args.min_b_name, true);
    CheckColumns(args.max_b, columns, args.max_b_name, true);
    if (out != TW_FLOAT) {
      const FloatRange r = RangeAt(args.min_out, args.max_out, 0, "min_freezed_output", "max_freezed_output");
      step_ = ScaledStep(r, out == TW_QINT8);
      if (step_ == 0) Invalid(RangeNames("min_freezed_output", "max_freezed_output", r) + "; results need a range that is longer than 0");
      low_ = out == TW_QINT8 && !relu ? -128 : 0;
      high_ = out == TW_QINT8 ? 127 : 255;
    }
    for (uint64_t j = 0; j < columns; ++j) {
      const double step = StepOfSums(args, j);
      scale_[j] = float(step / step_);
      offset_[j] = float((args.bias->dtype == TW_FLOAT ? double(reinterpret_cast<const float*>(Bytes(args.bias))[j])
                                                       : double(reinterpret_cast<const int32_t*>(Bytes(args.bias))[j]) * step) /
                         step_);
    }
  }

  double step() const { return step_; }
  const float* offset() const { return offset_.data(); }

  // Results of columns [j, j + n). offset: instead of offset() + j.
  void ToBytes(int64_t j, int64_t n, const int32_t* sums, uint8_t* to, const float* offset = nullptr) const {
    table_.to_bytes(n, sums, scale_.data() + j, offset ? offset : offset_.data() + j, low_, high_, to);
  }
  void ToFloats(int64_t j, int64_t n, const int32_t* sums, float* to) const {
    table_.to_floats(n, sums, scale_.data() + j, offset_.data() + j, to);
  }

 private:
  const Int8Table& table_;
  TempArray<float> scale_, offset_;
  double step_ = 1;
  float low_ = 0, high_ = 0;
};

// result[j] = sums[j] + the bias in steps of column j's sums, modulo 2^32; with Relu at least 0.
// Biases of floats are rounded, halves to even, and limited to 32 bits; NaN becomes the lowest.
class Int8Sums {
 public:
  Int8Sums(const tw_frame* f, const Int8ResultArgs& args, bool relu) : bias_(f, size_t(args.columns)), relu_(relu) {
    const auto columns = uint64_t(args.columns);
    CheckColumns(args.bias, columns, "bias", false);
    CheckColumns(args.min_b, columns, args.min_b_name, true);
    CheckColumns(args.max_b, columns, args.max_b_name, true);
    for (uint64_t j = 0; j < columns; ++j) bias_[j] = BiasOf(args, j);
  }

  void Write(int64_t j, int64_t n, const int32_t* sums, int32_t* to) const {
    const int32_t low = relu_ ? 0 : INT32_MIN;
    for (int64_t k = 0; k < n; ++k) to[k] = std::max(low, int32_t(uint32_t(sums[k]) + uint32_t(bias_[size_t(j + k)])));
  }

 private:
  static int32_t BiasOf(const Int8ResultArgs& args, uint64_t j) {
    const double step = StepOfSums(args, j);
    if (args.bias->dtype != TW_FLOAT) return reinterpret_cast<const int32_t*>(Bytes(args.bias))[j];
    const double bias = double(reinterpret_cast<const float*>(Bytes(args.bias))[j]);
    if (bias == 0) return 0;
    if (step == 0)
      Invalid("'bias' has the entry " + std::to_string(bias) + ", which no sum stands for, since a range of column " + std::to_string(j) +
              " has length 0; give longer ranges");
    const double steps = std::nearbyint(bias / step);
    return steps >= 2147483647.0 ? INT32_MAX : steps > -2147483648.0 ? int32_t(steps) : INT32_MIN;
  }

  TempArray<int32_t> bias_;
  bool relu_;
};

// The ranges of qint32 for the sums: one for all columns or one for each, as b has them.
inline void WriteRangesOfSums(const Int8ResultArgs& args, tw::Out<float>& min_out, tw::Out<float>& max_out) {
  if (min_out.size() != args.min_b->count || max_out.size() != args.max_b->count || min_out.size() != max_out.size())
    Invalid(std::string("'") + args.min_b_name + "' and '" + args.max_b_name + "' must have one shape, which is that of the range of sums");
  for (uint64_t j = 0; j < min_out.size(); ++j) {
    const double step = StepOfSums(args, j);
    min_out[j] = float(step * double(kLeastWhole<qint32>));
    max_out[j] = float(step * double(kMostWhole<qint32>));
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_INT8_RESULT_H_
