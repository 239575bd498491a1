// Helpers that the layers of thalweg/layer.h share.
#include "ops/library/layer.h"

#include <algorithm>

#include "thalweg/op.h"

using namespace thalweg::library;

void tw_layer_options_init(tw_layer_options* options) {
  if (options) *options = {sizeof(tw_layer_options), 0, TW_FLOAT, 0, 0, 0, 0, 1, 1};
}

namespace thalweg::library {

namespace {

tw_output Int(tw_scope* scope, int32_t value) { return tw_scope_ints(scope, &value, 1); }

// The sizes of x before axis `first`, as a vector of int32.
tw_output Leading(tw_scope* scope, tw_output x, int32_t first) {
  return tw_scope_op3(scope, "Slice", tw_scope_op1(scope, "Shape", x), Int(scope, 0), Int(scope, first));
}

}  // namespace

bool CheckSize(tw_scope* scope, const char* function, const char* what, int64_t value) {
  if (value < 1 || value > INT32_MAX) {
    FailIn(scope, function, std::string(what) + " is " + std::to_string(value) + "; it must be above 0 and fit into 32 bits");
  }
  return Good(scope);
}

tw_layer_options ReadLayerOptions(tw_scope* scope, const char* function, const char* name, const tw_layer_options* given) {
  if (!name) FailIn(scope, function, "name is NULL");
  const tw_layer_options options = ReadOptions(scope, "tw_layer_options", given, tw_layer_options_init);
  if (!IsReal(options.dtype))
    FailIn(scope, function, "dtype is " + std::to_string(options.dtype) + "; weights are half, bfloat16, float or double");
  return options;
}

std::string PartName(const char* name, const char* part) { return *name ? std::string(name) + "/" + part : part; }

tw_initializer Initializer(uint32_t kind, double scale) { return {sizeof(tw_initializer), 0, kind, 0, scale, 0}; }

tw_initializer KernelInitializer(const tw_layer_options& options, const tw_initializer& otherwise) {
  return options.kernel_initializer ? Initializer(options.kernel_initializer, options.kernel_scale) : otherwise;
}

tw_initializer BiasInitializer(const tw_layer_options& options) {
  if (options.bias_initializer) return Initializer(options.bias_initializer, options.bias_scale);
  return Initializer(TW_INITIALIZER_CONSTANT, 0);
}

tw_output CreateWeight(tw_scope* scope, const char* name, const char* part, const tw_layer_options& options, tw_initializer how,
                       const std::vector<int64_t>& dims, int64_t number) {
  if (!Good(scope)) return 0;
  if (options.seed != 0) how.seed = int64_t(uint64_t(options.seed) + uint64_t(number));
  const tw_output initial = tw_initializer_value(scope, &how, options.dtype, dims.data(), int32_t(dims.size()));
  return tw_variable_create(scope, PartName(name, part).c_str(), initial);
}

int KnownBool(tw_scope* scope, tw_output value) {
  const tw_graph* graph = tw_scope_graph(scope);
  const tw_operation* producer = nullptr;
  if (!graph) return -1;
  tw_status_release(tw_graph_producer(graph, value, &producer, nullptr));
  if (!producer || std::string(tw_operation_type(producer)) != "Const") return -1;
  const void* values = nullptr;
  tw_status_release(tw_operation_attr(producer, "value", nullptr, nullptr, nullptr, &values));
  if (!values) return -1;
  const tw_tensor* tensor = *static_cast<tw_tensor* const*>(values);
  if (tw_tensor_dtype(tensor) != TW_BOOL || tw_tensor_count(tensor) != 1) return -1;
  return *static_cast<const uint8_t*>(tw_tensor_data(tensor)) != 0;
}

tw_output AddBias(tw_scope* scope, tw_output x, tw_output bias) {
  return bias ? tw_scope_op2(scope, "BiasAdd", x, WeightValue(scope, bias)) : x;
}

ValueInfo CheckInput(tw_scope* scope, const char* function, tw_output x, int32_t low, int32_t high) {
  const ValueInfo info = Describe(scope, x);
  if (!Good(scope)) return info;
  if (!IsReal(info.dtype))
    FailIn(scope, function, std::string("the input is ") + tw_dtype_name(info.dtype) + "; it must be half, bfloat16, float or double");
  if (info.shape.rank < low || info.shape.rank > high) {
    const std::string range = low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
    FailIn(scope, function,
           "the input has shape " + ShapeText(info.shape) + "; it must have " + range + " axes, and their number must be known");
  }
  return info;
}

void CheckChannels(tw_scope* scope, const char* function, const ValueInfo& x, int64_t channels) {
  if (!Good(scope)) return;
  const int64_t last = x.Dim(x.shape.rank - 1);
  if (last >= 0 && channels >= 0 && last != channels) {
    FailIn(scope, function,
           "the input has shape " + ShapeText(x.shape) + ", so " + std::to_string(last) + " channels; the weights are for " +
               std::to_string(channels));
  }
}

void CheckType(tw_scope* scope, const char* function, const ValueInfo& x, const char* what, const ValueInfo& weight) {
  if (!Good(scope) || x.dtype == weight.dtype) return;
  FailIn(scope, function,
         std::string("the input is ") + tw_dtype_name(x.dtype) + " and the " + what + " is " + tw_dtype_name(weight.dtype) +
             "; cast the input, or make the layer with the input's dtype");
}

tw_output ReshapeAs(tw_scope* scope, tw_output x, tw_output like, int32_t first, const std::vector<int64_t>& tail) {
  const ValueInfo info = Describe(scope, like);
  if (!Good(scope)) return 0;
  std::vector<int64_t> dims;
  for (int32_t i = 0; i < first; ++i) dims.push_back(info.Dim(i));
  dims.insert(dims.end(), tail.begin(), tail.end());
  const bool empty = std::count(dims.begin(), dims.end(), 0) > 0;  // Reshape cannot work out a -1 beside a 0
  const auto unknown = std::count(dims.begin(), dims.end(), -1);
  std::vector<int32_t> sizes(dims.size());
  std::transform(dims.begin(), dims.end(), sizes.begin(), [](int64_t d) { return int32_t(std::clamp<int64_t>(d, -1, INT32_MAX)); });
  if (unknown == 0 || (unknown == 1 && !empty))
    return tw_scope_op2(scope, "Reshape", x, tw_scope_ints(scope, sizes.data(), uint32_t(sizes.size())));
  const tw_output parts[] = {Leading(scope, like, first), tw_scope_ints(scope, sizes.data() + first, uint32_t(tail.size()))};
  OpenOp joined(scope, "ConcatV2");
  tw_op_add_inputs(joined, parts, 2);
  tw_op_add_input(joined, tw_scope_scalar(scope, TW_INT32, 0));
  OpenOp known(scope, "EnsureShape");  // the sizes that are known stay known, which the next layer may need
  tw_op_add_input(known, tw_scope_op2(scope, "Reshape", x, joined.End()));
  tw_op_set_shape(known, "shape", dims.data(), int32_t(dims.size()));
  return known.End();
}

tw_output ReshapeTail(tw_scope* scope, tw_output x, int32_t first, const std::vector<int64_t>& last) {
  return ReshapeAs(scope, x, x, first, last);
}

}  // namespace thalweg::library
