// Ops that pass on their inputs: Identity, IdentityN, StopGradient, PreventGradient, EnsureShape.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// A resource handle keeps the known type and shape of its variable.
void PassRule(const tw::Shape& s) {
  for (uint32_t i = 0; i < s.c->n_in; ++i) {
    s.out(i, s.in(i));
    if (s.type_in(i) != TW_RESOURCE) continue;
    uint32_t type = 0;
    tw_shape shape{};
    s.handle(i, &type, &shape);
    s.set_handle(i, type, shape);
  }
}

void PassGradient(const tw::Grad& g) {
  for (uint32_t i = 0; i < g.inputs(); ++i)
    if (g.has_dy(i)) PassBack(g, i, i);
}

// Fails, because the builder of the graph ruled out differentiation at this node.
void PreventedGradient(const tw::Grad& g) {
  const std::string why(g.s("message"));
  Fail("the gradient is asked for here and was ruled out" + (why.empty() ? std::string() : ": " + why));
}

void EnsureShapeRule(const tw::Shape& s) {
  Set(s, 0, Merge(s, In(s, 0), ToDims(s.shape("shape")), "the shapes of 'input' and of attribute 'shape'"));
}

}  // namespace

void register_identity(tw::Plugin& p) {
  p.op<PassGradient, PassRule>(
      R"(Identity(input: T) -> (output: T); T: type; role identity; passes input; ?elementwise; ?data input; doc "its input")");
  p.op<PassGradient, PassRule>(
      R"(IdentityN(input: T) -> (output: T); T: list(type) >= 1; role identities; ?data input;
      doc "its inputs, all of them once all are there")");
  p.op<ZeroGradient, PassRule>(
      R"(StopGradient(input: T) -> (output: T); T: type; passes input; ?elementwise; ?data input;
      doc "its input, constant in the eyes of differentiation")");
  p.op<PreventedGradient, PassRule>(R"(
      PreventGradient(input: T) -> (output: T); T: type; message: string = ""; passes input;
      doc "its input; to differentiate through it is an error that says `message`")");
  p.op<PassGradient, EnsureShapeRule>(R"(
      EnsureShape(input: T) -> (output: T); shape: shape; T: type; renames input; ?data input;
      doc "its input, refused where its shape does not fit")");
}

}  // namespace thalweg::ops
