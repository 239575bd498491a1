// Binds the feeds of a step.
#include <algorithm>
#include <cstring>

#include "framework/runtime/step/step.h"

namespace thalweg {

void StepState::Feed(const Tensor* feeds) {
  const Plan& p = *plan_;
  if (p.takes_feeds) return;
  for (size_t i = 0; i < p.feeds.size(); ++i) {
    if (p.feeds[i] >= 0) slots_[size_t(p.feeds[i])].view = feeds[i].view();
  }
  if (!feed_views_.empty()) BindFeedViews();
}

// Binds values that are a feed under other dims.
void StepState::BindFeedViews() {
  for (int32_t v : feed_views_) {
    const Shape& shape = shapes_->values[size_t(v)].shape;
    tw_view& view = slots_[size_t(v)].view;
    view = slots_[size_t(plan_->feeds[size_t(plan_->values[size_t(v)].feed)])].view;
    view.dims = shape.dims().data();
    view.rank = shape.rank();
    view.tensor = nullptr;  // no tensor has these dims
  }
}

Status StepState::CopyFeeds(const Tensor* feeds) {
  const Plan& p = *plan_;
  for (size_t k = 0; k < p.copied_feeds.size(); ++k) {
    const int32_t i = p.copied_feeds[k];
    RETURN_IF_ERROR(CopyFeed(feeds[i], &feed_copies_[k]));
    slots_[size_t(p.feeds[size_t(i)])].view = feed_copies_[k].view();
  }
  BindFeedViews();
  return Status();
}

Status StepState::CopyFeed(const Tensor& feed, Tensor* copy) {
  const tw_view& v = feed.view();
  const bool fits = *copy && copy->unique() && copy->rank() == v.rank && std::equal(v.dims, v.dims + v.rank, copy->view().dims);
  if (!fits) {
    copy->reset();
    ASSIGN_OR_RETURN(*copy, Tensor::Make(v.dtype, v.dims, v.rank, nullptr, budget));
  }
  if (feed.bytes()) std::memcpy(copy->data(), feed.data(), size_t(feed.bytes()));
  return Status();
}

void StepState::DropLargeCopies() {
  constexpr uint64_t kMostKept = 64 << 10;  // larger copies go back to the pool after the step
  for (Tensor& copy : feed_copies_) {
    if (copy && copy.bytes() > kMostKept) copy.reset();
  }
}

void StepState::Take(Tensor* feeds) {
  const Plan& p = *plan_;
  for (size_t i = 0; i < p.feeds.size(); ++i) {
    Tensor feed = std::move(feeds[i]);
    const int32_t v = p.feeds[i];
    if (v >= 0 && p.values[size_t(v)].kind == PlanValue::kPassed) {
      CopyIn(v, feed.data());
      continue;
    }
    const bool read = v >= 0 && (p.frames || p.values[size_t(v)].readers > 0 || p.values[size_t(v)].fetched);
    if (read) slots_[size_t(v)].Hold(std::move(feed));
  }
}

void StepState::CopyIn(int32_t v, const void* data) {
  const tw_view& to = slots_[size_t(v)].view;
  if (to.bytes) std::memcpy(static_cast<char*>(to.data) + to.offset, data, size_t(to.bytes));
}

}  // namespace thalweg
