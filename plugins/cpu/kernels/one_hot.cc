// OneHot: adds an axis along which one element is on and the others are off. If an index is outside
// [0, depth), all are off.
#include <cstring>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class OneHot {
 public:
  explicit OneHot(const tw::Node& n) : axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> indices, tw::In<int32_t> depth, tw::In<tw::Any> on_value, tw::In<tw::Any> off_value,
                  tw::Out<tw::Any> output) const {
    FillRun(f.f, off_value.v, output.v(), 0, int64_t(output.size()));
    const int axis = Axis(axis_, indices.rank() + 1);
    const int64_t on = depth[0], inner = Product(indices.dims(), axis, indices.rank());
    if (int64_t(indices.size()) * on != int64_t(output.size()))
      throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v()) + " for depth " + std::to_string(on)};
    const size_t bytes = ElementBytes(on_value.v->dtype);
    for (uint64_t i = 0; i < indices.size(); ++i) {
      const int64_t k = IndexAt(indices.v, i);
      if (k < 0 || k >= on) continue;
      const int64_t row = int64_t(i) / inner, at = (row * on + k) * inner + int64_t(i) % inner;
      if (bytes)
        std::memcpy(output.data() + size_t(at) * bytes, on_value.data(), bytes);
      else
        FillRun(f.f, on_value.v, output.v(), at, 1);
    }
  }

 private:
  int64_t axis_;
};

}  // namespace

void register_one_hot(tw::Plugin& p) { p.kernel<OneHot>("OneHot @CPU"); }

}  // namespace thalweg::cpu
