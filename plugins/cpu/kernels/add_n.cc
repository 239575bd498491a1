// AddN, AccumulateNV2: the sum of any number of tensors of one shape, added from first to last.
// Half and bfloat16 are added in float.
#include <algorithm>
#include <cstring>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kChunk = 512;  // elements whose sum stays on the stack while the inputs are read

// Computes elements [at, at + n) of the sum. The output may be any one of the inputs, because it is
// written last.
void AddChunk(const tw_frame* f, const BinaryKernel& k, int64_t at, int64_t n) {
  alignas(64) char sum[kChunk * sizeof(complex128)];
  alignas(64) float wide[kChunk];
  auto input = [&](uint32_t i) { return Bytes(f->in[i]) + at * k.xy_bytes; };
  auto load = [&](uint32_t i, float* to) { k.load(reinterpret_cast<const uint16_t*>(input(i)), to, n); };
  if (k.load)
    load(0, reinterpret_cast<float*>(sum));
  else
    std::memcpy(sum, input(0), size_t(n) * k.xy_bytes);
  for (uint32_t i = 1; i < f->n_in; ++i) {
    if (k.load) load(i, wide);
    k.loop(sum, 1, k.load ? reinterpret_cast<const char*>(wide) : input(i), 1, sum, n);
  }
  char* to = Bytes(f->out[0]) + at * k.z_bytes;
  if (k.store)
    k.store(reinterpret_cast<float*>(sum), reinterpret_cast<uint16_t*>(to), n);
  else
    std::memcpy(to, sum, size_t(n) * k.z_bytes);
}

void RunAddN(const tw_frame* f, const BinaryKernel& k) {
  for (uint32_t i = 1; i < f->n_in; ++i)
    if (f->in[i]->count != f->in[0]->count)
      Invalid("input " + std::to_string(i) + " is " + DimsText(f->in[i]) + ", not " + DimsText(f->in[0]));
  if (f->n_in == 2) return RunBinary(f, k);
  const int64_t count = int64_t(f->out[0]->count);
  ParallelFor(f, count, f->n_in, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kChunk) AddChunk(f, k, begin, std::min(kChunk, end - begin));
  });
}

void AddType(tw::Plugin& p, const char* type, const BinaryKernel& k) {
  for (const char* op : {"AddN", "AccumulateNV2"})
    AddKernel<RunAddN>(p, std::string(op) + "(" + type + " -> " + type + ") @CPU; inplace sum=inputs", k);
}

template <class... T>
void AddTypes(tw::Plugin& p) {
  (AddType(p, tw::dtype<T>, kZip<kAdd, T, T, 1>), ...);
}

}  // namespace

void register_add_n(tw::Plugin& p) {
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  AddType(p, "float", t.binary_float.add);
  AddType(p, "half", t.binary_half.add);
  AddType(p, "bfloat16", t.binary_bfloat16.add);
  AddTypes<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(p);
}

}  // namespace thalweg::cpu
