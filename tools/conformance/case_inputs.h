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
// Returns the same for ops on resources. One data input has the variables' shape, or that of some of
// their rows; the others are scalars, like the factors of optimizers. The last entry of each tuple is
// the variables' shape.
std::vector<std::vector<Dims>> StateShapes(size_t n);

// Returns the number of shapes and values for inputs that are indices or sizes.
size_t IndexShapes();
size_t IndexValues();

// The targets of the handles of a proposal: resources that an op makes, or variables. A handle that the
// schema marks as a variable always leads to a variable. A handle that the schema marks with a type of
// the plugin leads to a resource of that type, which an op makes.
struct Lead {
  std::string maker;                          // op that makes the targets of unmarked handles; empty: they are variables
  uint32_t dtype = TW_FLOAT;                  // of the variables
  uint32_t last = 0;                          // element type of the last variable, such as a count of steps; 0: dtype
  int32_t like = -1;                          // the input whose shape the variables have; -1: shapes of StateShapes
  std::map<std::string, std::string> makers;  // ops that make the targets of marked handles, by type
  bool variable(const Input& in) const { return in.arg->resource == TW_VARIABLE_TYPE || (in.arg->resource.empty() && maker.empty()); }
};

// Returns the possible targets of the handles of an op. These are resources that its plugin makes, if
// the op belongs to the plugin under test, and variables of the type in an attribute, or else of the
// data's type. The list is empty if no op without inputs makes the resource with which a handle is
// marked; *why then names it.
std::vector<Lead> LeadsOf(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs, std::string* why);

// Makes one proposal: data shapes are data[d], index inputs have index shape i and index values v.
Status Propose(const std::vector<Input>& inputs, const Lead& lead, const std::vector<Dims>& data, size_t d, size_t i, size_t v, Case* c);

}  // namespace thalweg::conformance
