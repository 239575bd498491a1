// Converts the C arguments of a run for a session, and its results back. Threads: any.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "c_api/any_session.h"
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/runtime/cancel.h"
#include "thalweg/session.h"

struct tw_cancel_token {
  thalweg::CancelToken token;
};

namespace thalweg {

constexpr size_t kFirstSignature = offsetof(tw_signature, feed_devices);  // bytes of the first version of the record

Status ToSpec(const Graph& graph, const tw_signature& what, CallableSpec* spec);
Status ToRunOptions(const tw_run_options* options, RunOptions* run);

// As many tensors as a step feeds or fetches. Most steps use room on the stack; larger ones reuse
// the vectors of earlier steps of the thread.
class Tensors {
 public:
  explicit Tensors(uint32_t n) {
    if (n <= kInline) return;
    spare.reserve(kMostSpare);  // so that returning a vector needs no memory
    if (!spare.empty()) {
      heap_ = std::move(spare.back());
      spare.pop_back();
    }
    heap_.resize(n);
  }
  ~Tensors() {
    if (heap_.capacity() == 0 || spare.size() >= spare.capacity()) return;
    heap_.clear();
    spare.push_back(std::move(heap_));
  }
  Tensors(const Tensors&) = delete;
  Tensor* data() { return heap_.empty() ? inline_.data() : heap_.data(); }
  static void TouchThread() noexcept { static_cast<void>(spare.empty()); }  // creates the thread-local vectors
  Tensor& operator[](uint32_t i) { return data()[i]; }

 private:
  static constexpr uint32_t kInline = 16;
  static constexpr size_t kMostSpare = 2;  // feeds and fetches
  static thread_local std::vector<std::vector<Tensor>> spare;
  std::array<Tensor, kInline> inline_;
  std::vector<Tensor> heap_;
};

// run(feeds, options, fetches) returns a Status.
template <class F>
tw_status* RunStep(uint32_t n_feeds, tw_tensor* const* feeds, const tw_run_options* options, uint32_t n_fetches, tw_tensor** out_fetches,
                   F&& run) {
  if (out_fetches) std::fill(out_fetches, out_fetches + n_fetches, nullptr);
  return Enter([&]() -> Status {
    if (n_feeds > 0 && !feeds) return InvalidArgument("feeds is NULL, but the signature has ", n_feeds);
    if (n_fetches > 0 && !out_fetches) return InvalidArgument("out_fetches is NULL, but the signature has ", n_fetches, " fetches");
    RunOptions run_options;
    RETURN_IF_ERROR(ToRunOptions(options, &run_options));
    Tensors in(n_feeds), out(n_fetches);
    for (uint32_t i = 0; i < n_feeds; ++i) {
      if (!feeds[i]) return InvalidArgument("feed ", i, " is NULL");
      in[i] = Tensor::Share(feeds[i]);
    }
    RETURN_IF_ERROR(run(in.data(), run_options, out.data()));
    for (uint32_t i = 0; i < n_fetches; ++i) out_fetches[i] = out[i].release();
    return Status();
  });
}

// An accepted run, until its callback returns. It keeps the session alive.
struct AsyncRun {
  AnySession session;
  std::vector<Tensor> feeds, fetches;
  std::vector<tw_tensor*> out;  // for the callback
  RunOptions options;
  int64_t accepted_ns = 0;
  tw_run_done done = nullptr;
  void* user = nullptr;

  // Calls start(feeds, options, fetches, done).
  template <class F>
  static void Start(const std::shared_ptr<AsyncRun>& r, F&& start) {
    Status s;
    try {
      s = r->Begin();
      if (s.ok()) return start(r->feeds.data(), r->options, r->fetches.data(), [r](Status over) { r->End(std::move(over)); });
    } catch (...) {
      s = Thrown();
    }
    r->End(std::move(s));
  }

  Status Begin();
  void End(Status s) noexcept;
};

// Calls start(feeds, options, fetches, done) on a thread for tasks.
template <class F>
tw_status* RunAsync(const AnySession& session, uint32_t n_feeds, tw_tensor* const* feeds, const tw_run_options* options, uint32_t n_fetches,
                    tw_run_done done, void* user, F start) {
  return Enter([&]() -> Status {
    if (n_feeds > 0 && !feeds) return InvalidArgument("feeds is NULL, but the signature has ", n_feeds);
    auto r = std::make_shared<AsyncRun>();
    RETURN_IF_ERROR(ToRunOptions(options, &r->options));
    for (uint32_t i = 0; i < n_feeds; ++i) {
      if (!feeds[i]) return InvalidArgument("feed ", i, " is NULL");
      r->feeds.push_back(Tensor::Share(feeds[i]));
    }
    r->session = session;
    r->fetches.resize(n_fetches);
    r->out.resize(n_fetches);
    r->done = done;
    r->user = user;
    r->accepted_ns = MonotonicNs();
    r->options.accepted = true;
    return session.StartAsync([r, start] { AsyncRun::Start(r, start); });
  });
}

}  // namespace thalweg
