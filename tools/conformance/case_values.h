// Reads values of a case file from JSON: tensors, attributes and their parts. Errors name the value,
// its fault and the valid form.
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

using cli::JsonText;
using cli::JsonValue;

// Returns INVALID_ARGUMENT unless `v` is an object whose members are all in `members`.
Status OnlyHas(const JsonValue& v, std::initializer_list<std::string_view> members);
StatusOr<std::string> StringOf(const JsonValue& v);
// Reads a number; also accepts true and false, and the texts nan, inf and -inf.
StatusOr<double> NumberOf(const JsonValue& v);
// Reads an object with `shape`, and either `values` or `range`. dtype: the type if the object has no
// `dtype`; 0: the object must have one.
StatusOr<Tensor> TensorOf(const JsonValue& v, uint32_t dtype);
// Reads an object of values by the names of the op's attributes; null means no attributes.
StatusOr<Attrs> AttrsOf(const OpSchema& op, const JsonValue& v);

template <class T, class Read>
StatusOr<std::vector<T>> ListOf(const JsonValue& v, Read&& read) {
  if (!v.is(JsonValue::Kind::kArray)) return InvalidArgument("it is ", JsonText(v), "; write a list");
  std::vector<T> out;
  for (const JsonValue& item : v.items()) {
    ASSIGN_OR_RETURN(T one, read(item));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace thalweg::conformance
