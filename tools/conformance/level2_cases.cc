// Level 2: the cases that the plugin's author supplies. Checks that its kernels accept the cases and
// compute the results given there.
#include "tools/conformance/case_file.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// Compares the values from number `first` on with those of the author. Describes the first difference;
// empty if there is none.
std::string DiffersFrom(const AuthorCase& a, const std::vector<std::optional<Tensor>>& wanted, const std::vector<Tensor>& got, size_t first,
                        const std::string& what) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    if (first + i >= got.size()) return StrCat("there is no ", what, " ", i);
    if (std::string d = Differs(got[first + i], *wanted[i], a.tolerance); !d.empty()) return StrCat(what, " ", i, ": ", d);
  }
  return "";
}

Outcome GivesWhatItSays(World* world, const KernelDef& k, const Node& node, const AuthorCase& a) {
  Device* device = world->DeviceOf(k.spec.kind);
  if (!device) return Skip("there is no device ", k.spec.kind, " on this machine");
  At(StrCat(a.where, ", on ", device->name()));
  const CallResult r = CallKernel(world, &node, &k, device, a.c);
  if (!r.status.ok()) return Fail(a.where, " by '", k.spec.text, "': ", Message(r.status));
  std::string differs = DiffersFrom(a, a.wanted, r.outputs, 0, "output");
  if (differs.empty()) differs = DiffersFrom(a, a.left, r.outputs, size_t(node.n_out()), "variable");
  return differs.empty() ? Outcome() : Fail(a.where, " by '", k.spec.text, "': ", differs);
}

Outcome TakesCases(World* world, const CaseFile& file, const std::string& name) {
  const OpSchema* op = world->registry().FindOp(name);
  if (!op) return Fail("there is no op '", name, "', and ", file.name(), " has cases of it");
  std::vector<const KernelDef*> kernels = CallableKernels(*world);
  std::erase_if(kernels, [&](const KernelDef* k) { return k->op != op; });
  ASSIGN_OR_RETURN(const std::vector<AuthorCase> cases, file.Of(*op, world->registry()));
  Tally tally("case");
  for (const AuthorCase& a : cases) {
    auto placed = PlaceCase(world, a.c);
    if (!placed.ok()) return Fail(a.where, " is refused: ", Message(placed.status()));
    Outcome called = Skip(kernels.empty() ? "the plugin has no kernel for the op" : "no kernel of the plugin is for these types");
    for (const KernelDef* k : kernels) {
      if (!Fits(*k, *placed->node)) continue;
      Outcome o = GivesWhatItSays(world, *k, *placed->node, a);
      if (o.kind == Outcome::kFail) return o;
      if (!called.passed()) called = o;
    }
    if (!kernels.empty()) tally.Add(a.where, called);
  }
  return tally.End();
}

}  // namespace

void CheckCases(Run& run, World& world) {
  const CaseFile* file = run.options().case_file.get();
  if (!file || !world.play().name.empty()) return;
  for (const std::string& op : file->Ops()) {
    run.Check(213, op, [&] { return TakesCases(&world, *file, op); });
  }
}

}  // namespace thalweg::conformance
