// SaveResource and RestoreResources: a checkpoint stores a resource of a plugin as a vector of
// three strings: type, format and bytes.
#include "ops/register.h"

namespace thalweg::ops {

void register_saved_resource(tw::Plugin& p) {
  p.op(R"(
      SaveResource(resource: resource[]) -> (saved: string[3]); stateful; unopened resource; no_gradient "texts have no derivative";
      doc "the resource as its plugin saves it: its type, its format, its bytes")");
  p.op(R"(
      RestoreResources(resources: resource[] * N, saved: string[_] * N) -> (); N: int >= 1; stateful; unopened resources;
      no_gradient "it has no outputs";
      doc "the resources become what SaveResource answered, all or none; an empty vector leaves its resource as it is")");
}

}  // namespace thalweg::ops
