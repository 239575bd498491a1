// Ops that change or read the shape of a value and keep its elements.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

// Reshape: a size of 0 copies the input's size of that axis unless `allowzero` is set; -1 follows from the rest.
void Reshape(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (n.opset < 5) return n.out(b.reshape(x, n.ints("shape")));
  const Value& dims = n.in(1);
  const std::vector<Element>* known = dims.known();
  if (!known || n.i("allowzero", 0)) return n.out(b.reshape(x, dims));
  Dims to;
  int free = 0;
  for (size_t i = 0; i < known->size(); ++i) {
    const Element& e = (*known)[i];
    int64_t size = e.known ? e.i : -1;
    if (e.known && e.i == 0) size = x.rank() > static_cast<int>(i) ? x.dim(static_cast<int>(i)) : -1;
    free += size < 0;
    to.push_back(size);
  }
  if (free <= 1) return n.out(b.reshape(x, to));  // one symbolic size follows from the others
  std::vector<Value> parts;
  for (size_t i = 0; i < known->size(); ++i) {
    const Element& e = (*known)[i];
    const int64_t at = static_cast<int64_t>(i);
    if (e.known && e.i == 0) {
      parts.push_back(b.unsqueeze(b.size(x, static_cast<int>(i)), {0}));
    } else {
      parts.push_back(e.known ? b.ints({e.i}) : b.slice0(dims, at, at + 1));
    }
  }
  n.out(b.reshape(x, b.concat(parts, 0)));
}

constexpr Entry kEntries[] = {
    {"Reshape", 1, kLatest, &Reshape},
};

}  // namespace

Family ShapeTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
