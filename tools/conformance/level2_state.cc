// Level 2: kernels on resources of the wrong type, repeated runs of kernels with resources, and
// resources saved as bytes.
#include <algorithm>

#include "framework/runtime/state/resource.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/process.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// ---- resources of the wrong kind ----

double Ones(uint64_t) { return 1; }

// Returns variants of the case whose handles have wrong targets, each with a description of the target.
StatusOr<std::vector<std::pair<std::string, Case>>> Misled(const Case& c) {
  std::vector<std::pair<std::string, Case>> out;
  auto add = [&](const std::string& what, uint32_t input, const Tensor& value) {
    out.emplace_back(what, c);
    out.back().second.held[input] = Held{"", value};
  };
  for (const auto& [i, held] : c.held) {
    add("a variable without a value", i, Tensor());
    const uint32_t dtype = held.value ? held.value.dtype() : uint32_t{TW_FLOAT};
    for (uint32_t other : {TW_INT8, TW_DOUBLE, TW_STRING}) {
      if (other == dtype) continue;
      ASSIGN_OR_RETURN(Tensor t, TensorOf(other, held.value ? held.value.shape() : Shape{3}, Ones));
      add("a variable of another type", i, t);
    }
    for (const Shape& shape : {Shape(nullptr, 0), Shape{1}, Shape{0, 2}, Shape{1, 1, 1, 1}}) {
      ASSIGN_OR_RETURN(Tensor t, TensorOf(dtype, shape, Ones));
      add("a variable of another shape", i, t);
    }
  }
  return out;
}

// The graph has no facts about the targets of handles, so the kernel has to check them. It may accept
// wrong targets, but must not write out of bounds.
Outcome LooksAtResources(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  if (c.held.empty()) return None("it has no resources");
  ASSIGN_OR_RETURN(auto misled, Misled(c));
  auto prepared = PreparedKernel::Make(world, &node, &k, device, c.inputs);
  if (!prepared.ok()) return Skip(Message(prepared.status()));
  for (const auto& [what, other] : misled) {
    At(StrCat(other.text(), " on ", device->name(), ", ", what));
    ASSIGN_OR_RETURN(auto state, State::Make(world, device, other.held));
    const CallResult r = (*prepared)->ExecuteOn(*state, other.inputs);
    if (!r.breach.empty()) return Fail("given ", what, ", ", other.text(), ", it wrote to ", r.breach);
  }
  return {};
}

// ---- repeated calls ----

Outcome StaysSmall(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  constexpr int kRounds = 24, kMost = 31;  // kMost: bytes a round, less than the smallest block of the heap
  auto rounds = [&](int n) -> Status {
    for (int i = 0; i < n; ++i) RETURN_IF_ERROR(CallKernel(world, &node, &k, device, c).status);
    return Status();
  };
  if (Status s = rounds(4); !s.ok()) return Skip(Message(s));
  int64_t grown = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {  // growth by other threads does not repeat each time
    const int64_t before = ReadHeap();
    RETURN_IF_ERROR(rounds(kRounds));
    grown = ReadHeap() - before;
    if (grown <= kRounds * kMost) return {};
  }
  return Fail("made, called and destroyed over and over, it takes ", grown / kRounds, " bytes more each time");
}

// ---- as bytes ----

struct Source {
  explicit Source(std::string_view bytes) : left(bytes) {}
  tw_source c{TW_SIZED(tw_source), this, &Get};
  std::string_view left;
  static tw_status* Get(tw_source* from, void* p, uint64_t n, uint64_t* out_n) {
    auto* self = static_cast<Source*>(from->user);
    *out_n = std::min<uint64_t>({n, self->left.size(), 1000});  // in pieces, as a file may provide them
    std::copy_n(self->left.data(), *out_n, static_cast<char*>(p));
    self->left.remove_prefix(*out_n);
    return nullptr;
  }
};

// Restores an object of the type from bytes, and returns the bytes that it saves.
StatusOr<std::string> SavedAgain(const ResourceType& type, std::string_view bytes) {
  Source from(bytes);
  void* object = nullptr;
  RETURN_IF_ERROR(FromC(type.def.restore(type.host, type.def.user, type.def.format, &from.c, &object)));
  if (!object) return Internal("restore answered neither an object nor an error");
  Resource again("", type.type, "", &type);
  again.set_object(object);
  return Saved(again);
}

Outcome ComesBack(const Resource& r) {
  if (!r.def() || !r.object() || !r.def()->def.save || !r.def()->def.restore) return None("it is not saved");
  ASSIGN_OR_RETURN(const std::string bytes, Saved(r));
  auto again = SavedAgain(*r.def(), bytes);
  if (!again.ok()) return Fail("restore refuses what save wrote: ", Message(again.status()));
  if (*again != bytes) return Fail("saved again after restore it is ", again->size(), " other bytes instead of ", bytes.size());
  const size_t step = 1 + bytes.size() / 40;
  for (size_t n = 0; n < bytes.size(); n += step) {
    At(StrCat("restoring ", n, " of ", bytes.size(), " bytes"));
    (void)SavedAgain(*r.def(), std::string_view(bytes).substr(0, n));
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(~damaged[n]);
    At(StrCat("restoring ", bytes.size(), " bytes, of which number ", n, " is damaged"));
    (void)SavedAgain(*r.def(), damaged);
  }
  return {};
}

// Checks that each resource, as it is after the kernel has run, can be saved and restored.
Outcome RestoresWhatWasSaved(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  auto prepared = PreparedKernel::Make(world, &node, &k, device, c.inputs, c.held);
  if (!prepared.ok()) return Skip(Message(prepared.status()));
  ASSIGN_OR_RETURN(auto state, State::Make(world, device, c.held));
  if (Status s = (*prepared)->ExecuteOn(*state, c.inputs).status; !s.ok()) return Skip(Message(s));
  Outcome all = None("nothing is saved");
  for (const auto& [i, held] : c.held) {
    Outcome o = ComesBack(*state->Of(i));
    if (o.kind == Outcome::kFail) return o;
    if (o.passed()) all = o;
  }
  return all;
}

}  // namespace

void CheckState(Run& run, World& world) {
  if (!world.play().name.empty()) return;
  const bool full = run.options().full;
  const KernelSet kernels = KernelsOf(world, full);
  if (kernels.empty()) return;
  const KernelSet stateful = kernels.Where([](const KernelDef& k) { return k.op->stateful; });
  CaseBook book(&world, nullptr, run.options().case_file.get(), full ? Effort::kUsual : Effort::kBrief);
  auto check = [&](int rule, const KernelSet& some, const KernelCheck& body) {
    if (!some.empty()) run.Check(rule, CountText(some.all), [&] { return ForKernels(&world, &book, some, full ? 4 : 1, body); });
  };
  check(209, stateful, LooksAtResources);
  check(210, kernels, StaysSmall);
  check(211, stateful, RestoresWhatWasSaved);
}

}  // namespace thalweg::conformance
