// Inputs that a case of an op may have: types by its schema, shapes and values that many ops take.
// Threads: any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "tools/conformance/case_attrs.h"
#include "tools/conformance/cases.h"
#include "tools/conformance/world.h"

namespace thalweg::conformance {

using Dims = std::vector<int64_t>;

struct Input {
  const ArgSpec* arg;
  uint32_t dtype;
  bool index;  // numbers that mean places or sizes rather than data
  bool handle() const { return dtype == TW_RESOURCE; }
  bool free() const { return !handle() && !arg->has_dims; }  // nothing says its shape
};

// The flat inputs under these attributes. False: one is of a type that nothing can be made up for.
bool FlatInputs(const OpSchema& op, const Attrs& attrs, std::vector<Input>* out);

// Shapes for the data inputs, tried in this order: one for all, or one for each.
std::vector<std::vector<Dims>> DataShapes(size_t n);
// The same for ops on resources: one of the data inputs is as the variables are, or has some of their rows; the others are scalars, as
// the factors of optimizers. The last entry is the variables'.
std::vector<std::vector<Dims>> StateShapes(size_t n);

// How many shapes and values there are for inputs that mean places or sizes.
size_t IndexShapes();
size_t IndexValues();

// What the handles of a proposal lead to: what an op makes, or variables of a type.
struct Lead {
  std::string maker;
  uint32_t dtype = TW_FLOAT;
  uint32_t last = 0;  // of the last variable, such as a count of steps; 0: as the others
};

// What the handles of an op may lead to: resources that its plugin makes, if it is not one of the standard ops; variables of the type that
// an attribute says.
std::vector<Lead> LeadsOf(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs);

// One proposal: shapes by data tuple d, index shape i, index values v.
Status Propose(const std::vector<Input>& inputs, const Lead& lead, const std::vector<Dims>& data, size_t d, size_t i, size_t v, Case* c);

}  // namespace thalweg::conformance
