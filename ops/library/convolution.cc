// Convolution layers over one, two or three axes.
#include "ops/library/convolution.h"

#include <string>

#include "thalweg/op.h"

using namespace thalweg::library;

void tw_convolution_init(tw_convolution* convolution) {
  if (convolution) *convolution = {sizeof(tw_convolution), 0, 0, 0, 2, TW_PADDING_SAME, 1, 1, 1, 1, 1, 1, 0};
}

void tw_convolution_sizes_init(tw_convolution_sizes* sizes) {
  if (sizes) *sizes = {sizeof(tw_convolution_sizes), 0, 1, 1, 1, 0, 0, 1};
}

namespace {

// The convolution of images [batch, height, width, channels] or volumes, one axis more, by a kernel with as many axes.
tw_output Convolve(tw_scope* scope, tw_output x, tw_output kernel, const tw_convolution& c, const char* padding) {
  const uint32_t axes = c.rank == 3 ? 3 : 2;
  std::vector<int64_t> strides(axes + 2, 1), dilations(axes + 2, 1);
  for (uint32_t i = 0; i < c.rank; ++i) {
    strides[1 + i + axes - c.rank] = Strides(c)[i];
    dilations[1 + i + axes - c.rank] = Dilations(c)[i];
  }
  OpenOp op(scope, axes == 3 ? "Conv3D" : "Conv2D");
  tw_op_add_input(op, x);
  tw_op_add_input(op, kernel);
  tw_op_set_ints(op, "strides", strides.data(), uint32_t(strides.size()));
  tw_op_set_ints(op, "dilations", dilations.data(), uint32_t(dilations.size()));
  tw_op_set_string(op, "padding", padding, std::string(padding).size());
  return op.End();
}

// x [batch, positions, channels] with `count` zeros before the first position.
tw_output PadBefore(tw_scope* scope, tw_output x, int64_t count) {
  if (count == 0) return x;
  const tw_output flat = Longs(scope, {0, 0, count, 0, 0, 0});
  const int32_t dims[] = {3, 2};
  return tw_scope_op2(scope, "Pad", x, tw_scope_op2(scope, "Reshape", flat, tw_scope_ints(scope, dims, 2)));
}

}  // namespace

void tw_convolution_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_convolution* like,
                           const tw_convolution_sizes* sizes, tw_convolution* out_convolution) {
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_convolution_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    const bool begun = BeginRecord(scope, kFunction, "tw_convolution", like, tw_convolution_init, out_convolution);
    if (out_convolution) out_convolution->kernel = out_convolution->bias = 0;
    if (!begun) return 0;
    tw_convolution& c = *out_convolution;
    if (!CheckGeometry(scope, kFunction, &c) || !CheckRecord(scope, kFunction, "tw_convolution_sizes", sizes)) return 0;
    const int64_t window[] = {sizes->window_1, sizes->window_2, sizes->window_3}, groups = sizes->groups;
    for (uint32_t i = 0; i < c.rank; ++i) CheckSize(scope, kFunction, "a size of the window", window[i]);
    CheckSize(scope, kFunction, "channels", sizes->channels);
    CheckSize(scope, kFunction, "filters", sizes->filters);
    if (!CheckSize(scope, kFunction, "groups", groups)) return 0;
    if (sizes->channels % groups != 0 || sizes->filters % groups != 0) {
      FailIn(scope, kFunction,
             "groups is " + std::to_string(groups) + "; it must divide channels, " + std::to_string(sizes->channels) + ", and filters, " +
                 std::to_string(sizes->filters));
    }
    if (groups != 1 && c.rank == 3) FailIn(scope, kFunction, "groups is " + std::to_string(groups) + "; with rank 3 it must be 1");
    if (!Good(scope)) return 0;
    std::vector<int64_t> dims(window, window + c.rank);
    dims.insert(dims.end(), {sizes->channels / groups, sizes->filters});
    const tw_initializer glorot = Initializer(TW_INITIALIZER_GLOROT_UNIFORM, 1);
    c.groups = groups;
    c.kernel = CreateWeight(scope, name, "kernel", o, KernelInitializer(o, glorot), dims, 0);
    if (!o.no_bias) c.bias = CreateWeight(scope, name, "bias", o, BiasInitializer(o), {sizes->filters}, 1);
    return 0;
  });
}

tw_output tw_convolution_apply(tw_scope* scope, const tw_convolution* convolution, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_convolution_apply";
    if (!CheckGeometry(scope, kFunction, convolution)) return 0;
    const tw_convolution& c = *convolution;
    const int32_t rank = int32_t(c.rank);
    const ValueInfo info = CheckInput(scope, kFunction, x, rank + 2, rank + 2);
    tw_output kernel = WeightValue(scope, c.kernel);
    const ValueInfo weights = Describe(scope, kernel);
    if (!Good(scope)) return 0;
    CheckType(scope, kFunction, info, "kernel", weights);
    if (!Good(scope)) return 0;
    const int64_t channels = info.Dim(rank + 1), taken = weights.Dim(rank);
    if (weights.shape.rank != rank + 2) {
      FailIn(scope, kFunction,
             "the kernel has shape " + ShapeText(weights.shape) + "; rank " + std::to_string(rank) + " needs " + std::to_string(rank + 2) +
                 " axes");
    } else if (c.groups > 0 && channels >= 0 && taken > 0 && channels != taken * c.groups) {
      FailIn(scope, kFunction,
             "the input has shape " + ShapeText(info.shape) + ", so " + std::to_string(channels) + " channels; the weights are for " +
                 std::to_string(taken * c.groups) + (c.groups > 1 ? ", in " + std::to_string(c.groups) + " groups" : ""));
    } else if (channels >= 0 && taken > 0 && channels % taken != 0) {
      FailIn(scope, kFunction,
             "the input has shape " + ShapeText(info.shape) + ", so " + std::to_string(channels) + " channels; the kernel " +
                 ShapeText(weights.shape) + " takes " + std::to_string(taken) + " in each group");
    }
    if (!Good(scope)) return 0;
    const char* padding = c.padding == TW_PADDING_SAME ? "SAME" : "VALID";
    if (rank > 1) return AddBias(scope, Convolve(scope, x, kernel, c, padding), c.bias);

    if (c.padding == TW_PADDING_CAUSAL) {
      if (weights.Dim(0) < 0) {
        FailIn(scope, kFunction, "the kernel has shape " + ShapeText(weights.shape) + "; causal padding needs its first size");
        return 0;
      }
      x = PadBefore(scope, x, (weights.Dim(0) - 1) * c.dilation_1);
    }
    const tw_output rows = Convolve(scope, Expand(scope, x, 1), Expand(scope, kernel, 0), c, padding);
    return AddBias(scope, Squeeze(scope, rows, 1), c.bias);
  });
}
