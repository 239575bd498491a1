// Computes small integer and real values during import: shapes and the arithmetic on them, as far as elements are known.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "builder.h"

namespace thalweg::onnx {

constexpr int64_t kMostFolded = 1024;  // elements of a value that is folded

struct Folded {
  uint32_t dtype = 0;
  Dims dims;
  std::vector<Element> elements;
  bool complete() const;
  Tensor tensor() const;  // REQUIRES: complete()
};

// The elements of a value; none if no element is known or there are too many.
std::optional<Folded> KnownOf(const Value& v);
// The result of one of our ops on these inputs; none if it is not computed here.
std::optional<Folded> Fold(std::string_view op, const std::vector<Value>& in, const Attrs& attrs);

}  // namespace thalweg::onnx
