#include "framework/graph/function_shapes.h"

#include <optional>

#include "framework/base/dtype.h"
#include "framework/tensor/shape.h"

namespace thalweg {
namespace {

// Checks that the values have the types of the node's inputs or outputs from `first` on.
Status CheckTypes(const Function& f, const Node& node, int32_t first, bool outputs, const std::vector<Edge>& values,
                  std::string_view what) {
  const int32_t n = (outputs ? node.n_out() : node.n_in()) - first;
  if (int32_t(values.size()) != n) {
    return InvalidArgument("function ", f.title(), " has ", values.size(), " ", what, "s, but the node has ", n);
  }
  for (int32_t i = 0; i < n; ++i) {
    const Edge& e = values[size_t(i)];
    const uint32_t want = BaseType(outputs ? node.out_type(i) : node.in_type(first + i)), have = BaseType(e.node->out_type(e.port));
    if (want != have) {
      return InvalidArgument(what, " ", i, " of function ", f.title(), " is ", DTypeName(have), ", but that of the node is ",
                             DTypeName(want));
    }
  }
  return Status();
}

// Returns the shape with the sizes that are equal in both.
Shape Common(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape();
  std::vector<int64_t> dims;
  for (int32_t k = 0; k < a.rank(); ++k) dims.push_back(a.dim(k) == b.dim(k) ? a.dim(k) : -1);
  return Shape(dims);
}

std::vector<Shape> ShapesOf(const std::vector<Edge>& values) {
  std::vector<Shape> shapes;
  for (const Edge& e : values) shapes.push_back(e.node->shape(e.port));
  return shapes;
}

class Asker {
 public:
  Asker(FunctionLibrary* library, const Node& node) : library_(library), node_(node) {}

  Status Run(std::vector<Shape>* shapes) {
    const std::string_view role = CallRole(node_.op());
    if (role == "while") {
      RETURN_IF_ERROR(Ask("cond", 0, false));
      RETURN_IF_ERROR(Ask("body", 0, true));
    } else if (role == "for") {
      RETURN_IF_ERROR(Ask("body", 2, true));
    } else if (role == "if") {
      RETURN_IF_ERROR(Ask("then_branch", 1, true));
      RETURN_IF_ERROR(Ask("else_branch", 1, true));
    } else {
      RETURN_IF_ERROR(Ask(role == "case" ? "branches" : "f", role == "case", true));
    }
    for (size_t o = 0; all_ && known_ && o < shapes->size(); ++o) {
      auto both = MergeShapes((*shapes)[o], (*known_)[o]);
      if (both.ok()) (*shapes)[o] = *std::move(both);
    }
    return Status();
  }

 private:
  // first: number of node inputs before the function's arguments. gives: the function's results are
  // the node's outputs.
  Status Ask(std::string_view attr, int32_t first, bool gives) {
    for (const std::string& name : node_.FindAttr(attr)->strings()) {
      auto f = library_->Find(name);
      if (f.status().code() == absl::StatusCode::kNotFound) {
        all_ = false;
        continue;
      }
      RETURN_IF_ERROR(f.status());
      RETURN_IF_ERROR(CheckTypes(**f, node_, first, false, (*f)->args(), "argument"));
      if (!gives) continue;
      RETURN_IF_ERROR(CheckTypes(**f, node_, 0, true, (*f)->results(), "result"));
      // The final values of a loop are possible arguments of its body. The body of a For has the
      // loop's number before them.
      const std::string_view role = CallRole(node_.op());
      std::vector<Shape> shapes = ShapesOf(role == "while" || role == "for" ? (*f)->args() : (*f)->results());
      if (role == "for") shapes.erase(shapes.begin());
      Take(std::move(shapes));
    }
    return Status();
  }

  void Take(std::vector<Shape> shapes) {
    for (size_t o = 0; known_ && o < shapes.size(); ++o) shapes[o] = Common(shapes[o], (*known_)[o]);
    known_ = std::move(shapes);
  }

  FunctionLibrary* library_;
  const Node& node_;
  bool all_ = true;  // the library has all functions
  std::optional<std::vector<Shape>> known_;
};

}  // namespace

std::string_view CallRole(const OpSchema& op) {
  constexpr std::string_view kStateless = "stateless_";
  std::string_view role = op.role;
  if (role.starts_with(kStateless)) role.remove_prefix(kStateless.size());
  return role;
}

bool CallsFunctions(const OpSchema& op) {
  const std::string_view role = CallRole(op);
  return role == "if" || role == "case" || role == "while" || role == "for" || role == "call";
}

Status AskFunctions(FunctionLibrary* library, const Node& node, std::vector<Shape>* shapes) { return Asker(library, node).Run(shapes); }

}  // namespace thalweg
