// If, Loop and Scan. Their graphs see the values around them.
#include <algorithm>
#include <iterator>

#include "../model.h"
#include "list.h"
#include "while.h"

namespace thalweg::onnx {
namespace {

// Translates a graph and returns its outputs. A failure inside has been reported already.
std::vector<Value> Results(Builder& b, const proto::GraphProto& graph) {
  b.Translate(graph);
  std::vector<Value> results;
  for (const proto::ValueInfoProto& out : graph.output()) {
    if (b.failed(out.name())) throw Error{TW_OK, ""};
    results.push_back(b.find(out.name()));
  }
  return results;
}

// The types of the outputs from `begin` on. If the graph declares none, a copy of it that is thrown away tells them. in: values of the
// types of its inputs.
std::vector<uint32_t> ItemTypes(Builder& b, const proto::GraphProto& graph, size_t begin, const std::vector<Value>& in) {
  std::vector<uint32_t> types;
  for (int i = static_cast<int>(begin); i < graph.output_size(); ++i) {
    const proto::TypeProto& type = graph.output(i).type();
    types.push_back(type.has_tensor_type() && type.tensor_type().elem_type() ? DtypeOf(type.tensor_type().elem_type()) : 0);
  }
  if (std::count(types.begin(), types.end(), 0u) == 0) return types;
  const std::unique_ptr<Sink> sink = b.sink().Body();
  Builder copy(b.model(), *sink, &b);
  for (size_t i = 0; i < in.size(); ++i) copy.set(graph.input(static_cast<int>(i)).name(), copy.capture(in[i]));
  const std::vector<Value> made = Results(copy, graph);
  for (size_t i = 0; i < types.size(); ++i) types[i] = made[begin + i].dtype();
  return types;
}

void If(Builder& b, Node& n) {
  const proto::GraphProto &then = n.graph("then_branch"), &otherwise = n.graph("else_branch");
  if (static_cast<size_t>(then.output_size()) < n.outputs() || static_cast<size_t>(otherwise.output_size()) < n.outputs()) {
    n.fail("has " + std::to_string(n.outputs()) + " outputs, but its graphs have " + std::to_string(then.output_size()) + " and " +
           std::to_string(otherwise.output_size()));
  }
  const Value& condition = n.in(0);
  if (condition.constant()) {  // only one branch can run
    if (condition.constant()->count() != 1) n.fail("the condition has " + std::to_string(condition.constant()->count()) + " elements");
    std::vector<Value> results;
    {
      const Builder::Names names(b);
      results = Results(b, condition.constant()->integer(0) ? then : otherwise);
    }
    for (size_t i = 0; i < n.outputs(); ++i) n.out(i, results[i]);
    return;
  }
  const std::vector<Value> results = RunIf(
      b, Scalar(b, condition), [&](Builder& body) { return Results(body, then); }, [&](Builder& body) { return Results(body, otherwise); });
  for (size_t i = 0; i < n.outputs(); ++i) n.out(i, results[i]);
}

// A value of the body for a variable that is an optional: ONNX lets an element stand for the optional that has it.
Value ForVariable(Builder& b, const Value& made, const Value& variable) {
  if (!variable.listed() || !variable.listed()->optional) return made;
  const bool tensor = made.kind() == Value::Kind::kTensor && !made.listed();
  return tensor || !ListedOf(made).optional ? AsList(b, b.optional({made})) : made;
}

Value Number(Builder& b, int64_t v) { return b.constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{v}).Reshaped({})); }

// Variables: the number of the iteration, whether the loop goes on, the carried values, then a list for each scan output.
void Loop(Builder& b, Node& n) {
  const proto::GraphProto& graph = n.graph("body");
  const size_t carried = n.inputs() < 2 ? 0 : n.inputs() - 2;
  if (static_cast<size_t>(graph.input_size()) != carried + 2)
    n.fail("the body has " + std::to_string(graph.input_size()) + " inputs, not " + std::to_string(carried + 2));
  if (static_cast<size_t>(graph.output_size()) < carried + 1)
    n.fail("the body has " + std::to_string(graph.output_size()) + " outputs; at least " + std::to_string(carried + 1) + " are needed");
  const size_t scans = static_cast<size_t>(graph.output_size()) - carried - 1;
  const Value most = n.has(0) ? Scalar(b, b.cast(n.in(0), TW_INT64)) : Value();
  std::vector<Value> first = {Number(b, 0), n.has(1) ? Scalar(b, n.in(1)) : b.scalar(TW_BOOL, 1)};
  for (size_t i = 0; i < carried; ++i) first.push_back(n.in(2 + i));
  const std::vector<uint32_t> types = ItemTypes(b, graph, carried + 1, first);
  for (const uint32_t type : types) first.push_back(NewList(b, type));
  std::vector<ShapeAttr> items(scans);
  const LoopPart go = [&](Builder& body, const std::vector<Value>& v) {
    return std::vector<Value>{most ? body.op("LogicalAnd", {body.op("Less", {v[0], most}), v[1]}) : v[1]};
  };
  const LoopPart step = [&](Builder& body, const std::vector<Value>& v) {
    body.set(graph.input(0).name(), v[0]);
    body.set(graph.input(1).name(), v[1]);
    for (size_t i = 0; i < carried; ++i) body.set(graph.input(static_cast<int>(2 + i)).name(), v[2 + i]);
    const std::vector<Value> made = Results(body, graph);
    std::vector<Value> next = {body.op("AddV2", {v[0], Number(body, 1)}), Scalar(body, made[0])};
    for (size_t i = 0; i < carried; ++i) next.push_back(ForVariable(body, made[1 + i], v[2 + i]));
    for (size_t i = 0; i < scans; ++i) {
      const Value& item = made[1 + carried + i];
      if (item.kind() != Value::Kind::kTensor || item.listed()) n.unsupported("scan output " + std::to_string(i) + " is no tensor");
      items[i] = item.shape();
      next.push_back(Pushed(body, v[2 + carried + i], item));
    }
    return next;
  };
  const std::vector<Value> last = RunWhile(b, first, go, step);
  for (size_t i = 0; i < carried; ++i) {
    const Value& v = last[2 + i];
    const bool element = v.listed() && v.listed()->optional && !graph.output(static_cast<int>(1 + i)).type().has_optional_type();
    n.out(i, element ? ListItem(b, v, b.scalar(TW_INT32, 0)) : v);
  }
  for (size_t i = 0; i < scans; ++i) n.out(carried + i, Stacked(b, last[2 + carried + i], types[i], items[i]));
}

// ---- Scan ----

struct ScanForm {
  size_t states = 0, ins = 0, outs = 0;
  std::vector<int64_t> in_axes, out_axes, in_reverse, out_reverse;
};

std::vector<int64_t> Entries(Node& n, const char* name, size_t count) {
  std::vector<int64_t> v = n.ints(name);
  if (v.empty()) v.assign(count, 0);
  if (v.size() != count) n.fail("'" + std::string(name) + "' needs " + std::to_string(count) + " entries, not " + std::to_string(v.size()));
  return v;
}

// Runs the body for each slice. in: the initial states, then the scanned values. Returns the final states, then the scan outputs.
std::vector<Value> RunScan(Builder& b, Node& n, const proto::GraphProto& graph, const ScanForm& f, const std::vector<Value>& in) {
  std::vector<Value> first = {b.scalar(TW_INT32, 0)};
  for (size_t i = 0; i < f.states; ++i) first.push_back(in[i]);
  std::vector<Value> scanned;
  for (size_t i = 0; i < f.ins; ++i) {
    Value v = in[f.states + i];
    if (f.in_reverse[i]) v = b.op("ReverseV2", {v, b.ints({f.in_axes[i]}, TW_INT32)});
    scanned.push_back(v);
  }
  const Value steps = b.cast(b.size(scanned[0], static_cast<int>(f.in_axes[0])), TW_INT32);
  std::vector<Value> slices(in.begin(), in.begin() + static_cast<int64_t>(f.states));
  for (size_t i = 0; i < f.ins; ++i)
    slices.push_back(b.op("GatherV2", {scanned[i], first[0], b.scalar(TW_INT32, static_cast<double>(f.in_axes[i]))}));
  const std::vector<uint32_t> types = ItemTypes(b, graph, f.states, slices);
  for (const uint32_t type : types) first.push_back(NewList(b, type));
  std::vector<ShapeAttr> items(f.outs);
  const LoopPart go = [&](Builder& body, const std::vector<Value>& v) { return std::vector<Value>{body.op("Less", {v[0], steps})}; };
  const LoopPart step = [&](Builder& body, const std::vector<Value>& v) {
    for (size_t i = 0; i < f.states; ++i) body.set(graph.input(static_cast<int>(i)).name(), v[1 + i]);
    for (size_t i = 0; i < f.ins; ++i) {
      const Value axis = body.scalar(TW_INT32, static_cast<double>(f.in_axes[i]));
      body.set(graph.input(static_cast<int>(f.states + i)).name(), body.op("GatherV2", {scanned[i], v[0], axis}));
    }
    const std::vector<Value> made = Results(body, graph);
    std::vector<Value> next = {body.op("AddV2", {v[0], body.scalar(TW_INT32, 1)})};
    for (size_t i = 0; i < f.states; ++i) next.push_back(made[i]);
    for (size_t i = 0; i < f.outs; ++i) {
      items[i] = made[f.states + i].shape();
      next.push_back(Pushed(body, v[1 + f.states + i], made[f.states + i]));
    }
    return next;
  };
  const std::vector<Value> last = RunWhile(b, first, go, step);
  std::vector<Value> results(last.begin() + 1, last.begin() + 1 + static_cast<int64_t>(f.states));
  for (size_t i = 0; i < f.outs; ++i) {
    Value v = Stacked(b, last[1 + f.states + i], types[i], items[i]);
    if (f.out_reverse[i]) v = b.op("ReverseV2", {v, b.ints({0}, TW_INT32)});
    int64_t axis = f.out_axes[i];
    if (axis != 0) {
      if (v.rank() < 0) n.unsupported("the rank of scan output " + std::to_string(i) + " is unknown");
      if (axis < 0) axis += v.rank();
      if (axis < 0 || axis >= v.rank())
        n.fail("'scan_output_axes' has " + std::to_string(f.out_axes[i]) + ", but the output has rank " + std::to_string(v.rank()));
      std::vector<int64_t> perm;
      for (int64_t a = 0; a < v.rank(); ++a) perm.push_back(a < axis ? a + 1 : a == axis ? 0 : a);
      v = b.transpose(v, perm);
    }
    results.push_back(v);
  }
  return results;
}

ScanForm FormOf(Node& n, const proto::GraphProto& graph, size_t inputs) {
  ScanForm f;
  const int64_t ins = n.i("num_scan_inputs");
  if (ins < 1 || static_cast<size_t>(ins) > inputs)
    n.fail("'num_scan_inputs' is " + std::to_string(ins) + ", but there are " + std::to_string(inputs) + " inputs");
  f.ins = static_cast<size_t>(ins);
  f.states = inputs - f.ins;
  if (static_cast<size_t>(graph.input_size()) != inputs || static_cast<size_t>(graph.output_size()) < f.states)
    n.fail("the body has other numbers of inputs and outputs than the node");
  f.outs = static_cast<size_t>(graph.output_size()) - f.states;
  return f;
}

void Scan(Builder& b, Node& n) {
  const proto::GraphProto& graph = n.graph("body");
  ScanForm f = FormOf(n, graph, n.inputs());
  f.in_axes = Entries(n, "scan_input_axes", f.ins);
  f.out_axes = Entries(n, "scan_output_axes", f.outs);
  f.in_reverse = Entries(n, "scan_input_directions", f.ins);
  f.out_reverse = Entries(n, "scan_output_directions", f.outs);
  const std::vector<Value> results = RunScan(b, n, graph, f, n.all());
  for (size_t i = 0; i < n.outputs(); ++i) n.out(i, results[i]);
}

// Opset 8: all values have a batch axis in front, and input 0 may give a length for each element of the batch.
void Scan8(Builder& b, Node& n) {
  const proto::GraphProto& graph = n.graph("body");
  if (n.has(0)) n.unsupported("lengths of sequences (input 0), which opset 9 removed; convert the model to opset 9 or later");
  ScanForm f = FormOf(n, graph, n.inputs() - 1);
  f.in_axes.assign(f.ins, 0);
  f.out_axes.assign(f.outs, 0);
  f.in_reverse = Entries(n, "directions", f.ins);
  f.out_reverse.assign(f.outs, 0);
  const int64_t batch = n.in(1).dim(0);
  if (batch < 1 || batch > 64) n.unsupported("a batch of unknown size, or above 64; convert the model to opset 9 or later");
  std::vector<std::vector<Value>> all(f.states + f.outs);
  for (int64_t i = 0; i < batch; ++i) {
    std::vector<Value> in;
    for (size_t k = 1; k < n.inputs(); ++k)
      in.push_back(b.op("GatherV2", {n.in(k), b.scalar(TW_INT32, static_cast<double>(i)), b.scalar(TW_INT32, 0)}));
    const std::vector<Value> results = RunScan(b, n, graph, f, in);
    for (size_t k = 0; k < all.size(); ++k) all[k].push_back(results[k]);
  }
  for (size_t k = 0; k < n.outputs(); ++k) n.out(k, b.op("Pack", all[k], {{"axis", 0}}));
}

constexpr Entry kControl[] = {
    {"If", 1, kLatest, &If},
    {"Loop", 1, kLatest, &Loop},
    {"Scan", 8, 8, &Scan8},
    {"Scan", 9, kLatest, &Scan},
};

}  // namespace

Family ControlTranslators() { return {std::begin(kControl), std::end(kControl)}; }

}  // namespace thalweg::onnx
