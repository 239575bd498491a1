#include "thalweg/tape.h"

#include <algorithm>

#include "c_api/eager_handles.h"
#include "c_api/shim.h"

using thalweg::FailedPrecondition;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::Tensor;

namespace {

Status CheckThread(const tw_tape& tape) {
  if (tape.tape.IsOfThisThread()) return Status();
  return FailedPrecondition("the tape belongs to another thread; use it on the thread that made it");
}

// Appends a tensor for each value to *out, empty for a NULL. may_be_empty: a NULL is no error.
Status Share(tw_tensor* const* values, uint32_t n, const char* what, bool may_be_empty, std::vector<Tensor>* out) {
  for (uint32_t i = 0; i < n; ++i) {
    if (!values[i] && !may_be_empty) return InvalidArgument(what, "[", i, "] is NULL");
    out->push_back(values[i] ? Tensor::Share(values[i]) : Tensor());
  }
  return Status();
}

}  // namespace

tw_status* tw_tape_create(tw_eager* eager, tw_tape** out_tape) {
  NEED(eager);
  NEED(out_tape);
  return thalweg::Enter([&] {
    *out_tape = new tw_tape(eager->eager);
    return Status();
  });
}

tw_status* tw_tape_watch(tw_tape* tape, tw_tensor* value) {
  NEED(tape);
  NEED(value);
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckThread(*tape));
    return tape->tape.Watch(Tensor::Share(value));
  });
}

void tw_tape_stop(tw_tape* tape) {
  if (tape) tape->tape.Stop();
}

tw_status* tw_tape_part_begin(tw_eager* eager, uint64_t* out_part) {
  NEED(eager);
  NEED(out_part);
  return thalweg::Enter([&] {
    *out_part = eager->eager->BeginPart();
    return Status();
  });
}

tw_status* tw_tape_part_end(tw_eager* eager, uint64_t part) {
  NEED(eager);
  return thalweg::Enter([&] {
    eager->eager->EndPart(part);
    return Status();
  });
}

tw_status* tw_tape_gradient(tw_tape* tape, tw_tensor* const* targets, tw_tensor* const* dys, uint32_t n_targets, tw_tensor* const* sources,
                            uint32_t n_sources, tw_tape_result* out_results) {
  NEED(tape);
  NEED_ARRAY(targets, n_targets);
  NEED_ARRAY(sources, n_sources);
  if (n_sources > 0) NEED(out_results);
  std::fill(out_results, out_results + n_sources, tw_tape_result{nullptr, nullptr});
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckThread(*tape));
    std::vector<Tensor> ys, arriving, xs;
    RETURN_IF_ERROR(Share(targets, n_targets, "targets", false, &ys));
    if (dys) RETURN_IF_ERROR(Share(dys, n_targets, "dys", true, &arriving));
    RETURN_IF_ERROR(Share(sources, n_sources, "sources", false, &xs));
    std::vector<thalweg::TapeGradient> gradients;
    RETURN_IF_ERROR(tape->tape.Gradient(ys, arriving, xs, &gradients));
    for (uint32_t i = 0; i < n_sources; ++i) out_results[i] = {gradients[i].values.release(), gradients[i].rows.release()};
    return Status();
  });
}

void tw_tape_destroy(tw_tape* tape) { delete tape; }
