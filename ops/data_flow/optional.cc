// Optionals: a variant that holds a list of tensors, or nothing.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void GetValueRule(const tw::Shape& s) {
  const tw_attr& shapes = s.at("output_shapes");
  if (shapes.count != s.c->n_out)
    Fail("'output_shapes' has " + std::to_string(shapes.count) + " entries, but 'output_types' has " + std::to_string(s.c->n_out) +
         "; give one shape for each type");
  const auto* shape = static_cast<const tw_shape*>(shapes.data);
  for (uint32_t o = 0; o < s.c->n_out; ++o) s.out(o, shape[o]);
}

// The gradient of an optional is an optional of the gradients of its tensors.
void FromValueGradient(const tw::Grad& g) {
  std::vector<uint32_t> types;
  std::vector<tw_shape> shapes;
  for (uint32_t i = 0; i < g.inputs(); ++i) {
    types.push_back(g.type_in(i));
    shapes.push_back(g.shape_in(i));
  }
  tw::Attr type_list = tw::Attr::Type("output_types", TW_FLOAT), shape_list("output_shapes", tw_shape{nullptr, -1, 0});
  type_list.list = types.data();
  shape_list.list = shapes.data();
  type_list.count = shape_list.count = g.inputs();
  const tw_edge values = g.op("OptionalGetValue", {g.dy()}, {type_list, shape_list});
  for (uint32_t i = 0; i < g.inputs(); ++i) g.dx(i, g.out(values, i));
}

void GetValueGradient(const tw::Grad& g) {
  std::vector<tw_edge> values;
  for (uint32_t o = 0; o < g.c->n_out; ++o) values.push_back(g.dy(o));
  g.dx(0, g.op("OptionalFromValue", values));
}

}  // namespace

void register_optional(tw::Plugin& p) {
  p.op<FromValueGradient>(
      "OptionalFromValue(components: Toutput_types) -> (optional: variant[]); Toutput_types: list(type) >= 1; doc \"an optional that holds "
      "these tensors\"");
  p.op(
      "OptionalNone() -> (optional: variant[]); no_gradient \"an optional without a value depends on nothing\"; doc \"an optional that "
      "holds nothing\"");
  p.op(
      "OptionalHasValue(optional: variant[]) -> (has_value: bool[]); no_gradient \"truth values have no derivative\"; doc \"whether an "
      "optional holds tensors\"");
  p.op<GetValueGradient, GetValueRule>(
      "OptionalGetValue(optional: variant[]) -> (components: output_types); output_types: list(type) >= 1; output_shapes: list(shape) >= "
      "1; doc \"the tensors that an optional holds\"");
}

}  // namespace thalweg::ops
