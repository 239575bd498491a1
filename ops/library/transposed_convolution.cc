// Transposed convolutions over one, two or three axes.
#include <algorithm>
#include <string>

#include "ops/library/convolution.h"

using namespace thalweg::library;

namespace {

bool CheckTransposed(tw_scope* scope, const char* function, const tw_convolution* c) {
  if (!CheckGeometry(scope, function, c)) return false;
  if (c->padding == TW_PADDING_CAUSAL) FailIn(scope, function, "padding is causal; a transposed convolution is \"valid\" or \"same\"");
  return Good(scope);
}

// The sizes of the result, as a vector of int32: those that depend on unknown sizes of x are computed in the step.
tw_output ResultSizes(tw_scope* scope, tw_output x, const std::vector<int64_t>& known, const std::vector<int64_t>& scales,
                      const std::vector<int64_t>& more) {
  const auto ints = [&](const std::vector<int64_t>& values) {
    const std::vector<int32_t> narrow(values.begin(), values.end());
    return tw_scope_ints(scope, narrow.data(), uint32_t(narrow.size()));
  };
  if (std::count(known.begin(), known.end(), -1) == 0) return ints(known);
  // size = x's size * scale + more, with scale 0 for the number of channels
  return tw_scope_op2(scope, "Add", tw_scope_op2(scope, "Mul", tw_scope_op1(scope, "Shape", x), ints(scales)), ints(more));
}

}  // namespace

void tw_transposed_convolution_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_convolution* like,
                                      const tw_convolution_sizes* sizes, tw_convolution* out_convolution) {
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_transposed_convolution_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    const bool begun = BeginRecord(scope, kFunction, "tw_convolution", like, tw_convolution_init, out_convolution);
    if (out_convolution) out_convolution->kernel = out_convolution->bias = 0;
    if (!begun) return 0;
    tw_convolution& c = *out_convolution;
    if (!CheckTransposed(scope, kFunction, &c) || !CheckRecord(scope, kFunction, "tw_convolution_sizes", sizes)) return 0;
    const int64_t window[] = {sizes->window_1, sizes->window_2, sizes->window_3};
    for (uint32_t i = 0; i < c.rank; ++i) CheckSize(scope, kFunction, "a size of the window", window[i]);
    CheckSize(scope, kFunction, "channels", sizes->channels);
    CheckSize(scope, kFunction, "filters", sizes->filters);
    if (sizes->groups != 1) FailIn(scope, kFunction, "groups is " + std::to_string(sizes->groups) + "; it must be 1");
    if (!Good(scope)) return 0;
    c.groups = 1;
    std::vector<int64_t> dims(window, window + c.rank);
    dims.insert(dims.end(), {sizes->filters, sizes->channels});
    const tw_initializer glorot = Initializer(TW_INITIALIZER_GLOROT_UNIFORM, 1);
    c.kernel = CreateWeight(scope, name, "kernel", o, KernelInitializer(o, glorot), dims, 0);
    if (!o.no_bias) c.bias = CreateWeight(scope, name, "bias", o, BiasInitializer(o), {sizes->filters}, 1);
    return 0;
  });
}

tw_output tw_transposed_convolution_apply(tw_scope* scope, const tw_convolution* convolution, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_transposed_convolution_apply";
    if (!CheckTransposed(scope, kFunction, convolution)) return 0;
    const tw_convolution& c = *convolution;
    const int32_t rank = int32_t(c.rank);
    ValueInfo info = CheckInput(scope, kFunction, x, rank + 2, rank + 2);
    tw_output kernel = WeightValue(scope, c.kernel);
    ValueInfo weights = Describe(scope, kernel);
    CheckType(scope, kFunction, info, "kernel", weights);
    if (!Good(scope)) return 0;
    bool known = weights.shape.rank == rank + 2;
    for (int32_t i = 0; known && i <= rank; ++i) known = weights.Dim(i) >= 0;
    if (!known) {
      FailIn(scope, kFunction,
             "the kernel has shape " + ShapeText(weights.shape) + "; rank " + std::to_string(rank) + " needs " + std::to_string(rank + 2) +
                 " axes of known sizes");
    }
    CheckChannels(scope, kFunction, info, weights.Dim(rank + 1));
    if (!Good(scope)) return 0;

    if (rank == 1) {  // one row of an image
      x = Expand(scope, x, 1);
      kernel = Expand(scope, kernel, 0);
      info = Describe(scope, x);
      weights = Describe(scope, kernel);
      if (!Good(scope)) return 0;
    }
    const int32_t axes = rank == 3 ? 3 : 2;
    std::vector<int64_t> strides(size_t(axes) + 2, 1), dilations(strides), sizes{info.Dim(0)}, scales{1}, more { 0 };
    for (int32_t i = 0; i < axes; ++i) {
      const int32_t own = i - (axes - rank);  // the axis of the record; -1: the one that rank 1 lacks
      const int64_t stride = own < 0 ? 1 : Strides(c)[size_t(own)], dilation = own < 0 ? 1 : Dilations(c)[size_t(own)];
      strides[size_t(i) + 1] = stride;
      dilations[size_t(i) + 1] = dilation;
      const int64_t added = c.padding == TW_PADDING_SAME ? 0 : (weights.Dim(i) - 1) * dilation + 1 - stride, n = info.Dim(i + 1);
      sizes.push_back(n < 0 ? -1 : n * stride + added);
      scales.push_back(stride);
      more.push_back(added);
    }
    sizes.push_back(weights.Dim(axes));
    scales.push_back(0);
    more.push_back(weights.Dim(axes));
    OpenOp op(scope, axes == 3 ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput");
    tw_op_add_input(op, ResultSizes(scope, x, sizes, scales, more));
    tw_op_add_input(op, kernel);
    tw_op_add_input(op, x);
    tw_op_set_ints(op, "strides", strides.data(), uint32_t(strides.size()));
    tw_op_set_ints(op, "dilations", dilations.data(), uint32_t(dilations.size()));
    const char* padding = c.padding == TW_PADDING_SAME ? "SAME" : "VALID";
    tw_op_set_string(op, "padding", padding, std::string(padding).size());
    OpenOp sized(scope, "EnsureShape");  // the sizes that are known stay known, which the next layer may need
    tw_op_add_input(sized, op.End());
    tw_op_set_shape(sized, "shape", sizes.data(), int32_t(sizes.size()));
    tw_output y = sized.End();
    if (rank == 1) y = Squeeze(scope, y, 1);
    return AddBias(scope, y, c.bias);
  });
}
