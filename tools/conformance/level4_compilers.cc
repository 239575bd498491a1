// Level 4: the claims of graph compilers, and the code that they compile.
#include <algorithm>
#include <cstring>

#include "framework/base/dtype.h"
#include "tools/conformance/kernel_call.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/parts.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// ---- claims ----

struct Claim {
  std::vector<uint32_t> nodes;
  int32_t priority = 0;
};

// The reply of claim for one part.
struct Claims {
  tw_claims c{TW_SIZED(tw_claims), &Take, &Refuse};
  const tw_host* host = nullptr;
  uint32_t n_nodes = 0;
  std::vector<Claim> taken;
  std::string wrong_claim, wrong_refusal;

  static tw_status* Take(tw_claims* to, const uint32_t* nodes, uint32_t n, int32_t priority) {
    auto* self = reinterpret_cast<Claims*>(to);
    Claim claim{std::vector<uint32_t>(nodes, nodes + n), priority};
    std::sort(claim.nodes.begin(), claim.nodes.end());
    if (n == 0) {
      self->wrong_claim = "it took a set without nodes";
    } else if (claim.nodes.back() >= self->n_nodes) {
      self->wrong_claim = StrCat("it took node ", claim.nodes.back(), " of ", self->n_nodes);
    } else if (std::adjacent_find(claim.nodes.begin(), claim.nodes.end()) != claim.nodes.end()) {
      self->wrong_claim = "it took a node twice in one set";
    } else {
      self->taken.push_back(std::move(claim));
      return nullptr;
    }
    return tw_fail(self->host, TW_INVALID_ARGUMENT, TW_S("not such a set"));
  }
  static tw_status* Refuse(tw_claims* to, uint32_t node, const char* why, uint64_t len) {
    auto* self = reinterpret_cast<Claims*>(to);
    if (node >= self->n_nodes) self->wrong_refusal = StrCat("it refused node ", node, " of ", self->n_nodes);
    if (TextOf(why, len).empty()) self->wrong_refusal = StrCat("it refused node ", node, " without a reason");
    return nullptr;
  }
};

// A compiler of the plugin, a device that it works for, and samples.
struct Subject {
  World* world;
  const CompilerRole* compiler;
  Device* device;
  std::vector<Sample>* samples;
  const tw_compiler_def& def() const { return compiler->def; }
  const tw_host* host() const { return compiler->host; }
};

std::vector<uint32_t> AllNodes(const Sample& s) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < s.nodes.size(); ++i) all.push_back(i);
  return all;
}

Status Ask(const Subject& s, const Sample& sample, bool known, Claims* to) {
  Guarded memory(s.world->play().hasty);
  const PartOf all = Cut(sample, AllNodes(sample));
  to->host = s.host();
  to->n_nodes = uint32_t(sample.nodes.size());
  return FromC(s.def().claim(s.host(), s.def().user, s.device->self(), PartRecord(all, sample, known, &memory), &to->c));
}

// Returns the sets that the host would choose: legal, without overlap, the higher priority first.
std::vector<Claim> Chosen(const Sample& sample, std::vector<Claim> taken) {
  std::stable_sort(taken.begin(), taken.end(), [](const Claim& a, const Claim& b) { return a.priority > b.priority; });
  std::vector<bool> used(sample.nodes.size());
  std::vector<Claim> out;
  for (Claim& c : taken) {
    const bool overlaps = std::any_of(c.nodes.begin(), c.nodes.end(), [&](uint32_t n) { return used[n]; });
    if (overlaps || !IsConvex(sample, c.nodes)) continue;
    for (uint32_t n : c.nodes) used[n] = true;
    out.push_back(std::move(c));
  }
  return out;
}

Outcome ClaimsWell(const Subject& s, std::string Claims::* wrong) {
  for (const Sample& sample : *s.samples) {
    for (bool known : {true, false}) {
      At(StrCat("claiming of ", sample.name, known ? "" : " of unknown shapes"));
      Claims claims;
      Status status = Ask(s, sample, known, &claims);
      if (!(claims.*wrong).empty()) return Fail(sample.name, ": ", claims.*wrong);
      if (!status.ok() && claims.wrong_claim.empty()) return Fail(sample.name, ": ", Message(status));
    }
  }
  return {};
}

// ---- compiled parts ----

// Adds a node of an op with inputs and outputs of the part's types, from which a frame can be made.
StatusOr<const Node*> FrameNode(World* world, Graph* graph, const PartOf& part) {
  std::string name = "ConformancePart", in, out;
  for (size_t i = 0; i < part.in.size(); ++i) {
    const auto type = DTypeName(part.in_values[i].dtype());
    in += StrCat(i ? ", " : "", "i", i, ": ", type);
    name += StrCat("_", type);
  }
  name += "_to";
  for (size_t i = 0; i < part.out.size(); ++i) {
    const auto type = DTypeName(part.out_values[i].dtype());
    out += StrCat(i ? ", " : "", "o", i, ": ", type);
    name += StrCat("_", type);
  }
  if (!world->registry().FindOp(name)) {
    ASSIGN_OR_RETURN(OpSchema schema, ParseOpSchema(StrCat(name, "(", in, ") -> (", out, ")")));
    Registration r;
    r.ops.push_back(std::make_unique<OpSchema>(std::move(schema)));
    r.ops.back()->plugin = "org.thalweg.conformance";
    RETURN_IF_ERROR(world->registry().Commit(std::move(r)));
  }
  Case c;
  c.op = name;
  c.inputs = part.in_values;
  return AddCase(graph, c);
}

// The state of one part, made by compile or load.
class Compiled {
 public:
  Compiled(const Subject& s, const Sample& sample, const PartOf& part) : s_(s), sample_(sample), part_(part) {}
  ~Compiled() {
    if (made_) s_.def().destroy(s_.host(), state_);
  }
  Status Compile() {
    return Make([&](const tw_compile_call* c) { return s_.def().compile(c, &state_); });
  }
  Status Load(std::string_view artefact) {
    Source source(artefact);
    return Make([&](const tw_compile_call* c) { return s_.def().load(c, &source.c, &state_); });
  }
  StatusOr<std::string> Serialize() const {
    std::string text;
    tw_sink sink = {TW_SIZED(tw_sink), &text, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                      static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                      return nullptr;
                    }};
    RETURN_IF_ERROR(FromC(s_.def().serialize(s_.host(), state_, &sink)));
    return text;
  }
  // Runs the part and compares its outputs with the sample's.
  Outcome Check() {
    Graph graph(s_.world->runtime_ptr());
    ASSIGN_OR_RETURN(const Node* node, FrameNode(s_.world, &graph, part_));
    KernelDef kernel;
    kernel.op = &node->op();
    kernel.spec.op = node->op().name;
    kernel.host_in = kernel.keep = kernel.read = kernel.update = kernel.replace = std::vector<uint8_t>(part_.in.size(), 0);
    kernel.host_out.assign(part_.out.size(), 0);
    kernel.view.assign(part_.out.size(), -1);
    kernel.def.execute = s_.def().execute;
    kernel.host = s_.host();
    std::vector<Shape> shapes;
    for (const Tensor& t : part_.out_values) shapes.push_back(t.shape());
    auto prepared = PreparedKernel::Around(s_.world, node, &kernel, s_.device, state_, shapes, scratch_);
    for (int round = 0; round < 2; ++round) {
      CallResult r = prepared->Execute(part_.in_values);
      RETURN_IF_ERROR(r.status);
      if (!r.breach.empty()) return Fail("it wrote to ", r.breach);
      if (std::string d = DiffersIn(r.outputs, part_.out_values); !d.empty()) return Fail(d);
    }
    return {};
  }

 private:
  struct Source {
    explicit Source(std::string_view text) : left(text) {}
    tw_source c{TW_SIZED(tw_source), this, &Get};
    std::string_view left;
    static tw_status* Get(tw_source* from, void* p, uint64_t n, uint64_t* out_n) {
      auto* self = static_cast<Source*>(from->user);
      *out_n = std::min<uint64_t>(std::min<uint64_t>(n, self->left.size()), 5);  // in small pieces, as a file may provide them
      std::memcpy(p, self->left.data(), *out_n);
      self->left.remove_prefix(*out_n);
      return nullptr;
    }
  };
  template <class F>
  Status Make(F&& make) {
    Guarded memory(s_.world->play().hasty);
    tw_compile_call* call = memory.New(tw_compile_call{});
    call->size = RecordSize<std::remove_reference_t<decltype(*call)>>();
    call->host = s_.host();
    call->user = s_.def().user;
    call->device = s_.device->self();
    call->part = PartRecord(part_, sample_, true, &memory);
    RETURN_IF_ERROR(FromC(make(call)));
    made_ = true;
    return s_.def().prepare ? FromC(s_.def().prepare(call, state_, &scratch_)) : Status();
  }
  const Subject& s_;
  const Sample& sample_;
  const PartOf& part_;
  void* state_ = nullptr;
  bool made_ = false;
  uint64_t scratch_ = 0;
};

// Runs the check with every part of the samples that the compiler claims.
template <class F>
Outcome ForParts(const Subject& s, F&& check) {
  size_t parts = 0;
  for (const Sample& sample : *s.samples) {
    Claims claims;
    RETURN_IF_ERROR(Ask(s, sample, true, &claims));
    for (const Claim& claim : Chosen(sample, claims.taken)) {
      At(StrCat("a part of ", claim.nodes.size(), " nodes of ", sample.name));
      const PartOf part = Cut(sample, claim.nodes);
      Outcome o = check(sample, part);
      if (!o.passed()) return {o.kind, StrCat("a part of ", claim.nodes.size(), " nodes of ", sample.name, ": ", o.why)};
      ++parts;
    }
  }
  return parts ? Outcome() : Skip("it takes nothing of the samples; supply a graph that it takes with --cases, under \"graphs\"");
}

Outcome ComputesTheSame(const Subject& s) {
  return ForParts(s, [&](const Sample& sample, const PartOf& part) -> Outcome {
    Compiled compiled(s, sample, part);
    RETURN_IF_ERROR(compiled.Compile());
    return compiled.Check();
  });
}

Outcome LoadsWhatItWrote(const Subject& s) {
  return ForParts(s, [&](const Sample& sample, const PartOf& part) -> Outcome {
    Compiled compiled(s, sample, part), loaded(s, sample, part);
    RETURN_IF_ERROR(compiled.Compile());
    ASSIGN_OR_RETURN(std::string artefact, compiled.Serialize());
    RETURN_IF_ERROR(loaded.Load(artefact));
    return loaded.Check();
  });
}

Outcome KnowsItsTags(const Subject& s) {
  for (std::string_view tag : {std::string_view(""), std::string_view("a compiler of another maker, version 0")}) {
    if (s.def().usable(s.host(), s.def().user, s.device->self(), tag.data(), tag.size()))
      return Fail("it takes one with the tag '", tag, "'");
  }
  return {};
}

Outcome RefusesCutOnes(const Subject& s) {
  return ForParts(s, [&](const Sample& sample, const PartOf& part) -> Outcome {
    Compiled compiled(s, sample, part);
    RETURN_IF_ERROR(compiled.Compile());
    ASSIGN_OR_RETURN(std::string artefact, compiled.Serialize());
    for (size_t n = 0; n < artefact.size(); n += 1 + artefact.size() / 64) {
      At(StrCat("loading ", n, " of ", artefact.size(), " bytes"));
      Compiled cut(s, sample, part);
      if (cut.Load(std::string_view(artefact).substr(0, n)).ok()) return Fail("it loads ", n, " of ", artefact.size(), " bytes");
    }
    return {};
  });
}

Outcome SurvivesRefusals(const Subject& s) {
  return ForParts(s, [&](const Sample& sample, const PartOf& part) -> Outcome {
    Ledger& ledger = TheLedger();
    auto whole = [&]() -> Outcome {
      Compiled compiled(s, sample, part);
      RETURN_IF_ERROR(compiled.Compile());
      return compiled.Check();
    };
    ledger.FailAt(0);
    RETURN_UNLESS_PASSED(whole());
    const int64_t calls = std::min<int64_t>(ledger.calls, 20);
    for (int64_t n = 1; n <= calls; ++n) {
      ledger.FailAt(n);
      (void)whole();
      ledger.FailAt(0);
      if (Outcome o = whole(); !o.passed()) return Fail("after host call ", n, " had failed: ", o.why);
    }
    return {};
  });
}

void CheckCompiler(Run& run, const Subject& s) {
  const std::string& name = s.compiler->name;
  if (s.world->play().hasty) {
    run.Check(407, name, [&] { return ComputesTheSame(s); });
    return;
  }
  run.Check(401, name, [&] { return ClaimsWell(s, &Claims::wrong_claim); });
  run.Check(402, name, [&] { return ClaimsWell(s, &Claims::wrong_refusal); });
  run.Check(403, name, [&] { return ComputesTheSame(s); });
  if (!s.world->play().name.empty()) return;
  if (s.def().serialize) {
    run.Check(404, name, [&] { return LoadsWhatItWrote(s); });
    run.Check(405, name, [&] { return KnowsItsTags(s); });
    run.Check(406, name, [&] { return RefusesCutOnes(s); });
  }
  run.Check(408, name, [&] { return SurvivesRefusals(s); });
}

}  // namespace

void CheckCompilers(Run& run, World& world) {
  for (const auto& compiler : world.registry().RolesOf<CompilerRole>()) {
    if (compiler->plugin != world.id()) continue;
    Device* device = world.DeviceOf(compiler->kind);
    if (!device) {
      run.Check(403, compiler->name, [&] { return Skip("there is no device of kind ", compiler->kind, " on this machine"); });
      continue;
    }
    auto oracle = World::Oracle();
    if (!oracle.ok()) return run.Check(403, compiler->name, [&] { return Outcome(oracle.status()); });
    auto samples = MakeSamples(&world, oracle->get(), run.options().case_file.get());
    if (!samples.ok()) return run.Check(403, compiler->name, [&] { return Outcome(samples.status()); });
    CheckCompiler(run, {&world, compiler.get(), device, &*samples});
  }
}

}  // namespace thalweg::conformance
