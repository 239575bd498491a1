// Ops whose result is their input, under other dims at most: nothing is copied.
#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void ForwardInput(const tw_frame* f, uint32_t i, uint32_t o) {
  const tw_view* to = f->out[o];
  if (to->rank < 0) throw tw::Error{TW_INTERNAL, "the shape of output " + std::to_string(o) + " was not planned"};
  // NULL would leave the input's own dims, and a scalar's dims are NULL.
  const int64_t none = 0;
  tw::check(f->host->tensor->forward(f, i, o, to->rank > 0 ? to->dims : &none, uint32_t(to->rank)));
}

// The input's own dims: the shape rule may know less of the output than of the input (PlaceholderWithDefault).
void Forward(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0)); }
void Squeeze(tw::Frame f, tw::In<tw::Any>, tw::Out<tw::Any>) { ForwardInput(f.f, 0, 0); }
// The second input says what the shape rule made of it.
void Reshape(tw::Frame f, tw::In<tw::Any>, tw::In<tw::Any>, tw::Out<tw::Any>) { ForwardInput(f.f, 0, 0); }

void ForwardAll(tw::Frame f, tw::Many<tw::Any> input, tw::ManyOut<tw::Any>) {
  for (uint32_t i = 0; i < input.size(); ++i) ForwardInput(f.f, i, i);
}

class EnsureShape {
 public:
  explicit EnsureShape(const tw::Node& n) : rank_(n.shape("shape").rank) {
    if (rank_ > 0) wanted_.assign(n.shape("shape").dims, n.shape("shape").dims + rank_);
  }
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any>) const {
    bool fits = rank_ < 0 || input.rank() == rank_;
    for (int32_t i = 0; fits && i < rank_; ++i) fits = wanted_[size_t(i)] < 0 || wanted_[size_t(i)] == input.dim(i);
    if (!fits) Invalid("the input is " + DimsText(input.v) + ", not " + tw::text(wanted_.data(), rank_) + " as 'shape' says");
    tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0));
  }

 private:
  int32_t rank_;
  std::vector<int64_t> wanted_;
};

}  // namespace

void register_forward(tw::Plugin& p) {
  for (const char* op : {"Identity", "StopGradient", "PreventGradient", "PlaceholderWithDefault"})
    p.kernel<Forward>(std::string(op) + " @CPU; cheap; view output=input");
  p.kernel<Squeeze>("Squeeze @CPU; cheap; view output=input");
  p.kernel<Reshape>("Reshape @CPU; cheap; view output=tensor");
  p.kernel<Reshape>("ExpandDims @CPU; cheap; view output=input");
  p.kernel<ForwardAll>("IdentityN @CPU; cheap; view output=input");
  p.kernel<EnsureShape>("EnsureShape @CPU; cheap; view output=input");
}

}  // namespace thalweg::cpu
