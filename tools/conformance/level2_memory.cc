// Level 2: how kernels use their memory and the process in which they run. The rules on memory call a
// kernel in two ways that must have the same result.
#include <algorithm>

#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/process_settings.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// Returns true if the host may let an output of this node overwrite an input. The host never does this
// for arguments that are lists of several values.
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

// Returns true if a second call gives the same bits, as rule 202 requires. If it does not, a comparison
// with further calls shows nothing.
bool Repeats(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device, const CallResult& first) {
  const CallResult again = CallKernel(world, &node, &k, device, c);
  for (size_t o = 0; o < first.outputs.size(); ++o) {
    if (o >= again.outputs.size() || !SameBits(again.outputs[o], first.outputs[o])) return false;
  }
  return true;
}

// The bytes around inputs must not affect the result. In host memory, an unreadable page begins behind
// each input.
Outcome ReadsInputsOnly(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  if (c.inputs.empty()) return None("it has no inputs");
  const CallResult usual = CallKernel(world, &node, &k, device, c);
  if (!usual.status.ok()) return Skip(Message(usual.status));
  const bool comparable = Comparable(k);
  if (comparable && !Repeats(world, k, node, c, device, usual)) return Skip("its results differ from call to call, see rule 202");
  for (const unsigned char around : {0x7F, 0xFE}) {
    CallSetting how;
    how.inputs.zones = around;
    how.inputs.at_edge = true;
    At(StrCat(c.text(), " on ", device->name(), ", with a page behind each input that cannot be read"));
    const CallResult r = CallKernel(world, &node, &k, device, c, how);
    if (!r.status.ok()) return Fail("with other bytes around its inputs: ", Message(r.status));
    for (size_t o = 0; comparable && o < r.outputs.size(); ++o) {
      if (SameBits(r.outputs[o], usual.outputs[o])) continue;
      return Fail("output ", o, " follows from bytes that lie around the inputs");
    }
  }
  return {};
}

// Makes two calls whose outputs and scratch begin with opposite bits.
Outcome WritesAll(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  const CallResult one = CallKernel(world, &node, &k, device, c);
  if (!one.status.ok()) return Skip(Message(one.status));
  const bool comparable = Comparable(k);
  if (comparable && !Repeats(world, k, node, c, device, one)) return Skip("its results differ from call to call, see rule 202");
  CallSetting how;
  how.outputs.inverted = true;
  const CallResult two = CallKernel(world, &node, &k, device, c, how);
  if (!two.status.ok()) return Fail("with other bytes in its outputs and scratch: ", Message(two.status));
  for (size_t o = 0; o < std::min(one.untouched.size(), two.untouched.size()); ++o) {
    const size_t n = std::min(one.untouched[o].size(), two.untouched[o].size());
    for (size_t i = 0; i < n; ++i) {
      if (one.untouched[o][i] && two.untouched[o][i]) return Fail("element ", i, " of ", n, " of output ", o, " is not written");
    }
  }
  for (size_t o = 0; comparable && o < two.outputs.size(); ++o) {
    if (!SameBits(one.outputs[o], two.outputs[o])) return Fail("output ", o, " follows from what its outputs or its scratch held before");
  }
  return {};
}

Outcome LeavesTheProcess(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  const ProcessSettings before;
  TheLedger().quiet = true;
  Overheard overheard;
  const CallResult r = CallKernel(world, &node, &k, device, c);
  const std::string said = overheard.Stop(), changed = before.ChangedSince();
  TheLedger().quiet = false;
  before.Restore();
  if (!changed.empty()) return Fail("after the call ", changed);
  if (!said.empty() && k.op->touches == 0) {  // ops that touch the outside world may write there on purpose
    return Fail("it writes to standard output or standard error, '", said, "'; host->run->log is for that");
  }
  return r.status.ok() ? Outcome() : Skip(Message(r.status));
}

}  // namespace

void CheckFirstCalls(Run& run, World& world) {
  if (!world.play().name.empty()) return;
  const bool full = run.options().full;
  const KernelSet kernels = KernelsOf(world, full);
  if (kernels.empty()) return;
  CaseBook book(&world, nullptr, run.options().case_file.get(), full ? Effort::kUsual : Effort::kBrief);
  run.Check(217, CountText(kernels.all), [&] { return ForKernels(&world, &book, kernels, 1, LeavesTheProcess); });
}

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
  check(215, kernels, ReadsInputsOnly);
  check(216, kernels, WritesAll);
}

}  // namespace thalweg::conformance
