// Level 2: what kernels make of the memory that they are given, and of the process that they run in. Each rule calls a kernel in two ways
// that must come to the same.
#include <algorithm>

#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// Whether the host may let an output of this node overwrite an input, as far as values of several in one argument go: of those it takes
// none.
bool HasPair(const KernelDef& k, const Node& node) {
  const auto single = [](const std::vector<uint32_t>& at, size_t arg) { return at[arg + 1] == at[arg] + 1; };
  for (size_t o = 0; o < k.inplace.size(); ++o) {
    for (int32_t i : k.inplace[o]) {
      if (single(node.out_at(), o) && single(node.in_at(), size_t(i))) return true;
    }
  }
  return false;
}

bool HasInplace(const KernelDef& k) {
  return std::any_of(k.inplace.begin(), k.inplace.end(), [](const auto& inputs) { return !inputs.empty(); });
}

Outcome WritesInPlace(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  if (!Comparable(k)) return None("its results may differ");
  if (!HasPair(k, node)) return None("the arguments of the pair are lists, which the host leaves alone");
  const CallResult apart = CallKernel(world, &node, &k, device, c);
  if (!apart.status.ok()) return Skip(Message(apart.status));
  CallSetting how;
  how.inplace = true;
  const CallResult r = CallKernel(world, &node, &k, device, c, how);
  if (r.shared == 0) return Skip("no output of this case has as many bytes as the input that it may overwrite");
  if (!r.status.ok()) return Fail("with an output in the memory of an input: ", Message(r.status));
  if (!r.breach.empty()) return Fail("with an output in the memory of an input, it wrote to ", r.breach);
  std::string d = DiffersIn(k, r.outputs, apart.outputs);
  return d.empty() ? Outcome() : Fail("with an output in the memory of an input, as `inplace` says, ", d);
}

}  // namespace

void CheckKernelMemory(Run& run, World& world) {
  if (!world.play().name.empty()) return;
  const bool full = run.options().full;
  const KernelSet kernels = KernelsOf(world, full);
  if (kernels.empty()) return;
  const KernelSet inplace = kernels.Where(HasInplace);
  CaseBook book(&world, nullptr, run.options().case_file.get(), full ? Effort::kUsual : Effort::kBrief);
  auto check = [&](int rule, const KernelSet& some, const KernelCheck& body) {
    if (!some.empty()) run.Check(rule, CountText(some.all), [&] { return ForKernels(&world, &book, some, full ? 4 : 1, body); });
  };
  check(214, inplace, WritesInPlace);
}

}  // namespace thalweg::conformance
