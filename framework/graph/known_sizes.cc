#include "framework/graph/known_sizes.h"

#include <algorithm>

#include "framework/base/checked.h"

namespace thalweg {
namespace {

constexpr int64_t kFirst = 1009, kSecond = 2003;  // what stands for unknown elements; sizes that no other is a multiple of
constexpr int64_t kMostElements = 64;
constexpr int kMostNodes = 64;

bool IsIndex(uint32_t dtype) { return dtype == TW_INT32 || dtype == TW_INT64; }

StatusOr<Tensor> Numbers(uint32_t dtype, const Shape& shape, const std::vector<int64_t>& values) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  if (dtype == TW_INT32) {
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(t.data()));
  } else {
    std::copy(values.begin(), values.end(), static_cast<int64_t*>(t.data()));
  }
  return t;
}

std::vector<int64_t> Elements(const Tensor& t) {
  if (t.dtype() == TW_INT32) return {static_cast<const int32_t*>(t.data()), static_cast<const int32_t*>(t.data()) + t.count()};
  return {static_cast<const int64_t*>(t.data()), static_cast<const int64_t*>(t.data()) + t.count()};
}

// The argument of flat input i.
size_t ArgumentOf(const std::vector<uint32_t>& at, uint32_t i) {
  return size_t(std::upper_bound(at.begin(), at.end(), i) - at.begin()) - 1;
}

// Computes values in which one number stands for every element that is not known.
class Probe {
 public:
  Probe(GraphHost& host, FoldingBudget& folding, int64_t unknown) : host_(host), folding_(folding), unknown_(unknown) {}

  // Empty if the edge holds no whole numbers or if its shape is not known.
  Tensor Value(const Edge& e) {
    if (const Tensor& known = e.node->value(e.port)) return known;
    const Shape& shape = e.node->shape(e.port);
    const uint32_t dtype = e.node->out_type(e.port);
    if (!IsIndex(dtype) || !shape.known()) return Tensor();
    const auto count = CountElements(shape.dims().data(), shape.rank());
    if (!count.ok() || *count > kMostElements) return Tensor();
    std::vector<int64_t> values(size_t(*count), unknown_);
    if (e.node->op().role == "shape" && e.node->n_in() == 1) {
      const Shape& of = e.node->inputs()[0].node->shape(e.node->inputs()[0].port);
      for (size_t k = 0; of.has_rank() && k < values.size(); ++k)
        if (of.dims()[k] >= 0) values[k] = of.dims()[k];
    } else if (MovesElements(*e.node, e.port) && nodes_++ < kMostNodes) {
      if (Tensor moved = Moved(*e.node, e.port)) return moved;
    }
    auto made = Numbers(dtype, shape, values);
    return made.ok() ? *std::move(made) : Tensor();
  }

 private:
  // An op on elements of any type cannot compute with them: the elements of its output are elements of its inputs. One that converts
  // whole numbers keeps them, too.
  static bool MovesElements(const Node& node, int32_t port) {
    const OpSchema& op = node.op();
    if (op.stateful || op.once || op.name == "PlaceholderWithDefault" || node.n_in() == 0) return false;
    if (op.algebra.converts >= 0 && node.n_in() == 1) return IsIndex(node.in_type(0));
    const std::string& type = op.outputs[ArgumentOf(node.out_at(), uint32_t(port))].type_attr;
    const int attr = type.empty() ? -1 : op.FindAttr(type);
    if (attr < 0 || op.attrs[size_t(attr)].list || !op.attrs[size_t(attr)].types.empty()) return false;
    for (int32_t i = 0; i < node.n_in(); ++i) {
      const Edge& e = node.inputs()[size_t(i)];
      if (op.inputs[ArgumentOf(node.in_at(), uint32_t(i))].type_attr != type && !e.node->value(e.port)) return false;
    }
    return true;
  }

  Tensor Moved(const Node& node, int32_t port) {
    std::vector<Tensor> values;
    std::vector<tw_shape> shapes;
    for (const Edge& e : node.inputs()) {
      values.push_back(Value(e));
      if (!values.back()) return Tensor();
      shapes.push_back(e.node->shape(e.port).c());
    }
    if (!CanEvaluate(node.op(), node.in_at(), shapes, values)) return Tensor();
    auto made = folding_.Evaluate(host_, node, shapes, values);
    return made.ok() && size_t(port) < made->size() ? (*made)[size_t(port)] : Tensor();
  }

  GraphHost& host_;
  FoldingBudget& folding_;
  const int64_t unknown_;
  int nodes_ = 0;
};

// The outputs with an axis for each element of the vector, and with an unknown size.
std::vector<uint32_t> Candidates(const ShapeAnswer& answer, int64_t length) {
  std::vector<uint32_t> found;
  for (uint32_t o = 0; o < answer.shapes.size(); ++o) {
    const Shape& s = answer.shapes[o];
    if (s.has_rank() && s.rank() == length && !s.known()) found.push_back(o);
  }
  return found;
}

// Adds the sizes of one output. a, b: its shapes for the two numbers.
void Add(const std::vector<int64_t>& first, const std::vector<int64_t>& second, const Shape& a, const Shape& b, Shape* out) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != out->rank() || b.rank() != out->rank()) return;
  std::vector<int64_t> sizes(out->dims().begin(), out->dims().end());
  for (size_t k = 0; k < sizes.size(); ++k) {
    const bool stays = a.dims()[k] == b.dims()[k] && a.dims()[k] >= 0;
    if (first[k] != second[k] && stays) return;  // the elements are no sizes
    if (first[k] == second[k] && stays && sizes[k] < 0) sizes[k] = a.dims()[k];
  }
  *out = Shape(std::move(sizes));
}

}  // namespace

void AddKnownSizes(GraphHost& host, FoldingBudget& folding, const Node& node, const ShapeQuery& query, ShapeAnswer* answer) {
  for (uint32_t i = 0; i < query.n_in; ++i) {
    const tw_shape& in = query.in[i];
    if (query.values[i] || !IsIndex(query.types[i]) || in.rank != 1 || in.dims[0] < 2 || in.dims[0] > kMostElements) continue;
    const std::vector<uint32_t> outputs = Candidates(*answer, in.dims[0]);
    if (outputs.empty()) continue;
    const Edge& e = node.inputs()[i];
    const Tensor a = Probe(host, folding, kFirst).Value(e), b = Probe(host, folding, kSecond).Value(e);
    if (!a || !b) continue;
    const std::vector<int64_t> first = Elements(a), second = Elements(b);
    if (int64_t(first.size()) != in.dims[0] || first.size() != second.size()) continue;
    bool any = false;
    for (size_t k = 0; k < first.size(); ++k) any = any || first[k] == second[k];
    if (!any) continue;
    std::vector<const tw_view*> values(query.values, query.values + query.n_in);
    ShapeQuery with = query;
    with.values = values.data();
    ShapeAnswer for_first, for_second;
    values[i] = &a.view();
    if (!InferShapes(with, &for_first).ok()) continue;
    values[i] = &b.view();
    if (!InferShapes(with, &for_second).ok()) continue;
    for (const uint32_t o : outputs) Add(first, second, for_first.shapes[o], for_second.shapes[o], &answer->shapes[o]);
  }
}

}  // namespace thalweg
