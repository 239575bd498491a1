// NoOp, Assert, Abort and _SelectHandle.
#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/number_text.h"
#include "kernels/register.h"
#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {
namespace {

void NoOp(tw::Frame) {}

class Assert {
 public:
  explicit Assert(const tw::Node& n) : summarize_(n.i("summarize")) {}
  void operator()(tw::In<bool> condition, tw::Many<tw::Any> data) const {
    if (condition[0]) return;
    std::string text = "assertion failed:";
    for (uint32_t i = 0; i < data.size(); ++i) text += " " + Summary(data[i].v);
    Invalid(text);
  }

 private:
  // Returns a summary such as "[1 2 3...]".
  std::string Summary(const tw_view* v) const {
    if (v->dtype == TW_RESOURCE || v->dtype == TW_VARIANT) return "[?]";
    const uint64_t shown = summarize_ < 0 ? v->count : std::min(v->count, uint64_t(summarize_));
    std::string text = "[";
    for (uint64_t i = 0; i < shown; ++i) text += (i ? " " : "") + NumberText(v, i, NumberFormat{});
    return text + (shown < v->count ? "...]" : "]");
  }

  int64_t summarize_;
};

class Abort {
 public:
  explicit Abort(const tw::Node& n) : message_(n.s("error_msg")) {}
  void operator()(tw::Frame) const {
    throw tw::Error{TW_ABORTED, message_.empty() ? "the node was reached, which stops the step" : message_};
  }

 private:
  std::string message_;
};

void SelectHandle(tw::Frame f, tw::In<int32_t> index, tw::Many<tw::Any> inputs, tw::ManyOut<tw::Any> output) {
  const int32_t i = index[0];
  if (i < 0 || uint32_t(i) >= inputs.size()) {
    Invalid("'index' is " + std::to_string(i) + ", but there are " + std::to_string(inputs.size()) + " inputs");
  }
  tw::Values handles = tw::keep(f, inputs);
  tw::Values chosen;
  chosen.push_back(std::move(handles[size_t(i)]));
  tw::give(output, chosen);
}

}  // namespace

void register_control(tw::Plugin& p) {
  p.kernel<NoOp>("NoOp @CPU; cheap");
  p.kernel<Assert>("Assert @CPU");
  p.kernel<Abort>("Abort @CPU");
  p.kernel<SelectHandle>("_SelectHandle @CPU; cheap; keep inputs; gives output");
}

}  // namespace thalweg::cpu
