// If, StatelessIf, Case, StatelessCase.
#include "kernels/common/truth.h"
#include "kernels/register.h"
#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {
namespace {

class If {
 public:
  explicit If(const tw::Node& n) : then_(tw::function(n, "then_branch")), else_(tw::function(n, "else_branch")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> cond, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    const tw::Function& branch = IsTrue(*cond.v, "'cond'") ? then_ : else_;
    tw::give(output, branch(f, tw::keep(f, input)));
  }

 private:
  tw::Function then_, else_;
};

// A number that is none of theirs chooses the last.
class Case {
 public:
  explicit Case(const tw::Node& n) : branches_(tw::functions(n, "branches")) {}
  void operator()(tw::Frame f, tw::In<int32_t> branch_index, tw::Many<tw::Any> input, tw::ManyOut<tw::Any> output) const {
    if (branch_index.rank() != 0) {
      throw tw::Error{TW_INVALID_ARGUMENT, "'branch_index' must be a scalar but has rank " + std::to_string(branch_index.rank())};
    }
    const int32_t i = branch_index[0];
    const bool known = i >= 0 && size_t(i) < branches_.size();
    const tw::Function& branch = known ? branches_[size_t(i)] : branches_.back();
    tw::give(output, branch(f, tw::keep(f, input)));
  }

 private:
  std::vector<tw::Function> branches_;
};

}  // namespace

void register_if(tw::Plugin& p) {
  p.kernel<If>("If @CPU; keep input; gives output");
  p.kernel<If>("StatelessIf @CPU; keep input; gives output");
  p.kernel<Case>("Case @CPU; keep input; gives output");
  p.kernel<Case>("StatelessCase @CPU; keep input; gives output");
}

}  // namespace thalweg::cpu
