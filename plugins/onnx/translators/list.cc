#include "list.h"

#include "../model.h"

namespace thalweg::onnx {

Value Described(const Value& v, const Listed& listed) {
  auto info = std::make_shared<Value::Info>(v.info());
  info->listed = std::make_shared<const Listed>(listed);
  return Value(std::move(info));
}

namespace {

// The dtype of an item, and what it holds if it is a list.
void SetItem(Listed* listed, const proto::TypeProto& item) {
  if (item.has_tensor_type()) {
    listed->dtype = DtypeOf(item.tensor_type().elem_type());
    return;
  }
  listed->dtype = TW_VARIANT;
  listed->inner = std::make_shared<const Listed>(ListedOf(item));
}

}  // namespace

Listed ListedOf(const proto::TypeProto& type) {
  Listed listed;
  if (type.has_sequence_type()) {
    SetItem(&listed, type.sequence_type().elem_type());
  } else if (type.has_optional_type()) {
    listed.optional = true;
    SetItem(&listed, type.optional_type().elem_type());
  } else {
    throw Error{TW_UNIMPLEMENTED, "the type is neither a tensor nor a sequence nor an optional"};
  }
  return listed;
}

Listed ListedOf(const Value& v) {
  if (v.listed()) return *v.listed();
  if (v.kind() == Value::Kind::kTensor) throw Error{TW_INVALID_ARGUMENT, "the value is neither a sequence nor an optional"};
  Listed listed;
  listed.optional = v.kind() == Value::Kind::kOptional;
  listed.dtype = v.dtype();
  if (!v.items().empty()) {
    const Value& first = v.items()[0];
    const bool tensor = first.kind() == Value::Kind::kTensor && !first.listed();
    listed.dtype = tensor ? first.dtype() : static_cast<uint32_t>(TW_VARIANT);
    if (!tensor) listed.inner = std::make_shared<const Listed>(ListedOf(first));
  }
  return listed;
}

Value EmptyList(Builder& b, const Listed& listed) {
  const Value any = b.scalar(TW_INT32, -1);
  return Described(b.op("EmptyTensorList", {any, any}, {{"element_dtype", Type{listed.dtype}}}), listed);
}

Value Pushed(Builder& b, const Value& list, const Value& item) {
  const Value given = item.kind() == Value::Kind::kTensor ? item : AsList(b, item);
  return Described(b.op("TensorListPushBack", {list, given}), *list.listed());
}

Value AsList(Builder& b, const Value& v) {
  if (v.kind() == Value::Kind::kTensor) {
    if (!v.listed()) throw Error{TW_INVALID_ARGUMENT, "a sequence or optional is needed, not a tensor"};
    return v;
  }
  Value list = EmptyList(b, ListedOf(v));
  for (const Value& item : v.items()) list = Pushed(b, list, item);
  return list;
}

Value ListLength(Builder& b, const Value& list) { return b.op("TensorListLength", {list}); }

Value ListItem(Builder& b, const Value& list, const Value& index) {
  const Listed& listed = *list.listed();
  const Value item = b.op("TensorListGetItem", {list, index, b.scalar(TW_INT32, -1)}, {{"element_dtype", Type{listed.dtype}}});
  return listed.inner ? Described(item, *listed.inner) : item;
}

}  // namespace thalweg::onnx
