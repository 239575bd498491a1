// Level 3: kernels that end later, whose host fails, or whose step is cancelled.
#include <algorithm>

#include "tools/conformance/levels.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

Outcome CompletesOnce(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  CallResult r = CallKernel(world, &node, &k, device, c);
  if (!r.completion.empty()) return Fail(r.completion);
  return r.status.ok() ? Outcome() : Skip(Message(r.status));
}

// Makes each host call fail once. A kernel that succeeds without the call must still be right.
Outcome SurvivesRefusals(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  Ledger& ledger = TheLedger();
  ledger.FailAt(0);
  const CallResult well = CallKernel(world, &node, &k, device, c);
  if (!well.status.ok()) return Skip(Message(well.status));
  constexpr int64_t kMost = 12;
  const int64_t calls = std::min<int64_t>(ledger.calls, kMost), tensors = ledger.tensors;
  for (int64_t n = 1; n <= calls; ++n) {
    ledger.FailAt(n);
    const CallResult r = CallKernel(world, &node, &k, device, c);
    const bool failed = ledger.failed > 0;
    ledger.FailAt(0);
    if (failed && r.status.ok()) {
      if (std::string d = DiffersIn(k, r.outputs, well.outputs); !d.empty()) {
        return Fail("host call ", n, " failed, the kernel answered NULL, and ", d);
      }
    }
    if (ledger.tensors != tensors) return Fail("host call ", n, " failed, and ", ledger.tensors - tensors, " tensors were not released");
  }
  const CallResult again = CallKernel(world, &node, &k, device, c);
  if (!again.status.ok()) return Fail("afterwards: ", Message(again.status));
  if (std::string d = DiffersIn(k, again.outputs, well.outputs); !d.empty()) return Fail("afterwards ", d);
  return {};
}

Outcome EndsWhenCancelled(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  auto prepared = PreparedKernel::Make(world, &node, &k, device, c.inputs, c.held);
  if (!prepared.ok()) return Skip(Message(prepared.status()));
  CancelToken cancelled;
  cancelled.Cancel();
  CallSetting how;
  how.cancel = &cancelled;
  const CallResult r = (*prepared)->Execute(c.inputs, how);
  if (!r.completion.empty()) return Skip(r.completion);  // another rule checks this
  if (r.status.ok() || r.status.code() == absl::StatusCode::kCancelled) return {};
  return (*prepared)->Execute(c.inputs).status.ok() ? Fail("in a cancelled step: ", Message(r.status)) : Skip(Message(r.status));
}

// Work that is still enqueued when execute returns must not read inputs in host memory, because the host
// reuses their memory.
Outcome ReadsHostInputsAtOnce(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  if (!device->has_streams()) return None("its device has no streams");
  if (!Comparable(k)) return None("its results may differ");
  const CallResult usual = CallKernel(world, &node, &k, device, c);
  if (!usual.status.ok()) return Skip(Message(usual.status));
  CallSetting how;
  how.forget_host = true;
  const CallResult r = CallKernel(world, &node, &k, device, c, how);
  if (!r.status.ok()) return Fail("with its host inputs gone after execute: ", Message(r.status));
  const std::string d = DiffersIn(k, r.outputs, usual.outputs);
  return d.empty() ? Outcome() : Fail("with its host inputs gone after execute, ", d);
}

bool HasHostInput(const KernelDef& k) {
  return std::any_of(k.host_in.begin(), k.host_in.end(), [](uint8_t host) { return host != 0; });
}

// A kernel that waits for threads of its own process does not count as asleep while these run. The check
// passes if one of several calls does not sleep, because a call may have to set something up.
Outcome DoesNotSleep(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  constexpr int64_t kMost = 2000000;  // ns; useful sleeps are longer
  CallSetting how;
  how.watch = true;
  int64_t least = 0;
  for (int call = 0; call < 4; ++call) {
    const CallResult r = CallKernel(world, &node, &k, device, c, how);
    if (!r.status.ok()) return Skip(Message(r.status));
    if (!r.slept) return Skip("the system does not tell how long a thread sleeps: /proc/thread-self/schedstat is not there");
    if (r.slept->asleep <= kMost || r.slept->others > r.slept->asleep / 4) return {};
    least = call == 0 ? r.slept->asleep : std::min(least, r.slept->asleep);
  }
  return Fail("in each call execute slept, ", double(least / 10000) / 100, " ms or more, while nothing else of the process ran");
}

}  // namespace

void CheckKernelEnds(Run& run, World& world) {
  const KernelSet kernels = KernelsOf(world, run.options().full);
  if (kernels.empty()) return;
  const KernelSet async = kernels.Where([](const KernelDef& k) { return k.spec.async; });
  CaseBook book(&world, nullptr, run.options().case_file.get(), run.options().full ? Effort::kUsual : Effort::kBrief);
  auto check = [&](int rule, const KernelSet& some, const KernelCheck& body) {
    run.Check(rule, CountText(some.all), [&] { return ForKernels(&world, &book, some, run.options().full ? 4 : 1, body); });
  };
  if (!async.empty()) check(308, async, CompletesOnce);
  if (!world.play().name.empty()) return;
  check(309, kernels, SurvivesRefusals);
  check(310, kernels, EndsWhenCancelled);
  const KernelSet host = kernels.Where(HasHostInput);
  const KernelSet quick = kernels.Where([](const KernelDef& k) { return !k.spec.may_block; });
  if (!host.empty()) check(318, host, ReadsHostInputsAtOnce);
  if (!quick.empty()) check(319, quick, DoesNotSleep);
}

}  // namespace thalweg::conformance
