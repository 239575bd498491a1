// The While of a For. Its variables are: iterations left, the loop number, the number's increment,
// then the variables of the For.
#include "framework/autodiff/for_form.h"

#include <utility>
#include <vector>

#include "framework/autodiff/call_gradient.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/function.h"

namespace thalweg {
namespace {

constexpr int32_t kBefore = 3;  // variables before those of the For; the For has as many inputs before its own variables

class ForForm {
 public:
  ForForm(Graph* graph, const Node& node, std::shared_ptr<FunctionLibrary> library)
      : graph_(graph), node_(node), library_(std::move(library)) {}

  Status Run() {
    ASSIGN_OR_RETURN(const auto f, library_->Find(node_.FindAttr("body")->strings()[0]));
    const std::string name = graph_->UniqueName(node_.name() + "_while");
    NodeSpec spec;
    spec.name = name;
    ASSIGN_OR_RETURN(spec.inputs.emplace_back(), Iterations());
    spec.inputs.push_back(node_.inputs()[0]);
    spec.inputs.insert(spec.inputs.end(), node_.inputs().begin() + 2, node_.inputs().end());
    bool is_stateful = false;
    ASSIGN_OR_RETURN(const std::string body, AddBody(name, *f, &is_stateful));
    ASSIGN_OR_RETURN(const std::string cond, AddCond(name, spec.inputs));
    spec.attrs = {{"body", AttrValue::Func(body)}, {"cond", AttrValue::Func(cond)}};
    ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole(is_stateful ? "while" : "stateless_while"));
    spec.op = op->name;
    spec.controls = node_.controls();
    spec.device = node_.device();
    spec.colocate_with = node_.colocate_with();
    spec.place = node_.place();
    spec.imported = node_.imported();
    ASSIGN_OR_RETURN(const Node* form, graph_->AddNode(std::move(spec)));
    for (int32_t o = 0; o < node_.n_out(); ++o) graph_->Replace({&node_, o}, {form, kBefore + o});
    return Status();
  }

 private:
  // Returns the number of iterations; invalid bounds fail here as they do in the For.
  StatusOr<Edge> Iterations() const {
    ASSIGN_OR_RETURN(const Node* numbers, AddRoleLike(graph_, "range", {node_.inputs().begin(), node_.inputs().begin() + 3}, {}, node_));
    ASSIGN_OR_RETURN(const Node* shape, AddRoleLike(graph_, "shape", {{numbers, 0}}, {}, node_));
    const int64_t none = 0;
    ASSIGN_OR_RETURN(Tensor no_axes, Tensor::Make(TW_INT32, &none, 1));
    ASSIGN_OR_RETURN(const Edge scalar, graph_->AddConst(no_axes, graph_->UniqueName("Const"), node_.place()));
    ASSIGN_OR_RETURN(const Node* count, AddRoleLike(graph_, "reshape", {{shape, 0}, scalar}, {}, node_));
    return Edge{count, 0};
  }

  StatusOr<Edge> Number(Graph* g, const char* name) const {
    return AddPlaceholderLike(g, TW_INT32, Shape(std::vector<int64_t>{}), name, node_);
  }

  StatusOr<std::string> AddBody(const std::string& name, const Function& f, bool* is_stateful) const {
    FunctionSpec spec;
    spec.name = library_->UniqueName(name + "_body");
    spec.body = Graph::Body(*graph_);
    Graph* g = spec.body.get();
    Copied copied;
    RETURN_IF_ERROR(CopyNodes(f.body(), g, &copied));
    ASSIGN_OR_RETURN(const Edge left, Number(g, "left"));
    ASSIGN_OR_RETURN(const Edge delta, Number(g, "delta"));
    ASSIGN_OR_RETURN(const Edge less, AddScalarLike(g, -1, node_));
    const Edge i = copied.Find(f.args()[0]);
    ASSIGN_OR_RETURN(const Node* still_left, AddRoleLike(g, "add_n", {left, less}, {}, node_));
    ASSIGN_OR_RETURN(const Node* next, AddRoleLike(g, "add_n", {i, delta}, {}, node_));
    spec.args = {left, i, delta};
    spec.results = {{still_left, 0}, {next, 0}, delta};
    for (size_t k = 1; k < f.args().size(); ++k) spec.args.push_back(copied.Find(f.args()[k]));
    for (const Edge& e : f.results()) spec.results.push_back(copied.Find(e));
    for (const Node* t : f.targets()) spec.targets.push_back(copied.Find(t));
    *is_stateful = IsStateful(*g);
    return Add(std::move(spec));
  }

  StatusOr<std::string> AddCond(const std::string& name, const std::vector<Edge>& variables) const {
    FunctionSpec spec;
    spec.name = library_->UniqueName(name + "_cond");
    spec.body = Graph::Body(*graph_);
    for (const Edge& e : variables) {
      ASSIGN_OR_RETURN(spec.args.emplace_back(), AddPlaceholderLike(spec.body.get(), TypeOf(e), Shape(), "x", node_));
    }
    spec.results = {spec.args[0]};
    return Add(std::move(spec));
  }

  StatusOr<std::string> Add(FunctionSpec spec) const {
    ASSIGN_OR_RETURN(auto f, Function::Make(std::move(spec)));
    RETURN_IF_ERROR(library_->Add(f));
    return f->name();
  }

  Graph* const graph_;
  const Node& node_;
  const std::shared_ptr<FunctionLibrary> library_;
};

}  // namespace

Status FormFor(Graph* graph, const Node& node) {
  auto library = graph->functions();
  if (!library) return FailedPrecondition("the graph around this one is gone");
  Status s = ForForm(graph, node, std::move(library)).Run();
  return s.ok() ? s : OfNode(node, Prefix(s, StrCat("gradient of ", node.title(), ":")));
}

}  // namespace thalweg
