// Ops whose result is the input, at most with other dims, or only tells the dims.
#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

void Forward(const tw_frame* f) {
  const tw_view* to = f->out[0];
  const int64_t none = 0;  // NULL would leave the input's own dims, and a scalar's dims are NULL
  tw::check(f->host->tensor->forward(f, 0, 0, to->rank > 0 ? to->dims : &none, uint32_t(to->rank)));
}

void Identity(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0)); }
void IdentityN(tw::Frame f, tw::Many<tw::Any> input, tw::ManyOut<tw::Any>) {
  for (uint32_t k = 0; k < input.size(); ++k) tw::check(f.f->host->tensor->forward(f.f, k, k, nullptr, 0));
}
void Renamed(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { Forward(f.f); }
void RenamedBy(tw::Frame f, tw::In<tw::Any>, tw::In<tw::Any>, tw::Out<tw::Any>) { Forward(f.f); }

template <class T>
void Shape(tw::In<tw::Any> input, tw::Out<T> output) {
  for (int32_t k = 0; k < input.rank(); ++k) {
    const int64_t size = input.dim(k);
    if (int64_t(T(size)) != size)
      Invalid("axis " + tw::text(k) + " has " + tw::text(size) + " elements, which does not fit; ask for int64");
    output[uint64_t(k)] = T(size);
  }
}
template <class T>
void Size(tw::In<tw::Any> input, tw::Out<T> output) {
  if (uint64_t(T(input.size())) != input.size()) Invalid("the number of elements does not fit; ask for int64");
  output[0] = T(input.size());
}
void Rank(tw::In<tw::Any> input, tw::Out<int32_t> output) { output[0] = input.rank(); }
void NoOp(tw::Frame) {}

}  // namespace

void register_views(tw::Plugin& p) {
  p.kernel<Identity>("Identity @OPENCL; cheap; view output=input");
  for (const char* op : {"StopGradient", "PreventGradient", "EnsureShape"})
    p.kernel<Identity>(std::string(op) + " @OPENCL; cheap; view output=input");
  p.kernel<IdentityN>("IdentityN @OPENCL; cheap; view output=input");
  p.kernel<RenamedBy>("Reshape @OPENCL; cheap; host shape; view output=tensor");
  p.kernel<RenamedBy>("ExpandDims @OPENCL; cheap; host dim; view output=input");
  p.kernel<Renamed>("Squeeze @OPENCL; cheap; view output=input");
  p.kernel<Shape<int32_t>, Shape<int64_t>>("Shape @OPENCL; cheap; host output");
  p.kernel<Size<int32_t>, Size<int64_t>>("Size @OPENCL; cheap; host output");
  p.kernel<Rank>("Rank @OPENCL; cheap; host output");
  p.kernel<NoOp>("NoOp @OPENCL; cheap");
}

}  // namespace thalweg::opencl
