// GatherV2, Gather and GatherNd: slices of a tensor, selected by index. Indices outside the tensor
// are errors.
#include "kernels/gather.h"

#include <algorithm>

#include "kernels/common/rows.h"
#include "kernels/common/slices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class Gather {
 public:
  explicit Gather(const tw::Node& n) : batch_dims_(n.i("batch_dims")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> params, tw::In<tw::Any> indices, tw::In<tw::Any> axis, tw::Out<tw::Any> output) const {
    // Batch axes are counted in the axes of indices, and may be all of them.
    const int64_t batch_dims = batch_dims_ < 0 ? batch_dims_ + indices.rank() : batch_dims_;
    if (batch_dims < 0 || batch_dims > indices.rank())
      throw tw::Error{TW_INTERNAL, "batch_dims " + std::to_string(batch_dims_) + " does not fit indices of shape " + DimsText(indices.v)};
    GatherAlong(f.f, params.v, indices.v, Axis(IndexAt(axis.v, 0), params.rank()), int(batch_dims), output.v());
  }

 private:
  int64_t batch_dims_;
};

void GatherRows(tw::Frame f, tw::In<tw::Any> params, tw::In<tw::Any> indices, tw::Out<tw::Any> output) {
  GatherAlong(f.f, params.v, indices.v, 0, 0, output.v());
}

class GatherNd {
 public:
  explicit GatherNd(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::In<tw::Any> params, tw::In<tw::Any> indices, tw::Out<tw::Any> output) const {
    const SliceIndex index(indices.v, params.dims(), params.rank());
    CopySlices(f.f, params.v, output.v(), index.rows, index.inner, index);
  }
};

}  // namespace

void GatherAlong(const tw_frame* f, const tw_view* params, const tw_view* indices, int axis, int batch_dims, const tw_view* out) {
  const int64_t size = params->dims[axis], inner = Product(params->dims, axis + 1, params->rank);
  CheckIndices(indices, 0, size, "indices");
  const int64_t picks = Product(indices->dims, batch_dims, indices->rank);
  if (batch_dims > axis || picks * Product(params->dims, 0, axis) * inner != int64_t(out->count) ||
      !std::equal(params->dims, params->dims + batch_dims, indices->dims)) {
    Invalid("indices of shape " + DimsText(indices) + " do not share " + std::to_string(batch_dims) + " batch axes before axis " +
            std::to_string(axis) + " with params of shape " + DimsText(params));
  }
  if (axis == 0) return CopySlices(f, params, out, picks, inner, [&](int64_t k) { return IndexAt(indices, uint64_t(k)) * inner; });
  const int64_t outer = Product(params->dims, batch_dims, axis), rows = Product(params->dims, 0, axis);
  CopySlices(f, params, out, rows * picks, inner, [&](int64_t k) {
    const int64_t row = k / picks;  // the row of the batch and outer axes
    return (row * size + IndexAt(indices, uint64_t(row / outer * picks + k % picks))) * inner;
  });
}

void register_gather(tw::Plugin& p) {
  p.kernel<Gather>("GatherV2 @CPU");
  p.kernel<GatherRows>("Gather @CPU");
  p.kernel<GatherNd>("GatherNd @CPU");
}

}  // namespace thalweg::cpu
