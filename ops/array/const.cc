// Const, Placeholder, PlaceholderWithDefault: the sources of values in a graph. The framework
// itself provides the first two.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void ConstRule(const tw::Shape& s) {
  const tw_view* value = s.c->host->tensor->view(s.tensor("value"));
  if (value->dtype != s.type("dtype"))
    Fail("'value' is of type " + TypeName(value->dtype) + " but 'dtype' says " + TypeName(s.type("dtype")) + "; make them equal");
  s.out(0, Dims(value->dims, value->dims + value->rank));
}

void PlaceholderRule(const tw::Shape& s) { s.out(0, s.shape("shape")); }

void DefaultRule(const tw::Shape& s) {
  Merge(s, In(s, 0), ToDims(s.shape("shape")), "the shapes of 'input' and of attribute 'shape'");
  s.out(0, s.shape("shape"));
}

void DefaultGradient(const tw::Grad& g) { g.dx(0, g.dy()); }

}  // namespace

void register_const(tw::Plugin& p) {
  p.op<nullptr, ConstRule>(
      R"(Const() -> (output: dtype); value: tensor; dtype: type; role const; no_gradient "it has no inputs"; doc "a fixed value")");
  p.op<nullptr, PlaceholderRule>(R"(
      Placeholder() -> (output: dtype); dtype: type; shape: shape = unknown; role placeholder; no_gradient "it has no inputs";
      doc "a value that each run must feed")");
  p.op<DefaultGradient, DefaultRule>(R"(
      PlaceholderWithDefault(input: dtype) -> (output: dtype); dtype: type; shape: shape; role placeholder_with_default;
      doc "its input, unless a run feeds another value")");
}

}  // namespace thalweg::ops
