// ResourceGather: rows of a variable, selected by index under its read lock.
#include "kernels/common/element.h"
#include "kernels/gather.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class ResourceGather {
 public:
  explicit ResourceGather(const tw::Node& n) : batch_dims_(n.i("batch_dims")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> indices, tw::Out<tw::Any> output) const {
    if (batch_dims_ < 0 || batch_dims_ > indices.rank() || batch_dims_ >= resource.rank()) {
      Invalid("batch_dims " + std::to_string(batch_dims_) + " does not fit indices of shape " + DimsText(indices.v) +
              " and the variable of shape " + DimsText(resource.v));
    }
    if (resource.v->dtype != output.v()->dtype)
      Invalid("the variable is " + TypeText(resource.v->dtype) + ", not " + TypeText(output.v()->dtype) + " as 'dtype' says");
    const int axis = int(batch_dims_);
    Ints dims;
    for (int i = 0; i < axis; ++i) dims.push(resource.dim(i));
    for (int i = axis; i < indices.rank(); ++i) dims.push(indices.dim(i));
    for (int i = axis + 1; i < resource.rank(); ++i) dims.push(resource.dim(i));
    Allocate(output, dims.at, dims.n);
    GatherAlong(f.f, resource.v, indices.v, axis, axis, output.v());
  }

 private:
  int64_t batch_dims_;
};

}  // namespace

void register_resource_gather(tw::Plugin& p) { p.kernel<ResourceGather>("ResourceGather @CPU; read resource"); }

}  // namespace thalweg::cpu
