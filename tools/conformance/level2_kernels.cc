// Level 2: compares kernels with the CPU's kernel of the op, if there is one, and checks their side
// effects.
#include <algorithm>
#include <set>
#include <thread>

#include "framework/base/dtype.h"
#include "framework/runtime/choose_kernel.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// ---- reference results ----

// Runs the plugin's own CPU kernel. Returns an empty list if it has none for these types, or if the
// kernel fails.
std::vector<Tensor> AskOwnKernel(World* world, const KernelDef& k, const Node& node, const Case& c) {
  Device* cpu = world->DeviceOf("CPU");
  for (const KernelDef* own : world->Kernels()) {
    if (own->op == k.op && own->spec.kind == "CPU" && !own->spec.any_op && cpu && Fits(*own, node)) {
      return CallKernel(world, &node, own, cpu, c).outputs;
    }
  }
  return {};
}

// ---- rules ----

// Compares one kernel with the CPU's.
Outcome AgreesOne(World* world, CaseBook* book, const KernelDef& k, bool own) {
  Device* device = world->DeviceOf(k.spec.kind);
  if (!device) return Skip("there is no device ", k.spec.kind, " on this machine");
  size_t compared = 0;
  std::string why = book->WhyNone(k, !own);
  for (const Case& c : book->For(k, !own)) {
    ASSIGN_OR_RETURN(Placed p, PlaceCase(world, c));
    if (!Fits(k, *p.node)) continue;
    At(c.text());
    const std::vector<Tensor> want = own ? AskOwnKernel(world, k, *p.node, c) : c.results;
    if (own && want.empty() && p.node->n_out() > 0) {
      why = StrCat("the plugin's kernel for the CPU got nothing for ", c.text());
      continue;
    }
    CallResult r = CallKernel(world, p.node, &k, device, c);
    if (!r.status.ok()) return Fail(c.text(), " by '", k.spec.text, "': ", Message(r.status));
    if (std::string d = DiffersIn(k, r.outputs, want); !d.empty()) return Fail(c.text(), " by '", k.spec.text, "': ", d);
    ++compared;
  }
  return compared ? Outcome() : Skip(why);
}

// Returns true if the plugin has its own CPU kernel that computes the same as k, for some types.
bool HasOwnOnCpu(const World& world, const KernelDef& k) {
  for (const KernelDef* own : world.Kernels()) {
    if (own->op == k.op && own->spec.kind == "CPU" && !own->spec.any_op) return true;
  }
  return false;
}

Outcome Agrees(World* world, CaseBook* book, const KernelSet& kernels, const std::string& title) {
  const KernelSet titled = kernels.Where([&](const KernelDef& k) { return KernelTitle(k) == title; });
  const KernelDef& first = *titled.tried[0];
  const bool own = first.op->plugin == world->id();
  if (own && first.spec.kind == "CPU") return None("the op is the plugin's own, and so is what computes it on the CPU");
  if (own && !HasOwnOnCpu(*world, first)) return None("the op is the plugin's own, which has no kernel for the CPU to compare with");
  Tally tally("kernel");
  for (const KernelDef* k : titled.tried) {
    const Outcome o = AgreesOne(world, book, *k, own);
    if (o.kind == Outcome::kFail) return o;
    tally.Add(KernelName(*k), o);
  }
  MissUntried(titled, &tally);
  return tally.End();
}

Outcome Repeats(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  if (!Comparable(k)) return None("its results may differ");
  CallResult one = CallKernel(world, &node, &k, device, c), two = CallKernel(world, &node, &k, device, c);
  if (!one.status.ok()) return Skip(Message(one.status));  // another rule checks this
  RETURN_IF_ERROR(two.status);
  for (size_t o = 0; o < one.outputs.size(); ++o) {
    if (!SameBits(one.outputs[o], two.outputs[o])) return Fail("output ", o, " differs in two calls; say `nondeterministic` in the spec");
  }
  return {};
}

Outcome StaysInBounds(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  CallResult r = CallKernel(world, &node, &k, device, c);
  if (!r.breach.empty()) return Fail("it wrote to ", r.breach);
  return r.status.ok() ? Outcome() : Skip(Message(r.status));
}

Outcome RunsAtOnce(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  auto prepared = PreparedKernel::Make(world, &node, &k, device, c.inputs, c.held);
  if (!prepared.ok()) return Skip(Message(prepared.status()));
  // Kernels that only read share the resources; a kernel that removes its resource can run only
  // once on it, and gets its own.
  ASSIGN_OR_RETURN(auto shared, State::Make(world, device, c.held));
  bool own = (*prepared)->updates();
  auto execute = [&] { return own ? (*prepared)->Execute(c.inputs) : (*prepared)->ExecuteOn(*shared, c.inputs); };
  const CallResult alone = execute();
  own = own || (alone.status.ok() && !execute().status.ok());
  if (!alone.status.ok()) return Skip(Message(alone.status));
  constexpr size_t kThreads = 3, kRounds = 4;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kRounds && wrong[t].empty(); ++i) {
        const CallResult r = execute();
        wrong[t] = r.status.ok() ? DiffersIn(k, r.outputs, alone.outputs) : std::string(Message(r.status));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) {
    if (!w.empty()) return Fail("executed by ", kThreads, " threads at once: ", w);
  }
  return {};
}

Outcome FitsAlike(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  (void)world;
  std::vector<tw_shape> known, unknown;
  for (const Tensor& t : c.inputs) {
    known.push_back({t.view().dims, t.rank(), 0});
    unknown.push_back({nullptr, -1, 0});
  }
  const Status first = KernelFits(k, *device, {node, known, {}});
  if (!first.ok() && first.code() != absl::StatusCode::kUnimplemented) return Skip(Message(first));
  for (int round = 0; round < 3; ++round) {
    const Status again = KernelFits(k, *device, {node, known, {}});
    if (again.code() != first.code())
      return Fail("it first says '", first.ok() ? "it fits" : Message(first), "', and then '", again.ok() ? "it fits" : Message(again),
                  "'");
  }
  const Status blind = KernelFits(k, *device, {node, unknown, {}});
  if (first.ok() && !blind.ok()) return Fail("it fits, but not if the shapes are not known yet: ", Message(blind));
  return {};
}

Outcome LetsTensorsGo(World* world, const KernelDef& k, const Node& node, const Case& c, Device* device) {
  const int64_t before = TheLedger().tensors;
  CallResult r = CallKernel(world, &node, &k, device, c);
  r.outputs.clear();  // objects of the plugin behind variants may hold tensors as long as they live
  const int64_t left = TheLedger().tensors - before;
  if (left > 0) return Fail(left, " tensors of make, reshape, retain or keep were not released");
  if (left < 0) return Fail(-left, " tensors were released that were not made or kept");
  return r.status.ok() ? Outcome() : Skip(Message(r.status));
}

// One prepared kernel with its case.
struct Ready {
  const KernelDef* kernel;
  const Case* c;
  Placed placed;
  std::unique_ptr<PreparedKernel> prepared;
  std::vector<Tensor> first;  // outputs of the first successful call
  bool well = false;          // a call succeeded
  Status called;              // status of the latest call before the first success
};

// Calls several prepared kernels in turn, in another order each round. The records of a call do not
// outlive it.
Outcome CallsInTurns(std::vector<Ready>* ready) {
  const size_t n = ready->size();
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < n; ++i) {
      Ready& r = (*ready)[(round == 1 ? n - 1 - i : i * (round ? 5 : 1)) % n];
      At(StrCat(r.c->text(), " by '", r.kernel->spec.text, "'"));
      CallResult got = r.prepared->Execute(r.c->inputs);
      const std::string who = StrCat(r.c->text(), " by '", r.kernel->spec.text, "': ");
      if (!got.status.ok()) {
        if (!r.well) {  // another rule checks this
          r.called = got.status;
          continue;
        }
        return Fail(who, Message(got.status));
      }
      if (!r.well) r.first = got.outputs;
      r.well = true;
      r.called = Status();
      if (std::string d = DiffersIn(*r.kernel, got.outputs, r.first); !d.empty()) return Fail(who, "in a later call, ", d);
    }
  }
  return {};
}

Outcome KeepsNothing(World* world, CaseBook* book, const KernelSet& kernels) {
  constexpr size_t kAtOnce = 12;
  std::vector<Ready> ready;
  Tally tally("kernel");
  auto turn = [&]() -> Outcome {
    Outcome o = ready.empty() ? Outcome() : CallsInTurns(&ready);
    for (const Ready& r : ready) tally.Add(KernelName(*r.kernel), r.called.ok() ? Outcome() : Skip(r.c->text(), ": ", Message(r.called)));
    ready.clear();
    return o;
  };
  for (const KernelDef* k : kernels.tried) {
    Device* device = world->DeviceOf(k->spec.kind);
    if (!device) {
      tally.Missed(KernelName(*k), StrCat("there is no device ", k->spec.kind, " on this machine"));
      continue;
    }
    Ready r{k, nullptr, {}, nullptr, {}, false, {}};
    for (const Case& c : book->For(*k, false)) {
      ASSIGN_OR_RETURN(r.placed, PlaceCase(world, c));
      if (!Fits(*k, *r.placed.node)) continue;
      r.c = &c;
      break;
    }
    if (!r.c) {
      tally.Missed(KernelName(*k), book->WhyNone(*k, false));
      continue;
    }
    At(r.c->text());
    auto prepared = PreparedKernel::Make(world, r.placed.node, k, device, r.c->inputs, r.c->held);
    if (!prepared.ok()) {
      tally.Missed(KernelName(*k), std::string(Message(prepared.status())));
      continue;
    }
    r.prepared = *std::move(prepared);
    ready.push_back(std::move(r));
    if (ready.size() == kAtOnce) RETURN_UNLESS_PASSED(turn());
  }
  RETURN_UNLESS_PASSED(turn());
  MissUntried(kernels, &tally);
  return tally.End();
}

// Checks the plugin's own ops only: ops of others may get more types later.
Outcome AreOfTheOpsTypes(const std::vector<const KernelDef*>& own) {
  for (const KernelDef* k : own) {
    const auto check = [&](const std::vector<ArgSpec>& args, const std::vector<uint32_t>& types) -> Outcome {
      for (size_t a = 0; a < args.size() && a < types.size(); ++a) {
        const int attr = k->op->FindAttr(args[a].type_attr);
        if (types[a] == 0 || attr < 0) continue;
        const std::vector<uint32_t>& allowed = k->op->attrs[size_t(attr)].types;
        if (allowed.empty() || std::find(allowed.begin(), allowed.end(), types[a]) != allowed.end()) continue;
        return Fail("'", k->spec.text, "' is for a '", args[a].name, "' of ", DTypeName(types[a]),
                    ", which its op does not allow: no node gets it");
      }
      return {};
    };
    RETURN_UNLESS_PASSED(check(k->op->inputs, k->spec.in_types));
    RETURN_UNLESS_PASSED(check(k->op->outputs, k->spec.out_types));
  }
  return {};
}

}  // namespace

void CheckKernels(Run& run, World& world) {
  const KernelSet kernels = KernelsOf(world, run.options().full);
  // An older host differs only for a plugin that knows later names.
  if (kernels.empty() || (world.play().older && !run.options().full && !UsesLaterMinors())) return;
  auto oracle = World::Oracle();
  if (!oracle.ok()) return run.Check(201, "", [&] { return Outcome(oracle.status()); });
  CaseBook book(&world, oracle->get(), run.options().case_file.get(), EffortOf(run, world));
  auto check = [&](int rule, const KernelCheck& body) {
    run.Check(rule, CountText(kernels.all), [&] { return ForKernels(&world, &book, kernels, run.options().full ? 20 : 1, body); });
  };
  if (world.play().hasty) run.Check(205, CountText(kernels.all), [&] { return KeepsNothing(&world, &book, kernels); });
  std::set<std::string> seen;
  for (const KernelDef* k : kernels.tried) {
    const std::string title = KernelTitle(*k);
    if (seen.insert(title).second) run.Check(201, title, [&] { return Agrees(&world, &book, kernels, title); });
  }
  if (!world.play().name.empty()) return;
  std::vector<const KernelDef*> own = CallableKernels(world);
  std::erase_if(own, [&](const KernelDef* k) { return k->op->plugin != world.id(); });
  if (!own.empty()) run.Check(212, CountText(own), [&] { return AreOfTheOpsTypes(own); });
  check(202, Repeats);
  check(206, StaysInBounds);
  check(207, RunsAtOnce);
  check(208, LetsTensorsGo);
  const KernelSet asked = kernels.Where([](const KernelDef& k) { return k.def.fits != nullptr; });
  if (asked.empty()) return;
  run.Check(218, CountText(asked.all), [&] { return ForKernels(&world, &book, asked, run.options().full ? 20 : 1, FitsAlike); });
}

}  // namespace thalweg::conformance
