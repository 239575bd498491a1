#include "tests/fuzz/op/kept.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/op/builder.h"

namespace thalweg::fuzz {

// op: makes the resource. types: its attributes that are one type each; an attribute that ends with
// 's' is a list of types and the only one. shape: its attribute for the shape of the content. fill:
// the op that puts a tensor in; NULL: the resource stays empty.
struct Maker {
  const char *resource, *op;
  std::vector<const char*> types;
  const char* shape;
  const char* fill;
  const char* fill_type;
  bool lasts;
};

namespace {

const Maker kMakers[] = {
    {"org.thalweg.queue", "FIFOQueueV2", {"component_types"}, "shapes", "QueueEnqueueV2", "Tcomponents", true},
    {"org.thalweg.barrier", "ResourceBarrier", {"component_types"}, "shapes", "ResourceBarrierInsertMany", "T", true},
    {"org.thalweg.accumulator", "ResourceConditionalAccumulator", {"dtype"}, "shape", "ResourceAccumulatorApplyGradient", "dtype", true},
    {"sparse", "ResourceSparseConditionalAccumulator", {"dtype"}, "shape", "ResourceSparseAccumulatorApplyGradient", "dtype", true},
    {"org.thalweg.mutex", "MutexV2", {}, nullptr, nullptr, nullptr, true},
    {"org.thalweg.lookup_table", "MutableHashTableV2", {"key_dtype", "value_dtype"}, nullptr, nullptr, nullptr, true},
    {"empty", "HashTableV2", {"key_dtype", "value_dtype"}, nullptr, nullptr, nullptr, true},
    {"org.thalweg.stack", "StackV2", {"elem_type"}, nullptr, "StackPushV2", "T", false},
    {"org.thalweg.tensor_array", "TensorArrayV3", {"dtype"}, "element_shape", "TensorArrayWriteV3", "T", false},
};

// Some ops need another maker of the same resource type.
const Maker& For(const Maker& maker, const Use& use) {
  const bool sparse = std::strcmp(maker.op, "ResourceConditionalAccumulator") == 0 && use.op->name.find("Sparse") != std::string::npos;
  const bool empty = std::strcmp(maker.op, "MutableHashTableV2") == 0 && use.op->name.starts_with("Initialize");
  return sparse ? *MakerOf("sparse") : empty ? *MakerOf("empty") : maker;
}

// Returns the types that the attributes of the use give, or else the types of its tensors.
std::vector<uint32_t> TypesOf(const Use& use) {
  std::vector<uint32_t> types;
  for (const AttrValue& a : use.attrs) types.insert(types.end(), a.types.begin(), a.types.end());
  for (size_t i = 0; i < use.inputs.size() && types.empty(); ++i) {
    const Input& x = use.inputs[i];
    if (x.value && !(x.argument->type_attr.empty() && x.argument->list_attr.empty())) types.push_back(tw_tensor_dtype(x.value.get()));
  }
  return types;
}

class Kept {
 public:
  Kept(tw_graph* graph, const Maker& maker, const Use& use, size_t i)
      : graph_(graph), maker_(maker), x_(use.inputs[i]), name_("x" + std::to_string(i)), types_(TypesOf(use)) {
    if (types_.empty() && Is("MutableHashTableV2")) types_ = {TW_STRING, TW_INT64};  // what an op without types looks up
    if (x_.state == State::kOtherType || types_.empty()) types_ = {tw_tensor_dtype(x_.value.get())};
    dims_ = {tw_tensor_dims(x_.value.get()), tw_tensor_dims(x_.value.get()) + tw_tensor_rank(x_.value.get())};
  }

  tw_output Add(std::vector<const tw_operation*>* steps) {
    const tw_operation* made = Make();
    if (!made) {  // the maker cannot have these types
      types_ = {TW_FLOAT, TW_FLOAT};
      made = Make();
    }
    if (!made) Broken(std::string("a plain ") + maker_.op + " cannot be made");
    handle_ = tw_operation_output(made, 0);
    if (maker_.fill && x_.state != State::kUninitialised) steps->push_back(Fill());
    if (x_.state == State::kDestroyed) {
      Builder end(graph_, "DestroyResourceOp", "end_" + name_);
      for (const tw_operation* before : *steps) tw_op_add_control(end.op(), before);
      steps->push_back(Finished(end.Reads(handle_).op()));
    }
    steps->erase(std::remove(steps->begin(), steps->end(), nullptr), steps->end());
    return handle_;
  }

 private:
  static const tw_operation* Finished(tw_op* op) {
    const tw_operation* made = nullptr;
    return Take(tw_op_finish(op, &made)) == TW_OK ? made : nullptr;
  }

  bool Is(const char* op) const { return std::strcmp(maker_.op, op) == 0; }
  bool Lists() const { return Is("FIFOQueueV2") || Is("ResourceBarrier"); }

  const tw_operation* Make() {
    std::vector<tw_output> sizes;
    if (!maker_.lasts) sizes.push_back(Numbers("size_", TW_INT32, {2}, -1));
    Builder b(graph_, maker_.op, name_);
    for (tw_output size : sizes) b.Reads(size);
    if (Lists()) tw_op_set_types(b.op(), maker_.types[0], types_.data(), uint32_t(types_.size()));
    for (size_t k = 0; k < maker_.types.size() && !Lists(); ++k)
      b.Type(maker_.types[k], k < types_.size() ? types_[k] : uint32_t{TW_FLOAT});
    SetShape(&b);
    if (maker_.lasts) b.Text("container", "kept").Text("shared_name", maker_.op + (" " + name_));
    if (Is("TensorArrayV3")) tw_op_set_bool(b.op(), "dynamic_size", 1);
    return Finished(b.op());
  }

  // Sets the shape of the content; for a barrier, that of one row.
  void SetShape(Builder* b) {
    if (!maker_.shape) return;
    const bool known = x_.known & 1;
    std::vector<int64_t> dims = dims_;
    if (Is("ResourceBarrier") && !dims.empty()) dims.erase(dims.begin());
    if (!Lists()) return void(b->Shape(maker_.shape, known ? &dims : nullptr));
    const std::vector<tw_shape> shapes(types_.size(), tw_shape{dims.data(), int32_t(dims.size()), 0});
    if (known || Is("ResourceBarrier")) tw_op_set_shapes(b->op(), maker_.shape, shapes.data(), uint32_t(shapes.size()));
  }

  // Returns NULL if the resource does not accept the tensor.
  const tw_operation* Fill() {
    const uint32_t dtype = tw_tensor_dtype(x_.value.get());
    const int64_t rows = dims_.empty() ? 0 : dims_[0];
    if (types_[0] != dtype || rows > 64) return nullptr;
    std::vector<tw_output> inputs = {handle_};
    if (Is("ResourceBarrier")) inputs.push_back(Keys(rows));
    if (Is("ResourceConditionalAccumulator") || Is("ResourceSparseConditionalAccumulator"))
      inputs.push_back(Numbers("step_", TW_INT64, {0}, -1));
    if (Is("TensorArrayV3")) inputs.push_back(Numbers("index_", TW_INT32, {0}, -1));
    if (Is("ResourceSparseConditionalAccumulator")) inputs.push_back(Numbers("rows_", TW_INT64, UpTo(rows), rows));
    inputs.push_back(Constant("filling_", x_.value.get()));
    if (Is("ResourceSparseConditionalAccumulator")) inputs.push_back(Numbers("no_shape_", TW_INT64, {}, 0));
    if (Is("TensorArrayV3")) inputs.push_back(Numbers("flow_", TW_FLOAT, {0}, -1));
    Builder b(graph_, maker_.fill, "fill_" + name_);
    for (tw_output value : inputs) b.Reads(value);
    if (Is("FIFOQueueV2"))
      tw_op_set_types(b.op(), maker_.fill_type, &dtype, 1);
    else
      b.Type(maker_.fill_type, dtype);
    if (Is("ResourceBarrier")) tw_op_set_int(b.op(), "component_index", 0);
    if (Is("ResourceSparseConditionalAccumulator")) tw_op_set_bool(b.op(), "has_known_shape", 0);
    return Finished(b.op());
  }

  static std::vector<int64_t> UpTo(int64_t n) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < n; ++i) all.push_back(i);
    return all;
  }

  // A vector of n numbers; n < 0: a scalar. Unless the type is int32, int64 or float, all are
  // zeros.
  tw_output Numbers(const char* prefix, uint32_t dtype, const std::vector<int64_t>& values, int64_t n) {
    tw_tensor* t = nullptr;
    Must(tw_tensor_create(dtype, &n, n < 0 ? 0 : 1, &t), "making a tensor");
    const Tensor owner(t);
    auto* data = static_cast<unsigned char*>(tw_tensor_mutable_data(t));
    for (size_t k = 0; k < values.size(); ++k) {
      const auto narrow = int32_t(values[k]);
      if (dtype == TW_INT64) std::memcpy(data + 8 * k, &values[k], 8);
      if (dtype == TW_INT32 || dtype == TW_FLOAT) std::memcpy(data + 4 * k, &narrow, 4);
    }
    return Constant(prefix, t);
  }

  tw_output Keys(int64_t n) {
    tw_tensor* t = nullptr;
    Must(tw_tensor_create(TW_STRING, &n, 1, &t), "making keys");
    const Tensor owner(t);
    for (int64_t i = 0; i < n; ++i) {
      const std::string key = std::to_string(i);
      Must(tw_tensor_set_string(t, uint64_t(i), key.data(), key.size()), "setting a key");
    }
    return Constant("keys_", t);
  }

  // Makes a second constant if the first name is taken.
  tw_output Constant(const std::string& prefix, tw_tensor* value) {
    std::string name = prefix + name_;
    if (tw_graph_has(graph_, name.c_str())) name += "_again";
    Builder b(graph_, "Const", name);
    b.Type("dtype", tw_tensor_dtype(value));
    tw_op_set_tensor(b.op(), "value", value);
    return b.Must();
  }

  tw_graph* const graph_;
  const Maker& maker_;
  const Input& x_;
  const std::string name_;
  std::vector<uint32_t> types_;
  std::vector<int64_t> dims_;
  tw_output handle_ = 0;
};

}  // namespace

const Maker* MakerOf(const std::string& resource) {
  const auto* found = std::find_if(std::begin(kMakers), std::end(kMakers), [&](const Maker& m) { return m.resource == resource; });
  return found == std::end(kMakers) ? nullptr : found;
}

bool Lasts(const Maker& maker) { return maker.lasts; }

tw_output AddKept(tw_graph* graph, const Maker& maker, const Use& use, size_t i, std::vector<const tw_operation*>* steps) {
  return Kept(graph, For(maker, use), use, i).Add(steps);
}

bool Blames(const Use& use, const std::string& message) {
  return std::any_of(use.inputs.begin(), use.inputs.end(), [&](const Input& x) {
    const Maker* maker = MakerOf(x.argument->opens);
    if (!maker) return false;
    const Maker& one = For(*maker, use);
    return message.find(one.op) != std::string::npos || (one.fill && message.find(one.fill) != std::string::npos);
  });
}

}  // namespace thalweg::fuzz
