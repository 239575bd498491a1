#include "kernels/matmul.h"

#include "kernels/register.h"

namespace thalweg::cpu {

void register_matmul(tw::Plugin& p) {
  p.kernel<MatMul<float>, MatMul<double>, MatMul<half>, MatMul<bfloat16>>("MatMul @CPU");
  p.kernel<MatMul<int32_t>, MatMul<int64_t>, MatMul<uint8_t>, MatMul<uint16_t>, MatMul<uint32_t>, MatMul<uint64_t>>("MatMul @CPU");
  p.kernel<MatMul<complex64>, MatMul<complex128>>("MatMul @CPU");
}

}  // namespace thalweg::cpu
