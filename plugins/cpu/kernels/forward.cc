// Ops whose result is their input, at most with other dims. They copy nothing.
#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void ForwardInput(const tw_frame* f, uint32_t i, uint32_t o) {
  const tw_view* to = f->out[o];
  if (to->rank < 0) throw tw::Error{TW_INTERNAL, "the shape of output " + std::to_string(o) + " was not planned"};
  // NULL would keep the input's own dims, and the dims of a scalar are NULL.
  const int64_t none = 0;
  tw::check(f->host->tensor->forward(f, i, o, to->rank > 0 ? to->dims : &none, uint32_t(to->rank)));
}

// Keeps the input's own dims, because the shape rule may know less of the output than of the input
// (PlaceholderWithDefault). EnsureShape's condition has been checked by now, whenever the shape
// became known.
void Forward(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0)); }
void Squeeze(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { ForwardInput(f.f, 0, 0); }
// The shape rule has already used the second input.
void Reshape(tw::Frame f, tw::In<tw::Any>, tw::In<tw::Any>, tw::Out<tw::Any>) { ForwardInput(f.f, 0, 0); }

void ForwardAll(tw::Frame f, tw::Many<tw::Any> input, tw::ManyOut<tw::Any>) {
  for (uint32_t i = 0; i < input.size(); ++i) ForwardInput(f.f, i, i);
}

}  // namespace

void register_forward(tw::Plugin& p) {
  for (const char* op : {"EnsureShape", "Identity", "StopGradient", "PreventGradient", "PlaceholderWithDefault"})
    p.kernel<Forward>(std::string(op) + " @CPU; cheap; view output=input");
  p.kernel<Squeeze>("Squeeze @CPU; cheap; view output=input");
  p.kernel<Reshape>("Reshape @CPU; cheap; view output=tensor");
  p.kernel<Reshape>("ExpandDims @CPU; cheap; view output=input");
  p.kernel<ForwardAll>("IdentityN @CPU; cheap; view output=input");
}

}  // namespace thalweg::cpu
