// Graphs while they are filled: values, nodes and bodies of control flow.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "import.h"
#include "loose.h"

namespace thalweg::stablehlo {
namespace {

constexpr int kMostNested = 64;  // bodies and calls
constexpr int64_t kMostOperations = 1 << 20;
constexpr size_t kMostErrors = 20;       // that are listed
constexpr int64_t kMostNodes = 1 << 20;  // a plan has no more
constexpr int64_t kMostKnown = 1024;     // elements of a constant that is computed with
constexpr int64_t kMostFilled = 64;      // elements of a splat that are also kept one by one
constexpr int kMostTries = 4;            // of a loop's shapes: each try makes sizes or ranks unknown that changed

struct Deeper {
  explicit Deeper(Import& i) : import(i) {
    if (++import.depth <= kMostNested) return;
    --import.depth;
    throw Error{TW_INVALID_ARGUMENT, "bodies and calls are nested more than " + std::to_string(kMostNested) + " deep"};
  }
  ~Deeper() { --import.depth; }
  Import& import;
};

// A short module may call a function very many times.
void CountOperations(Import& import, size_t operations, size_t values) {
  import.operations += static_cast<int64_t>(operations + values / 16);
  if (import.operations <= kMostOperations) return;
  throw Error{TW_RESOURCE_EXHAUSTED,
              "the module has more than " + std::to_string(kMostOperations) + " operations, counted once for each call of a function"};
}

void CountNode(Import& import) {
  if (++import.nodes <= kMostNodes) return;
  throw Error{TW_RESOURCE_EXHAUSTED, "the module's graph has more than " + std::to_string(kMostNodes) +
                                         " nodes; a function that is called often counts each time"};
}

bool IsIndex(const Value& v) { return !v.token() && (v.dtype() == TW_INT32 || v.dtype() == TW_INT64); }

}  // namespace

// ---- Values ----

int64_t Value::dim(int axis) const {
  const int r = rank();
  if (r < 0) return -1;
  if (axis < 0) axis += r;
  return axis >= 0 && axis < r ? dims()[static_cast<size_t>(axis)] : -1;
}

bool Value::static_shape() const {
  return rank() >= 0 && std::all_of(dims().begin(), dims().end(), [](int64_t d) { return d >= 0; });
}

int64_t Value::count() const {
  if (!static_shape()) return -1;
  try {
    return importer::CountOf(dims());
  } catch (const Error&) {
    return -1;
  }
}

std::vector<int64_t> Value::integers() const {
  if (constant()) return constant()->integers();
  if (!splat()) throw Error{TW_UNIMPLEMENTED, "a value must be constant, but is computed"};
  const int64_t n = count();
  if (n < 0 || n > kMostKnown * 64)
    throw Error{TW_UNIMPLEMENTED, "a constant of shape " + importer::Text(dims()) + " is too large for its use"};
  return std::vector<int64_t>(static_cast<size_t>(n), splat()->integer(0));
}

// ---- Nodes ----

Translation::Translation(Import& import, Sink& sink, Translation* parent)
    : import_(import), sink_(sink), parent_(parent), function_(parent ? parent->function_ : nullptr) {}

std::vector<Value> Translation::ops(std::string_view type, const std::vector<Value>& in, const Attrs& attrs, size_t n) {
  std::vector<Edge> inputs;
  for (const Value& v : in) inputs.push_back(edge(v));
  CountNode(import_);
  const Edge first = sink_.Emit(std::string(type), import_.name, inputs, attrs);
  std::vector<Value> results;
  for (size_t i = 0; i < n; ++i) results.push_back(wrap(i ? sink_.Output(first, static_cast<uint32_t>(i)) : first));
  return results;
}

Value Translation::op(std::string_view type, const std::vector<Value>& in, const Attrs& attrs) { return ops(type, in, attrs, 1)[0]; }

Value Translation::constant(Tensor t) {
  auto info = std::make_shared<Value::Info>();
  info->dtype = t.dtype();
  info->shape = {t.dims(), true};
  if (t.count() == 1 && t.dtype() != TW_STRING) info->splat = std::make_shared<const Tensor>(t.Reshaped({}));
  info->constant = std::make_shared<const Tensor>(std::move(t));
  return Value(std::move(info));
}

Value Translation::fill(const Tensor& scalar, const Dims& dims) {
  const int64_t n = importer::CountOf(dims);
  if (n == 1) return constant(scalar.Reshaped(dims));
  auto info = std::make_shared<Value::Info>();
  info->dtype = scalar.dtype();
  info->shape = {dims, true};
  info->splat = std::make_shared<const Tensor>(scalar);
  if (n <= kMostFilled) {
    Tensor all(scalar.dtype(), dims);
    const uint64_t size = scalar.bytes();
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(static_cast<char*>(all.mutable_data()) + static_cast<uint64_t>(i) * size, scalar.data(), size);
    info->constant = std::make_shared<const Tensor>(std::move(all));
  }
  return Value(std::move(info));
}

Value Translation::token() {
  auto info = std::make_shared<Value::Info>();
  info->token = true;
  return Value(std::move(info));
}

Value Translation::shaped(const Value& v, const ShapeAttr& shape) {
  if (v.token() || !shape.known_rank || v.known()) return v;
  ShapeAttr both = shape;
  if (v.rank() >= 0) {
    if (v.dims().size() != shape.dims.size()) return v;
    for (size_t i = 0; i < both.dims.size(); ++i) {
      if (v.dims()[i] >= 0) both.dims[i] = v.dims()[i];
    }
    if (both.dims == v.dims()) return v;
  }
  auto info = std::make_shared<Value::Info>(v.info());
  info->shape = std::move(both);
  return Value(std::move(info));
}

Value Translation::wrap(Edge e) {
  auto info = std::make_shared<Value::Info>();
  info->owner = this;
  info->edge = e;
  sink_.Describe(e, &info->dtype, &info->shape);
  return Value(std::move(info));
}

Value Translation::argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) {
  CountNode(import_);
  return shaped(wrap(sink_.Argument(importer::CleanName(std::string_view(name).substr(0, 200)), dtype, shape)), shape);
}

Value Translation::capture(const Value& outer) {
  if (!outer || outer.token() || outer.info().owner == this || outer.known()) return outer;
  for (const auto& [around, own] : captures_) {
    if (around.info().owner == outer.info().owner && around.info().edge == outer.info().edge) return own;
  }
  if (!parent_) throw Error{TW_INTERNAL, "a value of another graph is used"};
  const Value own = argument("captured", outer.dtype(), outer.shape());
  captures_.emplace_back(outer, own);
  return own;
}

Edge Translation::edge(const Value& v) {
  if (!v) throw Error{TW_INTERNAL, "a value is absent"};
  if (v.token()) throw Error{TW_INVALID_ARGUMENT, "a token is used as a tensor"};
  if (v.splat() && v.count() != 1) {
    const auto found = filled_.find(&v.info());
    if (found != filled_.end()) return found->second.second;
    const Edge made = edge(op("Fill", {ints(v.dims()), constant(*v.splat())}, {}));
    filled_.emplace(&v.info(), std::pair(v, made));
    return made;
  }
  if (v.constant()) {
    auto& same = emitted_[v.constant()->identity()];
    for (const auto& [tensor, made] : same) {
      if (tensor.dtype() == v.constant()->dtype() && tensor.dims() == v.constant()->dims()) return made;
    }
    CountNode(import_);
    const Edge made = sink_.Constant(*v.constant(), import_.name.empty() ? "constant" : import_.name + "/constant");
    same.emplace_back(*v.constant(), made);
    return made;
  }
  return v.info().owner == this ? v.info().edge : capture(v).info().edge;
}

void Translation::check(const Value& condition, const std::vector<Value>& data) {
  if (parent_) throw Error{TW_UNIMPLEMENTED, "a check within a loop or branch is not supported"};
  std::vector<Edge> inputs = {edge(condition)};
  for (const Value& v : data) inputs.push_back(edge(v));
  CountNode(import_);
  import_.effects.push_back(sink_.Emit("Assert", import_.name, inputs, {{"summarize", -1}}));
}

// ---- Common steps ----

Value Translation::cast(const Value& v, uint32_t dtype) {
  if (v.dtype() == dtype) return v;
  const bool whole = v.known() && (importer::IsInteger(v.dtype()) || v.dtype() == TW_BOOL) && v.count() <= kMostKnown &&
                     (dtype == TW_INT32 || dtype == TW_INT64) && v.dtype() != TW_UINT64;
  if (whole) return constant(Tensor::Vector(dtype, v.integers()).Reshaped(v.dims()));
  return op("Cast", {v}, {{"DstT", Dtype{dtype}}});
}

Value Translation::reshape(const Value& v, const Dims& dims) {
  if (v.static_shape() && v.dims() == dims) return v;
  const bool whole = std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
  if (v.known() && whole && importer::CountOf(dims) == v.count()) {
    if (v.splat()) return fill(*v.splat(), dims);
    return constant(v.constant()->Reshaped(dims));
  }
  return op("Reshape", {v, ints(dims)});
}

Value Translation::reshape(const Value& v, const Value& dims) {
  if (dims.known()) return reshape(v, dims.integers());
  return op("Reshape", {v, dims});
}

Value Translation::reshape_to(const Value& v, const ShapeAttr& shape, const Value& dims) {
  // A size of 0 beside an unknown one would leave the unknown one open.
  const bool certain = shape.known_rank && std::find(shape.dims.begin(), shape.dims.end(), 0) == shape.dims.end();
  const auto unknown = std::count(shape.dims.begin(), shape.dims.end(), -1);
  if (shape.known_rank && (unknown == 0 || (unknown == 1 && certain))) return reshape(v, shape.dims);
  if (!dims) throw Error{TW_UNIMPLEMENTED, "more than one size of the result of a reshape is unknown"};
  return reshape(v, dims);
}

Value Translation::transpose(const Value& v, const std::vector<int64_t>& perm) {
  bool same = true;
  for (size_t i = 0; i < perm.size(); ++i) same &= perm[i] == static_cast<int64_t>(i);
  if (same) return v;
  if (v.splat() && v.dims().size() == perm.size()) {
    Dims dims;
    for (const int64_t p : perm) dims.push_back(v.dims().at(static_cast<size_t>(p)));
    return fill(*v.splat(), dims);
  }
  return op("Transpose", {v, ints(perm, TW_INT32)});
}

Value Translation::expand(const Value& v, const std::vector<int64_t>& axes) {
  if (axes.empty()) return v;
  if (v.static_shape()) {
    Dims dims = v.dims();
    for (const int64_t a : axes) dims.insert(dims.begin() + std::min<int64_t>(a, static_cast<int64_t>(dims.size())), 1);
    return reshape(v, dims);
  }
  Value grown = v;
  for (const int64_t a : axes) grown = op("ExpandDims", {grown, scalar(TW_INT32, static_cast<double>(a))});
  return grown;
}

Value Translation::squeeze(const Value& v, const std::vector<int64_t>& axes) {
  return axes.empty() ? v : op("Squeeze", {v}, {{"squeeze_dims", axes}});
}

Value Translation::shape(const Value& v) {
  if (v.static_shape()) return ints(v.dims());
  return op("Shape", {v}, {{"out_type", Dtype{TW_INT64}}});
}

Value Translation::size(const Value& v, int axis) {
  if (v.rank() >= 0 && axis < 0) axis += v.rank();
  if (v.dim(axis) >= 0) return constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{v.dim(axis)}).Reshaped({}));
  const bool last = axis == -1;
  return op("StridedSlice", {shape(v), ints({axis}, TW_INT32), ints({last ? 0 : axis + 1}, TW_INT32), ints({1}, TW_INT32)},
            {{"shrink_axis_mask", 1}, {"end_mask", last ? 1 : 0}});
}

Value Translation::concat(const std::vector<Value>& v, int64_t axis) {
  if (v.size() == 1) return v[0];
  const bool folds = axis == 0 && std::all_of(v.begin(), v.end(), [&](const Value& one) {
                       return one.known() && IsIndex(one) && one.dtype() == v[0].dtype() && one.rank() == 1 && one.count() <= kMostKnown;
                     });
  if (folds && v.size() <= 64) {
    std::vector<int64_t> all;
    for (const Value& one : v) {
      const std::vector<int64_t> part = one.integers();
      all.insert(all.end(), part.begin(), part.end());
    }
    return ints(all, v[0].dtype());
  }
  std::vector<Value> in = v;
  in.push_back(scalar(TW_INT32, static_cast<double>(axis)));
  return op("ConcatV2", in, {});
}

Value Translation::broadcast(const Value& v, const Value& dims) {
  if (dims.known()) {
    const Dims to = dims.integers();
    if (v.static_shape() && v.dims() == to) return v;
    if (v.splat()) return fill(*v.splat(), to);
  }
  return op("BroadcastTo", {v, dims});
}

Value Translation::flat(const std::vector<Value>& scalars) {
  std::vector<Value> parts;
  for (const Value& s : scalars) parts.push_back(reshape(s, Dims{1}));
  return concat(parts, 0);
}

// ---- Operations ----

Value Translation::find(Id id) {
  const auto found = values_.find(id);
  if (found != values_.end()) return found->second;
  if (failed_.count(id)) throw Error{TW_OK, ""};
  if (parent_ && parent_->function_ == function_) return parent_->find(id);
  throw Error{TW_INVALID_ARGUMENT, "value " + std::to_string(id) + " is not visible where it is used"};
}

void Translation::set(Id id, Value v) { values_.insert_or_assign(id, std::move(v)); }

void Translation::translate(const Operation& operation) {
  CountOperations(import_, 1, operation.operands.size() + operation.results.size());
  const std::string before = import_.name;
  try {
    import_.name = importer::CleanName(std::string_view(operation.location).substr(0, 200));
    sink_.Place(Printable(operation.name) + " '" + Printable(operation.location) + "'");
    Op op(*this, operation, types_ ? *types_ : *function_);
    const Translate run = FindTranslator(operation.name);
    if (!run) op.unsupported("the op is unknown");
    const auto unranked = [&](Id id) { return function_->values[id]->tensor() && !function_->values[id]->ranked; };
    if (std::any_of(operation.operands.begin(), operation.operands.end(), unranked) ||
        std::any_of(operation.results.begin(), operation.results.end(), unranked)) {
      op.unsupported("tensors of unknown rank are not supported");
    }
    try {
      run(*this, op);
    } catch (const std::logic_error& e) {  // of the standard library: a form that a translator did not expect
      op.fail(std::string("its form is not understood (") + e.what() + ")", TW_INTERNAL);
    } catch (const Error& e) {
      if (e.code == TW_OK || e.text.rfind(std::string(operation.name) + " at byte ", 0) == 0) throw;  // by op.fail
      op.fail(e.text, e.code);
    }
    for (size_t i = 0; i < operation.results.size(); ++i) {
      if (!values_.count(operation.results[i])) op.unsupported("result " + std::to_string(i) + " is not supported");
    }
  } catch (const Error& e) {
    if (e.code == TW_RESOURCE_EXHAUSTED) throw;
    for (const Id id : operation.results) {
      values_.erase(id);
      failed_.insert(id);
    }
    if (e.code != TW_OK) {
      if (!import_.code) import_.code = e.code;
      const bool seen = std::find(import_.errors.begin(), import_.errors.end(), e.text) != import_.errors.end();
      if (!seen && import_.errors.size() < kMostErrors) import_.errors.push_back(e.text);
    }
  }
  import_.name = before;
}

std::vector<Value> Translation::inlined(const Op& op, const Block& block, const std::vector<Value>& args) {
  const Deeper deeper(import_);
  if (block.arguments.size() != args.size()) {
    op.fail("a body takes " + std::to_string(block.arguments.size()) + " values, but " + std::to_string(args.size()) + " are given");
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& type = *op.function.values[block.arguments[i]];
    set(block.arguments[i], type.tensor() ? shaped(args[i], {type.dims, type.ranked}) : args[i]);
  }
  if (!block.operations.empty()) CountOperations(import_, 0, block.arguments.size() + block.operations.back().operands.size());
  if (block.operations.empty() || block.operations.back().name != "stablehlo.return") op.fail("a body does not end with stablehlo.return");
  for (size_t i = 0; i + 1 < block.operations.size(); ++i) {
    // A body may be used again after it failed once.
    for (const Id id : block.operations[i].results) failed_.erase(id);
    translate(block.operations[i]);
  }
  std::vector<Value> results;
  for (const Id id : block.operations.back().operands) results.push_back(find(id));
  return results;
}

std::vector<Value> Translation::inlined_as(const Function& types, const Op& op, const Block& block, const std::vector<Value>& args) {
  struct Frame {
    Frame(const Function** types, const Function* now) : place(types), before(*types) { *types = now; }
    ~Frame() { *place = before; }
    const Function** place;
    const Function* before;
  };
  const Op retyped(*this, op.operation, types);
  const Frame frame(&types_, &types);
  return inlined(retyped, block, args);
}

std::vector<Value> Translation::call(const Op& op, std::string_view name, const std::vector<Value>& args) {
  const Function* callee = import_.module.find(name);
  if (!callee) op.fail("there is no function '" + std::string(name) + "'");
  if (!callee->has_body) op.unsupported("function '" + std::string(name) + "' is declared but has no body");
  if (std::find(import_.calls.begin(), import_.calls.end(), callee->name) != import_.calls.end()) {
    op.unsupported("function '" + std::string(name) + "' calls itself");
  }
  // The values of the caller come back also if the call fails.
  struct Frame {
    Frame(Translation& owner, const Function* f, const Function* loose) : t(owner), function(owner.function_), types(owner.types_) {
      t.types_ = loose;
      t.values_.swap(values);
      t.failed_.swap(failed);
      t.function_ = f;
      t.import_.calls.push_back(f->name);
    }
    ~Frame() {
      t.import_.calls.pop_back();
      t.function_ = function;
      t.types_ = types;
      t.failed_.swap(failed);
      t.values_.swap(values);
    }
    Translation& t;
    const Function *function, *types;
    std::unordered_map<Id, Value> values;
    std::unordered_set<Id> failed;
  };
  std::vector<Value> own;
  for (const Value& v : args) own.push_back(capture(v));
  // Within a body whose scalars stand for many elements, those of the function do so too.
  std::unique_ptr<const Loose> loose;
  if (types_) loose = std::make_unique<const Loose>(*callee, callee->body);
  const Function& types = loose ? loose->function() : *callee;
  const Frame frame(*this, callee, loose ? &types : nullptr);
  Operation place;  // without operands, which are the caller's
  place.name = op.operation.name;
  place.location = op.operation.location;
  place.offset = op.operation.offset;
  const Op inside(*this, place, types);
  return inlined(inside, callee->body, own);
}

// ---- Bodies that become functions ----

struct Translation::Graph {
  std::unique_ptr<Sink> sink;
  std::unique_ptr<Translation> fill;
  std::vector<Value> arguments, results;
};

Loose::Loose(const Function& function, const Block& block) {
  function_.name = function.name;
  function_.values = function.values;
  const auto loosen = [&](Id id) {
    if (id >= function_.values.size() || !function_.values[id] || !function_.values[id]->tensor()) return;
    Type& type = types_.emplace_back(*function_.values[id]);
    type.ranked = false;
    type.dims.clear();
    function_.values[id] = &type;
  };
  for (const Id id : block.arguments) loosen(id);
  for (const Operation& o : block.operations) {
    for (const Id id : o.results) loosen(id);
  }
}

Translation::Graph Translation::Begin() {
  Graph g;
  g.sink = sink_.Body();
  g.fill = std::make_unique<Translation>(import_, *g.sink, this);
  return g;
}

// The values of graphs around that the bodies use, each once.
std::vector<Value> Translation::Captured(const std::vector<Graph*>& graphs) {
  std::vector<Value> all;
  for (const Graph* g : graphs) {
    for (const auto& [outer, own] : g->fill->captures()) {
      bool found = false;
      for (const Value& v : all) found |= v.info().owner == outer.info().owner && v.info().edge == outer.info().edge;
      if (!found) all.push_back(outer);
    }
  }
  return all;
}

std::vector<Edge> Translation::EdgesOf(Translation& t, const std::vector<Value>& values) {
  std::vector<Edge> edges;
  for (const Value& v : values) edges.push_back(t.edge(v));
  return edges;
}

namespace {

// The values that are no tokens.
std::vector<Value> Tensors(const std::vector<Value>& values) {
  std::vector<Value> all;
  for (const Value& v : values) {
    if (!v.token()) all.push_back(v);
  }
  return all;
}

// Values with tokens again where `like` has them.
std::vector<Value> WithTokens(Translation& t, const std::vector<Value>& like, const std::vector<Value>& tensors) {
  std::vector<Value> all;
  size_t next = 0;
  for (const Value& v : like) all.push_back(v.token() ? t.token() : tensors.at(next++));
  return all;
}

}  // namespace

std::vector<Value> Translation::run_while(const std::vector<Value>& first, const Part& go, const Part& step) {
  const Deeper deeper(import_);
  std::vector<Value> start = Tensors(first);
  const size_t variables = start.size();
  std::vector<ShapeAttr> shapes;
  for (const Value& v : start) shapes.push_back(v.shape());
  const auto begin = [&] {
    Graph g = Begin();
    for (size_t i = 0; i < variables; ++i) g.arguments.push_back(g.fill->argument("variable", start[i].dtype(), shapes[i]));
    return g;
  };
  Graph body;
  for (int tries = 0;; ++tries) {
    body = begin();
    body.results = Tensors(step(*body.fill, WithTokens(*body.fill, first, body.arguments)));
    if (body.results.size() != variables)
      throw Error{TW_INVALID_ARGUMENT, "the body of a loop returns another number of values than it takes"};
    bool agree = true;
    for (size_t i = 0; i < variables; ++i) {
      const Value& r = body.results[i];
      if (r.dtype() != start[i].dtype()) {
        throw Error{TW_INVALID_ARGUMENT, "loop variable " + std::to_string(i) + " is " + importer::DtypeName(start[i].dtype()) +
                                             " at first, but " + importer::DtypeName(r.dtype()) + " after an iteration"};
      }
      const ShapeAttr common = Common(shapes[i], r.shape());
      agree &= Same(common, shapes[i]);
      shapes[i] = tries + 2 >= kMostTries && !Same(common, shapes[i]) ? ShapeAttr{{}, false} : common;
    }
    if (agree) break;
    if (tries >= kMostTries) throw Error{TW_INTERNAL, "the shapes of a loop's variables do not settle"};
  }
  Graph condition = begin();
  condition.results = go(*condition.fill, WithTokens(*condition.fill, first, condition.arguments));
  for (const Value& outer : Captured({&body, &condition})) {
    const Value own = body.fill->capture(outer);
    body.arguments.push_back(own);
    body.results.push_back(own);
    condition.arguments.push_back(condition.fill->capture(outer));
    start.push_back(outer);
  }
  const std::string body_name = sink_.Define("body", *body.sink, EdgesOf(*body.fill, body.arguments), EdgesOf(*body.fill, body.results));
  const std::string go_name = sink_.Define("condition", *condition.sink, EdgesOf(*condition.fill, condition.arguments),
                                           EdgesOf(*condition.fill, condition.results));
  std::vector<Value> last = ops("While", start, {{"cond", Func{go_name}}, {"body", Func{body_name}}}, start.size());
  last.resize(variables);
  for (size_t i = 0; i < variables; ++i) last[i] = shaped(last[i], shapes[i]);
  return WithTokens(*this, first, last);
}

std::vector<Value> Translation::run_if(const Value& condition, const Part& then, const Part& otherwise) {
  const Deeper deeper(import_);
  Graph yes = Begin(), no = Begin();
  const std::vector<Value> like = then(*yes.fill, {});
  yes.results = Tensors(like);
  no.results = Tensors(otherwise(*no.fill, {}));
  if (yes.results.size() != no.results.size()) throw Error{TW_INVALID_ARGUMENT, "the branches return other numbers of values"};
  std::vector<Dtype> types;
  std::vector<ShapeAttr> shapes;
  for (size_t i = 0; i < yes.results.size(); ++i) {
    const Value &y = yes.results[i], &n = no.results[i];
    if (y.dtype() != n.dtype()) {
      throw Error{TW_INVALID_ARGUMENT, "result " + std::to_string(i) + " is " + importer::DtypeName(y.dtype()) + " in one branch and " +
                                           importer::DtypeName(n.dtype()) + " in another"};
    }
    types.push_back({y.dtype()});
    shapes.push_back(Common(y.shape(), n.shape()));
  }
  const std::vector<Value> captured = Captured({&yes, &no});
  for (Graph* g : {&yes, &no}) {
    for (const Value& outer : captured) g->arguments.push_back(g->fill->capture(outer));
  }
  const std::string then_name = sink_.Define("then", *yes.sink, EdgesOf(*yes.fill, yes.arguments), EdgesOf(*yes.fill, yes.results));
  const std::string else_name = sink_.Define("else", *no.sink, EdgesOf(*no.fill, no.arguments), EdgesOf(*no.fill, no.results));
  std::vector<Value> in = {condition};
  in.insert(in.end(), captured.begin(), captured.end());
  std::vector<Value> out =
      ops("If", in, {{"Tout", types}, {"then_branch", Func{then_name}}, {"else_branch", Func{else_name}}}, types.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = shaped(out[i], shapes[i]);
  return WithTokens(*this, like, out);
}

std::vector<Value> Translation::run_case(const Value& index, const std::vector<Part>& parts) {
  if (parts.empty()) throw Error{TW_INVALID_ARGUMENT, "there is no branch"};
  if (parts.size() == 1) return parts[0](*this, {});
  const auto last = static_cast<int64_t>(parts.size()) - 1;
  // An index below 0 or behind the end leads to the last branch.
  const Value below = op("Less", {index, scalar(TW_INT32, 0)}),
              behind = op("Greater", {index, scalar(TW_INT32, static_cast<double>(last))});
  const Value inside = op("SelectV2", {op("LogicalOr", {below, behind}), scalar(TW_INT32, static_cast<double>(last)), index});
  // Halves of the branches: very many of them are not nested deeply.
  const std::function<std::vector<Value>(Translation&, size_t, size_t)> choose = [&](Translation& t, size_t begin, size_t end) {
    if (end - begin == 1) return parts[begin](t, {});
    const size_t middle = begin + (end - begin) / 2;
    const Value first = t.op("Less", {inside, t.scalar(TW_INT32, static_cast<double>(middle))});
    return t.run_if(
        first, [&](Translation& body, const std::vector<Value>&) { return choose(body, begin, middle); },
        [&](Translation& body, const std::vector<Value>&) { return choose(body, middle, end); });
  };
  return choose(*this, 0, parts.size());
}

}  // namespace thalweg::stablehlo
