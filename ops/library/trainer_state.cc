// The place of a loop, in variables of the graph, which checkpoints hold.
#include <cmath>
#include <cstring>

#include "ops/library/signature.h"
#include "ops/library/trainer_parts.h"
#include "thalweg/op.h"

namespace thalweg::library {

namespace {

constexpr int64_t kCounts = 6, kSums = 3;

// A variable named `trainer`/part, its value, and a placeholder for its next one, whose assignment joins `sets`.
void Add(tw_scope* scope, const char* part, uint32_t dtype, const std::vector<int64_t>& dims, tw_output initial, tw_output* value,
         tw_output* feed, std::vector<const tw_operation*>* sets) {
  const tw_output variable = tw_variable_create(scope, FreeName(scope, part).c_str(), initial);
  *value = tw_variable_read(scope, variable);
  const std::string name = FreeName(scope, std::string("new_") + part);
  *feed = tw_scope_placeholder(scope, name.c_str(), dtype, dims.data(), int32_t(dims.size()));
  sets->push_back(Update(scope, "AssignVariableOp", {variable, *feed}));
}

tw_output NoText(tw_scope* scope) {
  tw_tensor* empty = nullptr;
  tw_scope_fail(scope, tw_tensor_create_string("", 0, &empty));
  const tw_output made = Good(scope) ? tw_scope_constant(scope, empty) : 0;
  tw_tensor_release(empty);
  return made;
}

}  // namespace

void AddPlaceVariables(tw_scope* scope, tw_trainer* t) {
  PlaceVariables& v = t->variables;
  std::vector<const tw_operation*> sets;
  const auto zeros = [&](int64_t n, uint32_t dtype) {
    return tw_scope_op2(scope, "Fill", Longs(scope, {n}), tw_scope_scalar(scope, dtype, 0));
  };
  Add(scope, "state", TW_INT64, {kCounts}, zeros(kCounts, TW_INT64), &v.counts, &v.new_counts, &sets);
  Add(scope, "sums", TW_DOUBLE, {kSums}, zeros(kSums, TW_DOUBLE), &v.sums, &v.new_sums, &sets);
  Add(scope, "position", TW_STRING, {}, NoText(scope), &v.position, &v.new_position, &sets);
  v.set = tw_scope_group(scope, nullptr, sets.data(), uint32_t(sets.size()));
}

tw_status* StorePlace(tw_trainer& t, const tw_buffer* position) {
  const LoopPlace& p = t.place;
  const int64_t counts[kCounts] = {p.epoch, p.batch, p.step, p.best_epoch, p.waited, p.why};
  const double sums[kSums] = {p.loss, p.rows, p.best_epoch < 0 ? 0 : p.best};  // a session may refuse NaN (option check_values)
  tw_tensor* made[3] = {};
  tw_status* failed = tw_tensor_create_copy(TW_INT64, &kCounts, 1, counts, sizeof counts, &made[0]);
  if (!failed) failed = tw_tensor_create_copy(TW_DOUBLE, &kSums, 1, sums, sizeof sums, &made[1]);
  if (!failed) failed = tw_tensor_create_string(tw_buffer_data(position), tw_buffer_bytes(position), &made[2]);
  const tw_output feeds[] = {t.variables.new_counts, t.variables.new_sums, t.variables.new_position};
  const tw_signature what = SignatureOf(feeds, {}, {&t.variables.set, 1});
  if (!failed) failed = tw_session_run(t.model.session, &what, made, nullptr, nullptr);
  for (tw_tensor* tensor : made) tw_tensor_release(tensor);
  return failed;
}

tw_status* LoadPlace(tw_trainer& t, OwnedBuffer* out_position) {
  const tw_output fetches[] = {t.variables.counts, t.variables.sums, t.variables.position};
  const tw_signature what = SignatureOf({}, fetches);
  tw_tensor* got[3] = {};
  if (tw_status* failed = tw_session_run(t.model.session, &what, nullptr, nullptr, got)) return failed;
  const OwnedTensor owned[] = {OwnedTensor(got[0]), OwnedTensor(got[1]), OwnedTensor(got[2])};
  const auto* c = static_cast<const int64_t*>(tw_tensor_data(got[0]));
  const auto* s = static_cast<const double*>(tw_tensor_data(got[1]));
  t.place = {c[0], c[1], c[2], c[3], c[4], c[5], s[0], s[1], c[3] < 0 ? NAN : s[2]};
  const char* text = nullptr;
  uint64_t bytes = 0;
  if (tw_status* failed = tw_tensor_get_string(got[2], 0, &text, &bytes)) return failed;
  out_position->reset();
  if (bytes == 0) return nullptr;
  tw_buffer* position = nullptr;
  tw_status* failed = tw_buffer_create(text, bytes, &position);
  out_position->reset(position);
  return failed;
}

}  // namespace thalweg::library
