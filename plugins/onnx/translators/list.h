// Lists that are made at run time: sequences and optionals whose items are not known one by one (an input of the model, a state of a loop).
#pragma once
#include "table.h"

namespace thalweg::onnx {

namespace proto {
class TypeProto;
}  // namespace proto

// Returns `v`, a list of the step, with what it holds.
Value Described(const Value& v, const Listed& listed);
// Returns what a list of this type holds. The type must be a sequence or an optional; else throws Error.
Listed ListedOf(const proto::TypeProto& type);
// What a list of these items or of this list holds. v: a sequence, an optional, or a list that is made at run time.
Listed ListedOf(const Value& v);

// Returns a sequence or optional as a list that is made at run time; such a list itself unchanged.
Value AsList(Builder& b, const Value& v);

// Parts of a list that is made at run time. index: a scalar of int32 that counts from the front.
Value ListLength(Builder& b, const Value& list);  // int32 scalar
Value ListItem(Builder& b, const Value& list, const Value& index);
Value Pushed(Builder& b, const Value& list, const Value& item);
Value EmptyList(Builder& b, const Listed& listed);

}  // namespace thalweg::onnx
