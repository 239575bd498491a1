// If, StatelessIf, Case, StatelessCase.
#include "kernels/calls.h"
#include "kernels/common/truth.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class If {
 public:
  explicit If(const tw::Node& n) : then_(tw::function(n, "then_branch")), else_(tw::function(n, "else_branch")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> cond, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    const bool yes = IsTrue(*cond.v, [] { return std::string("'cond'"); });
    Calls<OneCall>::Run(f, output, {yes ? then_ : else_, tw::keep(f, input)});
  }

 private:
  tw::Function then_, else_;
};

// An index outside the branches selects the last branch.
class Case {
 public:
  explicit Case(const tw::Node& n) : branches_(tw::functions(n, "branches")) {}
  void operator()(tw::Frame f, tw::In<int32_t> branch_index, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    if (branch_index.rank() != 0) {
      throw tw::Error{TW_INVALID_ARGUMENT, "'branch_index' must be a scalar but has rank " + std::to_string(branch_index.rank())};
    }
    const int32_t i = branch_index[0];
    const bool known = i >= 0 && size_t(i) < branches_.size();
    Calls<OneCall>::Run(f, output, {known ? branches_[size_t(i)] : branches_.back(), tw::keep(f, input)});
  }

 private:
  std::vector<tw::Function> branches_;
};

}  // namespace

void register_if(tw::Plugin& p) {
  p.kernel<If>("If @CPU; async_calls; keep input; gives output; anywhere input output");
  p.kernel<If>("StatelessIf @CPU; async_calls; keep input; gives output; anywhere input output");
  p.kernel<Case>("Case @CPU; async_calls; keep input; gives output; anywhere input output");
  p.kernel<Case>("StatelessCase @CPU; async_calls; keep input; gives output; anywhere input output");
}

}  // namespace thalweg::cpu
