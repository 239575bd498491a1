// The test plugin itself, and its synchronous ops.
#include "tests/framework/support/test_ops.h"

#include <algorithm>
#include <atomic>

#include "framework/base/strings.h"
#include "tests/framework/support/test_kernels.h"
#include "thalweg/cpp/trace.hpp"
#include "thalweg/plugin/checkpoint.h"

namespace thalweg::testing_support {
namespace {

std::atomic<int> fresh{0}, noise{0};

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

struct Traced {
  int64_t tag;
  explicit Traced(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Write(tag);
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
void Picky(tw::Frame f) {
  if (f.f->in[0]->count) Refuse(CpuMemory::At(f.f->in[0])[0]);
  Pass(f);
}
// Reports spans, one inside the other and one on a row of its own, what the host must leave out, two
// values of a counter, and as its result the number of the trace.
void Reports(tw::Frame f, tw::Out<float> y) {
  const tw_run_api* run = f.f->host->run;
  const tw_span backwards = {TW_SIZED(tw_span), nullptr, 0, TW_S("backwards"), 2, 1, nullptr, 0};
  const tw_span nameless = {TW_SIZED(tw_span), nullptr, 0, nullptr, 0, 1, 2, nullptr, 0};
  const tw_span endless = {TW_SIZED(tw_span), nullptr, 0, TW_S("endless"), INT64_MIN, INT64_MAX, nullptr, 0};
  run->span(f.f, &backwards);
  run->span(f.f, &nameless);
  run->span(f.f, &endless);
  const tw::Span whole(f, "whole");
  {
    const tw::Span part(f, "part");
    const tw::Span elsewhere(f, "elsewhere", "helper");
    tw::count(f, "size", 3);
    tw::count(f, "size", -4);
  }
  std::fill_n(y.data(), y.size(), float(tw::trace(f)));
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
void CountOf(tw::In<float> x, tw::Out<float> y) {
  for (uint64_t i = 0; i < y.size(); ++i) y[i] = float(x.size());
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
// Returns rows of `columns` columns, although its schema declares two.
struct Rows {
  int64_t columns;
  explicit Rows(const tw::Node& n) : columns(n.i("columns")) {}
  void operator()(tw::In<float> x, tw::Out<float> y) const {
    y.allocate({int64_t(x.size()) / columns, columns});
    std::copy_n(x.data(), y.size(), y.data());
  }
};
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

// Writes its input as a checkpoint.
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
    tw::check(tw_make_tensor(h, TW_FLOAT, dims.data(), uint32_t(dims.size()), &t));
    float* y = CpuMemory::At(h->tensor->view(t));
    std::fill_n(y, h->tensor->view(t)->count, 0.0f);
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i] + 1;
    tw_status* s = h->tensor->give(f.f, 0, t);
    h->tensor->release(t);
    tw::check(s);
  }
};
// Multiplies by a number. Declines tensors of more rows than it takes, where these are known.
template <class M, int by, int most>
struct Fussy {
  explicit Fussy(const tw::Node&) {}
  static void fits(const tw::Node& n) {
    if (n.i("mode") < 0) throw tw::Error{TW_INVALID_ARGUMENT, "mode is " + tw::text(n.i("mode"))};
    const tw_shape& x = n.shape_in(0);
    if (x.rank > 0 && x.dims[0] > most) throw tw::Error{TW_UNIMPLEMENTED, "it takes " + tw::text(int64_t{most}) + " rows"};
    const tw_view* scale = n.value_in(1);
    if (scale && *CpuMemory::At(scale) < 0) throw tw::Error{TW_UNIMPLEMENTED, "the scale is negative"};
  }
  void operator()(tw::Frame f) const {
    const float scale = *CpuMemory::At(f.f->in[1]);
    Map<M>(f.f, [scale](float x) { return x * float(by) * scale; });
  }
};
void HandOn(tw::Frame f) { tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0)); }

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

void ConstRule(const tw::Shape& s) {
  const tw_view* v = s.c->host->tensor->view(s.tensor("value"));
  s.out(0, tw_shape{v->dims, v->rank, 0});
}
void PlaceholderRule(const tw::Shape& s) { s.out(0, s.shape("shape")); }

void Register(tw::Plugin& p) {
  RegisterDevices(p);
  RegisterCrowds(p);
  RegisterLateOps(p);
  RegisterLetters(p);

  p.op<nullptr, ConstRule>("Const() -> (output: dtype); value: tensor; dtype: type; role const");
  p.op<nullptr, PlaceholderRule>("Placeholder() -> (output: dtype); dtype: type; shape: shape = unknown; role placeholder");
  for (const char* name : {"Add", "Mul"}) p.op(StrCat(name, "(x: float[*s], y: float[*s]) -> (z: float[*s]); commutative"));
  for (const char* name : {"Neg", "Next", "OnCpu", "OnFake", "Nowhere", "Born", "Dice", "Picky", "Mirror", "Clip", "HandOn", "Same"}) {
    p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s])"));
  }
  p.op("Reports(x: float[*s]) -> (y: float[*s])");
  p.op("Traced(x: float[*s]) -> (y: float[*s]); tag: int");
  p.op("Give(x: float[*s]) -> (y: float[*s]); more: int = 0");
  p.op("Fussy(x: float[*s], scale: float[]) -> (y: float[*s]); mode: int = 0");
  p.op("SaveAs(x: float[*s]) -> (y: float[*s]); prefix: string; stateful; touches files");
  p.op("Phone(x: float[*s]) -> (y: float[*s]); tag: int; stateful; touches files network");
  p.op<nullptr, BoxRule>("Box() -> (v: resource[]); key: string; shape: shape; stateful");
  p.op("Put(v: resource, x: float) -> (); stateful");
  p.op<nullptr, GetRule>("Get(v: resource) -> (y: float); stateful");
  p.op("Noise(x: float[*s]) -> (y: float[*s]); stateful");
  p.op("Mark() -> (); tag: int; stateful");
  p.op<nullptr, GrowRule>("Grow(x: float[]) -> (y: float); shape: shape");
  p.op("Fresh() -> (y: float[]); once");
  p.op<nullptr, FlatRule>("Flat(x: float) -> (y: float[_])");
  p.op<nullptr, CutRule>("Cut(x: T) -> (y: U[_]); T: type; U: type; first: int; size: int; ?data x");
  p.op("CountOf(x: float[*s]) -> (y: float[*s]); shape_only x");
  p.op("Positive(x: float) -> (y: float[_]); ?limits y 0 elements x");
  p.op("Rows(x: float) -> (y: float[_, 2]); columns: int");
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
  p.kernel<Reports>(StrCat("Reports", kMap, "CPU"));
  p.kernel<Fresh>("Fresh @CPU");
  p.kernel<Flat>(StrCat("Flat", kMap, "CPU; view y=x"));
  p.kernel<CountOf>(StrCat("CountOf", kMap, "CPU"));
  p.kernel<Clip>(StrCat("Clip", kMap, "CPU"));
  p.kernel<Positive>("Positive @CPU");
  p.kernel<Rows>("Rows @CPU");
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
  p.kernel<Fussy<FakeMemory, 3, 6>>("Fussy(float, float -> float) @FAKE; host scale");
  p.kernel<Fussy<FakeMemory, 2, 3>>("Fussy(float, float -> float) @FAKE; host scale; priority 5");
  p.kernel<Fussy<CpuMemory, 5, 1000>>("Fussy(float, float -> float) @CPU");
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

}  // namespace thalweg::testing_support
