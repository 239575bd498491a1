#include "tools/conformance/cases.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/graph/shape_inference.h"
#include "tools/conformance/case_file.h"
#include "tools/conformance/case_inputs.h"
#include "tools/conformance/case_template.h"
#include "tools/conformance/run.h"

namespace thalweg::conformance {

std::string Case::text() const {
  std::string text;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const auto h = held.find(i);
    const Tensor& t = h != held.end() && h->second.value ? h->second.value : inputs[i];
    text += text.empty() ? "" : ", ";
    if (h != held.end()) text += h->second.maker.empty() ? t.dtype() == TW_RESOURCE ? "an empty variable" : "a variable " : h->second.maker;
    if (t.dtype() != TW_RESOURCE) text += StrCat(DTypeName(t.dtype()), " ", t.shape().text());
  }
  for (const auto& [name, value] : attrs) {
    if (value.kind() != TW_ATTR_TYPE && value.kind() != TW_ATTR_TENSOR) text += StrCat(text.empty() ? "" : ", ", name, "=", value.text());
  }
  return StrCat(op, "(", text, ")");
}

std::vector<Tensor> ValuesOf(const Case& c) {
  std::vector<Tensor> values = c.inputs;
  for (const auto& [i, held] : c.held) values[i] = Tensor();
  return values;
}

StatusOr<const Node*> AddCase(Graph* graph, const Case& c, bool known) {
  NodeSpec spec;
  spec.op = c.op;
  spec.attrs = c.attrs;
  for (const Tensor& t : c.inputs) {
    NodeSpec feed;
    feed.op = "Placeholder";
    feed.attrs["dtype"] = AttrValue::Type(t.dtype());
    feed.attrs["shape"] = AttrValue::OfShape(known ? t.shape() : Shape());
    ASSIGN_OR_RETURN(const Node* node, graph->AddNode(std::move(feed)));
    spec.inputs.push_back({node, 0});
  }
  return graph->AddNode(std::move(spec));
}

CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const Case& c, const CallSetting& how) {
  return CallKernel(world, node, kernel, device, c.inputs, c.held, how);
}

StatusOr<std::vector<Tensor>> AskOracle(World* oracle, const Case& c) {
  Graph graph(oracle->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  const KernelDef* kernel = oracle->registry().FindKernel(node->op(), "CPU", node->types(), node->in_at(), node->out_at(), node->attrs());
  if (!kernel) return NotFound("the CPU has no kernel for it");
  CallResult r = CallKernel(oracle, node, kernel, oracle->DeviceOf("CPU"), c);
  RETURN_IF_ERROR(r.status);
  return r.outputs;
}

namespace {

// Returns ok if the kernel accepts the resources behind the case's handles.
Status Takes(World* world, const KernelDef& k, const Case& c) {
  Device* device = world->DeviceOf(k.spec.kind);
  if (!device) return NotFound("there is no such device");
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  At(c.text());
  return CallKernel(world, node, &k, device, c).status;
}

// Returns ok if the shape rule accepts the case with all values known.
Status PassesRule(World* world, const Case& c) {
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  std::vector<tw_shape> shapes;
  for (const Tensor& t : c.inputs) shapes.push_back({t.view().dims, t.rank(), 0});
  ShapeAnswer answer;
  std::vector<HandleInfo> infos;
  return InferShapes(*node, shapes, ValuesOf(c), InfosOf(c.held, c.inputs.size(), &infos), &answer);
}

struct Wanted {
  size_t cases;      // at most
  size_t proposals;  // at most
};

// The sources of cases; the oracle and the kernel may be NULL.
struct Sources {
  World *world, *oracle;
  const KernelDef* kernel;
};

// Appends to `out` cases of the op under these attributes, whose handles have the targets of `lead`.
void AddCases(const Sources& from, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs, const Lead& lead,
              const Wanted& wanted, std::vector<Case>* out, std::string* refusal) {
  const auto refused = [&](const Case& c, const Status& s) {
    if (refusal->empty()) *refusal = StrCat(c.text(), " is refused: ", Message(s));
  };
  const auto count = [&](auto&& is) { return size_t(std::count_if(inputs.begin(), inputs.end(), is)); };
  const size_t free_data = count([](const Input& in) { return !in.index && in.free(); });
  const bool any_handle = count([](const Input& in) { return in.handle(); }) > 0;
  const bool any_index = count([](const Input& in) { return in.index; }) > 0;
  const bool free_index = count([](const Input& in) { return in.index && in.free(); }) > 0;
  const bool patterns = count([](const Input& in) { return !in.handle() && in.arg->has_dims; }) > 0;
  const bool variables = count([&](const Input& in) { return in.handle() && lead.variable(in); }) > 0;
  const bool by_data = lead.like >= 0;  // the variables have the shape of a data input, not the reverse
  std::vector<std::vector<Dims>> data = variables && !by_data ? StateShapes(free_data) : DataShapes(std::max<size_t>(free_data, 1));
  if (free_data == 0 && (!variables || by_data)) data.resize(patterns ? 4 : 1);
  if (HasOtherLayout(op, attrs)) {  // shapes of few axes do not distinguish layouts
    std::stable_partition(data.begin(), data.end(), [](const std::vector<Dims>& d) { return !d.empty() && d[0].size() > 2; });
  }
  const size_t most = variables ? wanted.proposals * 20 : wanted.proposals;
  size_t made = 0, tried = 0;
  for (size_t d = 0; d < data.size() && made < wanted.cases; ++d) {
    size_t here = 0;  // at most 2 cases per shape of the data, so that other shapes get cases too
    for (size_t i = 0; i < (free_index ? IndexShapes() : 1) && here < 2; ++i) {
      for (size_t v = 0; v < (any_index ? IndexValues() : 1) && here < 2 && made < wanted.cases; ++v) {
        if (++tried > most) return;
        Case c{op.name, attrs, {}, {}, {}};
        if (!Propose(inputs, lead, data[d], d, i, v, &c).ok()) return;
        if (Status s = PassesRule(from.world, c); !s.ok()) {
          refused(c, s);
          continue;
        }
        if (from.oracle) {
          auto results = AskOracle(from.oracle, c);
          if (!results.ok()) {
            refused(c, results.status());
            continue;
          }
          c.results = *std::move(results);
        } else if (any_handle && from.kernel) {
          if (Status s = Takes(from.world, *from.kernel, c); !s.ok()) {
            refused(c, s);
            continue;
          }
        }
        out->push_back(std::move(c));
        ++made;
        ++here;
      }
    }
  }
}

// Returns true if the op finds its state by name alone, here or in another process. It may keep its
// inputs where no case can remove them again.
bool KeepsByName(const OpSchema& op) {
  const auto handle = [](const ArgSpec& a) { return a.dtype == TW_RESOURCE; };
  if (op.FindAttr("send_device") >= 0) return true;
  return op.FindAttr("shared_name") >= 0 && std::none_of(op.inputs.begin(), op.inputs.end(), handle) &&
         std::none_of(op.outputs.begin(), op.outputs.end(), handle);
}

void AddCases(const Sources& from, const OpSchema& op, const Attrs& attrs, const Wanted& wanted, std::vector<Case>* out,
              std::string* refusal) {
  std::vector<Input> inputs;
  if (KeepsByName(op)) {
    *refusal = "it works on what it finds by name, where a case can put nothing";
    return;
  }
  if (!FlatInputs(op, attrs, &inputs)) {
    *refusal = "nothing can be made up for the type of an input";
    return;
  }
  const size_t before = out->size();
  const std::vector<Lead> leads = LeadsOf(*from.world, op, attrs, inputs, refusal);
  for (const Lead& lead : leads) {
    if (out->size() == before) AddCases(from, op, attrs, inputs, lead, wanted, out, refusal);
  }
}

std::string KeyOf(const OpSchema& op, const Attrs& bound, bool with_results) {
  std::string key = StrCat(op.name, with_results ? "!" : "?");
  for (const auto& [name, value] : bound) key += StrCat(";", name, "=", value.text());
  return key;
}

}  // namespace

const std::vector<Case>& CaseBook::For(const KernelDef& kernel, bool with_results) { return MadeFor(kernel, with_results).cases; }

std::string CaseBook::WhyNone(const KernelDef& kernel, bool with_results) {
  const Made& made = MadeFor(kernel, with_results);
  return made.cases.empty() ? NoCase(*kernel.op, made.refusal) : "its cases are for kernels of other element types";
}

std::string CaseBook::NoCase(const OpSchema& op, const std::string& refusal) const {
  WantCase(op.name, CaseTemplate(op));
  return StrCat("op '", op.name, "': ", refusal.empty() ? "no case can be made up from its schema" : refusal,
                "; supply a case for it, as is said at the end");
}

// Adds the author's cases whose types match the bound attributes.
void CaseBook::AddAuthors(const OpSchema& op, const Attrs& bound, World* oracle, Made* made) {
  if (!file_) return;
  auto cases = file_->Of(op, world_->registry());
  if (!cases.ok()) {
    made->refusal = Message(cases.status());
    return;
  }
  for (AuthorCase& a : *cases) {
    const auto refused = [&](const Status& s) { made->refusal = StrCat(a.where, " is refused: ", Message(s)); };
    Graph graph(world_->runtime_ptr());
    auto node = AddCase(&graph, a.c);
    if (!node.ok()) {
      refused(node.status());
      continue;
    }
    const bool fits = std::all_of(bound.begin(), bound.end(), [&](const auto& b) {
      const AttrValue* has = (*node)->FindAttr(b.first);
      return !has || *has == b.second;
    });
    if (!fits) continue;
    if (oracle) {
      auto results = AskOracle(oracle, a.c);
      if (!results.ok()) {
        refused(results.status());
        continue;
      }
      a.c.results = *std::move(results);
    }
    made->cases.push_back(std::move(a.c));
  }
}

CaseBook::Made& CaseBook::MadeFor(const KernelDef& kernel, bool with_results) {
  const OpSchema& op = *kernel.op;
  Attrs bound;
  const bool possible = BindTypes(op, kernel.spec, &bound);
  auto [at, fresh] = made_.try_emplace(KeyOf(op, bound, with_results));
  constexpr int kEnough = 2;
  Barren& barren = barren_[op.name];
  Made& made = at->second;
  if (!fresh) return made;
  if (!possible) made.refusal = "its spec binds one attribute to two types";
  if (possible) AddAuthors(op, bound, with_results ? oracle_ : nullptr, &made);
  const bool supplied = !made.cases.empty();
  const bool enough = barren.sets == kEnough && effort_ != Effort::kFull;
  if (enough && !supplied && made.refusal.empty()) made.refusal = barren.refusal;
  if (!possible || enough) return made;
  static constexpr Wanted kFirst[] = {{1, 120}, {6, 300}, {20, 1500}}, kOther[] = {{0, 0}, {1, 120}, {4, 600}};
  const auto effort = size_t(!with_results && effort_ == Effort::kUsual ? Effort::kBrief : effort_);  // one case is enough to call a kernel
  const Wanted &first = kFirst[effort], &other = kOther[effort];
  const Sources from = {with_results ? oracle_ : world_, with_results ? oracle_ : nullptr, &kernel};
  bool is_first = true;
  std::vector<Case> found;
  for (const Attrs& attrs : AttrSets(op, bound, 0, &made.refusal)) {
    AddCases(from, op, attrs, is_first || found.empty() ? first : other, &found, &made.refusal);
    is_first = false;
    if (effort == size_t(Effort::kBrief) && !found.empty()) break;
  }
  if (found.empty()) barren = {barren.sets + 1, made.refusal};
  std::move(found.begin(), found.end(), std::back_inserter(made.cases));
  return made;
}

std::vector<Case> CaseBook::ForOp(const OpSchema& op, uint32_t preferred_dtype, std::string* why) {
  Made made;
  AddAuthors(op, {}, nullptr, &made);
  std::vector<Case> found;
  bool first = true;
  for (const Attrs& attrs : AttrSets(op, {}, preferred_dtype, &made.refusal)) {
    AddCases({world_, nullptr, nullptr}, op, attrs, first ? Wanted{6, 300} : Wanted{1, 120}, &found, &made.refusal);
    first = false;
  }
  std::move(found.begin(), found.end(), std::back_inserter(made.cases));
  if (made.cases.empty()) *why = NoCase(op, made.refusal);
  return std::move(made.cases);
}

}  // namespace thalweg::conformance
