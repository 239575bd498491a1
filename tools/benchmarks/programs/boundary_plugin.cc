// The plugin of row 33: an op that adds one to a scalar, with kernels on the bare frame and through
// the C++ sugar, and an op that does nothing.
#include "thalweg/cpp/plugin.hpp"

namespace {

tw_status* IncrementBare(const tw_frame* f) {
  *static_cast<float*>(f->out[0]->data) = *static_cast<const float*>(f->in[0]->data) + 1;
  return nullptr;
}

void Increment(tw::In<float> x, tw::Out<float> y) { y[0] = x[0] + 1; }

void Nothing(tw::Frame) {}

}  // namespace

TW_CPP_PLUGIN("org.thalweg.boundary", "1.0", p) {
  p.op("IncrementBare(x: float[]) -> (y: float[])").add("IncrementBare @CPU; cheap", nullptr, IncrementBare, nullptr, nullptr);
  p.op("Increment(x: float[]) -> (y: float[])").kernel<Increment>("Increment @CPU; cheap");
  p.op("Nothing() -> ()").kernel<Nothing>("Nothing @CPU; cheap");
}
