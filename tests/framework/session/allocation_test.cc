// A warm step of known shapes makes no heap call: training steps of a small net through the C API
// and the CPU plugin, with every heap call of the process counted. In this program, the counters
// replace the C library's functions.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "thalweg/cpp/thalweg.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> calls{0};
std::atomic<uint64_t> bytes{0};

// Prints the first few callers, to help find them.
void Count(size_t n) {
  if (!counting.load(std::memory_order_relaxed)) return;
  bytes.fetch_add(n, std::memory_order_relaxed);
  if (calls.fetch_add(1) >= 3 || std::getenv("SHOW_HEAP_CALLS") == nullptr) return;
  counting = false;
  void* frames[32];
  backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  counting = true;
}

}  // namespace

#define HEAP_CALL extern "C" __attribute__((visibility("default")))

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

HEAP_CALL void* malloc(size_t n) {
  Count(n);
  return __libc_malloc(n);
}
HEAP_CALL void* calloc(size_t n, size_t size) {
  Count(n * size);
  return __libc_calloc(n, size);
}
HEAP_CALL void* realloc(void* p, size_t n) {
  Count(n);
  return __libc_realloc(p, n);
}
HEAP_CALL void* memalign(size_t align, size_t n) {
  Count(n);
  return __libc_memalign(align, n);
}
HEAP_CALL void* aligned_alloc(size_t align, size_t n) {
  Count(n);
  return __libc_memalign(align, n);
}
HEAP_CALL int posix_memalign(void** out, size_t align, size_t n) {
  Count(n);
  *out = __libc_memalign(align, n);
  return *out || n == 0 ? 0 : ENOMEM;
}

namespace {

constexpr int kSteps = 100, kRounds = 5;

// x -> 50 relu -> 30 relu -> 10 classes, cross entropy, Adam.
class Net {
 public:
  Net(const tw::Runtime& runtime, const std::vector<const char*>& options) : graph_(runtime) {
    tw::Scope s(graph_);
    x_ = s.placeholder("x", TW_FLOAT, {-1, 20});
    labels_ = s.placeholder("labels", TW_INT32, {-1});
    tw_output h = x_;
    const std::vector<int64_t> sizes = {20, 50, 30, 10};
    std::vector<tw_output> weights;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      std::vector<float> w(size_t(sizes[i] * sizes[i + 1])), b(static_cast<size_t>(sizes[i + 1]));
      for (size_t k = 0; k < w.size(); ++k) w[k] = 0.2f * float(int(k * 7919 % 201) - 100) / 100;
      weights.push_back(s.variable(("w" + std::to_string(i)).c_str(), s.constant(tw::Tensor({sizes[i], sizes[i + 1]}, w))));
      weights.push_back(s.variable(("b" + std::to_string(i)).c_str(), s.constant(tw::Tensor({sizes[i + 1]}, b))));
      h = s.op("BiasAdd", {s.op("MatMul", {h, s.read(weights[2 * i])}), s.read(weights[2 * i + 1])});
      if (i + 2 < sizes.size()) h = s.op("Relu", {h});
    }
    logits_ = h;
    loss_ = s.op("Mean", {s.op("SparseSoftmaxCrossEntropyWithLogits", {h, labels_}), s.ints({0})});
    const std::vector<tw_gradient> gradients = s.gradients(loss_, weights);
    train_ = tw_train_adam(s.c(), weights.data(), gradients.data(), uint32_t(weights.size()), nullptr);
    const tw_operation* init = tw_variable_initializer(s.c(), "init");
    s.finish();
    session_ = std::make_unique<tw::Session>(graph_, options);
    session_->run({}, {}, {init});
  }
  // Returns the heap calls of a round of steps of a callable, after one warm-up round. Batches of
  // the sizes take turns. The order of threads decides which memory is in use at the same time, so
  // a pool may grow in a later round too, but not in every round.
  int Calls(const std::vector<tw_output>& fetches, const std::vector<const tw_operation*>& targets, const std::vector<int64_t>& batches,
            bool keep = false, const tw_run_options* options = nullptr) {
    const tw_output feeds[] = {x_, labels_};
    tw_signature what = {};
    what.size = sizeof(what);
    what.feeds = feeds;
    what.n_feeds = 2;
    what.fetches = fetches.data();
    what.n_fetches = uint32_t(fetches.size());
    what.targets = targets.data();
    what.n_targets = uint32_t(targets.size());
    tw_callable* callable = nullptr;
    tw::raise(tw_callable_create(session_->c(), &what, &callable));
    std::vector<tw::Tensor> values;
    for (int64_t n : batches) {
      std::vector<float> x(size_t(n * 20));
      std::vector<int32_t> labels(static_cast<size_t>(n));
      for (size_t k = 0; k < x.size(); ++k) x[k] = float(k % 13) / 13;
      for (size_t k = 0; k < labels.size(); ++k) labels[k] = int32_t(k % 10);
      values.emplace_back(std::vector<int64_t>{n, 20}, x);
      values.emplace_back(std::vector<int64_t>{n}, labels);
    }
    std::vector<std::vector<tw_tensor*>> out(size_t(kRounds * kSteps), std::vector<tw_tensor*>(fetches.size()));
    auto run = [&](int step) {
      const size_t i = size_t(step) % batches.size();
      tw_tensor* in[] = {values[2 * i].c(), values[2 * i + 1].c()};
      std::vector<tw_tensor*>& results = out[size_t(step)];
      tw_status* s = tw_callable_run(callable, in, options, results.data());
      for (tw_tensor*& t : results) {
        if (keep) continue;
        tw_tensor_release(t);
        t = nullptr;
      }
      return s;
    };
    tw_status* failed = nullptr;
    auto round = [&](int r) {
      calls = 0;
      counting = true;
      for (int i = 0; i < kSteps && !failed; ++i) failed = run(r * kSteps + i);
      counting = false;
      return calls.load();
    };
    round(0);
    int made = round(1);
    for (int r = 2; r < kRounds && made > 0 && !keep; ++r) made = round(r);
    for (auto& results : out) {
      for (tw_tensor* t : results) tw_tensor_release(t);
    }
    tw_callable_destroy(callable);
    tw::raise(failed);
    return made;
  }
  const tw_operation* train() const { return train_; }
  tw_output loss() const { return loss_; }
  tw_output logits() const { return logits_; }

 private:
  tw::Graph graph_;
  std::unique_ptr<tw::Session> session_;
  tw_output x_ = 0, labels_ = 0, logits_ = 0, loss_ = 0;
  const tw_operation* train_ = nullptr;
};

struct Setting {
  const char *threads, *engine;
  int64_t kept_rows;  // size of the fetches that are kept; unique, so that no earlier test left memory of this size
};
void PrintTo(const Setting& s, std::ostream* out) { *out << s.threads << ", " << s.engine; }

class WarmStepTest : public testing::TestWithParam<Setting> {
 protected:
  tw::Runtime runtime_{{GetParam().threads}};
  Net net_{runtime_, {GetParam().engine}};
};

TEST(HeapCallsTest, AreCounted) {
  calls = 0;
  counting = true;
  void* volatile p = std::malloc(10);
  void* volatile q = ::operator new(10);
  void* volatile r = nullptr;
  const int failed = posix_memalign(const_cast<void**>(&r), 64, 64);
  counting = false;
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(calls, 3);
  std::free(p);
  ::operator delete(q);
  std::free(r);
  // Includes the library's.
  calls = 0;
  counting = true;
  tw_tensor* t = nullptr;
  tw_status* s = tw_tensor_create_from(TW_FLOAT, nullptr, 0, nullptr, 4, nullptr, nullptr, &t);
  counting = false;
  EXPECT_GT(calls, 0);
  EXPECT_NE(s, nullptr);
  tw_status_release(s);
}

TEST_P(WarmStepTest, TrainingCallsTheHeapForNothing) { EXPECT_EQ(net_.Calls({}, {net_.train()}, {32}), 0); }

TEST_P(WarmStepTest, ShapesThatTakeTurnsCallTheHeapForNothing) { EXPECT_EQ(net_.Calls({}, {net_.train()}, {32, 7, 16}), 0); }

TEST_P(WarmStepTest, FetchesThatAreLetGoCostNothing) { EXPECT_EQ(net_.Calls({net_.loss(), net_.logits()}, {net_.train()}, {32}), 0); }

// A kept fetch needs its memory, the pool's record of it, and a header unless an old one is free.
TEST_P(WarmStepTest, FetchesThatAreKeptCostTwoOrThreeCallsEach) {
  const int made = net_.Calls({net_.logits()}, {net_.train()}, {GetParam().kept_rows}, true);
  EXPECT_GE(made, 2 * kSteps);
  EXPECT_LE(made, 3 * kSteps);
}

TEST_P(WarmStepTest, DeadlinesAndTokensCostNothing) {
  tw_run_options options = {};
  options.size = sizeof(options);
  options.timeout_ns = int64_t{1} << 50;
  tw::raise(tw_cancel_token_create(&options.cancel));
  EXPECT_EQ(net_.Calls({}, {net_.train()}, {32}, false, &options), 0);
  tw_cancel_token_destroy(options.cancel);
}

// Returns the heap memory with which a live session adds ten new nodes, plans a step that needs
// them, and runs it. Takes the minimum of several attempts, since the cost of a table that doubles
// is shared by many additions.
uint64_t BytesOfTenMore(int n) {
  const tw::Runtime runtime({"threads=1"});
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output w = s.variable("w", s.constant(tw::Tensor(1.0f)));
  tw_output end = s.read(w);
  for (int i = 0; i < n; ++i) end = s.op("AddV2", {end, x});
  const tw_operation* init = tw_variable_initializer(s.c(), "init");
  s.finish();
  tw::Session session(graph);
  session.run({}, {}, {init});
  uint64_t least = UINT64_MAX;
  for (int turn = 0; turn < 9; ++turn) {
    bytes = 0;
    counting = true;
    tw::Scope more(graph);
    tw_output y = x;
    for (int i = 0; i < 10; ++i) y = more.op(i % 2 ? "Mul" : "AddV2", {y, turn % 2 ? x : more.read(w)});
    more.finish();
    session.run({{x, tw::Tensor(2.0f)}}, {y});
    counting = false;
    if (turn > 1 && turn % 2 == 0) least = std::min(least, bytes.load());
  }
  return least;
}

TEST(ExtendTest, TenMoreNodesCostTheSameInALargeGraph) {
  const uint64_t small = BytesOfTenMore(1000), large = BytesOfTenMore(100000);
  EXPECT_GT(small, 1000u);
  EXPECT_LT(large, small + 8192) << "in a graph of 1,000 nodes " << small << " bytes, of 100,000 nodes " << large;
}

INSTANTIATE_TEST_SUITE_P(Engines, WarmStepTest,
                         testing::Values(Setting{"threads=1", "engine=fixed", 40}, Setting{"threads=1", "engine=counted", 50},
                                         Setting{"threads=3", "engine=fixed", 60}, Setting{"threads=3", "engine=counted", 70}));

}  // namespace
