// A whole op in C++: Swish, y = x / (1 + exp(-x)), with its shape rule, gradient and CPU kernels.
// Needs only the public headers:
//
//     c++ -std=c++17 -shared -fPIC -I<prefix>/include -Wl,--version-script=<prefix>/include/thalweg/plugin.map swish.cc -o libswish.so
//
// Without the version script, the library would also export symbols of the standard library's
// templates.
#include <cmath>

#include "thalweg/cpp/plugin.hpp"

template <class T>
static void Swish(tw::In<T> x, tw::Out<T> y) {
  for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i] / (1 + std::exp(-x[i]));
}

// With s = 1 / (1 + exp(-x)), dx = dy (s + y (1 - s)). All of its ops have gradients themselves.
static void Gradient(const tw::Grad& g) {
  const tw_edge s = g.op("Sigmoid", {g.x(0)}), rest = g.op("Sub", {g.scalar(1), s});
  g.dx(0, g.op("Mul", {g.dy(), g.op("AddV2", {s, g.op("Mul", {g.y(), rest})})}));
}

TW_CPP_PLUGIN("org.example.swish", "1.0", p) {
  p.op<Gradient>("Swish(x: T[*s]) -> (y: T[*s]); T: {float, double}; doc \"x times its sigmoid\"");
  p.kernel<Swish<float>, Swish<double>>("Swish @CPU; inplace y=x");
}
