#include "kernels/epilogue.h"

#include "kernels/activations.h"
#include "kernels/elementwise.h"
#include "kernels/vector.h"

namespace thalweg::cpu {
namespace {

// Wraps a loop with other parameters as an onednn::Function.
template <const Elementwise& (*kTable)(), UnaryKernel UnaryKernels::* kWhich>
void Loop(const float* x, float* y, int64_t n) {
  (kTable().unary_float.*kWhich).loop(x, y, n);
}
template <const ActivationTable& (*kTable)()>
void Elu(const float* x, float* y, int64_t n) {
  kTable().elu(x, y, n, 0);
}

template <const Elementwise& (*kElementwise)(), const ActivationTable& (*kActivations)()>
void Fill(onednn::Function* elu, onednn::Function* tanh, onednn::Function* sigmoid) {
  *elu = Elu<kActivations>;
  *tanh = Loop<kElementwise, &UnaryKernels::tanh>;
  *sigmoid = Loop<kElementwise, &UnaryKernels::sigmoid>;
}

void FillFor(Isa isa, onednn::Function* elu, onednn::Function* tanh, onednn::Function* sigmoid) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return Fill<Avx512::ElementwiseTable, Avx512::Activations>(elu, tanh, sigmoid);
#if !defined(THALWEG_ISA_WITHOUT_AVX2)
  if (isa == Isa::kAvx2) return Fill<Avx2::ElementwiseTable, Avx2::Activations>(elu, tanh, sigmoid);
#endif
#endif
  static_cast<void>(isa);
  Fill<Baseline::ElementwiseTable, Baseline::Activations>(elu, tanh, sigmoid);
}

}  // namespace
}  // namespace thalweg::cpu

namespace thalweg::onednn {

Functions::Functions(const tw_host* host) {
  using namespace cpu;
  const Isa isa = DetectIsa(host);
  const VectorTable& v = TW_CPU_FOR_ISA(isa, Vectors);
  entries_[0] = {"Relu", v.relu};
  entries_[1] = {"Relu6", v.relu6};
  entries_[2].op = "Elu", entries_[3].op = "Tanh", entries_[4].op = "Sigmoid";
  FillFor(isa, &entries_[2].loop, &entries_[3].loop, &entries_[4].loop);
}

bool Functions::Find(std::string_view op, Function* out) const {
  for (const Entry& e : entries_) {
    if (e.op != op) continue;
    *out = e.loop;
    return true;
  }
  return false;
}

void Finish(const Epilogue& e, float* c, int64_t rows, int64_t columns, int64_t step, int64_t first) {
  for (; rows > 0; --rows, c += step) {
    if (e.bias)
      for (int64_t j = 0; j < columns; ++j) c[j] += e.bias[first + j];
    if (e.function) e.function(c, c, columns);
  }
}

}  // namespace thalweg::onednn
