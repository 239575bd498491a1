// Third-party ops that take functions as attributes and call them: Repeat, f of f of ... of x;
// Until, a loop.
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

// Applies `body` to the values while `cond` is true, by the host's own loop.
class Until {
 public:
  explicit Until(const tw::Node& n) : cond_(tw::function(n, "cond")), body_(tw::function(n, "body")), asks_(n.b("asks")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> x, tw::ManyOut<tw::Any> y) const {
    if (asks_ && !tw::Function::may_loop(f, cond_, body_, x.size())) throw tw::Error{TW_FAILED_PRECONDITION, "these make no loop"};
    uint64_t n = 0;
    tw_status* failed =
        tw::guard(f.f->host, [&] { tw::give(y, tw::Function::loop(f, cond_, body_, tw::keep(f, x), /*anywhere=*/false, &n)); });
    const std::string where = "after " + std::to_string(n) + " times";
    if (failed) throw tw::Raised{f.f->host->status->make(f.f->host, f.f->host->status->code(failed), where.data(), where.size(), failed)};
  }

 private:
  tw::Function cond_, body_;
  bool asks_;
};

TW_CPP_PLUGIN("org.example.repeat", "1.0", p) {
  p.op("Repeat(x: T) -> (y: T); T: list(type) >= 1; f: func; times: int >= 0; doc \"a function of itself, so many times\"");
  p.kernel<Repeat>("Repeat @CPU; keep x; gives y");
  p.op("Until(x: T) -> (y: T); T: list(type); cond: func; body: func; asks: bool; doc \"a loop\"");
  p.kernel<Until>("Until @CPU; keep x; gives y");
}
