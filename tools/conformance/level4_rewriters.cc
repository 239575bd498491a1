// Level 4: the substitutions of graph rewriters.
#include <set>

#include "tools/conformance/kernel_call.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/parts.h"
#include "tools/conformance/subjects.h"

namespace thalweg::conformance {
namespace {

// A rewriter of the plugin and samples.
struct Subject {
  World* world;
  World* oracle;
  const RewriterRole* rewriter;
  std::vector<Sample>* samples;
  const tw_host* host() const { return rewriter->host; }
};

struct AddedNode {
  std::string op;
  std::map<std::string, AttrValue> attrs;
  std::vector<tw_part_edge> in;
};

// A substitution, copied.
struct Change {
  std::string rule;
  std::vector<uint32_t> nodes;
  std::vector<AddedNode> added;
  std::vector<tw_part_edge> old_values, new_values;
};

// The part of one call of rewrite, and what the rewriter did with it. A sound substitution is accepted
// unless `refuses`.
struct Rewriting {
  tw_rewriting c{TW_SIZED(tw_rewriting), &Substitute, &Refuse};
  const Subject* subject = nullptr;
  const PartOf* part = nullptr;
  bool refuses = false;
  std::set<uint32_t> gone;
  std::vector<Change> changes;
  std::string wrong;  // the first fault

  tw_status* Answer(std::string why) {
    if (wrong.empty()) wrong = why;
    return tw_fail(subject->host(), TW_INVALID_ARGUMENT, why.data(), why.size());
  }
  static tw_status* Substitute(tw_rewriting* to, const tw_substitution* s) {
    auto* self = reinterpret_cast<Rewriting*>(to);
    Change change;
    if (std::string why = self->Read(s, &change); !why.empty()) return self->Answer(std::move(why));
    if (self->refuses) return tw_fail(self->subject->host(), TW_FAILED_PRECONDITION, TW_S("not in this plan"));
    self->gone.insert(change.nodes.begin(), change.nodes.end());
    self->changes.push_back(std::move(change));
    return nullptr;
  }
  static tw_status* Refuse(tw_rewriting* to, uint32_t node, const char* why, uint64_t len) {
    auto* self = reinterpret_cast<Rewriting*>(to);
    if (node >= self->part->nodes.size()) return self->Answer(StrCat("it keeps node ", node, " of ", self->part->nodes.size()));
    if (TextOf(why, len).empty()) return self->Answer(StrCat("it keeps node ", node, " without a reason"));
    return nullptr;
  }

  std::string Read(const tw_substitution* s, Change* to) const {
    const auto n = uint32_t(part->nodes.size());
    if (!s || s->size < sizeof *s || s->flags) return "a substitution is not filled with TW_SIZED";
    to->rule = TextOf(s->rule, s->rule_len);
    if (to->rule.empty()) return "a substitution has no rule";
    if (s->n_nodes == 0) return StrCat("rule '", to->rule, "': no nodes go");
    to->nodes.assign(s->nodes, s->nodes + s->n_nodes);
    std::set<uint32_t> goes;
    for (uint32_t i : to->nodes) {
      if (i >= n) return StrCat("rule '", to->rule, "': node ", i, " of ", n, " goes");
      if (gone.count(i) || !goes.insert(i).second) return StrCat("rule '", to->rule, "': node ", i, " goes twice");
    }
    for (uint32_t k = 0; k < s->n_added; ++k) {
      const tw_added_node* a = s->added[k];
      const std::string title = StrCat("rule '", to->rule, "': added node ", k);
      if (!a || a->size < sizeof *a || a->flags) return StrCat(title, " is not filled with TW_SIZED");
      AddedNode node;
      node.op = TextOf(a->op, a->op_len);
      if (!subject->world->registry().FindOp(node.op)) return StrCat(title, ": there is no op '", node.op, "'");
      for (uint32_t i = 0; i < a->n_attrs; ++i) {
        auto value = AttrValue::FromC(a->attrs[i]);
        if (!value.ok()) return StrCat(title, ": ", Message(value.status()));
        node.attrs.insert_or_assign(std::string(TextOf(a->attrs[i].name, a->attrs[i].name_len)), *std::move(value));
      }
      node.in.assign(a->in, a->in + a->n_in);
      for (const tw_part_edge& e : node.in) {
        if (std::string why = CheckValue(e, n + k, goes); !why.empty()) return StrCat(title, " reads ", why);
      }
      to->added.push_back(std::move(node));
    }
    for (uint32_t v = 0; v < s->n_values; ++v) {
      const tw_part_edge& old = s->old_values[v];
      if (old.node < 0 || !goes.count(uint32_t(old.node)) || old.port != 0) {
        return StrCat("rule '", to->rule, "': value ", v, " is no output of a node that goes");
      }
      if (std::string why = CheckValue(s->new_values[v], n + s->n_added, goes); !why.empty()) {
        return StrCat("rule '", to->rule, "': value ", v, " becomes ", why);
      }
    }
    to->old_values.assign(s->old_values, s->old_values + s->n_values);
    to->new_values.assign(s->new_values, s->new_values + s->n_values);
    return "";
  }
  // most: nodes from this number on do not exist yet.
  std::string CheckValue(const tw_part_edge& e, uint32_t most, const std::set<uint32_t>& goes) const {
    if (e.node == -1 && e.port < part->in.size()) return "";
    if (e.node < 0) return StrCat("input ", e.port, " of ", part->in.size());
    if (uint32_t(e.node) >= most) return StrCat("node ", e.node, ", which does not come before it");
    if (goes.count(uint32_t(e.node))) return StrCat("node ", e.node, ", which goes");
    return uint32_t(e.node) < part->nodes.size() && e.port ? StrCat("output ", e.port, " of node ", e.node) : "";
  }
};

std::vector<uint32_t> AllNodes(const Sample& s) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < s.nodes.size(); ++i) all.push_back(i);
  return all;
}

Status Ask(const Subject& s, const Sample& sample, const PartOf& part, bool known, Rewriting* to) {
  Guarded memory(s.world->play().hasty);
  to->subject = &s;
  to->part = &part;
  const tw_rewriter_def& def = s.rewriter->def;
  return FromC(def.rewrite(s.host(), def.user, PartRecord(part, sample, known, &memory), &to->c));
}

// Runs the check with each sample, with and without shapes.
template <class F>
Outcome ForSamples(const Subject& s, F&& check) {
  for (const Sample& sample : *s.samples) {
    const PartOf part = Cut(sample, AllNodes(sample));
    for (bool known : {true, false}) {
      At(StrCat("rewriting of ", sample.name, known ? "" : " of unknown shapes"));
      if (Outcome o = check(sample, part, known); !o.passed()) return {o.kind, StrCat(sample.name, ": ", o.why)};
    }
  }
  return {};
}

Outcome NamesWhatThereIs(const Subject& s) {
  return ForSamples(s, [&](const Sample& sample, const PartOf& part, bool known) -> Outcome {
    Rewriting r;
    Status status = Ask(s, sample, part, known, &r);
    if (!r.wrong.empty()) return Fail(r.wrong);
    return Outcome(status);
  });
}

// Computes the added nodes, one after the other, and compares each value with the one that it stands for.
Outcome Compare(const Subject& s, const Sample& sample, const PartOf& part, const Change& change) {
  std::vector<std::vector<Tensor>> made;
  const size_t n = part.nodes.size();
  const auto value = [&](const tw_part_edge& e) -> StatusOr<Tensor> {
    if (e.node < 0) return part.in_values[e.port];
    if (size_t(e.node) < n) return sample.results[part.nodes[size_t(e.node)]][e.port];
    const std::vector<Tensor>& outputs = made[size_t(e.node) - n];
    if (e.port >= outputs.size()) return InvalidArgument("added node ", size_t(e.node) - n, " has no output ", e.port);
    return outputs[e.port];
  };
  for (const AddedNode& a : change.added) {
    Case c;
    c.op = a.op;
    c.attrs = a.attrs;
    for (const tw_part_edge& e : a.in) {
      ASSIGN_OR_RETURN(Tensor input, value(e));
      c.inputs.push_back(std::move(input));
    }
    At(StrCat("rule '", change.rule, "': ", c.text()));
    World* world = s.oracle->registry().FindOp(a.op) ? s.oracle : s.world;
    auto results = AskOracle(world, c);
    if (!results.ok()) return Fail("rule '", change.rule, "': ", a.op, ": ", Message(results.status()));
    made.push_back(*std::move(results));
  }
  for (size_t v = 0; v < change.old_values.size(); ++v) {
    ASSIGN_OR_RETURN(const Tensor got, value(change.new_values[v]));
    ASSIGN_OR_RETURN(const Tensor want, value(change.old_values[v]));
    if (std::string d = DiffersIn({got}, {want}); !d.empty()) return Fail("rule '", change.rule, "': ", d);
  }
  return {};
}

Outcome ComputesTheSame(const Subject& s) {
  size_t changes = 0;
  Outcome all = ForSamples(s, [&](const Sample& sample, const PartOf& part, bool known) -> Outcome {
    Rewriting r;
    RETURN_IF_ERROR(Ask(s, sample, part, known, &r));
    for (const Change& change : r.changes) {
      ++changes;
      if (Outcome o = Compare(s, sample, part, change); !o.passed()) return o;
    }
    return {};
  });
  if (!all.passed() || changes) return all;
  return Skip("it replaces nothing of the samples; supply a graph in which it does with --cases, under \"graphs\"");
}

// A rewriter may answer the refusal, but comes to an end, and does the same afterwards.
Outcome GoesOnWhenRefused(const Subject& s) {
  return ForSamples(s, [&](const Sample& sample, const PartOf& part, bool known) -> Outcome {
    Rewriting before, refused, after;
    refused.refuses = true;
    RETURN_IF_ERROR(Ask(s, sample, part, known, &before));
    (void)Ask(s, sample, part, known, &refused);
    RETURN_IF_ERROR(Ask(s, sample, part, known, &after));
    if (before.changes.size() == after.changes.size()) return {};
    return Fail("it made ", before.changes.size(), " substitutions, and ", after.changes.size(), " after some had been refused");
  });
}

}  // namespace

void CheckRewriters(Run& run, World& world) {
  for (const auto& rewriter : world.registry().RolesOf<RewriterRole>()) {
    if (rewriter->plugin != world.id()) continue;
    auto oracle = World::Oracle();
    if (!oracle.ok()) return run.Check(422, rewriter->name, [&] { return Outcome(oracle.status()); });
    auto samples = MakeSamples(&world, oracle->get(), run.options().case_file.get());
    if (!samples.ok()) return run.Check(422, rewriter->name, [&] { return Outcome(samples.status()); });
    const Subject s{&world, oracle->get(), rewriter.get(), &*samples};
    if (world.play().hasty) {
      run.Check(423, rewriter->name, [&] { return ComputesTheSame(s); });
      continue;
    }
    run.Check(421, rewriter->name, [&] { return NamesWhatThereIs(s); });
    run.Check(422, rewriter->name, [&] { return ComputesTheSame(s); });
    if (world.play().name.empty()) run.Check(424, rewriter->name, [&] { return GoesOnWhenRefused(s); });
  }
}

}  // namespace thalweg::conformance
