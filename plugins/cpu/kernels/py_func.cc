// PyFunc, PyFuncStateless, EagerPyFunc: the host's set "host_function" calls the function of the
// program. No thread waits for the call.
#include <string>

#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class PyFunc {
 public:
  explicit PyFunc(const tw::Node& n) : token_(n.s("token")) {
    set_ = static_cast<const tw_host_function_api*>(n.host()->query(n.host(), TW_S(TW_HOST_FUNCTION_SET), 1));
    if (!set_) throw tw::Error{TW_UNIMPLEMENTED, "this runtime calls no functions of the program"};
    tw::check(set_->find(n.host(), token_.data(), token_.size()));
  }
  void operator()(tw::Frame f, tw::Many<tw::Any>, tw::ManyOut<tw::Any>) const { tw::check(set_->start(f.f, token_.data(), token_.size())); }

 private:
  const std::string token_;
  const tw_host_function_api* set_;
};

}  // namespace

void register_py_func(tw::Plugin& p) {
  p.kernel<PyFunc>("PyFunc @CPU; async; keep input; gives output");
  p.kernel<PyFunc>("PyFuncStateless @CPU; async; keep input; gives output");
  p.kernel<PyFunc>("EagerPyFunc @CPU; async; keep input; gives output");
}

}  // namespace thalweg::cpu
