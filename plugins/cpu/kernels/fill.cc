// Tensors of one value: Fill, ZerosLike, OnesLike.
#include <cstring>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Fill(tw::Frame f, tw::In<tw::Any>, tw::In<tw::Any> value, tw::Out<tw::Any> output) {
  FillRun(f.f, value.v, output.v(), 0, int64_t(output.size()));
}

void ZerosLike(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any> y) { FillZero(f.f, y.v()); }

// Writes a 1 of this type to `one`, which is zero. Returns false for types without a 1.
bool SetOne(uint32_t dtype, char* one) {
  auto set = [one](auto v) { std::memcpy(one, &v, sizeof v); };
  switch (dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: set(1.f); return true;
    case TW_DOUBLE:
    case TW_COMPLEX128: set(1.0); return true;
    case TW_HALF: set(uint16_t{0x3c00}); return true;
    case TW_BFLOAT16: set(uint16_t{0x3f80}); return true;
    case TW_BOOL:
    case TW_INT8:
    case TW_INT16:
    case TW_INT32:
    case TW_INT64:
    case TW_UINT8:
    case TW_UINT16:
    case TW_UINT32:
    case TW_UINT64:
      set(uint8_t{1});  // little-endian: the lowest byte comes first
      return true;
    default: return false;
  }
}

void OnesLike(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any> y) {
  char one[16] = {};
  tw_view value{};
  value.data = one;
  value.dtype = y.v()->dtype;
  value.count = 1;
  if (!SetOne(value.dtype, one)) throw tw::Error{TW_UNIMPLEMENTED, "there is no 1 of type " + TypeText(value.dtype)};
  FillRun(f.f, &value, y.v(), 0, int64_t(y.size()));
}

}  // namespace

void register_fill(tw::Plugin& p) {
  p.kernel<Fill>("Fill @CPU");
  p.kernel<ZerosLike>("ZerosLike @CPU; inplace y=x");
  p.kernel<OnesLike>("OnesLike @CPU; inplace y=x");
}

}  // namespace thalweg::cpu
