#include "kernels/batch_matmul.h"

#include "kernels/register.h"

namespace thalweg::cpu {

void register_batch_matmul(tw::Plugin& p) {
  p.kernel<BatchMatMul<float>, BatchMatMul<double>, BatchMatMul<half>, BatchMatMul<bfloat16>>("BatchMatMul @CPU");
  p.kernel<BatchMatMul<int32_t>, BatchMatMul<int64_t>, BatchMatMul<complex64>, BatchMatMul<complex128>>("BatchMatMul @CPU");
  p.kernel<BatchMatMul<float>, BatchMatMul<double>, BatchMatMul<half>, BatchMatMul<bfloat16>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<int16_t>, BatchMatMul<int32_t>, BatchMatMul<int64_t>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<uint8_t>, BatchMatMul<uint16_t>, BatchMatMul<uint32_t>, BatchMatMul<uint64_t>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<complex64>, BatchMatMul<complex128>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMulV3<float>, BatchMatMulV3<double>, BatchMatMulV3<half>, BatchMatMulV3<bfloat16>>("BatchMatMulV3 @CPU");
  p.kernel<BatchMatMulV3<int16_t>, BatchMatMulV3<int32_t>, BatchMatMulV3<int64_t>>("BatchMatMulV3 @CPU");
  p.kernel<BatchMatMulV3<complex64>, BatchMatMulV3<complex128>>("BatchMatMulV3 @CPU");
}

}  // namespace thalweg::cpu
