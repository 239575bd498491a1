// Loops of functions inside a step. While the values keep their shapes, both functions use one step
// state each for all iterations: no plan is looked up, and small values are copied from one plan's
// memory to the other's (PlanValue::kPassed) without becoming tensors.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "framework/session/session.h"

namespace thalweg {
namespace {

// Evaluates the result of a condition. A value that is not a scalar is true if it has elements.
bool SaysYes(const tw_view& answer) {
  return answer.rank != 0 ? answer.count > 0 : *(static_cast<const uint8_t*>(answer.data) + answer.offset) != 0;
}

// Later iterations reuse the memory of the first, so types are compared once, here.
bool FitsLoop(const Function& cond, const Function& body) {
  const size_t n = body.args().size();
  if (body.results().size() != n || cond.args().size() != n || cond.results().size() != 1 || cond.result_type(0) != TW_BOOL) return false;
  for (size_t i = 0; i < n; ++i) {
    if (body.result_type(i) != body.arg_type(i) || cond.arg_type(i) != body.arg_type(i)) return false;
  }
  return true;
}

Status CheckLoop(const FunctionLoop& loop) {
  const Function &cond = *loop.cond->function, &body = *loop.body->function;
  if (FitsLoop(cond, body)) return Status();
  const auto shown = [](const Function& f) {
    std::string args, results;
    for (size_t i = 0; i < f.args().size(); ++i) args += StrCat(i ? ", " : "", DTypeName(f.arg_type(i)));
    for (size_t o = 0; o < f.results().size(); ++o) results += StrCat(o ? ", " : "", DTypeName(f.result_type(o)));
    return StrCat("'", Shown(f.name()), "' (", args, ") -> (", results, ")");
  };
  return InvalidArgument("functions ", shown(cond), " and ", shown(body),
                         " are no condition and body of a loop; give one that answers a bool, and one that gives what it takes, in number "
                         "and types");
}

}  // namespace

// Runs the body as a function call.
static Status CallBody(Session* session, StepBase& step, FunctionLoop* loop) {
  const size_t n = loop->body->function->args().size();
  std::vector<Tensor> results(n);
  RETURN_IF_ERROR(session->Call(step, {loop->body, loop->device, true, loop->values, results.data()}));
  std::move(results.begin(), results.end(), loop->values);
  ++*loop->iterations;
  return Status();
}

// Runs one iteration as two calls; sets *over if the condition is false.
static Status CallInTurn(Session* session, StepBase& step, FunctionLoop* loop, bool* over) {
  std::vector<Tensor> shared(loop->values, loop->values + loop->body->function->args().size());
  Tensor answer;
  RETURN_IF_ERROR(session->Call(step, {loop->cond, loop->device, false, shared.data(), &answer}));
  *over = !SaysYes(answer.view());
  return *over ? Status() : CallBody(session, step, loop);
}

// Runs iterations whose values keep the shapes of the first iteration.
class SteadyLoop {
 public:
  SteadyLoop(Session* session, StepBase& step, FunctionLoop* loop)
      : session_(session), step_(step), loop_(*loop), variables_(loop->body->function->args().size()) {}
  ~SteadyLoop() {
    cond_.Leave();
    body_.Leave();
  }

  // Runs until the loop ends, a value changes its shape, or the plans turn out to be unsuitable;
  // *steady is false in the last case. The values are then in the loop's record.
  Status Run(bool* over, bool* steady) {
    RETURN_IF_ERROR(cond_.Ready(session_, step_, loop_, loop_.cond));
    *steady = cond_.IsPlain();
    for (bool first = true; *steady; first = false) {
      ASSIGN_OR_RETURN(const bool goes_on, Ask(first));
      *over = !goes_on;
      if (*over) break;
      if (first) RETURN_IF_ERROR(body_.Ready(session_, step_, loop_, loop_.body));
      *steady = body_.IsPlain();
      if (!*steady) return CallBody(session_, step_, &loop_);
      for (size_t i = 0; first && i < variables_.size(); ++i) Look(i);
      RETURN_IF_ERROR(RunBody(first));
      if (!Keep()) break;
    }
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (variables_[i].left) {
        ASSIGN_OR_RETURN(loop_.values[i], MakeTensor(i));
      }
    }
    return Status();
  }

 private:
  // One of the two functions.
  struct Side {
    Status Ready(Session* session, StepBase& step, const FunctionLoop& loop, const FoundFunction* function) {
      RETURN_IF_ERROR(session->BeginCall(step, {function, loop.device, loop.anywhere, loop.values, nullptr}, &callable));
      Status s = callable->ReadyInside(step, function->function->name(), loop.values, &in);
      if (!s.ok()) return OutOfCall(std::move(s));
      in.state->leaves_passed = true;
      return s;
    }
    Status Run(Tensor* fetches) {
      Status s = RunStep(in.state.get(), nullptr, fetches);
      return s.ok() ? s : OutOfCall(std::move(s));
    }
    const Plan& plan() const { return in.state->plan(); }
    // Returns true if the function runs in host memory and does not wait.
    bool IsPlain() const { return !plan().frames && !plan().async && plan().devices.empty(); }
    bool Copies(int32_t v) const { return v >= 0 && plan().values[size_t(v)].kind == PlanValue::kPassed; }
    const tw_view& view(int32_t v) const { return in.state->slot(v).view; }
    void Leave() {
      if (!in.state) return;
      in.state->leaves_passed = false;
      (void)callable->EndInside(&in, Status());
    }
    Callable* callable = nullptr;
    Callable::Inside in;
  };

  struct Variable {
    const char* left = nullptr;  // the value's bytes, in the body's step or in `kept`; NULL: the value is a tensor in the loop's record
    bool same = false;           // the body returns its own copied-in argument, so the bytes are already in place
    bool aside = false;          // the bytes are where the next iteration copies another variable to
    int8_t fits = -1;            // 1 if the body's result has the variable's shape, 0 if not; -1: only known at run time
    Shape shape;
    std::vector<char> kept;  // copy of the bytes, if `aside`
  };

  void Look(size_t i) {
    Variable& x = variables_[i];
    const Plan& plan = body_.plan();
    const int32_t given = plan.fetches[i];
    const PlanValue& value = plan.values[size_t(given)];
    x.shape = loop_.values[i].shape();
    const Shape& gives = body_.in.state->shapes()->values[size_t(given)].shape;
    if (gives.known()) x.fits = gives == x.shape;
    if (!body_.Copies(given)) return;
    const int32_t root = value.view_of < 0 ? given : value.view_of;
    x.same = root == plan.feeds[i];
    x.aside = !x.same && std::find(plan.feeds.begin(), plan.feeds.end(), root) != plan.feeds.end();
    if (x.aside) x.kept.resize(std::max<size_t>(1, body_.view(given).bytes));
  }

  StatusOr<Tensor> MakeTensor(size_t i) const {
    const tw_view& from = body_.view(body_.plan().fetches[i]);
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(from.dtype, from.dims, from.rank, nullptr, step_.budget));
    if (from.bytes) std::memcpy(t.data(), variables_[i].left, size_t(from.bytes));
    return t;
  }

  // takes: the function is the last reader of the value.
  Status Feed(Side* side, size_t i, bool first, bool takes) {
    Variable& x = variables_[i];
    const int32_t v = side->plan().feeds[i];
    if (v < 0) return Status();
    if (side->Copies(v)) {
      if (x.same && !first) return Status();
      side->in.state->CopyIn(v, x.left ? x.left : loop_.values[i].data());
      return Status();
    }
    if (x.left) {
      ASSIGN_OR_RETURN(Tensor t, MakeTensor(i));
      side->in.state->slot(v).Hold(std::move(t));
    } else {
      side->in.state->slot(v).Hold(takes ? std::move(loop_.values[i]) : loop_.values[i]);
    }
    return Status();
  }

  StatusOr<bool> Ask(bool first) {
    for (size_t i = 0; i < variables_.size(); ++i) RETURN_IF_ERROR(Feed(&cond_, i, first, false));
    Tensor answer;
    RETURN_IF_ERROR(cond_.Run(&answer));
    return SaysYes(answer ? answer.view() : cond_.view(cond_.plan().fetches[0]));
  }

  Status RunBody(bool first) {
    for (size_t i = 0; i < variables_.size(); ++i) RETURN_IF_ERROR(Feed(&body_, i, first, true));
    for (size_t i = 0; i < variables_.size(); ++i) loop_.values[i].reset();
    RETURN_IF_ERROR(body_.Run(loop_.values));
    ++*loop_.iterations;
    return Status();
  }

  // Records where the values are. Returns false if a value has another shape.
  bool Keep() {
    bool fits = true;
    for (size_t i = 0; i < variables_.size(); ++i) {
      Variable& x = variables_[i];
      const Tensor& t = loop_.values[i];
      x.left = t ? nullptr : DataOf(body_.view(body_.plan().fetches[i]));
      if (x.aside) {
        std::copy_n(x.left, body_.view(body_.plan().fetches[i]).bytes, x.kept.data());
        x.left = x.kept.data();
      }
      fits = fits && (x.fits < 0 ? x.shape.Is(t.view().dims, t.rank()) : x.fits != 0);
    }
    return fits;
  }
  static const char* DataOf(const tw_view& v) { return v.bytes ? static_cast<const char*>(v.data) + v.offset : ""; }

  Session* const session_;
  StepBase& step_;
  FunctionLoop& loop_;
  std::vector<Variable> variables_;
  Side cond_, body_;
};

// A traced step runs call by call, so that each call is reported.
Status Session::Loop(StepBase& step, FunctionLoop* loop) {
  const size_t n = loop->body->function->args().size();
  Status s = CheckLoop(*loop);
  bool steady = !step.trace;
  for (bool over = false; s.ok() && !over;) {
    s = steady ? SteadyLoop(this, step, loop).Run(&over, &steady) : CallInTurn(this, step, loop, &over);
  }
  for (size_t i = 0; s.ok() && !loop->anywhere && i < n; ++i) {
    Device* holder = HoldingDevice(*loop->values[i].get());
    if (!holder) continue;
    auto on_host = holder->ToHost(loop->values[i]);
    s = on_host.status();
    if (on_host.ok()) loop->values[i] = *std::move(on_host);
  }
  for (size_t i = 0; !s.ok() && i < n; ++i) loop->values[i].reset();
  return s;
}

}  // namespace thalweg
