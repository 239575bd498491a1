// How an update joins what is there, for ops that send slices to slices. Half and bfloat16 are computed in float and rounded once.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_

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
// NaN wins.
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

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMBINE_H_
