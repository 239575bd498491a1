#include "loop.h"

#include "list.h"

namespace thalweg::onnx {
namespace {

Value Same(const Value& v, const Value& like) { return like.listed() ? Described(v, *like.listed()) : v; }

}  // namespace

std::vector<Value> Repeat(Builder& b, const Value& begin, const Value& end, const std::vector<Value>& states, const LoopBody& body) {
  const std::unique_ptr<Sink> sink = b.sink().Body();
  Builder inside(b.model(), *sink, &b);
  const Value number = inside.argument("number", TW_INT32, {{}, true});
  std::vector<Value> arguments;
  for (const Value& s : states) {
    const bool list = s.dtype() == TW_VARIANT;
    arguments.push_back(Same(inside.argument("state", s.dtype(), {{}, list}), s));
  }
  const std::vector<Value> results = body(inside, number, arguments);
  std::vector<Edge> out, in{inside.edge(number)};
  for (const Value& r : results) out.push_back(inside.edge(r));
  for (const Value& a : arguments) in.push_back(inside.edge(a));
  std::vector<Value> given{b.cast(begin, TW_INT32), b.cast(end, TW_INT32), b.scalar(TW_INT32, 1)};
  given.insert(given.end(), states.begin(), states.end());
  for (const auto& [outer, own] : inside.captures()) {  // the body passes them on
    given.push_back(outer);
    in.push_back(inside.edge(own));
    out.push_back(inside.edge(own));
  }
  const std::string name = b.sink().Define("repeated", *sink, in, out);
  std::vector<Type> types;
  for (size_t i = 3; i < given.size(); ++i) types.push_back({given[i].dtype()});
  std::vector<Value> last = b.ops("For", given, {{"T", types}, {"body", Func{name}}}, out.size());
  last.resize(states.size());
  for (size_t i = 0; i < last.size(); ++i) last[i] = Same(last[i], states[i]);
  return last;
}

}  // namespace thalweg::onnx
