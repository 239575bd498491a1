// ResourceGatherNd: slices of a variable, selected by index vectors under its read lock.
#include "kernels/common/rows.h"
#include "kernels/common/slices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void ResourceGatherNd(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> indices, tw::Out<tw::Any> output) {
  if (resource.v->dtype != output.v()->dtype)
    Invalid("the variable is " + TypeText(resource.v->dtype) + ", not " + TypeText(output.v()->dtype) + " as 'dtype' says");
  if (indices.rank() < 1) Invalid("indices must be index vectors, but are a scalar");
  const SliceIndex index(indices.v, resource.dims(), resource.rank());
  Ints dims;
  for (int i = 0; i + 1 < indices.rank(); ++i) dims.push(indices.dim(i));
  for (int i = int(indices.dim(-1)); i < resource.rank(); ++i) dims.push(resource.dim(i));
  Allocate(output, dims.at, dims.n);
  CopySlices(f.f, resource.v, output.v(), index.rows, index.inner, index);
}

}  // namespace

void register_resource_gather_nd(tw::Plugin& p) { p.kernel<ResourceGatherNd>("ResourceGatherNd @CPU; read resource"); }

}  // namespace thalweg::cpu
