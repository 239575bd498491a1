// Iterators over values of a session.
#include <vector>

#include "ops/library/build.h"
#include "ops/library/iterator.h"
#include "ops/library/signature.h"

using namespace thalweg::library;

namespace {

constexpr char kFunction[] = "tw_iterator_create_fetches";

class Fetched {
 public:
  Fetched(OwnedCallable run, uint32_t n, int64_t epoch_batches) : run_(std::move(run)), epoch_batches_(epoch_batches) {
    record_ = {};
    record_.size = sizeof(tw_iterator);
    record_.n_tensors = n;
    record_.n_batches = epoch_batches > 0 ? epoch_batches : -1;
    record_.user = this;
    record_.next = [](void* user, tw_tensor** out, uint32_t* end) { return static_cast<Fetched*>(user)->Next(out, end); };
    if (epoch_batches > 0) {
      record_.reset = [](void* user, int64_t) -> tw_status* {
        static_cast<Fetched*>(user)->given_ = 0;
        return nullptr;
      };
    }
    record_.destroy = [](void* user) { delete static_cast<Fetched*>(user); };
  }

  tw_iterator* record() { return &record_; }

 private:
  tw_status* Next(tw_tensor** out, uint32_t* end) {
    if (over_ || (epoch_batches_ > 0 && given_ == epoch_batches_)) {
      *end = 1;
      return nullptr;
    }
    tw_status* failed = tw_callable_run(run_.get(), nullptr, nullptr, out);
    if (!failed) {
      ++given_;
    } else if (epoch_batches_ == 0 && tw_status_code(failed) == TW_OUT_OF_RANGE) {
      tw_status_release(failed);
      failed = nullptr;
      over_ = true;
      *end = 1;
    }
    return failed;
  }

  tw_iterator record_;
  const OwnedCallable run_;
  const int64_t epoch_batches_;
  int64_t given_ = 0;  // batches of the epoch
  bool over_ = false;  // the source is closed
};

}  // namespace

tw_status* tw_iterator_create_fetches(tw_session* session, const tw_output* fetches, uint32_t n, int64_t epoch_batches,
                                      tw_iterator** out_iterator) {
  if (!out_iterator) return Refusal(kFunction, "out_iterator is NULL");
  *out_iterator = nullptr;
  return Guard(kFunction, [&]() -> tw_status* {
    if (!session) return Refusal(kFunction, "session is NULL");
    if (n < 1 || !fetches) return Refusal(kFunction, n < 1 ? "there are no fetches" : "fetches is NULL");
    if (epoch_batches < 0) return Refusal(kFunction, "epoch_batches is " + std::to_string(epoch_batches) + "; it must be 0 or more");
    const tw_signature what = SignatureOf({}, {fetches, n});
    tw_callable* run = nullptr;
    if (tw_status* failed = tw_callable_create(session, &what, &run)) return failed;
    *out_iterator = (new Fetched(OwnedCallable(run), n, epoch_batches))->record();
    return nullptr;
  });
}
