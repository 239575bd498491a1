// The loops of optimizers for complex numbers, which do not gain from an instruction set.
#include <complex>

namespace thalweg::cpu {
namespace {

template <class T>
std::complex<T> Sqrt(const std::complex<T>& x) {
  return std::sqrt(x);
}

}  // namespace
}  // namespace thalweg::cpu

#include "kernels/apply.h"
#include "kernels/update_loops.h"

namespace thalweg::cpu {

template <class T>
const UpdateLoops<T>& ComplexUpdates() {
  static constexpr UpdateLoops<T> loops = UnorderedLoops<T>();
  return loops;
}
template const UpdateLoops<complex64>& ComplexUpdates();
template const UpdateLoops<complex128>& ComplexUpdates();

}  // namespace thalweg::cpu
