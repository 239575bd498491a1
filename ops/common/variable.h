// Shared parts of ops on variables: facts about the variable behind a handle, or behind a
// reference. Ops with references (ref(T), in graphs from before handles existed) run as their forms
// with handles, so one rule serves both.
#pragma once
#include <initializer_list>

#include "ops/common/shape.h"

namespace thalweg::ops {

// Returns the shape of the variable behind input i, after a check of its type. The graph checks the
// type of a reference.
MaybeDims Variable(const tw::Shape& s, uint32_t i, uint32_t type);
// Optimizers: inputs first .. first + count - 1 are handles whose variables and the tensor at input `grad` must have one shape.
void WantOneShape(const tw::Shape& s, uint32_t count, uint32_t grad);
// The same if the tensor at input `grad` has one row for each of the indices at input `indices`.
void WantRows(const tw::Shape& s, uint32_t count, uint32_t grad, uint32_t indices);
// Checks that inputs first, first + 1, ... are scalars. names: of these inputs, for messages.
void WantScalars(const tw::Shape& s, uint32_t first, std::initializer_list<const char*> names);

// The rule of a form with references: the rule of the form with handles; output 0 is the variable
// that input 0 refers to.
template <void (*kRule)(const tw::Shape&)>
void HandOnRule(const tw::Shape& s) {
  kRule(s);
  Set(s, 0, In(s, 0));
}
#define OPS_HANDS_ON "stateful; no_gradient \"it changes a variable\"; "

}  // namespace thalweg::ops
