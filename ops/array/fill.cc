// Fill, ZerosLike and OnesLike make tensors of one value.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalar(s, 1, "value");
  Set(s, 0, ShapeValue(s, 0, "dims"));
}

void Gradient(const tw::Grad& g) {
  const tw_edge axes = ShapeOut(g, 0) ? g.ints(Iota(g.shape_out(0).rank)) : g.op("Range", {Int(g, 0), g.op("Rank", {g.dy()}), Int(g, 1)});
  g.dx(1, g.op("Sum", {g.dy(), axes}));
}

}  // namespace

void register_fill(tw::Plugin& p) {
  p.op<Gradient, Rule>("Fill(dims: index_type, value: T) -> (output: T); T: type; index_type: " OPS_INDEX
                       " = int32; ?data value; doc \"a tensor of that shape, full of a value\"");
  p.op<ZeroGradient>(R"(
      ZerosLike(x: T[*s]) -> (y: T[*s]); T: type; shape_only x; ?elementwise; role zeros_like;
      doc "zeros of the shape and type of x; empty strings, false")");
  p.op<ZeroGradient>(
      "OnesLike(x: T[*s]) -> (y: T[*s]); "
      "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}; "
      "shape_only x; ?elementwise; "
      "role ones_like; doc \"ones of the shape and type of x\"");
}

}  // namespace thalweg::ops
