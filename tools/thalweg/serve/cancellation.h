// Whether anybody still wants the answer to a request.
// Threads: any; one thread serves the request, and others cancel it. Lock order: the mutex of ClientWatch, that of a Cancellation, that
// of a Batcher.
#pragma once
#include <functional>
#include <mutex>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli::serve {

class Cancellation {
 public:
  enum class Cause { kNone, kClientLeft, kServerEnds };

  // The first cause counts; further calls do nothing.
  void Cancel(Cause cause);
  // Throws HttpError with the status of the cause: 499 if the client left, as proxies count it, 503 if the server ends.
  void ThrowIfCancelled() const;

  // Calls `end` when the request is cancelled, and at once if it is cancelled already. The call comes from the thread that cancels. After
  // the destructor `end` neither runs nor will. REQUIRES: one scope at a time; the thread holds no lock that `end` takes.
  class Scope {
   public:
    Scope(Cancellation* request, std::function<void()> end);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancellation* const request_;
  };

 private:
  mutable std::mutex mutex_;  // guards the members that follow; held while `end_` runs
  Cause cause_ = Cause::kNone;
  std::function<void()> end_;
};

// A token that ends runs of models.
class CancelToken : public tw::Owned<tw_cancel_token, tw_cancel_token_destroy> {
 public:
  CancelToken() {
    tw_cancel_token* made = nullptr;
    tw::raise(tw_cancel_token_create(&made));
    own(made);
  }
  void Cancel() const { tw_cancel_token_cancel(c()); }
};

}  // namespace thalweg::cli::serve
