// Iterators over tensors in memory.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "ops/library/build.h"
#include "ops/library/iterator.h"

using namespace thalweg::library;

void tw_batch_options_init(tw_batch_options* options) {
  if (options) *options = {sizeof(tw_batch_options), 0, 32, 0, 0, 0};
}

namespace {

constexpr char kFunction[] = "tw_iterator_create_batches";

// SplitMix64 (Steele, Lea and Flood, 2014). Orders of saved trainings depend on it, so it never changes.
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A number below n, each equally likely.
uint64_t Below(uint64_t n, uint64_t* state) {
  const uint64_t bound = UINT64_MAX - UINT64_MAX % n;  // draws from there on would make small numbers likelier
  uint64_t drawn = NextRandom(state);
  while (drawn >= bound) drawn = NextRandom(state);
  return drawn % n;
}

// The order of an epoch, after Fisher and Yates.
void Shuffle(std::vector<int64_t>* order, uint64_t seed, uint64_t epoch) {
  uint64_t state = seed;
  state = NextRandom(&state) ^ epoch;
  std::iota(order->begin(), order->end(), int64_t{0});
  for (uint64_t i = order->size(); i > 1; --i) std::swap((*order)[i - 1], (*order)[Below(i, &state)]);
}

// A position, in the byte order of all machines that Thalweg supports. The first four numbers say which data and options it belongs to.
struct Position {
  int64_t rows, batch, seed, flags;
  int64_t epoch, next;  // next: the first row of the next batch, in the order of the epoch
};

class Batches {
 public:
  Batches(std::vector<OwnedTensor> tensors, const tw_batch_options& options)
      : tensors_(std::move(tensors)), options_(options), rows_(tw_tensor_dim(tensors_[0].get(), 0)) {
    const int64_t full = options.drop_remainder ? rows_ : rows_ + (options.batch - rows_ % options.batch) % options.batch;
    record_ = {};
    record_.size = sizeof(tw_iterator);
    record_.n_tensors = uint32_t(tensors_.size());
    record_.n_batches = full / options.batch;
    record_.user = this;
    record_.next = [](void* user, tw_tensor** out, uint32_t* end) {
      return Guard(kFunction, [&] { return static_cast<Batches*>(user)->Next(out, end); });
    };
    record_.reset = [](void* user, int64_t epoch) { return Guard(kFunction, [&] { return static_cast<Batches*>(user)->Reset(epoch); }); };
    record_.save = [](void* user, tw_buffer** out) {
      const Position at = static_cast<Batches*>(user)->Here();
      return tw_buffer_create(&at, sizeof at, out);
    };
    record_.restore = [](void* user, const void* position, uint64_t bytes) {
      return Guard(kFunction, [&] { return static_cast<Batches*>(user)->Restore(position, bytes); });
    };
    record_.destroy = [](void* user) { delete static_cast<Batches*>(user); };
    if (options.shuffle) order_.resize(size_t(rows_));
    Reset(0);
  }

  tw_iterator* record() { return &record_; }

 private:
  tw_status* Next(tw_tensor** out, uint32_t* end) {
    const int64_t n = std::min(options_.batch, rows_ - next_);
    if (n < 1 || (n < options_.batch && options_.drop_remainder)) {
      *end = 1;
      return nullptr;
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tw_tensor* part = nullptr;
      if (tw_status* failed = Rows(tensors_[i].get(), next_, n, &part)) {
        while (i-- > 0) tw_tensor_release(std::exchange(out[i], nullptr));
        return failed;
      }
      out[i] = part;
    }
    next_ += n;
    return nullptr;
  }

  tw_status* Reset(int64_t epoch) {
    epoch_ = epoch;
    next_ = 0;
    if (options_.shuffle) Shuffle(&order_, uint64_t(options_.seed), uint64_t(epoch));
    return nullptr;
  }

  Position Here() const {
    return {rows_, options_.batch, options_.seed, int64_t{options_.shuffle} | int64_t{options_.drop_remainder} << 1, epoch_, next_};
  }

  tw_status* Restore(const void* position, uint64_t bytes) {
    Position at = Here();
    if (bytes != sizeof at) {
      return Refusal("tw_iterator_restore",
                     "the position has " + std::to_string(bytes) + " bytes, and one of batches of tensors " + std::to_string(sizeof at));
    }
    std::memcpy(&at, position, sizeof at);
    const Position here = Here();
    if (std::memcmp(&at, &here, offsetof(Position, epoch)) != 0 || at.epoch < 0 || at.next < 0 || at.next > rows_) {
      return Refusal("tw_iterator_restore",
                     "the position is of other batches: it has " + Said(at) + ", and the iterator " + Said(here) +
                         "; resume with the data and options of the saved run, or start a new one");
    }
    Reset(at.epoch);
    next_ = at.next;
    return nullptr;
  }

  static std::string Said(const Position& p) {
    return std::to_string(p.rows) + " rows, batches of " + std::to_string(p.batch) + ", seed " + std::to_string(p.seed) + ", " +
           (p.flags & 1 ? "shuffled" : "in order") + (p.flags & 2 ? ", without the remainder" : "");
  }

  // Rows first .. first + n of the epoch.
  tw_status* Rows(tw_tensor* from, int64_t first, int64_t n, tw_tensor** out) const {
    const uint32_t dtype = tw_tensor_dtype(from), rank = tw_tensor_rank(from);
    std::vector<int64_t> dims(tw_tensor_dims(from), tw_tensor_dims(from) + rank);
    dims[0] = n;
    const uint64_t width = rows_ > 0 ? tw_tensor_count(from) / uint64_t(rows_) : 0, bytes = width * tw_dtype_bytes(dtype);
    const auto* data = static_cast<const char*>(tw_tensor_data(from));
    if (dtype != TW_STRING && order_.empty()) {
      tw_tensor_retain(from);  // released with the part, also if making it fails
      return tw_tensor_create_from_const(
          dtype, dims.data(), rank, bytes > 0 ? data + uint64_t(first) * bytes : data, uint64_t(n) * bytes,
          [](void* tensor) { tw_tensor_release(static_cast<tw_tensor*>(tensor)); }, from, out);
    }
    OwnedTensor made;
    tw_tensor* raw = nullptr;
    if (tw_status* failed = tw_tensor_create(dtype, dims.data(), rank, &raw)) return failed;
    made.reset(raw);
    auto* to = dtype == TW_STRING ? nullptr : static_cast<char*>(tw_tensor_mutable_data(raw));
    for (int64_t i = 0; i < n && width > 0; ++i) {
      const auto row = uint64_t(order_.empty() ? first + i : order_[size_t(first + i)]);
      if (to) {
        std::memcpy(to + uint64_t(i) * bytes, data + row * bytes, bytes);
      } else if (tw_status* failed = CopyStrings(from, row * width, raw, uint64_t(i) * width, width)) {
        return failed;
      }
    }
    *out = made.release();
    return nullptr;
  }

  static tw_status* CopyStrings(const tw_tensor* from, uint64_t at, tw_tensor* to, uint64_t there, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      const char* text = nullptr;
      uint64_t bytes = 0;
      if (tw_status* failed = tw_tensor_get_string(from, at + i, &text, &bytes)) return failed;
      if (tw_status* failed = tw_tensor_set_string(to, there + i, text, bytes)) return failed;
    }
    return nullptr;
  }

  tw_iterator record_;
  const std::vector<OwnedTensor> tensors_;
  const tw_batch_options options_;
  const int64_t rows_;
  std::vector<int64_t> order_;  // of the epoch's rows; empty: that of the tensors
  int64_t epoch_ = 0, next_ = 0;
};

tw_status* CheckTensor(const tw_tensor* tensor, uint32_t i, int64_t rows) {
  const std::string name = "tensors[" + std::to_string(i) + "] ";
  if (!tensor) return Refusal(kFunction, name + "is NULL");
  const uint32_t dtype = tw_tensor_dtype(tensor);
  if (dtype == TW_RESOURCE || dtype == TW_VARIANT) return Refusal(kFunction, name + "holds " + tw_dtype_name(dtype) + "; it must hold data");
  if (tw_tensor_device(tensor))
    return Refusal(kFunction, name + "is in the memory of " + tw_tensor_device(tensor) + "; use tw_tensor_to_host first");
  if (tw_tensor_rank(tensor) < 1) return Refusal(kFunction, name + "is a scalar; its first axis must count rows");
  if (rows >= 0 && tw_tensor_dim(tensor, 0) != rows) {
    return Refusal(kFunction, name + "has " + std::to_string(tw_tensor_dim(tensor, 0)) + " rows, and tensors[0] has " +
                                  std::to_string(rows) + "; all must have as many");
  }
  return nullptr;
}

}  // namespace

tw_status* tw_iterator_create_batches(tw_tensor* const* tensors, uint32_t n, const tw_batch_options* options, tw_iterator** out_iterator) {
  if (!out_iterator) return Refusal(kFunction, "out_iterator is NULL");
  *out_iterator = nullptr;
  return Guard(kFunction, [&]() -> tw_status* {
    tw_batch_options o;
    tw_batch_options_init(&o);
    if (options && (options->size < sizeof o || options->flags != 0)) {
      return Refusal(kFunction, "fill the options with tw_batch_options_init first (their size is " + std::to_string(options->size) +
                                    ", their flags " + std::to_string(options->flags) + ")");
    }
    if (options) std::memcpy(&o, options, sizeof o);
    if (o.batch < 1) return Refusal(kFunction, "batch is " + std::to_string(o.batch) + "; it must be above 0");
    if (o.shuffle > 1) return Refusal(kFunction, "shuffle is " + std::to_string(o.shuffle) + "; it must be 0 or 1");
    if (o.drop_remainder > 1) return Refusal(kFunction, "drop_remainder is " + std::to_string(o.drop_remainder) + "; it must be 0 or 1");
    if (n < 1 || !tensors) return Refusal(kFunction, n < 1 ? "there are no tensors" : "tensors is NULL");
    std::vector<OwnedTensor> kept(n);
    for (uint32_t i = 0; i < n; ++i) {
      if (tw_status* refused = CheckTensor(tensors[i], i, i > 0 ? tw_tensor_dim(tensors[0], 0) : -1)) return refused;
      tw_tensor_retain(tensors[i]);
      kept[i].reset(tensors[i]);
    }
    *out_iterator = (new Batches(std::move(kept), o))->record();
    return nullptr;
  });
}
