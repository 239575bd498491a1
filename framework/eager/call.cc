#include "framework/eager/call.h"

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

template <class T>
void AppendValue(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends the length too, so that two texts in a row never equal another two.
void AppendText(std::string_view text, std::string* key) {
  AppendValue(uint32_t(text.size()), key);
  key->append(text);
}

Status AppendString(const tw_string& s, std::string* key) {
  if (s.size > 0 && !s.data) return InvalidArgument("a text is NULL but has ", s.size, " bytes");
  AppendText({s.data ? s.data : "", size_t(s.size)}, key);
  return Status();
}

Status AppendShape(const tw_shape& s, std::string* key) {
  if (s.rank > kMaxRank) return InvalidArgument("rank ", s.rank, " is more than ", kMaxRank);
  if (s.rank > 0 && !s.dims) return InvalidArgument("a shape of rank ", s.rank, " has no dims");
  AppendValue(s.rank, key);
  if (s.rank > 0) key->append(reinterpret_cast<const char*>(s.dims), size_t(s.rank) * sizeof(int64_t));
  return Status();
}

Status AppendTensor(const tw_tensor* t, std::string* key) {
  if (!t) return InvalidArgument("a tensor is NULL");
  if (!LiesOnHost(*t)) return InvalidArgument("the tensor lies on a device; copy it with tw_tensor_to_host first");
  const tw_view& v = t->view;
  AppendValue(v.dtype, key);
  RETURN_IF_ERROR(AppendShape({v.dims, v.rank, 0}, key));
  const char* data = static_cast<const char*>(v.data) + v.offset;
  if (v.dtype == TW_STRING) {
    for (uint64_t i = 0; i < v.count; ++i) RETURN_IF_ERROR(AppendString(reinterpret_cast<const tw_string*>(data)[i], key));
    return Status();
  }
  const DTypeInfo* info = FindDType(v.dtype);
  if (!info || !info->plain) return InvalidArgument("a tensor of ", DTypeName(v.dtype), " cannot be an attribute");
  if (v.bytes > 0) key->append(data, size_t(v.bytes));
  return Status();
}

template <class T, class F>
Status AppendEach(const tw_attr& a, F&& append) {
  for (uint32_t i = 0; i < a.count; ++i) RETURN_IF_ERROR(append(static_cast<const T*>(a.data)[i]));
  return Status();
}

template <class T>
Status AppendPlain(const tw_attr& a, std::string* key) {
  key->append(static_cast<const char*>(a.data), a.count * sizeof(T));
  return Status();
}

Status AppendAttr(const tw_attr& a, std::string* key) {
  if (a.is_list > 1) return InvalidArgument("is_list is ", a.is_list, "; it must be 0 or 1");
  if (!a.is_list && a.count != 1) return InvalidArgument("it is a single value but its count is ", a.count);
  if (a.count > 0 && !a.data) return InvalidArgument("its values are NULL, but there are ", a.count);
  AppendValue(a.kind << 1 | a.is_list, key);
  AppendValue(a.count, key);
  if (a.count == 0) return Status();
  switch (a.kind) {
    case TW_ATTR_INT: return AppendPlain<int64_t>(a, key);
    case TW_ATTR_FLOAT: return AppendPlain<double>(a, key);
    case TW_ATTR_BOOL: return AppendPlain<uint8_t>(a, key);
    case TW_ATTR_TYPE: return AppendPlain<uint32_t>(a, key);
    case TW_ATTR_STRING: return AppendEach<tw_string>(a, [&](const tw_string& s) { return AppendString(s, key); });
    case TW_ATTR_SHAPE: return AppendEach<tw_shape>(a, [&](const tw_shape& s) { return AppendShape(s, key); });
    case TW_ATTR_TENSOR: return AppendEach<tw_tensor*>(a, [&](const tw_tensor* t) { return AppendTensor(t, key); });
    case TW_ATTR_FUNC: return Unimplemented("functions belong to a graph, which an eager call does not have; call it in a session");
    default: return InvalidArgument("kind ", a.kind, " is unknown");
  }
}

}  // namespace

Status AppendKey(const EagerCall& call, std::string* key) {
  AppendText(call.op, key);
  AppendText(call.device, key);
  AppendValue(uint32_t(call.inputs.size()), key);
  for (const Tensor& t : call.inputs) AppendValue(t.dtype(), key);
  for (const tw_attr& a : call.attrs) {
    AppendText({a.name, size_t(a.name_len)}, key);
    if (Status s = AppendAttr(a, key); !s.ok()) {
      return Prefix(s, StrCat(Shown(call.op), ": attribute '", Shown(std::string_view(a.name, a.name_len)), "':"));
    }
  }
  return Status();
}

}  // namespace thalweg
