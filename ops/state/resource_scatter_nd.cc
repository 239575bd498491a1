// ResourceScatterNdUpdate, -Add, -Sub, -Max and -Min change elements or blocks of a variable in
// place by index vectors.
#include "ops/common/gather.h"
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  CheckBadIndicesPolicy(s);
  const MaybeDims variable = Variable(s, 0, s.type("T")), indices = In(s, 1);
  WantRankAtLeast(s, 1, 1, "indices");
  if (!indices) return;
  const int64_t length = IndexLength(indices, variable, "the variable");
  if (!variable || !Known(length)) return;
  const Dims block = Sub(*variable, static_cast<size_t>(length), variable->size());
  Merge(s, In(s, 2), Join(Sub(*indices, 0, indices->size() - 1), block),
        "the shape of 'updates' and that of the blocks which 'indices' names");
}

void Scatter(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, Rule>(name +
                      "(ref: resource, indices: Tindices, updates: T) -> (); T: type; Tindices: " OPS_INDEX
                      "; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful; "
                      "no_gradient \"it has no outputs\"; doc \"the variable's block at indices[i] " +
                      doc + "\"");
}

}  // namespace

void register_resource_scatter_nd(tw::Plugin& p) {
  Scatter(p, "ResourceScatterNdUpdate", "becomes updates[i]; of several for one place the last one stays");
  Scatter(p, "ResourceScatterNdAdd", "grows by updates[i]; equal indices add up");
  Scatter(p, "ResourceScatterNdSub", "shrinks by updates[i]; equal indices add up");
  Scatter(p, "ResourceScatterNdMax", "becomes updates[i] wherever that is larger");
  Scatter(p, "ResourceScatterNdMin", "becomes updates[i] wherever that is smaller");
}

}  // namespace thalweg::ops
