// Error messages of a step that fails: which node with which inputs; which of several failures was
// the cause; what holds the missing memory.
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/check_results.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

Status StepState::Describe(size_t i, const Status& s) noexcept {
  NoteFailure();
  try {
    return Told(i, s);
  } catch (...) {  // no memory for the description
    return Thrown();
  }
}

// Adds the node to the message. Of deeply nested calls only the innermost and the outermost are
// described.
Status StepState::Told(size_t i, const Status& s) const {
  constexpr uint32_t kCallsTold = 3;
  const uint32_t calls = CallsLeft(s);
  if (calls > kCallsTold && depth > 0) return s;
  const PlanNode& n = plan_->nodes[i];
  if (calls > kCallsTold + 1) {
    return OfNode(*n.run.node, Prefix(s, StrCat(n.title, " (and ", calls - kCallsTold - 1, " calls further in)")));
  }
  std::string shapes;
  for (size_t k = 0; calls == 0 && k < n.in.size(); ++k) {  // shapes of the node that failed, not of the calls around it
    const tw_view& v = source_[size_t(frames_[i].source - source_.data()) + k]->view;
    if (v.dtype == TW_RESOURCE) continue;
    shapes += StrCat(shapes.empty() ? "" : ", ", DTypeName(v.dtype), ShapeText(v.dims, v.rank));
    if (plan_->check != ValueCheck::kOff && n.kind == PlanNode::kKernel) shapes += InputRange(frames_[i], uint32_t(k));
  }
  Status out = Prefix(s, n.title);
  if (!shapes.empty()) out = WithMessage(out, StrCat(Message(out), " (inputs: ", shapes, ")"));
  return n.run.node ? OfNode(*n.run.node, out) : out;
}

void StepState::NoteFailure() noexcept {
  uint64_t none = 0;
  failed_at_.compare_exchange_strong(none, tw_timeline::Tick());
}

// Returns the first failure: queues that wait for a failed queue fail too, and so does every user
// of a lost device.
Status StepState::RootFailure(Status status) const {
  uint64_t first = 0;
  Status cause;
  for (const auto& q : queues_) {
    uint64_t at = 0;
    Status s = q ? q->failure(&at) : Status();
    if (at == 0 || (first && first < at)) continue;
    first = at;
    cause = Prefix(s, StrCat(q->device()->name(), " reported after the step's kernels were started:"));
  }
  const uint64_t mine = failed_at_.load();
  return first && (mine == 0 || first < mine || status.code() == cause.code()) ? cause : status;
}

// Lists the values that a device holds for the step: tensors, and values in its block.
std::vector<LiveTensor> StepState::LiveOn(const Device* device) const {
  std::vector<LiveTensor> all;
  const size_t location = LocationOf(device);
  for (const PlanNode& n : plan_->nodes) {
    for (int32_t v : n.out) {
      const PlanValue& value = plan_->values[size_t(v)];
      const PlanShapes::Value& sized = shapes_->values[size_t(v)];
      const Tensor& held = slots_[size_t(v)].held;
      if (size_t(value.location) != location) continue;
      const bool in_block = value.kind == PlanValue::kBlock || value.kind == PlanValue::kPassed;
      const bool planned = in_block && sized.in_place_of < 0 && value.view_of < 0;
      const uint64_t bytes = held ? held.bytes() : planned ? sized.bytes : 0;
      const Shape shape = held ? held.shape() : sized.shape;
      const std::string_view title(n.title.data(), n.title.empty() ? 0 : n.title.size() - 1);  // without its colon
      if (bytes) all.push_back({StrCat(title, ": ", DTypeName(value.dtype), shape.text()), bytes});
    }
  }
  if (container) AddVariables(*runtime, *container, device, &all);
  return all;
}

Status StepState::TellMemory(const Status& s, const Device* device) const {
  if (s.code() != absl::StatusCode::kResourceExhausted || !device) return s;
  return WithMessage(s, StrCat(Message(s), LargestText(LiveOn(device))));
}

}  // namespace thalweg
