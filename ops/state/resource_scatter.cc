// ResourceScatterAdd, -Sub, -Update and their forms with references change rows of a variable in
// place.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// updates: one row per index, or one scalar for all elements of these rows.
void Rule(const tw::Shape& s) {
  const MaybeDims variable = Variable(s, 0, s.type_in(2)), indices = In(s, 1), updates = In(s, 2);
  if (!variable) return;
  if (variable->empty()) Fail("'resource' is a scalar, which has no rows");
  if (!indices || (updates && updates->empty())) return;
  Merge(s, updates, Join(*indices, Sub(*variable, 1, variable->size())),
        "the shape of 'updates' and that of the rows which 'indices' names");
}

void Scatter(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  p.op<nullptr, Rule>(name + "(resource: resource, indices: Tindices, updates: dtype) -> (); dtype: " + types +
                      "; Tindices: " OPS_INDEX "; stateful; no_gradient \"it has no outputs\"; ?data updates; doc \"" + doc + "\"");
}

void ScatterReference(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& locking) {
  p.op<nullptr, HandOnRule<Rule>>(name + "(ref: ref(T), indices: Tindices, updates: T) -> (output_ref: ref(T)); T: " + types +
                                  "; Tindices: " OPS_INDEX "; use_locking: bool = " + locking + "; " OPS_HANDS_ON "runs_as Resource" +
                                  name + "; doc \"Resource" + name + " on a variable by reference\"");
}

}  // namespace

void register_resource_scatter(tw::Plugin& p) {
  Scatter(p, "ResourceScatterAdd", OPS_NUMBERS, "adds updates[i] to the variable's row indices[i]; equal indices add up");
  Scatter(p, "ResourceScatterSub", OPS_NUMBERS, "takes updates[i] from the variable's row indices[i]; equal indices add up");
  Scatter(p, "ResourceScatterUpdate", "type", "the variable's row indices[i] becomes updates[i]; of equal indices the last one counts");
  ScatterReference(p, "ScatterAdd", OPS_NUMBERS, "false");
  ScatterReference(p, "ScatterSub", OPS_NUMBERS, "false");
  ScatterReference(p, "ScatterUpdate", "type", "true");
}

}  // namespace thalweg::ops
