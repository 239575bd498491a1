#include "tools/conformance/subjects.h"

#include <algorithm>
#include <map>

#include "tools/conformance/numbers.h"
#include "tools/conformance/run.h"

namespace thalweg::conformance {

std::vector<const KernelDef*> CallableKernels(const World& world) {
  std::vector<const KernelDef*> kernels = world.Kernels();
  std::erase_if(kernels, [](const KernelDef* k) { return k->spec.any_op; });
  return kernels;
}

KernelSet KernelsOf(const World& world, bool all) {
  KernelSet set;
  set.all = set.tried = CallableKernels(world);
  constexpr size_t kFew = 60, kMany = 600;  // at most kFew: try all; more than kMany: one for each title
  if (all || set.all.size() <= kFew) return set;
  std::map<std::string, size_t> count, seen;
  for (const KernelDef* k : set.all) ++count[KernelTitle(*k)];
  const bool many = set.all.size() > kMany;
  // Keep the first, the middle and the last of each title; of very many kernels only the first.
  std::erase_if(set.tried, [&](const KernelDef* k) {
    const size_t n = count[KernelTitle(*k)], i = seen[KernelTitle(*k)]++;
    return i != 0 && (many || (i != n / 2 && i + 1 != n));
  });
  return set;
}

void MissUntried(const KernelSet& kernels, Tally* tally) {
  const size_t left = kernels.all.size() - kernels.tried.size();
  if (left) tally->Missed(StrCat(left, left == 1 ? " kernel" : " kernels", " of other element types"), "--full tries them", int64_t(left));
}

std::string KernelTitle(const KernelDef& k) { return StrCat(k.spec.op, " @", k.spec.kind); }

std::string KernelName(const KernelDef& k) { return StrCat("'", k.spec.text, "'"); }

std::string CountText(const std::vector<const KernelDef*>& kernels) {
  return StrCat(kernels.size(), kernels.size() == 1 ? " kernel" : " kernels");
}

bool Comparable(const KernelDef& k) {
  const std::vector<ArgSpec>& in = k.op->inputs;
  const bool shown = std::any_of(in.begin(), in.end(), [](const ArgSpec& a) { return a.dtype == TW_RESOURCE; });
  return (!k.op->stateful || shown) && !k.spec.nondeterministic;
}

StatusOr<Placed> PlaceCase(World* world, const Case& c) {
  Placed p;
  p.graph = std::make_unique<Graph>(world->runtime_ptr());
  ASSIGN_OR_RETURN(p.node, AddCase(p.graph.get(), c));
  return p;
}

bool Fits(const KernelDef& k, const Node& node) {
  auto fits = [](const std::vector<uint32_t>& want, const std::vector<uint32_t>& at, const uint32_t* types) {
    for (size_t a = 0; a < want.size(); ++a) {
      for (uint32_t i = at[a]; want[a] && i < at[a + 1]; ++i) {
        if (types[i] != want[a]) return false;
      }
    }
    return true;
  };
  return fits(k.spec.in_types, node.in_at(), node.types().data()) &&
         fits(k.spec.out_types, node.out_at(), node.types().data() + node.n_in());
}

std::string DiffersIn(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  for (size_t o = 0; o < want.size(); ++o) {
    if (o >= got.size()) return StrCat("output ", o, " is missing");
    if (std::string d = Differs(got[o], want[o]); !d.empty()) return StrCat("output ", o, ": ", d);
  }
  return "";
}

std::string DiffersIn(const KernelDef& k, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  if (Comparable(k)) return DiffersIn(got, want);
  for (size_t o = 0; o < want.size(); ++o) {
    if (o >= got.size()) return StrCat("output ", o, " is missing");
    if (got[o].dtype() != want[o].dtype()) return StrCat("output ", o, " has another type");
    if (!(got[o].shape() == want[o].shape())) return StrCat("output ", o, " is ", got[o].shape().text(), ", not ", want[o].shape().text());
  }
  return "";
}

Outcome ForKernels(World* world, CaseBook* book, const KernelSet& kernels, size_t cases, const KernelCheck& check) {
  Tally tally("kernel");
  for (const KernelDef* k : kernels.tried) {
    Device* device = world->DeviceOf(k->spec.kind);
    if (!device) {
      tally.Missed(KernelName(*k), StrCat("there is no device ", k->spec.kind, " on this machine"));
      continue;
    }
    Outcome best = Skip(book->WhyNone(*k, false));
    bool none = false;
    size_t n = 0;
    for (const Case& c : book->For(*k, false)) {
      if (n >= cases && !c.author) break;
      ASSIGN_OR_RETURN(Placed p, PlaceCase(world, c));
      if (!Fits(*k, *p.node)) continue;
      At(StrCat(c.text(), " on ", device->name()));
      Outcome o = check(world, *k, *p.node, c, device);
      if (o.kind == Outcome::kFail) return Fail(c.text(), " by '", k->spec.text, "': ", o.why);
      n += o.passed();
      none = none || o.kind == Outcome::kNone;
      if (o.passed()) best = o;
      if (o.kind == Outcome::kSkip && !best.passed()) best = Skip(c.text(), ": ", o.why);
    }
    if (best.passed() || !none) tally.Add(KernelName(*k), best);
  }
  MissUntried(kernels, &tally);
  return tally.End();
}

}  // namespace thalweg::conformance
