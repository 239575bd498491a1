// While, StatelessWhile, For.
#include "kernels/common/truth.h"
#include "kernels/register.h"
#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {
namespace {

void WantGoOn(tw::Frame f) { tw::check(f.f->host->run->cancelled(f.f)); }

class While {
 public:
  explicit While(const tw::Node& n) : cond_(tw::function(n, "cond")), body_(tw::function(n, "body")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    tw::Values variables = tw::keep(f, input);
    while (GoesOn(f, variables)) {
      WantGoOn(f);
      variables = body_(f, std::move(variables));
    }
    tw::give(output, variables);
  }

 private:
  bool GoesOn(tw::Frame f, const tw::Values& variables) const {
    const tw::Values answer = cond_(f, variables);
    if (answer.size() != 1) {
      throw tw::Error{TW_INVALID_ARGUMENT,
                      "'cond', function '" + cond_.name() + "', must give one value but gives " + std::to_string(answer.size())};
    }
    return IsTrue(answer[0].view(), "what function '" + cond_.name() + "' gives");
  }

  tw::Function cond_, body_;
};

int32_t Number(tw::In<int32_t> x, const char* name) {
  if (x.rank() != 0) {
    throw tw::Error{TW_INVALID_ARGUMENT, std::string("'") + name + "' must be a scalar but has rank " + std::to_string(x.rank())};
  }
  return x[0];
}

class For {
 public:
  explicit For(const tw::Node& n) : body_(tw::function(n, "body")) {}
  void operator()(tw::Frame f, tw::In<int32_t> start, tw::In<int32_t> limit, tw::In<int32_t> delta, tw::Many<tw::Any> input,
                  tw::ManyOut<tw::Any> output) const {
    const int64_t first = Number(start, "start"), last = Number(limit, "limit"), step = Number(delta, "delta");
    if (step == 0) throw tw::Error{TW_INVALID_ARGUMENT, "'delta' is 0: the loop would not end"};
    if (step > 0 ? first > last : first < last) {
      throw tw::Error{TW_INVALID_ARGUMENT, "from 'start' " + std::to_string(first) + ", 'delta' " + std::to_string(step) +
                                               " leads away from 'limit' " + std::to_string(last)};
    }
    tw::Values variables = tw::keep(f, input);
    for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
      WantGoOn(f);
      tw::Values args;
      args.reserve(variables.size() + 1);
      args.push_back(Scalar(f, int32_t(i)));
      for (tw::Value& v : variables) args.push_back(std::move(v));
      variables = body_(f, std::move(args));
    }
    tw::give(output, variables);
  }

 private:
  static tw::Value Scalar(tw::Frame f, int32_t i) {
    tw_tensor* t = nullptr;
    tw::check(f.f->host->tensor->make(f.f->host, TW_INT32, nullptr, 0, &t));
    *static_cast<int32_t*>(f.f->host->tensor->view(t)->data) = i;
    return {f.f->host, t};
  }

  tw::Function body_;
};

}  // namespace

void register_while(tw::Plugin& p) {
  p.kernel<While>("While @CPU; keep input; gives output");
  p.kernel<While>("StatelessWhile @CPU; keep input; gives output");
  p.kernel<For>("For @CPU; keep input; gives output");
}

}  // namespace thalweg::cpu
