// Reductions over chosen axes: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm. Over no elements
// they return 0, NaN, 1, the type's lowest value (-infinity if it has one), its highest, true,
// false and 0.
#include "ops/common/reduce.h"

#include <algorithm>

#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void SumGradient(const tw::Grad& g) { g.dx(0, SpreadOut(g, g.dy())); }

// Returns the number of elements that are reduced to one, in the type of the data: the product of
// the reduced sizes. It is at least 1, so that the gradient of an empty mean is 0, not 0 / 0.
tw_edge GroupSize(const tw::Grad& g) {
  const MaybeDims in = ShapeIn(g, 0);
  Dims axes;
  tw_edge which = 0;
  if (in && g.value(1, &axes)) {
    double size = 1;
    bool known = true;
    for (int64_t& axis : axes) {
      axis = Axis(axis, static_cast<int64_t>(in->size()), "reduction_indices");
      const int64_t n = (*in)[static_cast<size_t>(axis)];
      known = known && Known(n);
      size *= static_cast<double>(n);
    }
    if (known) return g.scalar(std::max(size, 1.), g.type_in(0));
    which = g.ints(axes);
  } else {
    const tw_edge from_front = g.op("FloorMod", {CastTo(g, g.x(1), TW_INT32), g.op("Size", {g.shape(0)})});
    which = g.op("Reshape", {from_front, Ints(g, {-1})});
  }
  // The product is computed in 64 bits, because it may not fit into 32.
  const tw_edge sizes = CastTo(g, g.op("GatherV2", {g.shape(0), which, Int(g, 0)}), TW_INT64);
  return CastTo(g, g.op("Maximum", {g.op("Prod", {sizes, Int(g, 0)}), g.scalar(1, TW_INT64)}), g.type_in(0));
}

// Divides before broadcasting, when there are fewer elements.
void MeanGradient(const tw::Grad& g) { g.dx(0, SpreadOut(g, g.op("RealDiv", {g.dy(), GroupSize(g)}))); }

// The gradient is the product of the other elements: y / x where x is not 0, else the product
// without the zeros. With two or more zeros that is 0. With exactly two it still has a second
// derivative, so the other zero is a factor.
void ProdGradient(const tw::Grad& g) {
  const tw_edge x = g.x(0), axes = g.x(1), zero = Number(g, 0, x), one = Number(g, 1, x);
  const tw_edge is_zero = g.op("Equal", {x, zero});
  const tw_edge filled = g.op("SelectV2", {is_zero, one, x});
  const tw_edge zeros = g.op("Sum", {CastTo(g, is_zero, g.type_in(0)), axes}, {{"keep_dims", true}});
  const tw_edge rest = g.op("Prod", {filled, axes}, {{"keep_dims", true}});
  const tw_edge only_zeros = g.op("SelectV2", {is_zero, x, zero});
  const tw_edge other = g.op("Sub", {g.op("Sum", {only_zeros, axes}, {{"keep_dims", true}}), only_zeros});
  const tw_edge by = g.op("SelectV2", {g.op("Equal", {zeros, Number(g, 2, x)}), other, zero});
  const tw_edge at_zero = g.op("Mul", {rest, g.op("SelectV2", {g.op("Equal", {zeros, one}), one, by})});
  const tw_edge others = g.op("SelectV2", {is_zero, at_zero, g.op("RealDiv", {KeepAxes(g, g.y()), filled})});
  g.dx(0, g.op("Mul", {KeepAxes(g, g.dy()), Conj(g, others)}));
}

// Tied elements share the gradient evenly.
void ExtremeGradient(const tw::Grad& g) {
  const tw_edge hit = CastTo(g, g.op("Equal", {g.x(0), KeepAxes(g, g.y())}), g.type_in(0));
  const tw_edge ties = g.op("Sum", {hit, g.x(1)}, {{"keep_dims", true}});
  g.dx(0, g.op("Mul", {g.op("RealDiv", {hit, ties}), KeepAxes(g, g.dy())}));
}

// The gradient is x over its norm, and 0 where the norm is 0. The norm of complex numbers is real,
// so the imaginary part of dy is ignored.
void NormGradient(const tw::Grad& g) {
  g.dx(0, g.op("Mul", {g.op("DivNoNan", {g.x(0), KeepAxes(g, g.y())}), KeepAxes(g, RealPart(g, g.dy()))}));
}

#define REDUCES "?axes input output; ?axis_numbers reduction_indices; ?reduces keep_dims; ?data input; "

template <void (*Gradient)(const tw::Grad&)>
void Reduction(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  p.op<Gradient, ReduceRule>(name + "(input: T, reduction_indices: Tidx) -> (output: T); keep_dims: bool = false; T: " + types +
                             "; Tidx: " OPS_INDEX " = int32; " REDUCES "doc \"" + doc + "\"");
}

void Logic(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, ReduceRule>(name +
                            "(input: bool, reduction_indices: Tidx) -> (output: bool); keep_dims: bool = false; Tidx: " OPS_INDEX
                            " = int32; " REDUCES "no_gradient \"truth values have no derivative\"; doc \"" +
                            doc + "\"");
}

}  // namespace

void register_reduce(tw::Plugin& p) {
  Reduction<SumGradient>(p, "Sum", OPS_NUMBERS, "sum over axes");
  Reduction<MeanGradient>(p, "Mean", OPS_NUMBERS, "mean over axes");
  Reduction<ProdGradient>(p, "Prod", OPS_NUMBERS, "product over axes");
  Reduction<ExtremeGradient>(p, "Max", OPS_REALS_QUANTISED, "largest element over axes; NaN if one is");
  Reduction<ExtremeGradient>(p, "Min", OPS_REALS_QUANTISED, "smallest element over axes; NaN if one is");
  Reduction<NormGradient>(p, "EuclideanNorm", OPS_NUMBERS, "square root of the sum of squares over axes; of whole numbers, rounded down");
  Logic(p, "All", "whether all are true, over axes");
  Logic(p, "Any", "whether one is true, over axes");
}

}  // namespace thalweg::ops
