// Gradients of If, Case and calls, which call one of several functions, once.
#include <algorithm>
#include <map>
#include <utility>

#include "framework/autodiff/call_gradient.h"
#include "framework/autodiff/differentiated.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/node_marks.h"

namespace thalweg {
namespace {

std::vector<Shape> Shapes(const std::vector<Edge>& values) {
  std::vector<Shape> shapes;
  for (const Edge& e : values) shapes.push_back(e.node->shape(e.port));
  return shapes;
}

class BranchGradient {
 public:
  explicit BranchGradient(const CallGradient& c) : c_(c) {}

  // first: number of inputs before the arguments.
  Status Run(const std::vector<std::string>& attrs, int32_t first) {
    std::vector<std::string> names;
    for (const std::string& a : attrs) {
      const auto& functions = c_.node().FindAttr(a)->strings();
      names.insert(names.end(), functions.begin(), functions.end());
    }
    const int32_t n_args = c_.node().n_in() - first;
    std::vector<Differentiated> all;
    std::vector<Edge> captures;
    Mask has_dx(static_cast<size_t>(n_args));
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(auto f, c_.Find(name));
      if (int32_t(f->args().size()) != n_args || int32_t(f->results().size()) != c_.node().n_out()) {
        return InvalidArgument("function ", f->title(), " does not fit the node's ", n_args, " arguments and ", c_.node().n_out(),
                               " results");
      }
      Mask has_dy, wants_dx;
      for (int32_t o = 0; o < c_.node().n_out(); ++o) has_dy.push_back(c_.HasDy(o) && HasOwnGradient(f->result_type(size_t(o))));
      for (int32_t i = 0; i < n_args; ++i) wants_dx.push_back(c_.gradient().wants_dx(first + i));
      ASSIGN_OR_RETURN(Differentiated d, Differentiated::Make(std::move(f), has_dy, wants_dx, c_.gradient().keeping));
      captures.insert(captures.end(), d.captures().begin(), d.captures().end());
      for (int32_t i = 0; i < n_args; ++i) has_dx[size_t(i)] |= bool(d.dxs()[size_t(i)]);
      all.push_back(std::move(d));
    }
    const Node* forward = &c_.node();
    if (!captures.empty()) {
      ASSIGN_OR_RETURN(forward, ForwardBranches(attrs, all, captures));
    }
    return BackwardBranches(attrs, all, captures, has_dx, first, *forward);
  }

 private:
  // Every branch returns all captures; captures of other branches are empty values.
  StatusOr<const Node*> ForwardBranches(const std::vector<std::string>& attrs, const std::vector<Differentiated>& all,
                                        const std::vector<Edge>& captures) {
    std::vector<std::string> names;
    for (const Differentiated& d : all) {
      std::vector<Edge> results = d.results();
      for (const Edge& e : captures) {
        const bool mine = std::find(d.captures().begin(), d.captures().end(), e) != d.captures().end();
        ASSIGN_OR_RETURN(results.emplace_back(), mine ? StatusOr<Edge>(e) : Nothing(&d.graph(), TypeOf(e)));
      }
      ASSIGN_OR_RETURN(names.emplace_back(),
                       c_.AddFunction(d.function().name() + "_forward", d.shared_graph(), d.args(), results, d.targets()));
    }
    std::map<std::string, AttrValue> changed = Functions(attrs, names);
    std::vector<uint32_t> types(c_.node().types().begin() + c_.node().n_in(), c_.node().types().end());
    const std::vector<uint32_t> more = TypesOf(captures);
    types.insert(types.end(), more.begin(), more.end());
    changed["Tout"] = AttrValue::Types(types);
    if (const AttrValue* stated = c_.node().FindAttr("output_shapes"); stated && !stated->shapes().empty()) {
      std::vector<Shape> shapes(stated->shapes().begin(), stated->shapes().end());
      const std::vector<Shape> theirs = all.size() == 1 ? Shapes(captures) : std::vector<Shape>(captures.size());
      shapes.insert(shapes.end(), theirs.begin(), theirs.end());
      changed["output_shapes"] = AttrValue::Shapes(shapes);
    }
    return c_.Extended({}, std::move(changed));
  }

  // Makes a value of the type without elements; for a handle, one that leads nowhere.
  StatusOr<Edge> Nothing(Graph* g, uint32_t type) const {
    if (type == TW_VARIANT) return AddListLike(g, TW_FLOAT, c_.node());
    const int64_t none = 0;
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(type, &none, type != TW_RESOURCE));
    return g->AddConst(t, g->UniqueName("nothing"), c_.node().place());
  }

  static std::map<std::string, AttrValue> Functions(const std::vector<std::string>& attrs, const std::vector<std::string>& names) {
    std::map<std::string, AttrValue> all;
    if (attrs.size() == 1 && attrs[0] == "branches") {
      all["branches"] = AttrValue::Funcs(names);
    } else {
      for (size_t k = 0; k < attrs.size(); ++k) all[attrs[k]] = AttrValue::Func(names[k]);
    }
    return all;
  }

  Status BackwardBranches(const std::vector<std::string>& attrs, const std::vector<Differentiated>& all, const std::vector<Edge>& captures,
                          const Mask& has_dx, int32_t first, const Node& forward) {
    std::vector<Edge> in(c_.node().inputs().begin(), c_.node().inputs().begin() + first);  // of the node
    for (size_t k = 0; k < captures.size(); ++k) in.push_back({&forward, c_.node().n_out() + int32_t(k)});
    in.insert(in.end(), c_.node().inputs().begin() + first, c_.node().inputs().end());
    for (int32_t o = 0; o < c_.node().n_out(); ++o) {
      if (!all[0].dys()[size_t(o)]) continue;
      ASSIGN_OR_RETURN(in.emplace_back(), c_.gradient().dy(o));
    }
    std::vector<std::string> names;
    std::vector<uint32_t> types;
    bool is_stateful = false;
    for (const Differentiated& d : all) {
      std::shared_ptr<Graph> body = Graph::Body(*c_.graph());
      Copied copied;
      std::vector<Edge> args, results;
      auto argument = [&](const Edge& e) -> Status {
        ASSIGN_OR_RETURN(args.emplace_back(), body->AddArgument(e, body->UniqueName(e.node->name()), e.node->place()));
        copied.Put(e, args.back());
        return Status();
      };
      for (const Edge& e : captures) {
        const bool mine = std::find(d.captures().begin(), d.captures().end(), e) != d.captures().end();
        if (mine) {
          RETURN_IF_ERROR(argument(e));
        } else {  // of the shape of Nothing
          ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(body.get(), TypeOf(e), Shape(), "other", c_.node()));
        }
      }
      for (const Edge& e : d.args()) RETURN_IF_ERROR(argument(e));
      for (const Edge& e : d.dys()) {
        if (e) RETURN_IF_ERROR(argument(e));
      }
      RETURN_IF_ERROR(d.CopyBackward(body.get(), &copied));
      for (size_t i = 0; i < has_dx.size(); ++i) {
        if (!has_dx[i]) continue;
        ASSIGN_OR_RETURN(results.emplace_back(),
                         d.dxs()[i] ? StatusOr<Edge>(copied.Find(d.dxs()[i])) : ZerosLike(body.get(), copied.Find(d.args()[i]), c_.node()));
      }
      types = TypesOf(results);
      is_stateful = is_stateful || IsStateful(*body);
      ASSIGN_OR_RETURN(names.emplace_back(), c_.AddFunction(d.function().name() + "_backward", body, args, results));
    }
    if (types.empty()) return Status();
    std::map<std::string, AttrValue> attributes = Functions(attrs, names);
    attributes["Tout"] = AttrValue::Types(types);
    ASSIGN_OR_RETURN(const OpSchema* op, c_.Op(is_stateful));
    std::map<std::string, std::string> extra;
    const Keeping& keeping = c_.gradient().keeping;
    if (keeping.recompute && !keeping.inside) {
      ASSIGN_OR_RETURN(extra[std::string(kNoInlineAttr)], SerializeAttr(AttrValue::Bool(true)));
    }
    ASSIGN_OR_RETURN(const Node* backward, AddNodeLike(c_.graph(), *op, c_.scope() + op->name, std::move(in), std::move(attributes),
                                                       c_.node(), std::move(extra)));
    int32_t o = 0;
    for (size_t i = 0; i < has_dx.size(); ++i) {
      if (has_dx[i]) c_.gradient().dx(first + int32_t(i), {backward, o++});
    }
    return Status();
  }

  const CallGradient& c_;
};

}  // namespace

Status AddBranchGradient(const CallGradient& c, const std::vector<std::string>& attrs, int32_t first) {
  return BranchGradient(c).Run(attrs, first);
}

}  // namespace thalweg
