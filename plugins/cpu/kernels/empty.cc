// Empty.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Empty(tw::Frame f, tw::In<int32_t>, tw::Out<tw::Any> output) { FillZero(f.f, output.v()); }

}  // namespace

void register_empty(tw::Plugin& p) { p.kernel<Empty>("Empty @CPU"); }

}  // namespace thalweg::cpu
