// _Send and _Recv are the two ends of an edge between tasks of a cluster. Sessions that span
// several processes add them to their graphs.
#include "ops/register.h"

namespace thalweg::ops {

void register_send_recv(tw::Plugin& p) {
  p.op(R"(
      _Send(tensor: T) -> (); T: type; tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string;
      client_terminated: bool = false; stateful; role send; no_gradient "made after differentiation"; doc "gives a tensor to its _Recv")");
  p.op(R"(
      _Recv() -> (tensor: tensor_type); tensor_type: type; tensor_name: string; send_device: string; send_device_incarnation: int;
      recv_device: string; client_terminated: bool = false; stateful; role recv; no_gradient "made after differentiation";
      doc "takes a tensor from its _Send")");
}

}  // namespace thalweg::ops
