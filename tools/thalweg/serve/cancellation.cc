#include "cancellation.h"

#include "http_error.h"

namespace thalweg::cli::serve {

void Cancellation::Cancel(Cause cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cause_ != Cause::kNone) return;
  cause_ = cause;
  if (end_) end_();
}

void Cancellation::ThrowIfCancelled() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cause_ == Cause::kClientLeft) throw HttpError(kStatusClientLeft, "the client closed the connection before it had the answer");
  if (cause_ == Cause::kServerEnds) throw HttpError(503, "the server ends; send the request to another one");
}

Cancellation::Scope::Scope(Cancellation* request, std::function<void()> end) : request_(request) {
  const std::lock_guard<std::mutex> lock(request_->mutex_);
  request_->end_ = std::move(end);
  if (request_->cause_ != Cause::kNone) request_->end_();
}

Cancellation::Scope::~Scope() {
  const std::lock_guard<std::mutex> lock(request_->mutex_);
  request_->end_ = nullptr;
}

}  // namespace thalweg::cli::serve
