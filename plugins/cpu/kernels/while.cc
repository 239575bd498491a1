// While, StatelessWhile, For.
#include "kernels/calls.h"
#include "kernels/common/truth.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void WantGoOn(tw::Frame f) { tw::check(f.f->host->run->cancelled(f.f)); }

// Calls `cond`, `body`, `cond`, ... until `cond` returns false.
class WhileTurns {
 public:
  WhileTurns(tw::Frame f, const tw::Function& cond, const tw::Function& body, tw::Values variables)
      : f_(f), cond_(&cond), body_(&body), variables_(std::move(variables)) {}

  Turn Next() {
    if (over_) return {};
    if (asks_) return {cond_, Shared(), false};
    WantGoOn(f_);
    return {body_, std::move(variables_), true};
  }
  void Took(tw::Values results) {
    if (asks_) {
      over_ = !Says(results);
      results.clear();
      shared_ = std::move(results);
    } else {
      variables_ = std::move(results);
      ++iteration_;
    }
    asks_ = !asks_;
  }
  tw::Values Given() { return std::move(variables_); }
  std::string Where() const { return "in iteration " + std::to_string(iteration_); }

 private:
  bool Says(const tw::Values& answer) const {
    if (answer.size() != 1) {
      throw tw::Error{TW_INVALID_ARGUMENT,
                      "'cond', function '" + cond_->name() + "', must give one value but gives " + std::to_string(answer.size())};
    }
    return IsTrue(answer[0].view(), [this] { return "what function '" + cond_->name() + "' gives"; });
  }
  // Returns the variables for the condition, in the memory of the last ones.
  tw::Values Shared() {
    tw::Values all = std::move(shared_);
    all.reserve(variables_.size());
    for (const tw::Value& v : variables_) all.push_back(v);
    return all;
  }

  const tw::Frame f_;
  const tw::Function *const cond_, *const body_;
  tw::Values variables_, shared_;  // shared_ is empty; its memory is reused
  int64_t iteration_ = 0;
  bool asks_ = true, over_ = false;
};

class While {
 public:
  explicit While(const tw::Node& n) : cond_(tw::function(n, "cond")), body_(tw::function(n, "body")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    if (!f.f->token && tw::Function::may_loop(f, cond_, body_, input.size())) return Loop(f, output, tw::keep(f, input));
    Calls<WhileTurns>::Run(f, output, {f, cond_, body_, tw::keep(f, input)});
  }

 private:
  void Loop(tw::Frame f, tw::ManyOut<tw::Any> output, tw::Values variables) const {
    uint64_t iteration = 0;
    tw_status* failed =
        tw::guard(f.f->host, [&] { variables = tw::Function::loop(f, cond_, body_, std::move(variables), /*anywhere=*/true, &iteration); });
    if (failed) throw tw::Raised{Behind(f.f->host, "in iteration " + std::to_string(iteration), failed)};
    tw::give(output, variables);
  }

  tw::Function cond_, body_;
};

int32_t Number(tw::In<int32_t> x, const char* name) {
  if (x.rank() != 0) {
    throw tw::Error{TW_INVALID_ARGUMENT, std::string("'") + name + "' must be a scalar but has rank " + std::to_string(x.rank())};
  }
  return x[0];
}

// The counters of a For loop.
struct Numbers {
  int64_t next, limit, delta;
  bool over() const { return delta > 0 ? next >= limit : next <= limit; }
};

class ForTurns {
 public:
  ForTurns(tw::Frame f, const tw::Function& body, Numbers i, tw::Values variables)
      : f_(f), body_(&body), i_(i), variables_(std::move(variables)) {}

  Turn Next() {
    if (i_.over()) return {};
    WantGoOn(f_);
    tw::Values args;
    args.reserve(variables_.size() + 1);
    args.push_back(Scalar(int32_t(i_.next)));
    for (tw::Value& v : variables_) args.push_back(std::move(v));
    i_.next += i_.delta;
    return {body_, std::move(args), true};
  }
  void Took(tw::Values results) {
    variables_ = std::move(results);
    ++iteration_;
  }
  tw::Values Given() { return std::move(variables_); }
  std::string Where() const { return "in iteration " + std::to_string(iteration_); }

 private:
  tw::Value Scalar(int32_t i) const {
    tw_tensor* t = nullptr;
    tw::check(tw_make_tensor(f_.f->host, TW_INT32, nullptr, 0, &t));
    *static_cast<int32_t*>(f_.f->host->tensor->view(t)->data) = i;
    return {f_.f->host, t};
  }

  const tw::Frame f_;
  const tw::Function* const body_;
  Numbers i_;
  tw::Values variables_;
  int64_t iteration_ = 0;
};

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
    Calls<ForTurns>::Run(f, output, {f, body_, Numbers{first, last, step}, tw::keep(f, input)});
  }

 private:
  tw::Function body_;
};

}  // namespace

void register_while(tw::Plugin& p) {
  p.kernel<While>("While @CPU; async_calls; keep input; gives output; anywhere input output");
  p.kernel<While>("StatelessWhile @CPU; async_calls; keep input; gives output; anywhere input output");
  p.kernel<For>("For @CPU; async_calls; keep input; gives output; anywhere input output");
}

}  // namespace thalweg::cpu
