// Staging areas: one step stores lists of tensors, another takes them out. They have no handles;
// ops name the area.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_STAGE \
  "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; container: string = \"\"; shared_name: string = \"\"; stateful; no_gradient "

}  // namespace

void register_staging(tw::Plugin& p) {
  p.op("Stage(values: dtypes) -> (); dtypes: list(type) >= 1; " OPS_STAGE
       "\"it has no outputs\"; ?data values; doc \"lays a list of tensors down, and waits until there is room for it\"");
  const std::string out = "-> (values: dtypes); dtypes: list(type) >= 1; " OPS_STAGE "\"what others lay down is not an input\"; doc ";
  p.op("Unstage() " + out + "\"takes up the list that was laid down first, and waits until there is one\"");
  p.op("StagePeek(index: int32) " + out + "\"reads the list at a place in the line, and waits until there is one\"");
  p.op("StageSize() -> (size: int32[]); dtypes: list(type); " OPS_STAGE "\"it has no inputs\"; doc \"how many lists lie there\"");
  p.op("StageClear() -> (); dtypes: list(type); " OPS_STAGE "\"it has no inputs\"; doc \"throws all of them away\"");
}

}  // namespace thalweg::ops
