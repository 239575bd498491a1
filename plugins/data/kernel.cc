#include "kernel.h"

namespace thalweg::data {

std::vector<DatasetPtr> Inputs::Datasets(uint32_t a) const {
  std::vector<DatasetPtr> all;
  for (uint32_t i = frame()->in_at[a]; i < frame()->in_at[a + 1]; ++i) all.push_back(DatasetOf(frame(), frame()->in[i]));
  return all;
}

static const tw_view& Scalar(const tw_view& v, const char* what, uint32_t dtype) {
  if (v.dtype != dtype || v.count != 1)
    Invalid("'" + std::string(what) + "' is " + tw::dtype_text(v.dtype) + " " + DimsText(v) + "; it must be a scalar of type " +
            tw::dtype_text(dtype));
  return v;
}

int64_t Inputs::Int(uint32_t a, const char* what) const { return *static_cast<const int64_t*>(Scalar(At(a), what, TW_INT64).data); }
bool Inputs::Bool(uint32_t a, const char* what) const { return *static_cast<const uint8_t*>(Scalar(At(a), what, TW_BOOL).data) != 0; }

std::string_view Inputs::Text(uint32_t a, const char* what) const {
  const auto& s = *static_cast<const tw_string*>(Scalar(At(a), what, TW_STRING).data);
  return {s.data, s.size};
}

int64_t Inputs::Least(uint32_t a, const char* what, int64_t least) const {
  const int64_t n = Int(a, what);
  if (n < least) Invalid("'" + std::string(what) + "' is " + tw::text(n) + "; it must be at least " + tw::text(least));
  return n;
}

std::vector<std::string> Inputs::Texts(uint32_t a) const {
  const tw_view& v = At(a);
  if (v.rank > 1) Invalid("'filenames' is " + DimsText(v) + "; it must be a scalar or a vector");
  std::vector<std::string> all;
  const auto* s = static_cast<const tw_string*>(v.data);
  for (uint64_t i = 0; i < v.count; ++i) all.emplace_back(s[i].data, s[i].size);
  return all;
}

Element Inputs::Kept(uint32_t a) const {
  Element e;
  for (uint32_t i = frame()->in_at[a]; i < frame()->in_at[a + 1]; ++i) {
    tw_tensor* t = nullptr;
    tw::check(c.host()->tensor->keep(frame(), i, &t));
    e.emplace_back(c.host(), t);
  }
  return e;
}

std::vector<uint32_t> TypesOf(const tw::Node& n, std::string_view attr) {
  const tw_attr* a = n.find(attr);
  if (!a) return {};
  const auto* types = static_cast<const uint32_t*>(a->data);
  return {types, types + a->count};
}

Maker::Maker(const tw::Node& n)
    : op(n.node->op, n.node->op_len), types(TypesOf(n, n.find("output_types") ? "output_types" : "Toutput_types")) {}

}  // namespace thalweg::data
