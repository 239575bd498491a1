#include "tools/conformance/parts.h"

#include <algorithm>
#include <map>

#include "tools/conformance/case_file.h"
#include "tools/conformance/cases.h"
#include "tools/conformance/kernel_call.h"
#include "tools/conformance/numbers.h"

namespace thalweg::conformance {
namespace {

double Small(uint64_t i) { return 0.25 + double((i * 5 + 2) % 7) / 8; }

// Builds a sample in one graph. Ops are given by name, inputs by their index in `values`.
class Maker {
 public:
  Maker(World* world, std::string name) {
    s_.name = std::move(name);
    s_.graph = std::make_shared<Graph>(world->runtime_ptr());
  }
  Status Feed(Tensor value) {
    NodeSpec spec;
    spec.op = "Placeholder";
    spec.attrs["dtype"] = AttrValue::Type(value.dtype());
    spec.attrs["shape"] = AttrValue::OfShape(value.shape());
    ASSIGN_OR_RETURN(const Node* node, s_.graph->AddNode(std::move(spec)));
    s_.feeds.push_back(node);
    s_.fed.push_back(std::move(value));
    values_.push_back({node, 0});
    return Status();
  }
  Status Op(const std::string& op, const std::vector<size_t>& inputs, const Attrs& attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.attrs = attrs;
    for (size_t i : inputs) spec.inputs.push_back(values_[i]);
    ASSIGN_OR_RETURN(const Node* node, s_.graph->AddNode(std::move(spec)));
    if (op == "Const") {
      s_.feeds.push_back(node);
      s_.fed.push_back(node->FindAttr("value")->tensors()[0]);
      s_.constants.insert(node);
      values_.push_back({node, 0});
      return Status();
    }
    if (node->n_out() != 1) return Unimplemented(op, " has ", node->n_out(), " outputs; nodes of sample graphs have one");
    s_.nodes.push_back(node);
    s_.attrs.push_back(attrs);
    values_.push_back({node, 0});
    return Status();
  }
  Sample Take() { return std::move(s_); }

 private:
  Sample s_;
  std::vector<Edge> values_;
};

struct Recipe {
  const char* name;
  std::vector<Shape> feeds;
  std::vector<std::pair<const char*, std::vector<size_t>>> ops;
};

const std::vector<Recipe>& Recipes() {
  static const std::vector<Recipe> all = {
      {"a chain", {{4, 3}, {4, 3}}, {{"Add", {0, 1}}, {"Neg", {2}}, {"Mul", {3, 1}}, {"Relu", {4}}, {"Sub", {5, 0}}}},
      {"a diamond", {{5}, {5}}, {{"Mul", {0, 1}}, {"Neg", {2}}, {"Square", {2}}, {"Add", {3, 4}}, {"Add", {5, 2}}}},
      {"a chain around a product of matrices",
       {{3, 3}, {3, 3}},
       {{"Add", {0, 1}}, {"Neg", {2}}, {"MatMul", {3, 1}}, {"Relu", {4}}, {"Add", {5, 2}}, {"Neg", {6}}}},
      {"broadcasts", {Shape{4, 3}, Shape{3}, Shape(nullptr, 0)}, {{"Add", {0, 1}}, {"Mul", {3, 2}}, {"Sub", {4, 1}}, {"Neg", {5}}}},
      {"nothing to compute", {{0, 3}, {0, 3}}, {{"Add", {0, 1}}, {"Neg", {2}}, {"Mul", {3, 0}}}},
      {"one node", {Shape{7}}, {{"Neg", {0}}}},
      {"a square", {Shape{6}}, {{"Mul", {0, 0}}, {"Add", {1, 0}}}},
  };
  return all;
}

StatusOr<Sample> Build(World* world, const Recipe& r) {
  Maker m(world, r.name);
  for (const Shape& s : r.feeds) {
    ASSIGN_OR_RETURN(Tensor value, TensorOf(TW_FLOAT, s, Small));
    RETURN_IF_ERROR(m.Feed(std::move(value)));
  }
  for (const auto& [op, inputs] : r.ops) RETURN_IF_ERROR(m.Op(op, inputs));
  return m.Take();
}

StatusOr<Sample> Build(World* world, const AuthorGraph& g) {
  Maker m(world, g.name);
  std::map<std::string, size_t> names;
  for (const auto& [name, value] : g.feeds) {
    RETURN_IF_ERROR(m.Feed(value));
    names.emplace(name, names.size());
  }
  for (const AuthorGraph::Node& n : g.nodes) {
    std::vector<size_t> inputs;
    for (const std::string& name : n.inputs) {
      const auto at = names.find(name);
      if (at == names.end()) return NotFound("node '", n.name, "': neither a feed nor a node before it is called '", name, "'");
      inputs.push_back(at->second);
    }
    if (Status s = m.Op(n.op, inputs, n.attrs); !s.ok()) return Prefix(s, StrCat("node '", n.name, "':"));
    if (!names.emplace(n.name, names.size()).second) return InvalidArgument("'", n.name, "' is the name of two of its nodes or feeds");
  }
  return m.Take();
}

// Computes the results of every node, one after the other, with the CPU's kernels.
Status Solve(World* oracle, Sample* s) {
  std::map<const Node*, std::vector<Tensor>> known;
  for (size_t i = 0; i < s->feeds.size(); ++i) known[s->feeds[i]] = {s->fed[i]};
  for (size_t i = 0; i < s->nodes.size(); ++i) {
    const Node* n = s->nodes[i];
    Case c;
    c.op = n->op().name;
    c.attrs = s->attrs[i];
    for (const Edge& e : n->inputs()) c.inputs.push_back(known[e.node][size_t(e.port)]);
    ASSIGN_OR_RETURN(std::vector<Tensor> results, AskOracle(oracle, c));
    known[n] = results;
    s->results.push_back(std::move(results));
  }
  return Status();
}

bool Has(const std::vector<uint32_t>& v, uint32_t x) { return std::find(v.begin(), v.end(), x) != v.end(); }

int64_t IndexOf(const Sample& s, const Node* node) {
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    if (s.nodes[i] == node) return int64_t(i);
  }
  return -1;
}

const Tensor& ValueOf(const Sample& s, const Edge& e) {
  if (int64_t i = IndexOf(s, e.node); i >= 0) return s.results[size_t(i)][size_t(e.port)];
  for (size_t f = 0; f + 1 < s.feeds.size(); ++f) {
    if (s.feeds[f] == e.node) return s.fed[f];
  }
  return s.fed.back();
}

}  // namespace

StatusOr<std::vector<Sample>> MakeSamples(World* world, World* oracle, const CaseFile* file) {
  std::vector<Sample> out;
  for (const Recipe& r : Recipes()) {
    ASSIGN_OR_RETURN(Sample s, Build(world, r));
    RETURN_IF_ERROR(Solve(oracle, &s));
    out.push_back(std::move(s));
  }
  if (!file) return out;
  ASSIGN_OR_RETURN(const std::vector<AuthorGraph> graphs, file->Graphs(world->registry()));
  for (const AuthorGraph& g : graphs) {
    auto s = Build(world, g);
    Status solved = s.ok() ? Solve(oracle, &*s) : s.status();
    if (!solved.ok()) return Prefix(solved, StrCat("graph '", g.name, "' in ", file->name(), ":"));
    out.push_back(*std::move(s));
  }
  return out;
}

PartOf Cut(const Sample& s, std::vector<uint32_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  PartOf p;
  p.nodes = std::move(nodes);
  for (uint32_t n : p.nodes) {
    for (const Edge& e : s.nodes[n]->inputs()) {
      const int64_t from = IndexOf(s, e.node);
      if (from >= 0 && Has(p.nodes, uint32_t(from))) continue;
      if (std::find(p.in.begin(), p.in.end(), e) == p.in.end()) p.in.push_back(e);
    }
  }
  for (uint32_t n : p.nodes) {
    bool read_inside = false, read_outside = false;
    for (size_t m = 0; m < s.nodes.size(); ++m) {
      for (const Edge& e : s.nodes[m]->inputs()) {
        if (e.node == s.nodes[n]) (Has(p.nodes, uint32_t(m)) ? read_inside : read_outside) = true;
      }
    }
    if (read_outside || !read_inside) p.out.push_back({s.nodes[n], 0});
  }
  for (const Edge& e : p.in) p.in_values.push_back(ValueOf(s, e));
  for (const Edge& e : p.out) p.out_values.push_back(ValueOf(s, e));
  return p;
}

const tw_part* PartRecord(const PartOf& p, const Sample& s, bool known, Guarded* g) {
  auto edge = [&](const Edge& e) -> tw_part_edge {
    for (size_t i = 0; i < p.nodes.size(); ++i) {
      if (s.nodes[p.nodes[i]] == e.node) return {int32_t(i), uint32_t(e.port)};
    }
    const auto at = std::find(p.in.begin(), p.in.end(), e) - p.in.begin();
    return {-1, uint32_t(at)};
  };
  auto shape = [&](const Edge& e) -> tw_shape {
    if (!known) return {nullptr, -1, 0};
    const Tensor& t = ValueOf(s, e);
    return {t.view().dims, t.rank(), 0};
  };
  std::vector<const tw_part_node*> nodes;
  for (uint32_t i : p.nodes) {
    const Node& n = *s.nodes[i];
    CAttrs attrs;
    n.FillC(&attrs);
    std::vector<tw_part_edge> in;
    std::vector<tw_shape> shapes;
    std::vector<const tw_view*> values;
    for (const Edge& e : n.inputs()) {
      in.push_back(edge(e));
      values.push_back(s.constants.count(e.node) ? g->New(tw_view(ValueOf(s, e).view())) : nullptr);
      shapes.push_back(shape(e));
    }
    shapes.push_back(shape({&n, 0}));
    tw_part_node c{};
    c.size = RecordSize<std::remove_reference_t<decltype(c)>>();
    c.name = g->Text(n.name());
    c.name_len = n.name().size();
    c.op = g->Text(n.op().name);
    c.op_len = n.op().name.size();
    c.attrs = g->Attrs(attrs.data(), attrs.size());
    c.in = g->Array(in);
    c.types = g->Array(n.types().data(), n.types().size());
    c.shapes = g->Shapes(shapes.data(), shapes.size());
    c.value = g->Array(values);
    c.n_attrs = attrs.size();
    c.n_in = uint32_t(in.size());
    c.n_out = 1;
    nodes.push_back(g->New(c));
  }
  std::vector<uint32_t> types;
  std::vector<tw_shape> in_shapes;
  std::vector<tw_part_edge> out;
  for (const Edge& e : p.in) {
    types.push_back(e.node->out_type(e.port));
    in_shapes.push_back(shape(e));
  }
  for (const Edge& e : p.out) out.push_back(edge(e));
  tw_part c{};
  c.size = RecordSize<std::remove_reference_t<decltype(c)>>();
  c.nodes = g->Array(nodes);
  c.in_types = g->Array(types);
  c.in_shapes = g->Shapes(in_shapes.data(), in_shapes.size());
  c.out = g->Array(out);
  c.n_nodes = uint32_t(nodes.size());
  c.n_in = uint32_t(types.size());
  c.n_out = uint32_t(out.size());
  return g->New(c);
}

bool IsConvex(const Sample& s, const std::vector<uint32_t>& nodes) {
  // Outside nodes that depend on the set; no node of the set may depend on them.
  std::vector<uint32_t> after;
  for (uint32_t n = 0; n < s.nodes.size(); ++n) {
    bool from_set = false, from_after = false;
    for (const Edge& e : s.nodes[n]->inputs()) {
      const int64_t i = IndexOf(s, e.node);
      from_set = from_set || (i >= 0 && Has(nodes, uint32_t(i)));
      from_after = from_after || (i >= 0 && Has(after, uint32_t(i)));
    }
    if (Has(nodes, n)) {
      if (from_after) return false;
    } else if (from_set || from_after) {
      after.push_back(n);
    }
  }
  return true;
}

}  // namespace thalweg::conformance
