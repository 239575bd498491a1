// Fake quantisation: rounds numbers to the steps of a quantised type and keeps them as floats. The
// range comes from attributes, from two inputs, or from two inputs per channel.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks a range at inputs i and i + 1: scalars, or vectors with an entry for each channel.
void WantRange(const tw::Shape& s, uint32_t i, bool per_channel, int64_t channels) {
  for (uint32_t k = 0; k < 2; ++k) {
    const char* name = k == 0 ? "min" : "max";
    if (!per_channel) {
      WantScalar(s, i + k, name);
      continue;
    }
    WantVector(s, i + k, name);
    if (s.known(i + k))
      channels = MergeSize(s, channels, s.dim(i + k, 0), "the channels of 'inputs' and the entries of '" + std::string(name) + "'");
  }
}
int64_t Channels(const MaybeDims& in) { return in ? in->back() : -1; }

template <bool kPerChannel>
void VarsRule(const tw::Shape& s) {
  if (kPerChannel) WantRankAtLeast(s, 0, 1, "inputs");
  const MaybeDims in = In(s, 0);
  WantRange(s, 1, kPerChannel, kPerChannel ? Channels(in) : -1);
  Set(s, 0, in);
}

template <bool kPerChannel>
void VarsGradRule(const tw::Shape& s) {
  if (kPerChannel) WantRankAtLeast(s, 0, 1, "gradients");
  if (kPerChannel) WantRankAtLeast(s, 1, 1, "inputs");
  const MaybeDims in = Merge(s, In(s, 0), In(s, 1), "the shapes of 'gradients' and 'inputs'");
  const int64_t channels = kPerChannel ? Channels(in) : -1;
  WantRange(s, 2, kPerChannel, channels);
  Set(s, 0, in);
  for (uint32_t o : {1u, 2u}) s.out(o, kPerChannel ? Dims{channels} : Dims{});
}

void ArgsRule(const tw::Shape& s) {
  if (s.f("min") >= s.f("max")) Fail("'min' is " + Text(s.f("min")) + " and 'max' is " + Text(s.f("max")) + "; min must be below max");
  Set(s, 0, s.c->n_in == 2 ? Merge(s, In(s, 0), In(s, 1), "the shapes of 'gradients' and 'inputs'") : In(s, 0));
}

tw_edge ArgsBackward(const tw::Grad& g, tw_edge inputs) {
  return g.op("FakeQuantWithMinMaxArgsGradient", {g.dy(), inputs},
              {{"min", g.f("min")}, {"max", g.f("max")}, {"num_bits", g.i("num_bits")}, {"narrow_range", g.b("narrow_range")}});
}
void ArgsGradient(const tw::Grad& g) { g.dx(0, ArgsBackward(g, g.x(0))); }
void ArgsGradGradient(const tw::Grad& g) { g.dx(0, ArgsBackward(g, g.x(1))); }

template <bool kPerChannel>
void VarsGradient(const tw::Grad& g) {
  const std::string name = kPerChannel ? "FakeQuantWithMinMaxVarsPerChannelGradient" : "FakeQuantWithMinMaxVarsGradient";
  const tw_edge made = g.op(name, {g.dy(), g.x(0), g.x(1), g.x(2)}, {{"num_bits", g.i("num_bits")}, {"narrow_range", g.b("narrow_range")}});
  for (uint32_t i = 0; i < 3; ++i) g.dx(i, g.out(made, i));
}

#define BITS "num_bits: int = 8; narrow_range: bool = false; "
#define RANGE "min: float = -6.0; max: float = 6.0; "
#define BACKPROPS "(backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float); "
#define ONCE "no_gradient \"second derivatives of a range are not offered\"; "

}  // namespace

void register_fake_quant(tw::Plugin& p) {
  p.op<ArgsGradient, ArgsRule>("FakeQuantWithMinMaxArgs(inputs: float) -> (outputs: float); " RANGE BITS
                               "?data inputs; doc \"numbers rounded to the steps of a quantised type with a range in attributes\"");
  p.op<ArgsGradGradient, ArgsRule>("FakeQuantWithMinMaxArgsGradient(gradients: float, inputs: float) -> (backprops: float); " RANGE BITS
                                   "doc \"gradient of FakeQuantWithMinMaxArgs: passes where the input is inside the range\"");
  p.op<VarsGradient<false>, VarsRule<false>>("FakeQuantWithMinMaxVars(inputs: float, min: float, max: float) -> (outputs: float); " BITS
                                             "doc \"numbers rounded to the steps of a quantised type with a range in inputs\"");
  p.op<nullptr, VarsGradRule<false>>(
      "FakeQuantWithMinMaxVarsGradient(gradients: float, inputs: float, min: float, max: float) -> " BACKPROPS BITS ONCE
      "doc \"gradient of FakeQuantWithMinMaxVars: to the input inside the range, to the end that is passed outside\"");
  p.op<VarsGradient<true>, VarsRule<true>>(
      "FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float, max: float) -> (outputs: float); " BITS
      "doc \"FakeQuantWithMinMaxVars with a range for each channel\"");
  p.op<nullptr, VarsGradRule<true>>(
      "FakeQuantWithMinMaxVarsPerChannelGradient(gradients: float, inputs: float, min: float, max: float) -> " BACKPROPS BITS ONCE
      "doc \"gradient of FakeQuantWithMinMaxVarsPerChannel\"");
}

}  // namespace thalweg::ops
