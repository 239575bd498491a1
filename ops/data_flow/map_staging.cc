// Staging areas by key: one step stores lists of tensors under a key, another takes them out. They
// have no handles; ops name the area.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_AREA "container: string = \"\"; shared_name: string = \"\"; stateful; no_gradient "
#define OPS_ROOM "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; "

// ordered: the doc text that says which list the op without a key takes.
void AddFamily(tw::Plugin& p, const std::string& prefix, const std::string& ordered) {
  p.op(prefix + "Stage(key: int64, indices: int32, values: fake_dtypes) -> (); " OPS_ROOM
                "dtypes: list(type); fake_dtypes: list(type) >= 1; " OPS_AREA
                "\"it has no outputs\"; doc \"lays tensors down under a key, and waits until there is room\"");
  const std::string out = OPS_ROOM "dtypes: list(type) >= 1; " OPS_AREA "\"what others lay down is not an input\"; doc ";
  p.op(prefix + "Unstage(key: int64, indices: int32) -> (values: dtypes); " + out +
       "\"takes up tensors of the list under a key, and waits until there is one\"");
  p.op(prefix + "Peek(key: int64, indices: int32) -> (values: dtypes); " + out +
       "\"reads tensors of the list under a key, and waits until there is one\"");
  p.op(prefix + "UnstageNoKey(indices: int32) -> (key: int64[], values: dtypes); " + out + "\"takes up tensors of " + ordered +
       ", and waits until there is one\"");
  const std::string rest = OPS_ROOM "dtypes: list(type); " OPS_AREA "\"it has no inputs\"; doc ";
  p.op(prefix + "Size() -> (size: int32[]); " + rest + "\"how many whole lists lie there\"");
  p.op(prefix + "IncompleteSize() -> (size: int32[]); " + rest + "\"how many lists lack some of their tensors\"");
  p.op(prefix + "Clear() -> (); " + rest + "\"throws all lists away\"");
}

}  // namespace

void register_map_staging(tw::Plugin& p) {
  AddFamily(p, "Map", "one of the lists");
  AddFamily(p, "OrderedMap", "the list under the smallest key");
}

}  // namespace thalweg::ops
