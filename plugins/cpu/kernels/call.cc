// PartitionedCall, StatefulPartitionedCall.
#include "kernels/calls.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class Call {
 public:
  explicit Call(const tw::Node& n) : f_(tw::function(n, "f")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> args, tw::ManyOut<tw::Any> output) const {
    Calls<OneCall>::Run(f, output, {f_, tw::keep(f, args)});
  }

 private:
  tw::Function f_;
};

}  // namespace

void register_call(tw::Plugin& p) {
  p.kernel<Call>("PartitionedCall @CPU; async_calls; keep args; gives output; anywhere args output");
  p.kernel<Call>("StatefulPartitionedCall @CPU; async_calls; keep args; gives output; anywhere args output");
}

}  // namespace thalweg::cpu
