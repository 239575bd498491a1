#include "framework/graph/builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"

void tw_builder::NotHere(const char* call) { Fail(thalweg::FailedPrecondition("'", call, "' cannot be called from this callback")); }
tw_edge tw_builder::Add(const tw_new_node&) { return NotHere("emit"), 0; }
tw_edge tw_builder::Output(tw_edge, uint32_t) { return NotHere("output"), 0; }
tw_edge tw_builder::Constant(uint32_t, const int64_t*, uint32_t, const void*, uint64_t) { return NotHere("constant"), 0; }
thalweg::Status tw_builder::Describe(tw_edge, uint32_t*, tw_shape*) {
  return thalweg::FailedPrecondition("'describe' cannot be called from this callback");
}
tw_edge tw_builder::Input(uint32_t) { return NotHere("input"), 0; }
tw_edge tw_builder::Result(uint32_t) { return NotHere("result"), 0; }
tw_edge tw_builder::ShapeOf(uint32_t) { return NotHere("shape"), 0; }
tw_edge tw_builder::Dy(uint32_t) { return NotHere("dy"), 0; }
uint32_t tw_builder::HasDy(uint32_t) { return NotHere("has_dy"), 0; }
tw_edge tw_builder::DySparse(uint32_t, tw_edge*) { return NotHere("dy_sparse"), 0; }
void tw_builder::Dx(uint32_t, tw_edge) { NotHere("dx"); }
void tw_builder::DxSparse(uint32_t, tw_edge, tw_edge) { NotHere("dx_sparse"); }
void tw_builder::SetShape(uint32_t, const int64_t*, int32_t) { NotHere("set_shape"); }
void tw_builder::GetHandle(uint32_t, uint32_t*, tw_shape*) { NotHere("handle"); }
void tw_builder::SetHandle(uint32_t, uint32_t, const int64_t*, int32_t) { NotHere("set_handle"); }

int64_t tw_builder::Dim(uint32_t op, int64_t x, int64_t y) {
  using thalweg::InvalidArgument;
  if (op == '=') {
    if (x >= 0 && y >= 0 && x != y) Fail(InvalidArgument("sizes ", x, " and ", y, " differ"));
    return x >= 0 ? x : y;
  }
  if (op == '*' && (x == 0 || y == 0)) return 0;
  if (x < 0 || y < 0) return -1;
  int64_t r = -1;
  bool ok = true;
  switch (op) {
    case '+': ok = thalweg::CheckedAdd(x, y, &r); break;
    case '*': ok = thalweg::CheckedMul(x, y, &r); break;
    case '-':
      ok = x >= y;
      r = x - y;
      break;
    case '/':
      ok = y != 0;
      r = ok ? x / y : -1;
      break;
    default: ok = false;
  }
  if (!ok) {
    Fail(InvalidArgument("size ", x, " ", std::string(1, char(op)), " ", y, " is not a size"));
    return -1;
  }
  return r;
}

namespace thalweg {
namespace {

// The entry point of every call: after a failure it does nothing, and no exception passes through
// the callback's frames.
template <class F>
auto Call(tw_builder* b, F&& body) noexcept -> decltype(body()) {
  if (!b->status.ok()) return 0;
  try {
    return body();
  } catch (...) {
    b->Fail(Thrown());
    return 0;
  }
}

constexpr uint64_t kLongestName = 1 << 16;  // far beyond any name; an uninitialised length is probably larger

// A text that was left out is empty.
Status CheckText(const char** text, uint64_t* len, std::string_view what) {
  if (*len > kLongestName) return InvalidArgument("the ", what, " of a node has ", *len, " bytes");
  if (*len && !*text) return InvalidArgument("the ", what, " of a node is NULL");
  if (!*text) *text = "";
  return Status();
}

tw_edge AddNode(tw_builder* b, tw_new_node n) {
  const std::tuple<const char**, uint64_t*, std::string_view> texts[] = {
      {&n.op, &n.op_len, "op"}, {&n.name, &n.name_len, "name"}, {&n.device, &n.device_len, "device"}};
  for (const auto& [text, len, what] : texts) {
    if (Status s = CheckText(text, len, what); !s.ok()) return b->Fail(std::move(s)), 0;
  }
  if ((n.n_in && !n.in) || (n.n_attrs && !n.attrs) || (n.n_after && !n.after)) {
    return b->Fail(InvalidArgument("a list of a node of ", std::string_view(n.op, n.op_len), " is NULL")), 0;
  }
  for (uint32_t i = 0; i < n.n_attrs; ++i) {
    if (n.attrs[i].name_len <= kLongestName) continue;
    return b->Fail(InvalidArgument("the name of attribute ", i, " has ", n.attrs[i].name_len, " bytes")), 0;
  }
  return b->Add(n);
}

tw_edge Emit(tw_builder* b, const char* op, uint64_t len, const tw_edge* in, uint32_t n, const tw_attr* a, uint32_t n_a) {
  return Call(b, [&] {
    tw_new_node node = {};
    node.size = sizeof node;
    node.op = op;
    node.op_len = len;
    node.in = in;
    node.n_in = n;
    node.attrs = a;
    node.n_attrs = n_a;
    return AddNode(b, node);
  });
}
tw_edge Add(tw_builder* b, const tw_new_node* n) {
  return Call(b, [&]() -> tw_edge {
    if (!n || n->size < 2 * sizeof(uint32_t) || n->flags)
      return b->Fail(InvalidArgument("a tw_new_node is NULL, or has no head; fill it with TW_SIZED")), 0;
    tw_new_node node = {};
    std::memcpy(static_cast<void*>(&node), n, std::min(size_t{n->size} / 8 * 8, sizeof node));
    return AddNode(b, node);
  });
}
tw_edge Output(tw_builder* b, tw_edge node, uint32_t i) {
  return Call(b, [&] { return b->Output(node, i); });
}
tw_edge Constant(tw_builder* b, uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  return Call(b, [&] { return b->Constant(dtype, dims, rank, data, bytes); });
}
tw_edge Scalar(tw_builder* b, uint32_t dtype, double value) {
  return Call(b, [&]() -> tw_edge {
    auto t = ScalarTensor(dtype, value);
    if (!t.ok()) return b->Fail(t.status()), 0;
    return b->Constant(dtype, nullptr, 0, t->data(), t->bytes());
  });
}
tw_status* Describe(tw_builder* b, tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) {
  return Guard([&] { return b->Describe(e, out_dtype, out_shape); });
}
tw_edge Input(tw_builder* b, uint32_t i) {
  return Call(b, [&] { return b->Input(i); });
}
tw_edge Result(tw_builder* b, uint32_t o) {
  return Call(b, [&] { return b->Result(o); });
}
tw_edge ShapeOf(tw_builder* b, uint32_t i) {
  return Call(b, [&] { return b->ShapeOf(i); });
}
tw_edge Dy(tw_builder* b, uint32_t o) {
  return Call(b, [&] { return b->Dy(o); });
}
uint32_t HasDy(tw_builder* b, uint32_t o) {
  return Call(b, [&] { return b->HasDy(o); });
}
tw_edge DySparse(tw_builder* b, uint32_t o, tw_edge* rows) {
  return Call(b, [&] { return b->DySparse(o, rows); });
}
void Dx(tw_builder* b, uint32_t i, tw_edge v) {
  Call(b, [&] { return b->Dx(i, v), 0; });
}
void DxSparse(tw_builder* b, uint32_t i, tw_edge rows, tw_edge v) {
  Call(b, [&] { return b->DxSparse(i, rows, v), 0; });
}
void SetShape(tw_builder* b, uint32_t o, const int64_t* dims, int32_t rank) {
  Call(b, [&] { return b->SetShape(o, dims, rank), 0; });
}
int64_t Dim(tw_builder* b, uint32_t op, int64_t x, int64_t y) {
  int64_t answer = -1;
  Call(b, [&] { return answer = b->Dim(op, x, y); });
  return answer;
}
void GetHandle(tw_builder* b, uint32_t i, uint32_t* dtype, tw_shape* shape) {
  *dtype = 0;
  *shape = {nullptr, -1, 0};
  Call(b, [&] { return b->GetHandle(i, dtype, shape), 0; });
}
void SetHandle(tw_builder* b, uint32_t o, uint32_t dtype, const int64_t* dims, int32_t rank) {
  Call(b, [&] { return b->SetHandle(o, dtype, dims, rank), 0; });
}

// Returns the nearest half-precision number, ties to even.
uint16_t ToHalf(double v) {
  float f = float(v);
  uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x7f800000u) return uint16_t(sign | 0x7c00u | (x > 0x7f800000u ? 0x200u : 0));
  if (x >= 0x477ff000u) return uint16_t(sign | 0x7c00u);
  if (x < 0x38800000u) return uint16_t(sign | uint32_t(std::nearbyint(std::ldexp(std::fabs(double(f)), 24))));
  uint32_t rounded = x + 0xfffu + ((x >> 13) & 1u);
  return uint16_t(sign | ((rounded - 0x38000000u) >> 13));
}
uint16_t ToBfloat16(double v) {
  uint32_t x = std::bit_cast<uint32_t>(float(v));
  if (std::isnan(v)) return uint16_t((x >> 16) | 0x40u);
  return uint16_t((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

template <class T>
void Store(const Tensor& t, T v) {
  std::memcpy(t.data(), &v, sizeof v);
}

}  // namespace

StatusOr<Tensor> ScalarTensor(uint32_t dtype, double value) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, nullptr, 0));
  switch (dtype) {
    case TW_FLOAT: Store(t, float(value)); break;
    case TW_DOUBLE: Store(t, value); break;
    case TW_HALF: Store(t, ToHalf(value)); break;
    case TW_BFLOAT16: Store(t, ToBfloat16(value)); break;
    case TW_INT8: Store(t, int8_t(value)); break;
    case TW_INT16: Store(t, int16_t(value)); break;
    case TW_INT32: Store(t, int32_t(value)); break;
    case TW_INT64: Store(t, int64_t(value)); break;
    case TW_UINT8: Store(t, uint8_t(value)); break;
    case TW_UINT16: Store(t, uint16_t(value)); break;
    case TW_UINT32: Store(t, uint32_t(value)); break;
    case TW_UINT64: Store(t, uint64_t(value)); break;
    case TW_BOOL: Store(t, uint8_t(value != 0)); break;
    case TW_COMPLEX64: {
      float c[2] = {float(value), 0};
      std::memcpy(t.data(), c, sizeof c);
      break;
    }
    case TW_COMPLEX128: {
      double c[2] = {value, 0};
      std::memcpy(t.data(), c, sizeof c);
      break;
    }
    default: return Unimplemented("no scalar of type ", DTypeName(dtype), " can be made from a number");
  }
  return t;
}

const tw_graph_api* GraphApi() {
  static const tw_graph_api api = {sizeof(tw_graph_api),
                                   0,
                                   Emit,
                                   Output,
                                   Scalar,
                                   Constant,
                                   Describe,
                                   Input,
                                   Result,
                                   ShapeOf,
                                   Dy,
                                   HasDy,
                                   DySparse,
                                   Dx,
                                   DxSparse,
                                   SetShape,
                                   Dim,
                                   GetHandle,
                                   SetHandle,
                                   Add};
  return &api;
}

}  // namespace thalweg
