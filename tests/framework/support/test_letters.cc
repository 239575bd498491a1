// Letters: a resource of the test plugin, and kernels that wait for it.
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "tests/framework/support/test_kernels.h"

namespace thalweg::testing_support {
namespace {

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
// Takes the letters one by one as they arrive; the memo counts them.
void Await(tw::Frame f, tw::Var<tw::Any> tray, tw::Out<float> y) {
  auto* letters = static_cast<Letters*>(tray.handle());
  uint64_t have = f.memo();
  if (f.waiting(0, kLetters) > 0) return f.wait(0, kLetters, have);
  for (; have < y.size() && !letters->empty(); letters->erase(letters->begin())) y[have++] = letters->front();
  if (have < y.size()) return f.wait(0, kLetters, have);
  f.complete();
}
// Takes all letters together, once enough are there.
void AwaitAll(tw::Frame f, tw::Var<tw::Any> tray, tw::Out<float> y) {
  auto* letters = static_cast<Letters*>(tray.handle());
  if (f.waiting(0, kLetters) > 0 || letters->size() < y.size()) return f.wait(0, kLetters, 0);
  for (uint64_t i = 0; i < y.size(); ++i, letters->erase(letters->begin())) y[i] = letters->front();
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

}  // namespace

void RegisterLetters(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S("org.test.letters"), 1, nullptr,
              [](const tw_host*, void* letters) { delete static_cast<Letters*>(letters); }, nullptr, nullptr});
  p.op("Tray() -> (t: resource[]); key: string; stateful");
  p.op("Post(t: resource, x: float) -> (); stateful");
  for (const char* name : {"Await", "AwaitAll"}) {
    p.op<nullptr, AwaitRule>(StrCat(name, "(t: resource) -> (y: float); letters: int = 1; stateful"));
  }
  p.op("AwaitEmpty(t: resource) -> (); tag: int = 0; stateful");
  for (const char* name : {"WaitsInTurn", "WaitsForAnother"}) p.op(StrCat(name, "(t: resource) -> (); stateful"));
  p.kernel<Tray>("Tray @CPU");
  p.kernel<Post>("Post @CPU; update t");
  p.kernel<Await>("Await @CPU; async; update t");
  p.kernel<AwaitAll>("AwaitAll @CPU; async; update t");
  p.kernel<AwaitEmpty>("AwaitEmpty @CPU; async; update t");
  p.kernel<WaitsInTurn>("WaitsInTurn @CPU; update t");
  p.kernel<WaitsForAnother>("WaitsForAnother @CPU; async; update t");
}

}  // namespace thalweg::testing_support
