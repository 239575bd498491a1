#include "lists.h"

namespace thalweg::ort {
namespace {

// The type of what a sequence or optional holds.
const OrtTypeInfo& InnerOf(const OrtTypeInfo& type) {
  const auto& inner = type.kind == ONNX_TYPE_SEQUENCE ? type.sequence.element : type.optional.contained;
  if (!inner) Fail(ORT_NOT_IMPLEMENTED, "values of type ", NameOf(type), " cannot be inputs or outputs");
  return *inner;
}

uint32_t ElementDtype(const OrtTypeInfo& inner) {
  return inner.kind == ONNX_TYPE_TENSOR ? DtypeOf(inner.tensor.type) : uint32_t{TW_VARIANT};
}

TensorRef Int32(int32_t value) {
  tw_tensor* made = nullptr;
  Check(tw_tensor_create_int32(value, &made));
  return TensorRef(made);
}

}  // namespace

tw_eager* Lists::Context() {
  const std::lock_guard lock(mu_);
  if (!eager_) {
    tw_eager* made = nullptr;
    Check(tw_eager_create(runtime_, nullptr, 0, &made));
    eager_.reset(made);
  }
  return eager_.get();
}

// element_dtype: the attribute of that name; TW_INVALID_TYPE: the op has none.
TensorRef Lists::Call(const char* op, const std::vector<tw_tensor*>& inputs, uint32_t element_dtype) {
  const tw_eager_attr attr = {"element_dtype", &element_dtype, TW_ATTR_TYPE, 0, 1, 0};
  tw_eager_call call{};
  call.size = sizeof call;
  call.op = op;
  call.inputs = inputs.data();
  call.n_inputs = static_cast<uint32_t>(inputs.size());
  call.attrs = &attr;
  call.n_attrs = element_dtype == TW_INVALID_TYPE ? 0 : 1;
  call.n_outputs = 1;
  tw_tensor* result = nullptr;
  Check(tw_eager_run(Context(), &call, &result));
  return TensorRef(result);
}

TensorRef Lists::ToThalweg(const OrtValue& value, const OrtTypeInfo& type) {
  if (type.kind == ONNX_TYPE_TENSOR) {
    if (value.kind != ONNX_TYPE_TENSOR || value.type != type.tensor.type) {
      Fail(ORT_INVALID_ARGUMENT, "unexpected data type: actual ", NameOf(TypeOf(value)), ", expected ", NameOf(type));
    }
    return TensorToThalweg(value);
  }
  const OrtTypeInfo& inner = InnerOf(type);
  // A value may stand for an optional that has it.
  const bool bare = type.kind == ONNX_TYPE_OPTIONAL && value.kind != ONNX_TYPE_OPTIONAL;
  if (!bare && value.kind != type.kind) {
    Fail(ORT_INVALID_ARGUMENT, "unexpected data type: actual ", NameOf(TypeOf(value)), ", expected ", NameOf(type));
  }
  const uint32_t dtype = ElementDtype(inner);
  const TensorRef any = Int32(-1);
  TensorRef list = Call("EmptyTensorList", {any.get(), any.get()}, dtype);
  const auto add = [&](const OrtValue& part) {
    const TensorRef element = ToThalweg(part, inner);
    list = Call("TensorListPushBack", {list.get(), element.get()}, dtype);
  };
  if (bare) add(value);
  for (const auto& part : value.parts) {
    if (!bare) add(*part);
  }
  return list;
}

ValueRef Lists::FromThalweg(TensorRef tensor, const OrtTypeInfo& type) {
  if (type.kind == ONNX_TYPE_TENSOR) return TensorFromThalweg(std::move(tensor));
  const OrtTypeInfo& inner = InnerOf(type);
  auto value = std::make_unique<OrtValue>();
  value->kind = type.kind;
  value->element = std::make_shared<const OrtTypeInfo>(inner);
  const TensorRef length = Call("TensorListLength", {tensor.get()}, TW_INVALID_TYPE);
  const int32_t count = *static_cast<const int32_t*>(tw_tensor_data(length.get()));
  const TensorRef any = Int32(-1);
  for (int32_t i = 0; i < count; ++i) {
    const TensorRef at = Int32(i);
    value->parts.push_back(FromThalweg(Call("TensorListGetItem", {tensor.get(), at.get(), any.get()}, ElementDtype(inner)), inner));
  }
  // ONNX Runtime returns the value itself for an optional that has one.
  if (type.kind == ONNX_TYPE_OPTIONAL && !value->parts.empty()) return std::make_unique<OrtValue>(*value->parts.front());
  return value;
}

}  // namespace thalweg::ort
