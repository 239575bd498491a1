// Bitcast: the same bytes under another type. A tensor has one type, so they are copied unless the memory can be taken over.
#include <cstring>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Bitcast(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) {
  if (output.v()->bytes != input.v->bytes) throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v())};
  if (output.data() == input.data()) return;
  ParallelFor(f.f, int64_t(input.v->bytes), 1,
              [&](int64_t begin, int64_t end) { std::memcpy(output.data() + begin, input.data() + begin, size_t(end - begin)); });
}

}  // namespace

void register_bitcast(tw::Plugin& p) { p.kernel<Bitcast>("Bitcast @CPU; inplace output=input"); }

}  // namespace thalweg::cpu
