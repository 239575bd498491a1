// An op with an attribute, in C++: y = factor * x. Needs only the public headers:
//
//     c++ -std=c++17 -shared -fPIC -I<prefix>/include -Wl,--version-script=<prefix>/include/thalweg/plugin.map scale.cc -o libscale.so
#include "thalweg/cpp/plugin.hpp"

namespace {

// The constructor runs once per node and reads attributes; the call operator runs once per step.
template <class T>
struct Scale {
  T factor;
  explicit Scale(const tw::Node& n) : factor(T(n.f("factor"))) {}
  void operator()(tw::In<T> x, tw::Out<T> y) const {
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
  }
};

void Gradient(const tw::Grad& g) { g.dx(0, g.op("Scale", {g.dy()}, {{"factor", g.f("factor")}})); }

}  // namespace

TW_CPP_PLUGIN("org.example.scale", "1.0", p) {
  p.op<Gradient>("Scale(x: T[*s]) -> (y: T[*s]); T: {float, double}; factor: float = 1; doc \"factor times x\"");
  p.kernel<Scale<float>, Scale<double>>("Scale @CPU; inplace y=x");
}
