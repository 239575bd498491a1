// Constant: a value that stands in the node.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

void Constant(Builder& b, Node& n) {
  for (const char* name : {"value", "sparse_value"}) {
    if (n.has_attr(name)) return n.out(b.constant(n.tensor(name)));
  }
  if (n.has_attr("value_float")) return n.out(b.scalar(TW_FLOAT, n.f("value_float")));
  if (n.has_attr("value_floats")) return n.out(b.constant(Tensor::Vector(TW_FLOAT, n.floats("value_floats"))));
  if (n.has_attr("value_int")) return n.out(b.constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{n.i("value_int")}).Reshaped({})));
  if (n.has_attr("value_ints")) return n.out(b.ints(n.ints("value_ints")));
  if (n.has_attr("value_string")) return n.out(b.constant(Tensor::String({}, {n.s("value_string")})));
  if (n.has_attr("value_strings")) {
    const std::vector<std::string> all = n.strings("value_strings");
    return n.out(b.constant(Tensor::String({static_cast<int64_t>(all.size())}, all)));
  }
  n.fail("has no attribute with a value");
}

constexpr Entry kEntries[] = {
    {"Constant", 1, kLatest, &Constant},
};

}  // namespace

Family ConstantTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
