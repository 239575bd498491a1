// ConcatV2 and Pack: tensors one after the other along an axis that they have, or along a new one.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Each input gives `run` elements in turn to each of `outer` rows of the output.
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
  p.kernel<Pack>("Pack @CPU");
}

}  // namespace thalweg::cpu
