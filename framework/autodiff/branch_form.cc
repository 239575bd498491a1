// Converts the conditions that Switch and Merge form to If.
#include <algorithm>
#include <utility>

#include "framework/autodiff/form_builder.h"
#include "framework/base/dtype.h"
#include "framework/graph/builder.h"

namespace thalweg {
namespace {

class BranchForm {
 public:
  explicit BranchForm(const FormBuilder& b) : b_(b) {}

  Status Run(const Node& merge) {
    ASSIGN_OR_RETURN(const FlowPlace at, b_.flow().At(merge));
    const int32_t region = b_.flow().Closes(merge);
    if (region < 0 || !(at == FlowPlace())) return Unstructured(merge, "what it gives lies in a branch or loop");
    std::vector<const Node*> all;
    for (const Node* m : b_.flow().regions()[size_t(region)].merges) {
      if (!b_.graph()->ReplacedBy({m, 0})) all.push_back(m);
    }
    FormInside in[2];
    RETURN_IF_ERROR(CollectBranches(region, all, in));
    if (!b_.WantNoCycle(Given(in), Before(in, all), all).ok()) {
      RETURN_IF_ERROR(Share(merge, region, &all));
      RETURN_IF_ERROR(CollectBranches(region, all, in));
      RETURN_IF_ERROR(b_.WantNoCycle(Given(in), Before(in, all), all));
    }
    return AddIf(merge, region, all, in);
  }

 private:
  static size_t InputOf(const Node& merge, const FlowStructure& flow, int32_t side) {
    return flow.Of(merge.inputs()[0])->branch.side == side ? 0 : 1;
  }

  Status CollectBranches(int32_t region, const std::vector<const Node*>& merges, FormInside* in) {
    for (int32_t side = 0; side < 2; ++side) {
      std::vector<Edge> values;
      std::vector<const Node*> controls;
      for (const Node* m : merges) {
        values.push_back(m->inputs()[InputOf(*m, b_.flow(), side)]);
        controls.insert(controls.end(), m->controls().begin(), m->controls().end());
      }
      const FlowPlace place{b_.flow().regions()[size_t(region)].outer.frame, {region, side}};
      ASSIGN_OR_RETURN(in[side], b_.Collect(values, controls, place, nullptr));
    }
    return Status();
  }

  static std::vector<Edge> Given(const FormInside* in) {
    std::vector<Edge> all = in[0].outside;
    for (const Edge& e : in[1].outside) AddOnce(e, &all);
    return all;
  }

  // Returns the nodes that must end before the condition may run, without nodes of the branches and
  // merges themselves.
  static NodeSet Before(const FormInside* in, const std::vector<const Node*>& merges) {
    NodeSet all = in[0].before;
    all.insert(in[1].before.begin(), in[1].before.end());
    for (const Node* n : in[0].nodes) all.erase(n);
    for (const Node* n : in[1].nodes) all.erase(n);
    for (const Node* m : merges) all.erase(m);
    return all;
  }

  // Reduces *merges to those that share nodes with this one, directly or through others.
  Status Share(const Node& merge, int32_t region, std::vector<const Node*>* merges) {
    std::vector<std::pair<const Node*, NodeSet>> rest;
    for (const Node* m : *merges) {
      FormInside in[2];
      RETURN_IF_ERROR(CollectBranches(region, {m}, in));
      in[0].nodes.insert(in[1].nodes.begin(), in[1].nodes.end());
      rest.emplace_back(m, std::move(in[0].nodes));
    }
    *merges = {};
    NodeSet mine;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [m, nodes] : rest) {
        const bool shares = m == &merge || std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) { return mine.count(n) > 0; });
        if (!m || !shares) continue;
        mine.insert(nodes.begin(), nodes.end());
        merges->push_back(std::exchange(m, nullptr));
        changed = true;
      }
    }
    std::sort(merges->begin(), merges->end(), NodeLess());
    return Status();
  }

  Status AddIf(const Node& merge, int32_t region, const std::vector<const Node*>& merges, const FormInside* in) {
    const std::vector<Edge> given = Given(in);
    const NodeSet before = Before(in, merges);
    const std::string name = b_.graph()->UniqueName(merge.name() + "_if");
    std::map<std::string, AttrValue> attrs;
    std::vector<uint32_t> types;
    for (const Node* m : merges) types.push_back(BaseType(m->out_type(0)));
    types.resize(types.size() + merges.size(), TW_INT32);
    for (int32_t side = 0; side < 2; ++side) {
      FormBody body{Graph::Body(*b_.graph()), {}, {}};
      for (const Edge& e : given) {
        ASSIGN_OR_RETURN(body.args.emplace_back(), b_.AddArgument(body.graph.get(), e, e.node->shape(e.port)));
        body.copied.Put(e, body.args.back());
      }
      for (const auto& [inner, outer] : in[side].passed) body.copied.Put(inner, body.copied.Find(outer));
      RETURN_IF_ERROR(b_.Copy(in[side], &body));
      std::vector<Edge> results;
      std::vector<const Node*> controls;
      for (const Node* m : merges) {
        results.push_back(body.copied.Find(m->inputs()[InputOf(*m, b_.flow(), side)]));
        controls.insert(controls.end(), m->controls().begin(), m->controls().end());
      }
      for (const Node* m : merges) {
        ASSIGN_OR_RETURN(Tensor which, ScalarTensor(TW_INT32, double(InputOf(*m, b_.flow(), side))));
        ASSIGN_OR_RETURN(results.emplace_back(), body.graph->AddConst(which, body.graph->UniqueName("value_index")));
      }
      const char* branch = side ? "then_branch" : "else_branch";
      ASSIGN_OR_RETURN(const std::string f, b_.AddFunction(StrCat(name, side ? "_then" : "_else"), body, results, controls));
      attrs[branch] = AttrValue::Func(f);
    }
    attrs["Tout"] = AttrValue::Types(types);
    std::vector<Edge> inputs = {b_.flow().regions()[size_t(region)].pred};
    inputs.insert(inputs.end(), given.begin(), given.end());
    ASSIGN_OR_RETURN(const Node* form,
                     b_.AddForm("if", in[0].stateful() || in[1].stateful(), merge, std::move(inputs), before, std::move(attrs), name));
    for (size_t k = 0; k < merges.size(); ++k) {
      b_.graph()->Replace({merges[k], 0}, {form, int32_t(k)});
      b_.graph()->Replace({merges[k], 1}, {form, int32_t(merges.size() + k)});
    }
    return Status();
  }

  const FormBuilder& b_;
};

}  // namespace

Status FormBranches(const FormBuilder& b, const Node& merge) { return BranchForm(b).Run(merge); }

}  // namespace thalweg
