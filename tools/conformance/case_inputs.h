// Generates inputs for test cases of an op: types from its schema, and shapes and values that many
// ops accept.
// Threads: any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
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
  bool index;  // values are indices or sizes rather than data
  bool handle() const { return dtype == TW_RESOURCE; }
  bool free() const { return !handle() && !arg->has_dims; }  // nothing fixes its shape
};

// Returns the flat inputs under these attributes. False: no values can be generated for the type of
// one.
bool FlatInputs(const OpSchema& op, const Attrs& attrs, std::vector<Input>* out);

// Shapes for the data inputs, tried in this order: one for all, or one for each.
std::vector<std::vector<Dims>> DataShapes(size_t n);
// The same for ops on resources: one of the data inputs has the variables' shape, or some of their
// rows; the others are scalars, like the factors of optimizers. The last entry is the variables'
// shape.
std::vector<std::vector<Dims>> StateShapes(size_t n);

// Returns the number of shapes and values for inputs that are indices or sizes.
size_t IndexShapes();
size_t IndexValues();

// What the handles of a proposal lead to: what an op makes, or variables. Handles that the schema marks as variables always lead to such,
// and those that it marks with a type of the plugin's own to what an op makes of that type.
struct Lead {
  std::string maker;  // of handles that the schema does not mark; empty: variables
  uint32_t dtype = TW_FLOAT;
  uint32_t last = 0;                          // of the last variable, such as a count of steps; 0: as the others
  int32_t like = -1;                          // the input whose shape variables have; -1: as StateShapes says
  std::map<std::string, std::string> makers;  // of marked handles, by type
  bool variable(const Input& in) const { return in.arg->resource == TW_VARIABLE_TYPE || (in.arg->resource.empty() && maker.empty()); }
};

// What the handles of an op may lead to: resources that its plugin makes, if it is not one of the standard ops; variables of the type that
// an attribute says, or else of that of the data. Empty: no op without inputs makes what a handle is marked with; *why says which.
std::vector<Lead> LeadsOf(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs, std::string* why);

// One proposal: shapes by data tuple d, index shape i, index values v.
Status Propose(const std::vector<Input>& inputs, const Lead& lead, const std::vector<Dims>& data, size_t d, size_t i, size_t v, Case* c);

}  // namespace thalweg::conformance
