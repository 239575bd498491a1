// A stranger's op that takes a function as an attribute and calls it: Repeat, f of f of ... of x.
#include "thalweg/cpp/function.hpp"

class Repeat {
 public:
  explicit Repeat(const tw::Node& n) : f_(tw::function(n, "f")), times_(n.i("times")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> x, tw::ManyOut<tw::Any> y) const {
    tw::Values values = tw::keep(f, x);
    for (int64_t i = 0; i < times_; ++i) values = f_(f, std::move(values));
    tw::give(y, values);
  }

 private:
  tw::Function f_;
  int64_t times_;
};

TW_CPP_PLUGIN("org.example.repeat", "1.0", p) {
  p.op("Repeat(x: T) -> (y: T); T: list(type) >= 1; f: func; times: int >= 0; doc \"a function of itself, so many times\"");
  p.kernel<Repeat>("Repeat @CPU; keep x; gives y");
}
