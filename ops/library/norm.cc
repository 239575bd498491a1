// Layer, group and root-mean-square normalisation.
#include "ops/library/layer.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_norm_init(tw_norm* norm) {
  if (norm) *norm = {sizeof(tw_norm), 0, 0, 0, 1e-5, 0, 0};
}

namespace {

bool CheckNorm(tw_scope* scope, const char* function, const tw_norm* norm) {
  if (!CheckRecord(scope, function, "tw_norm", norm)) return false;
  CheckAbove0(scope, "tw_norm: epsilon", norm->epsilon);
  if (norm->rms > 1) FailIn(scope, function, "rms is " + std::to_string(norm->rms) + "; it must be 0 or 1");
  if (norm->rms && norm->groups)
    FailIn(scope, function, "rms is 1 and groups is " + std::to_string(norm->groups) + "; a norm is one or the other");
  return Good(scope);
}

bool CheckGroups(tw_scope* scope, const char* function, const tw_norm& norm, int64_t channels) {
  if (norm.groups && channels >= 0 && channels % norm.groups != 0) {
    FailIn(scope, function,
           "groups is " + std::to_string(norm.groups) + ", which does not divide the " + std::to_string(channels) + " channels");
  }
  return Good(scope);
}

tw_output MeanOver(tw_scope* scope, tw_output x, const std::vector<int32_t>& axes) {
  OpenOp mean(scope, "Mean");
  tw_op_add_input(mean, x);
  tw_op_add_input(mean, tw_scope_ints(scope, axes.data(), uint32_t(axes.size())));
  tw_op_set_bool(mean, "keep_dims", 1);
  return mean.End();
}

// (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean of squares + epsilon).
tw_output Normalise(tw_scope* scope, tw_output x, uint32_t dtype, const std::vector<int32_t>& axes, const tw_norm& norm) {
  const tw_output centred = norm.rms ? x : tw_scope_op2(scope, "Sub", x, MeanOver(scope, x, axes));
  const tw_output spread = MeanOver(scope, tw_scope_op1(scope, "Square", centred), axes);
  const tw_output safe = tw_scope_op2(scope, "Add", spread, tw_scope_scalar(scope, dtype, norm.epsilon));
  return tw_scope_op2(scope, "Mul", centred, tw_scope_op1(scope, "Rsqrt", safe));
}

}  // namespace

void tw_norm_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_norm* like, int64_t channels,
                    tw_norm* out_norm) {
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_norm_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    const bool begun = BeginRecord(scope, kFunction, "tw_norm", like, tw_norm_init, out_norm);
    if (out_norm) out_norm->scale = out_norm->offset = 0;
    if (!begun) return 0;
    if (!CheckNorm(scope, kFunction, out_norm) || !CheckSize(scope, kFunction, "channels", channels)) return 0;
    if (!CheckGroups(scope, kFunction, *out_norm, channels)) return 0;
    const tw_initializer ones = Initializer(TW_INITIALIZER_CONSTANT, 1);
    out_norm->scale = CreateWeight(scope, name, "scale", o, KernelInitializer(o, ones), {channels}, 0);
    if (!o.no_bias && !out_norm->rms) out_norm->offset = CreateWeight(scope, name, "offset", o, BiasInitializer(o), {channels}, 1);
    return 0;
  });
}

tw_output tw_norm_apply(tw_scope* scope, const tw_norm* norm, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_norm_apply";
    if (!CheckNorm(scope, kFunction, norm)) return 0;
    const ValueInfo info = CheckInput(scope, kFunction, x, norm->groups ? 2 : 1, INT32_MAX);
    if (!Good(scope)) return 0;
    const int64_t channels = info.Dim(info.shape.rank - 1);
    if (!CheckGroups(scope, kFunction, *norm, channels)) return 0;
    if (norm->groups && channels < 0) {
      FailIn(scope, kFunction, "the input has shape " + ShapeText(info.shape) + "; with groups the number of channels must be known");
      return 0;
    }
    const tw_output scale = norm->scale ? WeightValue(scope, norm->scale) : 0;
    const tw_output offset = norm->offset ? WeightValue(scope, norm->offset) : 0;
    for (const tw_output weight : {scale, offset})
      if (weight) CheckChannels(scope, kFunction, info, Describe(scope, weight).Dim(0));
    if (!Good(scope)) return 0;
    const bool narrow = info.dtype == TW_HALF || info.dtype == TW_BFLOAT16;
    const uint32_t dtype = narrow ? uint32_t{TW_FLOAT} : info.dtype;
    const tw_output wide = CastTo(scope, x, dtype);
    tw_output y;
    if (norm->groups) {
      const int64_t groups = norm->groups;
      const int32_t last = info.shape.rank - 1;
      const tw_output parted = ReshapeTail(scope, wide, last, {groups, channels / groups});
      std::vector<int32_t> axes = {last + 1};  // of the channels of a group, and the positions
      for (int32_t axis = 1; axis < last; ++axis) axes.push_back(axis);
      y = Normalise(scope, parted, dtype, axes, *norm);
      y = ReshapeAs(scope, y, x, last, {channels});
    } else {
      y = Normalise(scope, wide, dtype, {-1}, *norm);
    }
    if (scale) y = tw_scope_op2(scope, "Mul", y, CastTo(scope, scale, dtype));
    if (offset) y = tw_scope_op2(scope, "Add", y, CastTo(scope, offset, dtype));
    return CastTo(scope, y, info.dtype);
  });
}
