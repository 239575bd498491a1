// ConcatV2, Concat and Pack join tensors along an existing axis or a new one. ConcatOffset computes
// the offset of each tensor.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Each input in turn gives `run` elements to each of `outer` rows of the output.
void Join(const tw_frame* f, const tw::Many<tw::Any>& values, const tw_view* to, int64_t outer) {
  if (to->count == 0) return;
  uint64_t total = 0;
  for (uint32_t i = 0; i < values.size(); ++i) total += values[i].size();
  if (total != to->count)
    throw tw::Error{TW_INTERNAL, "inputs of " + std::to_string(total) + " elements for an output of shape " + DimsText(to)};
  const int64_t row = int64_t(to->count) / outer;
  int64_t at = 0;
  for (uint32_t i = 0; i < values.size(); ++i) {
    const int64_t run = int64_t(values[i].size()) / outer;
    Box box;
    box.Add(outer, run, row);
    box.Add(run, 1, 1);
    CopyBox(f, box, values[i].v, 0, to, at);
    at += run;
  }
}

void Concat(tw::Frame f, tw::Many<tw::Any> values, tw::In<tw::Any> axis, tw::Out<tw::Any> output) {
  const int k = Axis(IndexAt(axis.v, 0), output.rank());
  Join(f.f, values, output.v(), Product(output.dims(), 0, k));
}

void ConcatAxisFirst(tw::Frame f, tw::In<int32_t> axis, tw::Many<tw::Any> values, tw::Out<tw::Any> output) {
  Join(f.f, values, output.v(), Product(output.dims(), 0, Axis(axis[0], output.rank(), "concat_dim")));
}

template <class T>
void ConcatOffset(tw::In<int32_t> axis, tw::Many<T> shape, tw::ManyOut<T> offset) {
  const uint64_t rank = shape[0].size(), k = uint64_t(Axis(axis[0], int(std::min<uint64_t>(rank, kMaxRank)), "concat_dim"));
  T at = 0;
  for (uint32_t i = 0; i < shape.size(); ++i) {
    for (uint64_t d = 0; d < rank; ++d) {
      offset[i][d] = d == k ? at : 0;
      if (d == k || shape[i][d] == shape[0][d]) continue;
      Invalid("shape " + std::to_string(i) + " has size " + std::to_string(shape[i][d]) + " on axis " + std::to_string(d) +
              ", shape 0 has " + std::to_string(shape[0][d]) + "; they must agree apart from concat_dim " + std::to_string(k));
    }
    if (__builtin_add_overflow(at, shape[i][k], &at)) {
      Invalid("shape " + std::to_string(i) + " has size " + std::to_string(shape[i][k]) + " along axis " + std::to_string(k) +
              ", which with those before is more than the type holds");
    }
  }
}

class Pack {
 public:
  explicit Pack(const tw::Node& n) : axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> values, tw::Out<tw::Any> output) const {
    Join(f.f, values, output.v(), Product(output.dims(), 0, Axis(axis_, output.rank())));
  }

 private:
  int64_t axis_;
};

}  // namespace

void register_concat(tw::Plugin& p) {
  p.kernel<Concat>("ConcatV2 @CPU");
  p.kernel<ConcatAxisFirst>("Concat @CPU");
  p.kernel<ConcatOffset<int32_t>, ConcatOffset<int64_t>>("ConcatOffset @CPU; cheap");
  p.kernel<Pack>("Pack @CPU");
}

}  // namespace thalweg::cpu
