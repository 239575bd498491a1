#include "while.h"

#include <optional>

#include "list.h"

namespace thalweg::onnx {
namespace {

constexpr int kMostTries = 4;  // of shapes: each try makes sizes or ranks unknown that changed

// A body while it is built.
struct Part {
  std::unique_ptr<Sink> sink;
  std::unique_ptr<Builder> builder;
  std::vector<Value> arguments, results;
};

Part Begin(Builder& b) {
  Part part;
  part.sink = b.sink().Body();
  part.builder = std::make_unique<Builder>(b.model(), *part.sink, &b);
  return part;
}

Value Argument(Part& part, const Value& like, const ShapeAttr& shape) {
  const Value made = part.builder->argument("argument", like.dtype(), shape);
  return like.listed() ? Described(made, *like.listed()) : made;
}

// The values of graphs around that the parts use, each once.
std::vector<Value> Captured(const std::vector<Part*>& parts) {
  std::vector<Value> all;
  for (const Part* part : parts) {
    for (const auto& [outer, own] : part->builder->captures()) {
      bool found = false;
      for (const Value& v : all) found |= v.info().owner == outer.info().owner && v.info().edge == outer.info().edge;
      if (!found) all.push_back(outer);
    }
  }
  return all;
}

std::vector<Edge> EdgesOf(Builder& b, const std::vector<Value>& values) {
  std::vector<Edge> edges;
  for (const Value& v : values) edges.push_back(b.edge(v));
  return edges;
}

}  // namespace

std::vector<Value> RunWhile(Builder& b, const std::vector<Value>& first, const LoopPart& go, const LoopPart& step) {
  std::vector<Value> start;
  for (const Value& v : first) start.push_back(v.kind() == Value::Kind::kTensor ? v : AsList(b, v));
  std::vector<ShapeAttr> shapes;
  for (const Value& v : start) shapes.push_back(v.listed() ? ShapeAttr{{}, true} : v.shape());
  Part body;
  for (int tries = 0;; ++tries) {
    body = Begin(b);
    for (size_t i = 0; i < start.size(); ++i) body.arguments.push_back(Argument(body, start[i], shapes[i]));
    body.results = step(*body.builder, body.arguments);
    if (body.results.size() != start.size()) throw Error{TW_INTERNAL, "a loop has other numbers of variables and results"};
    bool agree = true;
    for (size_t i = 0; i < start.size(); ++i) {
      Value& r = body.results[i];
      if (r.kind() != Value::Kind::kTensor) r = AsList(*body.builder, r);
      if (r.dtype() != start[i].dtype()) {
        throw Error{TW_INVALID_ARGUMENT, "loop variable " + std::to_string(i) + " is " + DtypeName(start[i].dtype()) + " at first, but " +
                                             DtypeName(r.dtype()) + " after an iteration"};
      }
      const ShapeAttr common = r.listed() ? shapes[i] : Common(shapes[i], r.shape());
      agree &= Same(common, shapes[i]);
      shapes[i] = tries + 2 >= kMostTries && !Same(common, shapes[i]) ? ShapeAttr{{}, false} : common;
    }
    if (agree) break;
    if (tries >= kMostTries) throw Error{TW_INTERNAL, "the shapes of a loop's variables do not settle"};
  }
  Part condition = Begin(b);
  for (size_t i = 0; i < start.size(); ++i) condition.arguments.push_back(Argument(condition, start[i], shapes[i]));
  condition.results = go(*condition.builder, condition.arguments);
  const std::vector<Value> captured = Captured({&body, &condition});
  for (const Value& outer : captured) {
    const Value own = body.builder->capture(outer);
    body.arguments.push_back(own);
    body.results.push_back(own);
    condition.arguments.push_back(condition.builder->capture(outer));
    start.push_back(outer);
  }
  const std::string body_name =
      b.sink().Define("body", *body.sink, EdgesOf(*body.builder, body.arguments), EdgesOf(*body.builder, body.results));
  const std::string go_name = b.sink().Define("condition", *condition.sink, EdgesOf(*condition.builder, condition.arguments),
                                              EdgesOf(*condition.builder, condition.results));
  std::vector<Value> last = b.ops("While", start, {{"cond", Func{go_name}}, {"body", Func{body_name}}}, start.size());
  last.resize(first.size());
  for (size_t i = 0; i < last.size(); ++i) {
    if (start[i].listed()) last[i] = Described(last[i], *start[i].listed());
  }
  return last;
}

std::vector<Value> RunIf(Builder& b, const Value& condition, const std::function<std::vector<Value>(Builder&)>& then,
                         const std::function<std::vector<Value>(Builder&)>& otherwise) {
  Part yes = Begin(b), no = Begin(b);
  yes.results = then(*yes.builder);
  no.results = otherwise(*no.builder);
  if (yes.results.size() != no.results.size()) throw Error{TW_INVALID_ARGUMENT, "the branches have other numbers of results"};
  std::vector<Type> types;
  std::vector<std::optional<Listed>> lists;
  for (size_t i = 0; i < yes.results.size(); ++i) {
    Value &y = yes.results[i], &n = no.results[i];
    if (y.kind() != Value::Kind::kTensor || n.kind() != Value::Kind::kTensor || y.listed() || n.listed()) {
      y = AsList(*yes.builder, y);
      n = AsList(*no.builder, n);
    }
    if (y.dtype() != n.dtype()) {
      throw Error{TW_INVALID_ARGUMENT, "result " + std::to_string(i) + " is " + DtypeName(y.dtype()) + " in one branch and " +
                                           DtypeName(n.dtype()) + " in the other"};
    }
    types.push_back({y.dtype()});
    // An optional or sequence that is empty in one branch does not tell its type there.
    lists.push_back(y.listed()
                        ? std::optional<Listed>(y.listed()->dtype && (!n.listed() || y.listed()->inner || !n.listed()->inner) ? *y.listed()
                                                                                                                              : *n.listed())
                        : std::nullopt);
  }
  const std::vector<Value> captured = Captured({&yes, &no});
  for (Part* part : {&yes, &no}) {
    for (const Value& outer : captured) part->arguments.push_back(part->builder->capture(outer));
  }
  const std::string then_name =
      b.sink().Define("then", *yes.sink, EdgesOf(*yes.builder, yes.arguments), EdgesOf(*yes.builder, yes.results));
  const std::string else_name = b.sink().Define("else", *no.sink, EdgesOf(*no.builder, no.arguments), EdgesOf(*no.builder, no.results));
  std::vector<Value> in = {condition};
  in.insert(in.end(), captured.begin(), captured.end());
  std::vector<Value> out =
      b.ops("If", in, {{"Tout", types}, {"then_branch", Func{then_name}}, {"else_branch", Func{else_name}}}, types.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (lists[i]) out[i] = Described(out[i], *lists[i]);
  }
  return out;
}

Value Scalar(Builder& b, const Value& v) { return v.rank() == 0 ? v : b.reshape(v, Dims{}); }

Value NewList(Builder& b, uint32_t dtype) {
  return Described(b.op("EmptyTensorList", {b.scalar(TW_INT32, -1), b.scalar(TW_INT32, -1)}, {{"element_dtype", Type{dtype}}}),
                   Listed{false, dtype, nullptr});
}

Value Stacked(Builder& b, const Value& list, uint32_t dtype, const ShapeAttr& item) {
  const Value shape = item.known_rank ? b.ints(item.dims, TW_INT32) : b.scalar(TW_INT32, -1);
  return b.op("TensorListStack", {list, shape}, {{"element_dtype", Type{dtype}}});
}

}  // namespace thalweg::onnx
