// PartitionedCall, StatefulPartitionedCall.
#include "kernels/register.h"
#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {
namespace {

class Call {
 public:
  explicit Call(const tw::Node& n) : f_(tw::function(n, "f")) {}
  void operator()(tw::Frame f, tw::Many<tw::Any> args, tw::ManyOut<tw::Any> output) const { tw::give(output, f_(f, tw::keep(f, args))); }

 private:
  tw::Function f_;
};

}  // namespace

void register_call(tw::Plugin& p) {
  p.kernel<Call>("PartitionedCall @CPU; keep args; gives output");
  p.kernel<Call>("StatefulPartitionedCall @CPU; keep args; gives output");
}

}  // namespace thalweg::cpu
