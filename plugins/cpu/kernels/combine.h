// The ways in which an update combines with the present value, for ops that send slices to slices.
// Half and bfloat16 are computed in float and rounded once.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_

#include <string>

#include "kernels/common/arithmetic.h"
#include "kernels/common/types.h"

namespace thalweg::cpu {

struct CombineAdd {
  template <class T>
  T operator()(T a, T b) const {
    return T(Plus(Wide<T>(a), Wide<T>(b)));
  }
};
struct CombineSub {
  template <class T>
  T operator()(T a, T b) const {
    return T(Minus(Wide<T>(a), Wide<T>(b)));
  }
};
// If one value is NaN, the result is NaN.
struct CombineMax {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct CombineMin {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};

// Registers the kernels of one combiner. K<T, Combine> is a kernel class.
template <template <class, class> class K, class Combine, class... T>
void RegisterCombiner(tw::Plugin& p, const std::string& spec) {
  p.kernel<K<float, Combine>, K<double, Combine>, K<half, Combine>, K<bfloat16, Combine>, K<int8_t, Combine>, K<int16_t, Combine>,
           K<int32_t, Combine>, K<int64_t, Combine>, K<uint8_t, Combine>, K<uint16_t, Combine>, K<uint32_t, Combine>, K<uint64_t, Combine>,
           K<T, Combine>...>(spec);
}
// Registers FAMILYAdd, -Sub, -Max and -Min. `rest` is the part of the specs that follows the name.
// REQUIRES: no other K has this name, not even in another file's unnamed namespace: GCC takes
// template arguments that are templates of one name to be the same.
template <template <class, class> class K>
void RegisterCombiners(tw::Plugin& p, const std::string& family, const std::string& rest) {
  RegisterCombiner<K, CombineAdd, complex64, complex128>(p, family + "Add" + rest);
  RegisterCombiner<K, CombineSub, complex64, complex128>(p, family + "Sub" + rest);
  RegisterCombiner<K, CombineMax>(p, family + "Max" + rest);
  RegisterCombiner<K, CombineMin>(p, family + "Min" + rest);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_
