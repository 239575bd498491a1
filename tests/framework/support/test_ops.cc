#include "tests/framework/support/test_ops.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/checkpoint.h"

namespace thalweg::testing_support {
namespace {

// ---- What tests see of what ran ----

struct {
  std::mutex mu;
  std::vector<int64_t> tags;
} journal;

void Write(int64_t tag) {
  std::lock_guard lock(journal.mu);
  journal.tags.push_back(tag);
}

struct {
  std::mutex mu;
  std::condition_variable changed;
  bool open = true;
  int waiting = 0;
} gate;

void PassGate() {
  std::unique_lock lock(gate.mu);
  ++gate.waiting;
  gate.changed.notify_all();
  gate.changed.wait(lock, [] { return gate.open; });
  --gate.waiting;
}

std::atomic<int> fake_copies{0}, fresh{0}, noise{0};

struct Crowd {
  std::atomic<int> inside{0}, most{0};
} crowds[4];
// A thread in a crowd, counted once however often it comes in.
class InCrowd {
 public:
  explicit InCrowd(Crowd* crowd) : crowd_(crowd) {
    if (depth++ > 0) return;
    const int now = ++crowd_->inside;
    for (int most = crowd_->most; most < now && !crowd_->most.compare_exchange_weak(most, now);) {
    }
  }
  ~InCrowd() {
    if (--depth == 0) --crowd_->inside;
  }

 private:
  static thread_local int depth;
  Crowd* crowd_;
};
thread_local int InCrowd::depth = 0;

// ---- Memory: addresses on CPU, blocks that are no addresses on FAKE ----

struct Block {
  char* bytes;
};

struct CpuMemory {
  static float* At(const tw_view* v) { return reinterpret_cast<float*>(static_cast<char*>(v->data) + v->offset); }
};
struct FakeMemory {
  static float* At(const tw_view* v) {
    return v->bytes ? reinterpret_cast<float*>(static_cast<Block*>(v->data)->bytes + v->offset) : nullptr;
  }
};

char* Aligned(uint64_t bytes, uint64_t align) { return static_cast<char*>(std::aligned_alloc(align, (bytes + align) / align * align)); }

tw_status* Enumerate(tw_device_list* to, uint32_t flags, std::string_view uid, int n) {
  static int selves[4];
  for (int i = 0; i < n; ++i) {
    tw_device_info d{};
    d.size = sizeof d;
    d.flags = flags;
    d.uid = uid.data();
    d.uid_len = uid.size();
    d.self = &selves[i];
    TW_TRY(to->add(to, &d));
  }
  return nullptr;
}
tw_status* EnumerateCpu(const tw_host*, void*, tw_device_list* to) { return Enumerate(to, TW_DEVICE_HOST_MEMORY, "cpu", 1); }
tw_status* EnumerateFake(const tw_host*, void*, tw_device_list* to) { return Enumerate(to, 0, "fake", 2); }

tw_status* AllocateCpu(const tw_host*, void*, uint64_t bytes, uint64_t align, void** out) {
  *out = Aligned(bytes, align);
  return nullptr;
}
void ReleaseCpu(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }
tw_status* AllocateFake(const tw_host*, void*, uint64_t bytes, uint64_t align, void** out) {
  *out = new Block{Aligned(bytes, align)};
  return nullptr;
}
void ReleaseFake(const tw_host*, void*, void* memory, uint64_t) {
  std::free(static_cast<Block*>(memory)->bytes);
  delete static_cast<Block*>(memory);
}

tw_status* CopyCpu(const tw_host*, void*, const tw_copy* c) {
  std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
  return nullptr;
}
tw_status* CopyFake(const tw_host*, void*, const tw_copy* c) {
  auto at = [](void* p, uint64_t offset, bool host) { return (host ? static_cast<char*>(p) : static_cast<Block*>(p)->bytes) + offset; };
  std::memcpy(at(c->to, c->to_offset, c->to_host), at(c->from, c->from_offset, c->from_host), c->bytes);
  ++fake_copies;
  return nullptr;
}

// ---- Kernels ----

template <class M, class F>
void Map(const tw_frame* f, F&& function) {
  float* y = M::At(f->out[0]);
  const float* x = M::At(f->in[0]);
  for (uint64_t i = 0; i < f->out[0]->count; ++i) y[i] = function(x[i]);
}
template <class M, class F>
void Zip(const tw_frame* f, F&& function) {
  float* z = M::At(f->out[0]);
  const float *x = M::At(f->in[0]), *y = M::At(f->in[1]);
  for (uint64_t i = 0; i < f->out[0]->count; ++i) z[i] = function(x[i], y[i]);
}

template <class M>
void Add(tw::Frame f) {
  Zip<M>(f.f, [](float x, float y) { return x + y; });
}
template <class M>
void Mul(tw::Frame f) {
  Zip<M>(f.f, [](float x, float y) { return x * y; });
}
template <class M>
void Neg(tw::Frame f) {
  Map<M>(f.f, [](float x) { return -x; });
}
template <class M, int kFactor>
void Times(tw::Frame f) {
  Map<M>(f.f, [](float x) { return float(kFactor) * x; });
}
void Pass(tw::Frame f) {
  Map<CpuMemory>(f.f, [](float x) { return x; });
}
void Next(tw::Frame f) {
  Map<CpuMemory>(f.f, [](float x) { return x + 1; });
}

struct Traced {
  int64_t tag;
  explicit Traced(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Write(tag);
    Pass(f);
  }
};
struct Crowded {
  int64_t tag;
  explicit Crowded(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Crowd* crowd = &crowds[tag];
    InCrowd in(crowd);
    auto part = [](void* arg, uint64_t, uint64_t) {
      InCrowd also(static_cast<Crowd*>(arg));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    f.f->host->run->parallel(f.f, 8, 1, part, crowd);
    Pass(f);
  }
};
struct Born {
  explicit Born(const tw::Node&) { Write(-3); }
  Born(const Born&) = delete;
  Born& operator=(const Born&) = delete;
  ~Born() { Write(-4); }
  void operator()(tw::Frame f) const { Pass(f); }
};
struct Mark {
  int64_t tag;
  explicit Mark(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame) const { Write(tag); }
};
void Noise(tw::Frame f) {
  const float n = float(++noise);
  Map<CpuMemory>(f.f, [n](float x) { return x + n; });
}
void Dice(tw::Frame f) {
  Write(-1);
  Pass(f);
}
void Grow(tw::In<float> x, tw::Out<float> y) {
  Write(int64_t(y.size()));
  for (uint64_t i = 0; i < y.size(); ++i) y[i] = x[0];
}
void GrowRule(const tw::Shape& s) { s.out(0, s.shape("shape")); }

void Refuse(float x) {
  if (x < 0) throw tw::Error{TW_OUT_OF_RANGE, "it is negative"};
}
void Picky(tw::Frame f) {
  if (f.f->in[0]->count) Refuse(CpuMemory::At(f.f->in[0])[0]);
  Pass(f);
}

// Ends what asynchronous kernels start: a few threads with a queue, which never run out of work in the order they got it.
class Completer {
 public:
  Completer() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Completer() {
    {
      std::lock_guard lock(mu_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  // The call of `f` is over when `rest` is; what that throws is how it ended.
  void Add(const tw_frame* f, std::function<void()> rest) {
    {
      std::lock_guard lock(mu_);
      todo_.push_back({f->host, f->token, std::move(rest)});
    }
    wake_.notify_one();
  }

 private:
  struct Call {
    const tw_host* host;
    tw_token token;
    std::function<void()> rest;
  };
  void Work() {
    std::unique_lock lock(mu_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !todo_.empty(); });
      if (todo_.empty()) return;
      const Call call = std::move(todo_.front());
      todo_.erase(todo_.begin());
      lock.unlock();
      call.host->run->complete(call.host, call.token, tw::guard(call.host, call.rest));
      lock.lock();
    }
  }
  std::mutex mu_;
  std::condition_variable wake_;
  std::vector<Call> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};
Completer& TheCompleter() {
  static Completer completer;
  return completer;
}
void RefusingNext(const tw_frame* f) {
  if (f->in[0]->count) Refuse(CpuMemory::At(f->in[0])[0]);
  Next({f});
}
void Later(tw::Frame f) {
  TheCompleter().Add(f.f, [f] { RefusingNext(f.f); });
}
void Linger() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }
void LaterAside(tw::Frame f) {
  TheCompleter().Add(f.f, [f] {
    Linger();  // so that whoever does not wait is first
    RefusingNext(f.f);
  });
}
struct LaterTraced {
  int64_t tag;
  explicit LaterTraced(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Write(tag);
    Later(f);
  }
};
void Gated(tw::Frame f) {
  PassGate();
  Pass(f);
}
void Opens(tw::Frame f) {
  AwaitGated(2);
  OpenGate();
  Pass(f);
}
struct {
  std::mutex mu;
  std::condition_variable changed;
  int begun = 0;
  bool thrown = false;
} late;
tw_status* ThrowLate(const tw_frame* f) {
  const tw_host* host = f->host;
  const tw_token token = f->token;
  std::unique_lock lock(late.mu);
  const bool first = ++late.begun % 2 == 1;
  late.changed.notify_all();
  if (first) {
    late.thrown = false;
    host->run->complete(host, token, nullptr);
    late.changed.wait(lock, [] { return late.begun % 2 == 0; });
    late.thrown = true;
    late.changed.notify_all();
    throw std::runtime_error("too late");
  }
  late.changed.wait(lock, [] { return late.thrown; });
  lock.unlock();
  Linger();  // until it is caught
  host->run->complete(host, token, nullptr);
  return nullptr;
}
void Stubborn(tw::Frame f) {
  Write(-5);
  tw_status* stop = nullptr;
  while (!(stop = f.f->host->run->cancelled(f.f))) std::this_thread::yield();
  throw tw::Raised{stop};
}
void Fresh(tw::Out<float> y) {
  Write(-2);
  y[0] = float(++fresh);
}
void Flat(tw::Frame f) {
  const tw_view* out = f.f->out[0];
  const int64_t n = int64_t(f.f->in[0]->count);
  tw::check(f.f->host->tensor->forward(f.f, 0, 0, out->rank == 1 ? out->dims : &n, 1));
}
void FlatRule(const tw::Shape& s) {
  if (!s.known(0)) return s.out(0, {-1});
  int64_t n = 1;
  for (int32_t i = 0; i < s.rank(0); ++i) n = s.calc('*', n, s.dim(0, i));
  s.out(0, {n});
}
class Cut {
 public:
  explicit Cut(const tw::Node& n) : first_(uint64_t(n.i("first"))) {}
  void operator()(tw::In<tw::Any>, tw::Out<tw::Any> y) const { y.forward_part(0, first_); }

 private:
  uint64_t first_;
};
void CutRule(const tw::Shape& s) { s.out(0, {s.i("size")}); }
void Clip(tw::Frame f) {
  const float* x = CpuMemory::At(f.f->in[0]);
  if (std::all_of(x, x + f.f->in[0]->count, [](float v) { return v >= 0; })) {
    return tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0));
  }
  Map<CpuMemory>(f.f, [](float v) { return v < 0 ? 0 : v; });
}
void Positive(tw::In<float> x, tw::Out<float> y) {
  std::vector<float> kept;
  for (uint64_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) kept.push_back(x[i]);
  }
  y.allocate({int64_t(kept.size())});
  std::copy(kept.begin(), kept.end(), y.data());
}
void Two(tw::In<float> x, tw::Out<float> y, tw::Out<float> z) {
  for (uint64_t i = 0; i < x.size(); ++i) {
    const float v = x[i];
    z[i] = 2 * v;
    y[i] = v + 1;
  }
}
void Sum(tw::Many<float> xs, tw::Out<float> y) {
  for (uint64_t i = 0; i < y.size(); ++i) {
    float sum = 0;
    for (uint32_t k = 0; k < xs.size(); ++k) sum += xs[k][i];
    y[i] = sum;
  }
}
struct Mirror {
  explicit Mirror(const tw::Node&) {}
  uint64_t scratch(const tw::Node& n) const {
    uint64_t bytes = sizeof(float);
    for (int32_t i = 0; i < n.node->shapes[0].rank; ++i) bytes *= uint64_t(n.node->shapes[0].dims[i]);
    return bytes;
  }
  void operator()(tw::Frame f, tw::In<float> x, tw::Out<float> y) const {
    auto* memory = reinterpret_cast<float*>(static_cast<char*>(f.f->scratch) + f.f->scratch_offset);
    for (uint64_t i = 0; i < x.size(); ++i) memory[i] = x[i];
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = memory[x.size() - 1 - i];
  }
};

// Its input as a checkpoint.
struct SaveAs {
  std::string prefix;
  explicit SaveAs(const tw::Node& n) : prefix(n.s("prefix")) {}
  void operator()(tw::Frame f, tw::In<float> x, tw::Out<float> y) const {
    const tw_host* h = f.f->host;
    auto* api = static_cast<const tw_checkpoint_api*>(h->query(h, TW_S(TW_CHECKPOINT_SET), 1));
    tw_checkpoint_writer* w = nullptr;
    tw::check(api->create(h, prefix.data(), prefix.size(), &w));
    tw_status* s = api->add(w, "x", 1, x.v);
    if (s) api->discard(w);
    tw::check(s);
    tw::check(api->commit(w));
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i];
  }
};

struct Give {
  int64_t more;
  explicit Give(const tw::Node& n) : more(n.i("more")) {}
  void operator()(tw::Frame f, tw::In<float> x) const {
    const tw_host* h = f.f->host;
    std::vector<int64_t> dims(x.dims(), x.dims() + x.rank());
    dims[0] += more;
    tw_tensor* t = nullptr;
    tw::check(h->tensor->make(h, TW_FLOAT, dims.data(), uint32_t(dims.size()), &t));
    float* y = CpuMemory::At(h->tensor->view(t));
    std::fill_n(y, h->tensor->view(t)->count, 0.0f);
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i] + 1;
    tw_status* s = h->tensor->give(f.f, 0, t);
    h->tensor->release(t);
    tw::check(s);
  }
};
void HandOn(tw::Frame f) { tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0)); }

// ---- Kernels that throw as no kernel may ----

tw_status* Throw(const tw_frame*) { throw std::runtime_error("it was thrown"); }
tw_status* MakeAfter(const tw_node* n, void** out) {
  const std::vector<int64_t> tags = Journal();
  if (std::count(tags.begin(), tags.end(), tw::Node(n).i("tag")) == 0) throw std::runtime_error("it is too early");
  *out = new char;
  return nullptr;
}
tw_status* PassIfMade(const tw_frame* f) {
  if (!f->state) return tw_fail(f->host, TW_INTERNAL, TW_S("it has no state"));
  Pass({f});
  return nullptr;
}
void Unmake(const tw_host*, void* state) { delete static_cast<char*>(state); }

// ---- Variables ----

struct Box {
  std::string key;
  explicit Box(const tw::Node& n) : key(n.s("key")) {}
  void operator()(tw::Frame f) const {
    const tw_resource_key k{TW_SIZED(tw_resource_key), TW_S(TW_VARIABLE_TYPE), "", 0, key.data(), key.size()};
    tw::check(f.f->host->resource->open(f.f, &k, nullptr, nullptr, 0));
  }
};
void BoxRule(const tw::Shape& s) {
  s.out(0, std::vector<int64_t>{});
  s.set_handle(0, TW_FLOAT, s.shape("shape"));
}
void Put(tw::Frame f) {
  const tw_host* h = f.f->host;
  tw_tensor* t = nullptr;
  tw::check(h->tensor->keep(f.f, 1, &t));
  tw_status* s = h->resource->assign(f.f, 0, t);
  h->tensor->release(t);
  tw::check(s);
}
void GetRule(const tw::Shape& s) {
  uint32_t type = 0;
  tw_shape shape;
  s.handle(0, &type, &shape);
  s.out(0, shape);
}
void Bump(tw::Frame f) {
  TheCompleter().Add(f.f, [f] {
    Linger();
    ++CpuMemory::At(f.f->in[0])[0];
  });
}

// ---- Letters: a resource of the plugin's own, and kernels that wait for it ----

using Letters = std::vector<float>;
struct Tray {
  std::string key;
  explicit Tray(const tw::Node& n) : key(n.s("key")) {}
  void operator()(tw::Frame f) const {
    const tw_resource_key k{TW_SIZED(tw_resource_key), TW_S("org.test.letters"), "", 0, key.data(), key.size()};
    auto make = [](const tw_host* h, void*, void** out) { return tw::guard(h, [&] { *out = new Letters; }); };
    tw::check(f.f->host->resource->open(f.f, &k, make, nullptr, 0));
  }
};
enum TrayCondition : uint64_t { kLetters, kEmpty };
void Post(tw::Var<tw::Any> tray, tw::In<float> x) {
  auto* letters = static_cast<Letters*>(tray.handle());
  letters->insert(letters->end(), x.data(), x.data() + x.size());
}
// Takes one letter after the other as they come; the memo is how many it has.
void Await(tw::Frame f, tw::Var<tw::Any> tray, tw::Out<float> y) {
  auto* letters = static_cast<Letters*>(tray.handle());
  uint64_t have = f.memo();
  if (f.waiting(0, kLetters) > 0) return f.wait(0, kLetters, have);
  for (; have < y.size() && !letters->empty(); letters->erase(letters->begin())) y[have++] = letters->front();
  if (have < y.size()) return f.wait(0, kLetters, have);
  f.complete();
}
void AwaitRule(const tw::Shape& s) { s.out(0, {s.i("letters")}); }
struct AwaitEmpty {
  int64_t tag;
  explicit AwaitEmpty(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> tray) const {
    Write(tag);
    if (!static_cast<Letters*>(tray.handle())->empty()) return f.wait(0, kEmpty, 0);
    f.complete();
  }
};
void WaitsInTurn(tw::Frame f, tw::Var<tw::Any>) { f.wait(0, kLetters, 0); }
void WaitsForAnother(tw::Frame f, tw::Var<tw::Any>) { f.wait(1, kLetters, 0); }

void ConstRule(const tw::Shape& s) {
  const tw_view* v = s.c->host->tensor->view(s.tensor("value"));
  s.out(0, tw_shape{v->dims, v->rank, 0});
}
void PlaceholderRule(const tw::Shape& s) { s.out(0, s.shape("shape")); }

void Register(tw::Plugin& p) {
  auto device = [&](std::string_view kind, auto enumerate, auto allocate, auto release, auto copy) {
    p.device({TW_SIZED(tw_device_def), kind.data(), kind.size(), nullptr, enumerate, allocate, release, copy, nullptr});
  };
  device("CPU", EnumerateCpu, AllocateCpu, ReleaseCpu, CopyCpu);
  device("FAKE", EnumerateFake, AllocateFake, ReleaseFake, CopyFake);

  p.op<nullptr, ConstRule>("Const() -> (output: dtype); value: tensor; dtype: type; role const");
  p.op<nullptr, PlaceholderRule>("Placeholder() -> (output: dtype); dtype: type; shape: shape = unknown; role placeholder");
  for (const char* name : {"Add", "Mul"}) p.op(StrCat(name, "(x: float[*s], y: float[*s]) -> (z: float[*s]); commutative"));
  for (const char* name :
       {"Neg",      "Next",   "OnCpu", "OnFake",     "Nowhere", "Born", "Dice",   "Picky",       "Later",       "Gated",      "GatedAside",
        "Stubborn", "Mirror", "Clip",  "LaterAside", "HandOn",  "Same", "Throws", "ThrowsAside", "ThrowsLater", "ThrowsLate", "Opens"}) {
    p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s])"));
  }
  p.op("Traced(x: float[*s]) -> (y: float[*s]); tag: int");
  for (const char* name : {"Crowd", "CrowdAside"}) p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s]); tag: int"));
  p.op("LaterTraced(x: float[*s]) -> (y: float[*s]); tag: int");
  p.op("BornAfter(x: float[*s]) -> (y: float[*s]); tag: int");
  p.op("Give(x: float[*s]) -> (y: float[*s]); more: int = 0");
  p.op("SaveAs(x: float[*s]) -> (y: float[*s]); prefix: string; stateful; touches files");
  p.op("Phone(x: float[*s]) -> (y: float[*s]); tag: int; stateful; touches files network");
  p.op<nullptr, BoxRule>("Box() -> (v: resource[]); key: string; shape: shape; stateful");
  p.op("Put(v: resource, x: float) -> (); stateful");
  p.op<nullptr, GetRule>("Get(v: resource) -> (y: float); stateful");
  for (const char* name : {"Bump", "ThrowsHolding", "ThrowsHoldingLater"}) p.op(StrCat(name, "(v: resource) -> (); stateful"));
  p.resource({TW_SIZED(tw_resource_def), TW_S("org.test.letters"), 1, nullptr,
              [](const tw_host*, void* letters) { delete static_cast<Letters*>(letters); }, nullptr, nullptr});
  p.op("Tray() -> (t: resource[]); key: string; stateful");
  p.op("Post(t: resource, x: float) -> (); stateful");
  p.op<nullptr, AwaitRule>("Await(t: resource) -> (y: float); letters: int = 1; stateful");
  p.op("AwaitEmpty(t: resource) -> (); tag: int = 0; stateful");
  for (const char* name : {"WaitsInTurn", "WaitsForAnother"}) p.op(StrCat(name, "(t: resource) -> (); stateful"));
  p.op("Noise(x: float[*s]) -> (y: float[*s]); stateful");
  p.op("Mark() -> (); tag: int; stateful");
  p.op<nullptr, GrowRule>("Grow(x: float[]) -> (y: float); shape: shape");
  p.op("Fresh() -> (y: float[]); once");
  p.op<nullptr, FlatRule>("Flat(x: float) -> (y: float[_])");
  p.op<nullptr, CutRule>("Cut(x: T) -> (y: U[_]); T: type; U: type; first: int; size: int");
  p.op("Positive(x: float) -> (y: float[_])");
  p.op("Two(x: float[*s]) -> (y: float[*s], z: float[*s])");
  p.op("Sum(xs: float[*s] * N) -> (y: float[*s]); N: int >= 1");

  constexpr const char* kZip = "(float, float -> float) @";
  constexpr const char* kMap = "(float -> float) @";
  p.kernel<Add<CpuMemory>>(StrCat("Add", kZip, "CPU; inplace z=x z=y"));
  p.kernel<Add<FakeMemory>>(StrCat("Add", kZip, "FAKE; inplace z=x z=y"));
  p.kernel<Mul<CpuMemory>>(StrCat("Mul", kZip, "CPU; inplace z=x z=y"));
  p.kernel<Mul<FakeMemory>>(StrCat("Mul", kZip, "FAKE; inplace z=x z=y"));
  p.kernel<Neg<CpuMemory>>(StrCat("Neg", kMap, "CPU; cheap; inplace y=x"));
  p.kernel<Neg<FakeMemory>>(StrCat("Neg", kMap, "FAKE; cheap; inplace y=x"));
  p.kernel<Next>(StrCat("Next", kMap, "CPU"));
  p.kernel<Times<CpuMemory, 2>>(StrCat("OnCpu", kMap, "CPU"));
  p.kernel<Times<FakeMemory, 3>>(StrCat("OnFake", kMap, "FAKE"));
  p.kernel<Traced>(StrCat("Traced", kMap, "CPU"));
  p.kernel<Born>(StrCat("Born", kMap, "CPU"));
  p.kernel<Mark>("Mark() @CPU");
  p.kernel<Mark>("Mark() @FAKE");
  p.kernel<Noise>(StrCat("Noise", kMap, "CPU"));
  p.kernel<Dice>(StrCat("Dice", kMap, "CPU; nondeterministic"));
  p.kernel<Grow>("Grow @CPU");
  p.kernel<Picky>(StrCat("Picky", kMap, "CPU"));
  p.kernel<Later>(StrCat("Later", kMap, "CPU; async"));
  p.kernel<LaterAside>(StrCat("LaterAside", kMap, "CPU; async; may_block"));
  p.kernel<LaterTraced>(StrCat("LaterTraced", kMap, "CPU; async"));
  p.kernel<Gated>(StrCat("Gated", kMap, "CPU"));
  p.kernel<Gated>(StrCat("GatedAside", kMap, "CPU; may_block"));
  p.kernel<Opens>(StrCat("Opens", kMap, "CPU"));
  p.kernel<Crowded>(StrCat("Crowd", kMap, "CPU"));
  p.kernel<Crowded>(StrCat("CrowdAside", kMap, "CPU; may_block"));
  p.kernel<Stubborn>(StrCat("Stubborn", kMap, "CPU"));
  p.kernel<Fresh>("Fresh @CPU");
  p.kernel<Flat>(StrCat("Flat", kMap, "CPU; view y=x"));
  p.kernel<Clip>(StrCat("Clip", kMap, "CPU"));
  p.kernel<Positive>("Positive @CPU");
  p.kernel<Two>("Two @CPU; inplace y=x");
  p.kernel<Sum>("Sum @CPU; inplace y=xs");
  p.kernel<Mirror>("Mirror @CPU; inplace y=x");
  p.kernel<Give>("Give(float -> float) @CPU");
  p.kernel<SaveAs>("SaveAs(float -> float) @CPU; may_block");
  p.kernel<Traced>(StrCat("Phone", kMap, "CPU"));
  for (const char* on : {"CPU", "FAKE"}) {
    p.kernel<HandOn>(StrCat("HandOn", kMap, on));
    p.kernel<Cut>(StrCat("Cut @", on));
    p.kernel<Box>(StrCat("Box( -> resource) @", on));
    p.kernel<Put>(StrCat("Put(resource, float) @", on, "; update v; keep x"));
    p.kernel<HandOn>(StrCat("Get(resource -> float) @", on, "; read v; view y=v"));
  }
  p.kernel<HandOn>(StrCat("Same", kMap, "FAKE; view y=x"));
  p.kernel<Tray>("Tray @CPU");
  p.kernel<Post>("Post @CPU; update t");
  p.kernel<Await>("Await @CPU; async; update t");
  p.kernel<AwaitEmpty>("AwaitEmpty @CPU; async; update t");
  p.kernel<WaitsInTurn>("WaitsInTurn @CPU; update t");
  p.kernel<WaitsForAnother>("WaitsForAnother @CPU; async; update t");
  p.kernel<Bump>("Bump(resource) @CPU; async; update v");
  auto throwing = [&](const std::string& spec) { p.add(spec, nullptr, Throw, nullptr, nullptr); };
  throwing(StrCat("Throws", kMap, "CPU"));
  throwing(StrCat("ThrowsAside", kMap, "CPU; may_block"));
  throwing(StrCat("ThrowsLater", kMap, "CPU; async"));
  p.add(StrCat("ThrowsLate", kMap, "CPU; async; may_block"), nullptr, ThrowLate, nullptr, nullptr);
  throwing("ThrowsHolding(resource) @CPU; update v");
  throwing("ThrowsHoldingLater(resource) @CPU; async; update v");
  p.add(StrCat("BornAfter", kMap, "CPU"), MakeAfter, PassIfMade, Unmake, nullptr);
}

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  return tw::guard(h, [&] {
    tw::Plugin p{h, r};
    Register(p);
  });
}

}  // namespace

const tw_plugin* QueryTestOps(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,     0,    0,      TW_MINOR, TW_S("org.test.ops"), TW_S("1"),
                                   TW_S("x"),           TW_S("test"), Init, nullptr};
  return &plugin;
}

std::vector<int64_t> Journal() {
  std::lock_guard lock(journal.mu);
  return journal.tags;
}
void ClearJournal() {
  std::lock_guard lock(journal.mu);
  journal.tags.clear();
}
int FakeCopies() { return fake_copies; }

void CloseGate() {
  std::lock_guard lock(gate.mu);
  gate.open = false;
}
void OpenGate() {
  std::lock_guard lock(gate.mu);
  gate.open = true;
  gate.changed.notify_all();
}
void AwaitGated(int n) {
  std::unique_lock lock(gate.mu);
  gate.changed.wait(lock, [n] { return gate.waiting >= n; });
}

int MostInCrowd(int64_t tag) { return crowds[tag].most.exchange(0); }

std::shared_ptr<Runtime> TestRuntime(uint32_t threads) {
  RuntimeOptions options;
  options.threads = threads;
  options.load_plugins = false;
  options.static_plugins = {{"test ops", QueryTestOps}};
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *runtime;
}

Tensor Floats(const std::vector<float>& values) { return *Tensor::Vector<float>(TW_FLOAT, values); }
Tensor FloatsOf(const Shape& shape, float first) {
  Tensor t = *Tensor::Make(TW_FLOAT, shape);
  std::iota(t.as<float>(), t.as<float>() + t.count(), first);
  return t;
}
std::vector<float> Values(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.count()}; }

TestGraph::TestGraph(std::shared_ptr<Runtime> runtime) : graph_(std::make_shared<Graph>(std::move(runtime))) {}

Edge TestGraph::Const(const Tensor& value, const Extras& extras) {
  Extras e = extras;
  e.attrs = {{"value", AttrValue::OfTensor(value)}, {"dtype", AttrValue::Type(value.dtype())}};
  return Op("Const", {}, e);
}
Edge TestGraph::Input(const Shape& shape, const std::string& name) {
  return Op("Placeholder", {}, {.name = name, .attrs = {{"shape", AttrValue::OfShape(shape)}, {"dtype", AttrValue::Type(TW_FLOAT)}}});
}
Edge TestGraph::Op(const std::string& op, std::vector<Edge> in, Extras extras) {
  NodeSpec spec;
  spec.op = op;
  spec.name = extras.name;
  spec.inputs = std::move(in);
  spec.controls = std::move(extras.controls);
  spec.attrs = std::move(extras.attrs);
  spec.device = extras.device;
  spec.colocate_with = std::move(extras.colocate_with);
  auto node = graph_->AddNode(std::move(spec));
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? Edge{*node, 0} : Edge{};
}
const Node* TestGraph::Mark(int64_t tag, std::vector<const Node*> controls) {
  return Op("Mark", {}, {.controls = std::move(controls), .attrs = {{"tag", AttrValue::Int(tag)}}}).node;
}
std::unique_ptr<Session> TestGraph::NewSession(const std::map<std::string, std::string>& options) {
  SessionOptions o;
  for (const auto& [key, value] : options) EXPECT_TRUE(SetSessionOption(&o, key, value).ok()) << key;
  auto session = Session::Create(graph_, o);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

StatusOr<std::vector<Tensor>> Step(Session& session, const CallableSpec& spec, const std::vector<Tensor>& feeds,
                                   const RunOptions& options) {
  std::vector<Tensor> fetches(spec.fetches.size());
  RETURN_IF_ERROR(session.Run(spec, feeds.data(), options, fetches.data()));
  return fetches;
}

}  // namespace thalweg::testing_support
