// Calls with values outside sessions whose types are not enough: tensors, their memory, eager calls, tapes.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/fuzz/c_api/special.h"

namespace thalweg::fuzz {

// ---- Memory ----

SPECIAL(tw_tensor_create) {
  const uint32_t dtype = p.Draw<uint32_t>();
  const auto* dims = p.Draw<const int64_t*>();
  const uint32_t rank = p.Draw<uint32_t>();
  // Other tests exhaust the memory: draws a few elements, or more than any machine has.
  double count = 1;
  for (uint32_t i = 0; dims && i < rank && i < Program::kList; ++i) count *= std::max(0.0, double(dims[i]));
  if (count > 4096 && count < 1e17) return;
  tw_tensor* made = nullptr;
  p.Note(tw_tensor_create(dtype, dims, rank, p.Null() ? nullptr : &made));
  p.Keep(made);
}

template <auto kFunction>
void CreateFrom(Program& p) {
  const uint32_t dtype = p.Draw<uint32_t>();
  const auto* dims = p.Draw<const int64_t*>();
  const uint32_t rank = p.Draw<uint32_t>();
  const uint64_t bytes = std::min(p.Number(), Program::kBytes), offset = std::min<uint64_t>(p.Number(), 16);
  auto* memory = static_cast<char*>(std::calloc(1, Program::kBytes + 16));
  tw_tensor* made = nullptr;
  p.Note(kFunction(dtype, dims, rank, memory + offset, bytes, std::free, memory, &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_create_from) { CreateFrom<&tw_tensor_create_from>(p); }
SPECIAL(tw_tensor_create_from_const) { CreateFrom<&tw_tensor_create_from_const>(p); }

SPECIAL(tw_tensor_data) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  if (tw_tensor_dtype(t) == TW_RESOURCE || tw_tensor_dtype(t) == TW_VARIANT) return;
  p.Read(tw_tensor_data(t), tw_tensor_bytes(t));
}
SPECIAL(tw_tensor_dims) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  p.Read(tw_tensor_dims(t), tw_tensor_rank(t) * sizeof(int64_t));
}
SPECIAL(tw_tensor_mutable_data) {
  tw_tensor* t = p.Handle<tw_tensor>();
  if (void* data = tw_tensor_mutable_data(t)) std::memset(data, 1, tw_tensor_bytes(t));
}
SPECIAL(tw_tensor_get_string) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  const uint64_t i = p.Number();
  const char* data = nullptr;
  uint64_t bytes = 0;
  const char** out_data = p.Null() ? nullptr : &data;
  p.Note(tw_tensor_get_string(t, i, out_data, p.Null() ? nullptr : &bytes));
  p.Read(data, data ? bytes : 0);
}
SPECIAL(tw_operation_attr) {
  const tw_operation* operation = p.Operation();
  const char* attr = p.Text();
  uint32_t kind = 0, is_list = 0, count = 0;
  const void* values = nullptr;
  p.Note(tw_operation_attr(operation, attr, &kind, &is_list, &count, p.Null() ? nullptr : &values));
  const uint64_t sizes[] = {0, 8, 8, 1, sizeof(tw_string), 4, sizeof(tw_shape), sizeof(void*), sizeof(tw_string)};
  if (kind >= std::size(sizes)) Broken("an attribute is of no kind");
  p.Read(values, count * sizes[kind]);
}

// A text with its length, whose types are the same as those of a name and a value.
SPECIAL(tw_tensor_create_string) {
  const tw_string text = p.String();
  tw_tensor* made = nullptr;
  p.Note(tw_tensor_create_string(text.data, text.size, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_set_string) {
  tw_tensor* t = p.Handle<tw_tensor>();
  const uint64_t i = p.Number();
  const tw_string text = p.String();
  p.Note(tw_tensor_set_string(t, i, text.data, text.size));
}
SPECIAL(tw_op_set_string) {
  tw_op* op = p.Handle<tw_op>();
  const char* attr = p.Text();
  const tw_string text = p.String();
  tw_op_set_string(op, attr, text.data, text.size);
}

template <auto kTo, auto kFrom>
void ThroughDlpack(Program& p) {
  tw_tensor* t = p.Handle<tw_tensor>();
  void* managed = nullptr;
  p.Note(kTo(t, &managed));
  if ((managed == nullptr) != p.failed()) Broken("an export and its result disagree about its success");
  tw_tensor* made = nullptr;
  p.Note(kFrom(managed, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_to_dlpack) { ThroughDlpack<&tw_tensor_to_dlpack, &tw_tensor_from_dlpack>(p); }
SPECIAL(tw_tensor_from_dlpack) { ThroughDlpack<&tw_tensor_to_dlpack, &tw_tensor_from_dlpack>(p); }
SPECIAL(tw_tensor_to_dlpack_versioned) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &tw_tensor_from_dlpack_versioned>(p); }
SPECIAL(tw_tensor_from_dlpack_versioned) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &tw_tensor_from_dlpack_versioned>(p); }
inline tw_status* FromDlpackOn(void* managed, tw_tensor** out_tensor) {
  return tw_tensor_from_dlpack_on(nullptr, managed, 1, nullptr, out_tensor);
}
SPECIAL(tw_tensor_from_dlpack_on) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &FromDlpackOn>(p); }

// ---- Eager calls ----

// What a call may take is bounded.
SPECIAL(tw_eager_create) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* options[] = {"memory_limit=16M", p.Text()};
  tw_eager* made = nullptr;
  p.Note(tw_eager_create(runtime, options, options[1] ? 2 : 1, p.Null() ? nullptr : &made));
  p.Keep(made);
}
// The op, its inputs, how many of them; then a bool, an int and a type, each with its name.
SPECIAL(tw_eager_run) {
  tw_eager* eager = p.Handle<tw_eager>();
  tw_eager_call call = {};
  call.size = uint32_t(sizeof call);
  call.op = p.Text();
  call.inputs = p.Draw<tw_tensor* const*>();
  call.n_inputs = std::min<uint32_t>(p.Draw<uint32_t>(), Program::kList);
  const char* names[] = {p.Text(), nullptr, nullptr};
  const uint8_t truth = p.Number() & 1;
  names[1] = p.Text();
  const auto number = p.Draw<int64_t>();
  names[2] = p.Text();
  const auto type = p.Draw<uint32_t>();
  tw_eager_attr attrs[] = {
      {names[0], &truth, TW_ATTR_BOOL, 0, 1, 0}, {names[1], &number, TW_ATTR_INT, 0, 1, 0}, {names[2], &type, TW_ATTR_TYPE, 0, 1, 0}};
  std::sort(std::begin(attrs), std::end(attrs), [](const auto& a, const auto& b) { return a.name && !b.name; });
  call.attrs = attrs;
  call.n_attrs = uint32_t(std::count_if(std::begin(attrs), std::end(attrs), [](const auto& a) { return a.name != nullptr; }));
  call.n_outputs = Program::kList;
  tw_tensor* outputs[Program::kList] = {};
  p.Note(tw_eager_run(eager, &call, p.Null() ? nullptr : outputs));
  for (tw_tensor* t : outputs) {
    if (t && p.failed()) Broken("an eager call that failed made something");
    p.Keep(t);
  }
}
SPECIAL(tw_tape_gradient) {
  tw_tape* tape = p.Handle<tw_tape>();
  auto* const* targets = p.Draw<tw_tensor* const*>();
  auto* const* dys = p.Draw<tw_tensor* const*>();
  const auto n_targets = p.Draw<uint32_t>();
  auto* const* sources = p.Draw<tw_tensor* const*>();
  const auto n_sources = p.Draw<uint32_t>();
  tw_tape_result results[Program::kList] = {};
  p.Note(tw_tape_gradient(tape, targets, dys, n_targets, sources, n_sources, p.Null() ? nullptr : results));
  for (const tw_tape_result& r : results) {
    if ((r.values || r.rows) && p.failed()) Broken("gradients that failed made something");
    p.Keep(r.values);
    p.Keep(r.rows);
  }
}

}  // namespace thalweg::fuzz
