// tw_dataset_iterator_create: an iterator that runs the steps of a dataset, ahead of the program if
// it is asked to.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include "ops/library/dataset_parts.h"
#include "ops/library/iterator.h"
#include "ops/library/signature.h"
#include "thalweg/op.h"
#include "thalweg/session.h"

using namespace thalweg::library;

void tw_dataset_iterator_options_init(tw_dataset_iterator_options* options) {
  if (options) *options = {sizeof(tw_dataset_iterator_options), 0, TW_DATASET_AUTO, nullptr, 0, 0};
}

namespace {

constexpr char kFunction[] = "tw_dataset_iterator_create";
constexpr char kMagic[] = "thalweg.dataset.position.1";
constexpr int64_t kAutoPrefetch = 2, kMostPrefetch = 1 << 16;

using Batch = std::vector<OwnedTensor>;

// ---- Positions as bytes: the magic, the epoch's state, then the batches that nobody has taken ----

void PutNumber(std::string* to, uint64_t n) {
  for (int i = 0; i < 8; ++i) *to += char(n >> 8 * i);
}
void PutText(std::string* to, std::string_view s) {
  PutNumber(to, s.size());
  to->append(s);
}
void PutTensor(std::string* to, const tw_tensor* t) {
  PutNumber(to, tw_tensor_dtype(t));
  PutNumber(to, tw_tensor_rank(t));
  for (uint32_t k = 0; k < tw_tensor_rank(t); ++k) PutNumber(to, uint64_t(tw_tensor_dim(t, k)));
  if (tw_tensor_dtype(t) != TW_STRING) return PutText(to, {static_cast<const char*>(tw_tensor_data(t)), tw_tensor_bytes(t)});
  const auto* s = static_cast<const tw_string*>(tw_tensor_data(t));
  for (uint64_t i = 0; i < tw_tensor_count(t); ++i) PutText(to, {s[i].data, s[i].size});
}

struct Refused {
  tw_status* status;
};
void Check(tw_status* s) {
  if (s) throw Refused{s};
}
[[noreturn]] void Damaged() {
  throw Refused{tw_status_create(TW_INVALID_ARGUMENT, "tw_iterator_restore: the bytes are no position of an iterator over a dataset")};
}

// Reads positions; trusts nothing.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  uint64_t Number() {
    if (left_.size() < 8) Damaged();
    uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n |= uint64_t(static_cast<unsigned char>(left_[size_t(i)])) << 8 * i;
    left_.remove_prefix(8);
    return n;
  }
  std::string_view Text() {
    const uint64_t n = Number();
    if (n > left_.size()) Damaged();
    const std::string_view s = left_.substr(0, n);
    left_.remove_prefix(n);
    return s;
  }
  OwnedTensor Tensor(uint32_t dtype) {
    if (Number() != dtype) Damaged();
    const uint64_t rank = Number();
    if (rank > left_.size() / 8) Damaged();
    std::vector<int64_t> dims;
    uint64_t count = 1;
    for (uint64_t k = 0; k < rank; ++k) {
      const uint64_t d = Number();
      if (d > uint64_t{INT64_MAX} || (d > 0 && count > uint64_t{INT64_MAX} / d)) Damaged();
      count *= d;
      dims.push_back(int64_t(d));
    }
    tw_tensor* t = nullptr;
    if (dtype != TW_STRING) {
      const std::string_view elements = Text();
      Check(tw_tensor_create_copy(dtype, dims.data(), uint32_t(rank), elements.data(), elements.size(), &t));
      return OwnedTensor(t);
    }
    if (count > left_.size() / 8) Damaged();
    Check(tw_tensor_create(dtype, dims.data(), uint32_t(rank), &t));
    OwnedTensor strings(t);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view s = Text();
      Check(tw_tensor_set_string(t, i, s.data(), s.size()));
    }
    return strings;
  }
  bool empty() const { return left_.empty(); }
  uint64_t size() const { return left_.size(); }

 private:
  std::string_view left_;
};

// ---- The iterator ----

struct DestroySession {
  void operator()(tw_session* s) const { tw_session_destroy(s); }
};

class DatasetIterator {
 public:
  tw_iterator record = {};

  // Adds the operations and makes the session.
  tw_status* Create(tw_graph* graph, tw_output dataset, const tw_dataset_iterator_options& options) {
    tw_scope* scope = tw_scope_create(graph, nullptr);
    Build(scope, dataset);
    if (tw_status* failed = tw_scope_finish(scope)) return failed;
    depth_ = size_t(options.prefetch < 0 ? Wanted(graph, dataset) : options.prefetch);
    tw_session* session = nullptr;
    if (tw_status* failed = tw_session_create(graph, options.session, options.n_session, &session)) return failed;
    session_.reset(session);
    const tw_signature what = SignatureOf({}, components_);
    tw_callable* next = nullptr;
    if (tw_status* failed = tw_callable_create(session, &what, &next)) return failed;
    next_.reset(next);
    record = {sizeof(tw_iterator), 0,           uint32_t(components_.size()), 0, -1, this, &CallNext, &CallReset, &CallSave,
              &CallRestore,        &CallDestroy};
    if (tw_status* failed = Count()) return failed;
    return Start(0);
  }

  ~DatasetIterator() {
    Pause();
    tw_status_release(failed_);
  }

 private:
  static DatasetIterator& Of(void* user) { return *static_cast<DatasetIterator*>(user); }
  template <class F>
  static tw_status* Checked(F&& body) {
    return Guard("tw_iterator", [&]() -> tw_status* {
      try {
        return body();
      } catch (const Refused& r) {
        return r.status;
      }
    });
  }
  static tw_status* CallNext(void* user, tw_tensor** out, uint32_t* end) {
    return Checked([&] { return Of(user).Next(out, end); });
  }
  static tw_status* CallReset(void* user, int64_t epoch) {
    return Checked([&] { return Of(user).Reset(epoch); });
  }
  static tw_status* CallSave(void* user, tw_buffer** out) {
    return Checked([&] { return Of(user).Save(out); });
  }
  static tw_status* CallRestore(void* user, const void* position, uint64_t bytes) {
    return Checked([&] { return Of(user).Restore({static_cast<const char*>(position), bytes}); });
  }
  static void CallDestroy(void* user) { delete static_cast<DatasetIterator*>(user); }

  void Build(tw_scope* scope, tw_output dataset) {
    Protect(scope, [&] {
      elements_ = Elements(scope, kFunction, dataset);
      components_.assign(elements_.types.size(), 0);
      if (!Good(scope)) return 0;
      const tw_output position = tw_dataset_position(scope, nullptr, dataset);
      if (!Good(scope)) return 0;
      tw_dataset_next(scope, dataset, position, components_.data());
      const int64_t three = 3;
      epoch_ = tw_scope_placeholder(scope, nullptr, TW_INT64, nullptr, 0);
      start_ = Update(scope, "MakeEpochIterator", {dataset, position, epoch_});
      saved_ = tw_scope_op1(scope, "SaveResource", position);
      to_restore_ = tw_scope_placeholder(scope, nullptr, TW_STRING, &three, 1);
      restore_ = Update(scope, "RestoreResources", {position, to_restore_});
      cardinality_ = tw_scope_op1(scope, "DatasetCardinality", dataset);
      return 0;
    });
  }

  // Returns the number of elements that the last operation of the pipeline wants ahead.
  static int64_t Wanted(const tw_graph* graph, tw_output dataset) {
    const tw_operation *made = nullptr, *count = nullptr;
    uint32_t kind = 0, is_list = 0, n = 0;
    const void* value = nullptr;
    const auto good = [](tw_status* s) {
      tw_status_release(s);
      return s == nullptr;
    };
    if (!good(tw_graph_producer(graph, dataset, &made, nullptr)) || std::string(tw_operation_type(made)) != "PrefetchDataset") return 0;
    if (!good(tw_graph_producer(graph, tw_operation_input(made, 1), &count, nullptr))) return 0;
    if (!good(tw_operation_attr(count, "value", &kind, &is_list, &n, &value)) || kind != TW_ATTR_TENSOR) return kAutoPrefetch;
    const tw_tensor* t = *static_cast<tw_tensor* const*>(value);
    const int64_t wanted = tw_tensor_dtype(t) == TW_INT64 && tw_tensor_count(t) == 1 ? *static_cast<const int64_t*>(tw_tensor_data(t)) : -1;
    return wanted < 0 ? kAutoPrefetch : std::min(wanted, kMostPrefetch);
  }

  tw_status* Run(tw_output feed, tw_tensor* value, const tw_operation* target, tw_output fetch, tw_tensor** out) {
    const tw_signature what = SignatureOf({&feed, feed != 0}, {&fetch, fetch != 0}, {&target, target != nullptr});
    return tw_session_run(session_.get(), &what, &value, nullptr, out);
  }

  tw_status* Count() {
    tw_tensor* n = nullptr;
    if (tw_status* failed = Run(0, nullptr, nullptr, cardinality_, &n)) return failed;
    const OwnedTensor owned(n);
    record.n_batches = std::max<int64_t>(-1, *static_cast<const int64_t*>(tw_tensor_data(n)));
    return nullptr;
  }

  tw_status* Start(int64_t epoch) {
    tw_tensor* t = nullptr;
    if (tw_status* failed = tw_tensor_create_int64(epoch, &t)) return failed;
    const OwnedTensor owned(t);
    return Run(epoch_, t, start_, 0, nullptr);
  }

  // ---- Running ahead. At most one step runs at a time, so that elements arrive in order. ----

  // Waits until no step runs, and lets none start.
  void Pause() {
    std::unique_lock lock(mu_);
    paused_ = true;
    changed_.wait(lock, [&] { return !running_; });
  }
  // Starts a step if one more element is wanted. mu_ is held, and is released in between.
  void Ahead(std::unique_lock<std::mutex>& lock) {
    if (paused_ || running_ || over_ || failed_ || ready_.size() >= depth_) return;
    running_ = true;
    lock.unlock();
    tw_status* refused = tw_callable_run_async(next_.get(), nullptr, nullptr, &Arrived, this);
    lock.lock();
    if (!refused) return;
    running_ = false;
    failed_ = refused;
    changed_.notify_all();
  }
  static void Arrived(void* user, tw_status* status, tw_tensor** fetches) {
    DatasetIterator& self = Of(user);
    std::unique_lock lock(self.mu_);
    self.running_ = false;
    if (status && tw_status_code(status) == TW_OUT_OF_RANGE) {
      self.over_ = true;
      tw_status_release(status);
    } else if (status) {
      self.failed_ = status;
    } else {
      Batch& batch = self.ready_.emplace_back();
      for (size_t k = 0; k < self.components_.size(); ++k) batch.emplace_back(fetches[k]);
    }
    self.Ahead(lock);
    self.changed_.notify_all();  // under the lock: the waiter may destroy this object as soon as it has the lock
  }

  tw_status* Next(tw_tensor** out, uint32_t* end) {
    if (depth_ == 0) return NextNow(out, end);
    std::unique_lock lock(mu_);
    paused_ = false;
    Ahead(lock);
    changed_.wait(lock, [&] { return !ready_.empty() || over_ || failed_; });
    if (!ready_.empty()) {
      for (size_t k = 0; k < components_.size(); ++k) out[k] = ready_.front()[k].release();
      ready_.pop_front();
      Ahead(lock);
      return nullptr;
    }
    if (failed_) return std::exchange(failed_, nullptr);
    *end = 1;
    return nullptr;
  }

  tw_status* NextNow(tw_tensor** out, uint32_t* end) {
    if (!ready_.empty()) {  // from a restored position
      for (size_t k = 0; k < components_.size(); ++k) out[k] = ready_.front()[k].release();
      ready_.pop_front();
      return nullptr;
    }
    if (over_) return *end = 1, nullptr;
    tw_status* failed = tw_callable_run(next_.get(), nullptr, nullptr, out);
    if (!failed || tw_status_code(failed) != TW_OUT_OF_RANGE) return failed;
    tw_status_release(failed);
    over_ = true;
    *end = 1;
    return nullptr;
  }

  // Forgets what was computed. REQUIRES: paused.
  void Clear() {
    ready_.clear();
    over_ = false;
    tw_status_release(std::exchange(failed_, nullptr));
  }

  tw_status* Reset(int64_t epoch) {
    Pause();
    if (tw_status* failed = Start(epoch)) return failed;
    Clear();
    return nullptr;
  }

  // ---- Positions ----

  tw_status* Save(tw_buffer** out) {
    Pause();
    for (const uint32_t type : elements_.types) {
      if (type != TW_RESOURCE && type != TW_VARIANT) continue;
      return tw_status_create(TW_UNIMPLEMENTED, "tw_iterator_save: a component is a resource or variant, which has no bytes");
    }
    if (failed_) {
      return tw_status_create(TW_FAILED_PRECONDITION,
                              "tw_iterator_save: computing a later element has failed; take it with tw_iterator_next first");
    }
    tw_tensor* state = nullptr;
    if (tw_status* failed = Run(0, nullptr, nullptr, saved_, &state)) return failed;
    const OwnedTensor owned(state);
    std::string bytes;
    PutText(&bytes, kMagic);
    PutTensor(&bytes, state);
    PutNumber(&bytes, over_);
    PutNumber(&bytes, ready_.size());
    for (const Batch& batch : ready_)
      for (const OwnedTensor& t : batch) PutTensor(&bytes, t.get());
    return tw_buffer_create(bytes.data(), bytes.size(), out);
  }

  tw_status* Restore(std::string_view position) {
    Bytes in(position);
    if (in.Text() != kMagic) Damaged();
    const OwnedTensor state = in.Tensor(TW_STRING);
    const uint64_t over = in.Number(), n = in.Number();
    if (over > 1 || n > in.size()) Damaged();
    std::deque<Batch> ready;
    for (uint64_t i = 0; i < n; ++i) {
      Batch& batch = ready.emplace_back();
      for (const uint32_t type : elements_.types) batch.push_back(in.Tensor(type));
    }
    if (!in.empty()) Damaged();
    Pause();
    // A position that fits no dataset must leave the iterator as it is, so the old one is kept.
    tw_tensor* before = nullptr;
    if (tw_status* failed = Run(0, nullptr, nullptr, saved_, &before)) return failed;
    const OwnedTensor kept(before);
    if (tw_status* failed = GoTo(state.get())) {
      tw_status_release(GoTo(before));
      return failed;
    }
    Clear();
    ready_ = std::move(ready);
    over_ = over != 0;
    return nullptr;
  }
  tw_status* GoTo(tw_tensor* state) {
    if (tw_status* failed = Run(to_restore_, state, restore_, 0, nullptr)) return failed;
    return Start(0);  // continues at the restored position
  }

  Components elements_;
  std::vector<tw_output> components_;
  tw_output epoch_ = 0, saved_ = 0, to_restore_ = 0, cardinality_ = 0;
  const tw_operation *start_ = nullptr, *restore_ = nullptr;
  size_t depth_ = 0;

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;      // computed, and not taken
  tw_status* failed_ = nullptr;  // of the element behind those
  bool running_ = false, over_ = false, paused_ = false;

  std::unique_ptr<tw_session, DestroySession> session_;  // destroyed after the callable
  OwnedCallable next_;
};

}  // namespace

tw_status* tw_dataset_iterator_create(tw_graph* graph, tw_output dataset, const tw_dataset_iterator_options* options,
                                      tw_iterator** out_iterator) {
  return Guard(kFunction, [&]() -> tw_status* {
    if (!out_iterator) return Refusal(kFunction, "out_iterator is NULL");
    *out_iterator = nullptr;
    if (!graph) return Refusal(kFunction, "graph is NULL");
    tw_dataset_iterator_options read;
    tw_dataset_iterator_options_init(&read);
    if (options) {
      if (options->size < sizeof read || options->flags != 0)
        return Refusal(kFunction, "fill the record with tw_dataset_iterator_options_init first (its size is " +
                                      std::to_string(options->size) + ", its flags " + std::to_string(options->flags) + ")");
      std::memcpy(&read, options, sizeof read);
    }
    if (read.prefetch < TW_DATASET_AUTO || read.prefetch > kMostPrefetch)
      return Refusal(kFunction, "prefetch is " + std::to_string(read.prefetch) + "; it must be from 0 to " + std::to_string(kMostPrefetch) +
                                    ", or TW_DATASET_AUTO");
    auto iterator = std::make_unique<DatasetIterator>();
    if (tw_status* failed = iterator->Create(graph, dataset, read)) return failed;
    *out_iterator = &iterator.release()->record;
    return nullptr;
  });
}
