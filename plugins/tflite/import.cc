#include "import.h"

#include <algorithm>
#include <map>
#include <set>

namespace thalweg::tflite {
namespace {

constexpr int kMostNested = 64;                     // bodies
constexpr int kMostTries = 4;                       // of a loop's shapes: each try makes sizes or ranks unknown that changed
constexpr uint64_t kMostMade = uint64_t{64} << 20;  // bytes of constants besides eight times the file

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

struct Deeper {
  explicit Deeper(Import& i) : import(i) {
    if (++import.depth <= kMostNested) return;
    --import.depth;
    throw Error{TW_INVALID_ARGUMENT, "subgraphs are nested more than " + std::to_string(kMostNested) + " deep"};
  }
  ~Deeper() { --import.depth; }
  Import& import;
};

void CheckOperators(const File& file) {
  std::map<std::string, int64_t> unknown;
  for (const Subgraph& s : file.subgraphs) {
    for (const Operator& o : s.operators) {
      const OperatorCode& code = file.codes[o.code];
      if (!FindTranslator(code.builtin)) ++unknown[NameOf(code)];
    }
  }
  if (unknown.empty()) return;
  std::vector<std::string> texts;
  constexpr size_t kMostListed = 100;
  for (const auto& [name, count] : unknown) {
    if (texts.size() == kMostListed) {
      texts.push_back("and more");
      break;
    }
    texts.push_back(name + " (" + std::to_string(count) + ")");
  }
  throw Error{TW_UNIMPLEMENTED, "the model uses operators that the importer does not have, with their counts: " + Joined(texts, ", ")};
}

const Subgraph& SubgraphOf(Graph& g, size_t index, size_t inputs) {
  const File& file = g.import().file;
  if (index >= file.subgraphs.size()) throw Error{TW_INVALID_ARGUMENT, "there is no subgraph " + std::to_string(index)};
  const Subgraph& s = file.subgraphs[index];
  if (s.inputs.size() != inputs) {
    throw Error{TW_INVALID_ARGUMENT, "subgraph " + std::to_string(index) + " takes " + std::to_string(s.inputs.size()) +
                                         " inputs, but gets " + std::to_string(inputs)};
  }
  return s;
}

std::vector<ShapeAttr> ShapesOf(const std::vector<Value>& values) {
  std::vector<ShapeAttr> shapes;
  for (const Value& v : values) shapes.push_back(v.shape());
  return shapes;
}

// The same values with shapes that their ops do not know.
std::vector<Value> Shaped(std::vector<Value> values, const std::vector<ShapeAttr>& shapes) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = Value(values[i].edge(), values[i].dtype(), shapes[i]);
  return values;
}

// A subgraph as a function of ours, before it is defined.
struct Body {
  Body(Graph& g, const Subgraph& s, const std::vector<ShapeAttr>& shapes) : sink(g.sink().Body()), graph(g.import(), *sink, s) {
    in = graph.arguments(&shapes);
    graph.translate();
    out = graph.results();
  }
  std::string define(Sink& around, const char* name) { return around.Define(name, *sink, graph.edges(in), graph.edges(out)); }
  std::unique_ptr<Sink> sink;
  Graph graph;
  std::vector<Value> in, out;
};

// The names of a signature's inputs or outputs, each once.
class Names {
 public:
  std::string operator()(std::string_view given, const char* otherwise, size_t i) {
    std::string name = Printable(given);
    if (name.empty()) name = otherwise + std::to_string(i);
    std::string free = name;
    for (int& k = taken_[name]; !used_.insert(free).second;) free = name + "_" + std::to_string(++k);
    return free;
  }

 private:
  std::map<std::string, int> taken_;  // wanted names, with the last number behind them
  std::set<std::string> used_;
};

Signature WholeFile(const File& file) {
  Signature s;
  s.name = "main";
  const Subgraph& first = file.subgraphs[0];
  for (const int64_t t : first.inputs) s.inputs.push_back({first.tensors[static_cast<size_t>(t)].name, t});
  for (const int64_t t : first.outputs) s.outputs.push_back({first.tensors[static_cast<size_t>(t)].name, t});
  return s;
}

// Its name is kept four times.
void CountPort(Import& import, const Value& v) { CountBytes(import, 1280 + v.shape().dims.size() * sizeof(int64_t)); }

Ports PortsOf(const Signature& s, Graph& g) {
  Ports ports;
  ports.name = Printable(s.name);
  Names in, out;
  std::set<int64_t> arguments;
  if (!s.inputs.empty()) arguments.insert(g.subgraph().inputs.begin(), g.subgraph().inputs.end());
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const int64_t t = s.inputs[i].tensor;
    if (!arguments.count(t))
      throw Error{TW_INVALID_ARGUMENT,
                  "signature '" + ports.name + "' has an input that is none of its subgraph: tensor " + std::to_string(t)};
    const Value v = g.stored(t);
    CountPort(g.import(), v);
    ports.inputs.push_back({in(s.inputs[i].name, "input", i), v, g.edge(v), {}});
  }
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    const Value v = g.stored(s.outputs[i].tensor);
    CountPort(g.import(), v);
    ports.outputs.push_back({out(s.outputs[i].name, "output", i), v, g.edge(v), {}});
  }
  return ports;
}

// The names of operators that have no translator, for messages.
struct Named {
  int32_t builtin;
  const char* name;
};
constexpr Named kNamed[] = {{10, "HASHTABLE_LOOKUP"},
                            {15, "LSH_PROJECTION"},
                            {16, "LSTM"},
                            {24, "RNN"},
                            {27, "SVDF"},
                            {29, "CONCAT_EMBEDDINGS"},
                            {30, "SKIP_GRAM"},
                            {31, "CALL"},
                            {33, "EMBEDDING_LOOKUP_SPARSE"},
                            {35, "UNIDIRECTIONAL_SEQUENCE_RNN"},
                            {46, "BIDIRECTIONAL_SEQUENCE_RNN"},
                            {51, "DELEGATE"},
                            {52, "BIDIRECTIONAL_SEQUENCE_LSTM"},
                            {129, "CALL_ONCE"},
                            {136, "HASHTABLE"},
                            {137, "HASHTABLE_FIND"},
                            {138, "HASHTABLE_IMPORT"},
                            {139, "HASHTABLE_SIZE"},
                            {142, "VAR_HANDLE"},
                            {143, "READ_VARIABLE"},
                            {144, "ASSIGN_VARIABLE"},
                            {146, "RANDOM_STANDARD_NORMAL"},
                            {148, "RANDOM_UNIFORM"},
                            {149, "MULTINOMIAL"},
                            {203, "DILATE"}};

}  // namespace

const Entry* FindTranslator(int32_t builtin) {
  static const auto* index = [] {
    auto* made = new std::map<int32_t, const Entry*>;
    for (const Family family : {
#define TRANSLATORS(name) name##_translators(),
#include "translators/files.inc"
#undef TRANSLATORS
         }) {
      for (const Entry* e = family.begin; e != family.end; ++e) made->emplace(e->builtin, e);
    }
    return made;
  }();
  const auto found = index->find(builtin);
  return found == index->end() ? nullptr : found->second;
}

std::string NameOf(const OperatorCode& code) {
  if (const Entry* e = FindTranslator(code.builtin)) return e->name;
  for (const Named& n : kNamed) {
    if (n.builtin == code.builtin) return n.name;
  }
  constexpr int32_t kCustomOperator = 32;
  return code.builtin == kCustomOperator ? "custom operator '" + Printable(code.custom) + "'"
                                         : "builtin operator " + std::to_string(code.builtin);
}

void CountBytes(Import& import, uint64_t bytes) {
  import.made += bytes;
  if (import.made <= 8 * import.file.buffer->bytes().size() + kMostMade) return;
  throw Error{TW_RESOURCE_EXHAUSTED, "the model's constants take more than eight times the bytes of its file"};
}

std::vector<Value> RunWhile(Graph& g, size_t condition, size_t step, const std::vector<Value>& in) {
  const Deeper deeper(g.import());
  const Subgraph &go = SubgraphOf(g, condition, in.size()), &again = SubgraphOf(g, step, in.size());
  std::vector<ShapeAttr> shapes = ShapesOf(in);
  std::unique_ptr<Body> body;
  for (int tries = 0;; ++tries) {
    body = std::make_unique<Body>(g, again, shapes);
    if (body->out.size() != in.size())
      throw Error{TW_INVALID_ARGUMENT, "the body of a loop returns another number of values than it takes"};
    bool agree = true;
    for (size_t i = 0; i < in.size(); ++i) {
      const ShapeAttr common = Common(shapes[i], body->out[i].shape());
      agree &= Same(common, shapes[i]);
      shapes[i] = tries + 2 >= kMostTries && !Same(common, shapes[i]) ? ShapeAttr{{}, false} : common;
    }
    if (agree) break;
    if (tries + 1 == kMostTries) shapes.assign(in.size(), ShapeAttr{{}, false});  // changes that pass from one variable to the next
    if (tries >= kMostTries) throw Error{TW_INTERNAL, "the shapes of a loop's variables do not settle"};
  }
  Body test(g, go, shapes);
  if (test.out.size() != 1 || test.out[0].dtype() != TW_BOOL) throw Error{TW_INVALID_ARGUMENT, "the condition of a loop is not one bool"};
  test.out[0] = test.graph.reshape(test.out[0], {});
  const std::string body_name = body->define(g.sink(), "body"), test_name = test.define(g.sink(), "condition");
  return Shaped(g.ops("While", in, {{"cond", Func{test_name}}, {"body", Func{body_name}}}, in.size()), shapes);
}

std::vector<Value> RunIf(Graph& g, const Value& condition, size_t then, size_t otherwise, const std::vector<Value>& in) {
  const Deeper deeper(g.import());
  const std::vector<ShapeAttr> shapes = ShapesOf(in);
  Body yes(g, SubgraphOf(g, then, in.size()), shapes), no(g, SubgraphOf(g, otherwise, in.size()), shapes);
  if (yes.out.size() != no.out.size()) throw Error{TW_INVALID_ARGUMENT, "the branches return other numbers of values"};
  std::vector<Dtype> types;
  for (size_t i = 0; i < yes.out.size(); ++i) {
    if (yes.out[i].dtype() != no.out[i].dtype()) throw Error{TW_INVALID_ARGUMENT, "the branches return values of other types"};
    types.push_back({yes.out[i].dtype()});
  }
  const std::string yes_name = yes.define(g.sink(), "then"), no_name = no.define(g.sink(), "else");
  std::vector<Value> all = {g.reshape(condition, {})};
  all.insert(all.end(), in.begin(), in.end());
  std::vector<ShapeAttr> common;
  for (size_t i = 0; i < yes.out.size(); ++i) common.push_back(Common(yes.out[i].shape(), no.out[i].shape()));
  return Shaped(g.ops("If", all, {{"Tout", types}, {"then_branch", Func{yes_name}}, {"else_branch", Func{no_name}}}, types.size()), common);
}

std::vector<Ports> ImportFile(const File& file, Sink& sink, const std::function<bool(const std::string&)>& wants) {
  CheckOperators(file);
  std::vector<Signature> signatures = file.signatures;
  if (signatures.empty()) signatures.push_back(WholeFile(file));
  Import import{file, {}, 0, 0, 0, 0, 0};
  std::map<size_t, std::unique_ptr<Graph>> graphs;
  std::vector<Ports> all;
  for (const Signature& s : signatures) {
    if (!wants(Printable(s.name))) continue;
    std::unique_ptr<Graph>& g = graphs[s.subgraph];
    try {
      if (!g) {
        g = std::make_unique<Graph>(import, sink, file.subgraphs[s.subgraph]);
        g->arguments(nullptr);
        g->translate();
      }
      if (import.errors.empty()) all.push_back(PortsOf(s, *g));
    } catch (const Error& e) {
      if (import.errors.empty()) throw;
    }
    if (!import.errors.empty()) throw Error{import.code, Joined(import.errors, "; ")};
  }
  return all;
}

}  // namespace thalweg::tflite
