// PartitionedCall and StatefulPartitionedCall call a function.
#include "ops/functional/outputs.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_call(tw::Plugin& p) {
  p.op<nullptr, StatedShapes>(R"(
      PartitionedCall(args: Tin) -> (output: Tout); Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
      config_proto: string = ""; executor_type: string = ""; role stateless_call;
      doc "what a function without state gives")");
  p.op<nullptr, StatedShapes>(R"(
      StatefulPartitionedCall(args: Tin) -> (output: Tout); Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
      config_proto: string = ""; executor_type: string = ""; stateful; role call;
      doc "what a function gives")");
}

}  // namespace thalweg::ops
