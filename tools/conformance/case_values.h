// Values of a case file: tensors, attributes and their parts, from JSON. Errors say what is wrong with which value, and what to write.
// Threads: any.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/case_attrs.h"
#include "tools/thalweg/json_value.h"

namespace thalweg::conformance {

using cli::JsonValue;

enum class JsonKind { kNull, kBool, kNumber, kText, kArray, kObject };
JsonKind KindOf(const JsonValue& v);
// INVALID_ARGUMENT unless it is an object that has no members but these.
Status OnlyHas(const JsonValue& v, std::initializer_list<std::string_view> members);
StatusOr<std::string> StringOf(const JsonValue& v);
// Also true and false, and the texts nan, inf and -inf.
StatusOr<double> NumberOf(const JsonValue& v);
// An object with `shape`, and `values` or `range`. dtype: where it does not say it; 0: it must.
StatusOr<Tensor> TensorOf(const JsonValue& v, uint32_t dtype);
// An object of values by the names of the op's attributes; null: none.
StatusOr<Attrs> AttrsOf(const OpSchema& op, const JsonValue& v);

template <class T, class Read>
StatusOr<std::vector<T>> ListOf(const JsonValue& v, Read&& read) {
  if (KindOf(v) != JsonKind::kArray) return InvalidArgument("it is ", v.json(), "; write a list");
  std::vector<T> out;
  for (const JsonValue& item : v.items()) {
    ASSIGN_OR_RETURN(T one, read(item));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace thalweg::conformance
