// Comparisons and logic of two arguments that broadcast as in NumPy.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// With incompatible_shape_error false, Equal and NotEqual return one truth value for shapes that do
// not broadcast.
void EqualityRule(const tw::Shape& s) {
  const MaybeDims x = In(s, 0), y = In(s, 1);
  if (s.b("incompatible_shape_error") || (AllKnown(x) && AllKnown(y) && Broadcastable(x, y)))
    Set(s, 0, Broadcast(x, y));
  else if (!Broadcastable(x, y))
    Set(s, 0, Dims{});
}

void Equality(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, EqualityRule>(
      name +
      "(x: T, y: T) -> (z: bool); T: type; incompatible_shape_error: bool = true; commutative; ?elementwise; ?data x y; "
      "no_gradient \"truth values have no derivative\"; doc \"" +
      doc + "\"");
}

void Order(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, BinaryRule>(name +
                            "(x: T, y: T) -> (z: bool); T: " OPS_REALS
                            "; ?elementwise; ?data x y; no_gradient \"truth values have no derivative\"; doc \"" +
                            doc + "\"");
}

// neutral: the operand that leaves the other one unchanged.
void Logic(tw::Plugin& p, const std::string& name, const std::string& neutral, const std::string& doc) {
  p.op<nullptr, BinaryRule>(name + "(x: bool, y: bool) -> (z: bool); commutative; neutral x " + neutral + " y " + neutral +
                            "; ?elementwise; ?data x y; no_gradient \"truth values have no derivative\"; doc \"" + doc + "\"");
}

}  // namespace

void register_compare(tw::Plugin& p) {
  Equality(p, "Equal", "x == y; NaN equals nothing; with incompatible_shape_error false, false for shapes that do not broadcast");
  Equality(p, "NotEqual", "x != y; with incompatible_shape_error false, true for shapes that do not broadcast");
  Order(p, "Less", "x < y");
  Order(p, "LessEqual", "x <= y");
  Order(p, "Greater", "x > y");
  Order(p, "GreaterEqual", "x >= y");
  Logic(p, "LogicalAnd", "1", "x and y");
  Logic(p, "LogicalOr", "0", "x or y");
}

}  // namespace thalweg::ops
