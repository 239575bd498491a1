#include "tests/fuzz/op/outcome.h"

#include <algorithm>
#include <atomic>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/op/builder.h"
#include "tests/fuzz/op/compare.h"
#include "tests/fuzz/op/kept.h"
#include "tests/fuzz/op/lender.h"

namespace thalweg::fuzz {
namespace {

constexpr int64_t kTimeoutNs = 5'000'000'000, kWaitNs = 50'000'000;  // kWaitNs: for ops that may wait for others

std::string Text(const char* prefix, size_t i) { return prefix + std::to_string(i); }

std::vector<int64_t> DimsOf(const tw_tensor* t) { return {tw_tensor_dims(t), tw_tensor_dims(t) + tw_tensor_rank(t)}; }

void SetAttr(tw_op* op, const AttrValue& a) {
  const char* name = a.schema->name.c_str();
  const std::string& kind = a.schema->kind;
  const bool list = a.schema->list;
  const uint32_t n = uint32_t(std::max(std::max(a.numbers.size(), a.reals.size()), std::max(a.texts.size(), a.types.size())));
  std::vector<tw_string> texts;
  for (const std::string& t : a.texts) texts.push_back({t.data(), t.size()});
  const std::vector<uint8_t> bools(a.numbers.begin(), a.numbers.end());
  if (kind == "int" && list) return tw_op_set_ints(op, name, a.numbers.data(), n);
  if (kind == "int") return tw_op_set_int(op, name, a.numbers[0]);
  if (kind == "bool" && list) return tw_op_set_bools(op, name, bools.data(), n);
  if (kind == "bool") return tw_op_set_bool(op, name, bools[0]);
  if (kind == "float" && list) return tw_op_set_floats(op, name, a.reals.data(), n);
  if (kind == "float") return tw_op_set_float(op, name, a.reals[0]);
  if (kind == "string" && list) return tw_op_set_strings(op, name, texts.data(), n);
  if (kind == "string") return tw_op_set_string(op, name, a.texts[0].data(), a.texts[0].size());
  if (kind == "func" && list) return tw_op_set_funcs(op, name, texts.data(), n);
  if (kind == "func") return tw_op_set_func(op, name, a.texts[0].c_str());
  if (kind == "type" && list) return tw_op_set_types(op, name, a.types.data(), n);
  if (kind == "type") return tw_op_set_type(op, name, a.types[0]);
  if (kind == "tensor" && !list && a.tensor) return tw_op_set_tensor(op, name, a.tensor.get());
  if (kind == "shape" && !list) return tw_op_set_shape(op, name, a.numbers.data(), a.unknown ? -1 : int32_t(n));
  std::vector<tw_shape> shapes;
  for (const auto& dims : a.shapes) shapes.push_back({dims.data(), a.unknown ? -1 : int32_t(dims.size()), 0});
  if (kind == "shape") return tw_op_set_shapes(op, name, shapes.data(), uint32_t(shapes.size()));
}

// Returns a handle to a variable of a runtime in which no use runs. Never released.
tw_tensor* MakeForeignHandle(tw_runtime* runtime) {
  tw_graph* graph = nullptr;
  tw_session* session = nullptr;
  Must(tw_graph_create(runtime, &graph), "making a graph");
  const tw_output fetch = Builder(graph, "VarHandleOp", "v").Type("dtype", TW_FLOAT).Shape("shape", nullptr).Must();
  Must(tw_session_create(graph, nullptr, 0, &session), "making a session");
  tw_signature what{};
  what.size = sizeof what;
  what.fetches = &fetch;
  what.n_fetches = 1;
  tw_tensor* out = nullptr;
  Must(tw_session_run(session, &what, nullptr, nullptr, &out), "fetching a handle");
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return out;
}

tw_tensor* ForeignHandle() {
  static tw_runtime* const runtime = [] {
    const char* options[] = {"threads=1", "disabled_plugins=org.thalweg.opencl"};
    tw_runtime* made = nullptr;
    Must(tw_runtime_create(options, 2, &made), "making another runtime");
    return made;
  }();
  static tw_tensor* const handle = MakeForeignHandle(runtime);
  return handle;
}

// A graph with the use in it, and the parts of it to run.
class Scene {
 public:
  Scene(tw_runtime* runtime, const Use& use, const Way& way) : use_(use), way_(way), runtime_(runtime) {}

  Outcome Play() {
    Outcome out;
    Build(&out);
    if (out.ok() && way_.imported) Import(&out);
    if (out.ok()) Step(&out);
    return out;
  }

 private:
  struct Request {
    std::vector<tw_output> fetches;
    std::vector<const tw_operation*> targets;
    bool feeds = false;
  };

  void Build(Outcome* out) {
    tw_graph* made = nullptr;
    Must(tw_graph_create(runtime_, &made), "making a graph");
    graph_.reset(made);
    for (size_t i = 0; i < use_.inputs.size(); ++i) {
      const Input& x = use_.inputs[i];
      values_.push_back(x.IsHandle() ? EnterHandle(i, x) : x.is_list ? EnterList(i, x) : EnterValue(i, x));
    }
    if (!AddOp("op", out)) return;
    AddSizes();
    if (way_.neighbours && IsLonely()) return AddCopies();
    if (way_.neighbours && !use_.op->stateful && !AddOp("twin", out)) Broken("the op can be added once only: " + out->message);
    if (way_.neighbours) AddReaders();
  }

  // Returns true if no other node reads an input of the op, so that the op may write its results
  // there.
  bool IsLonely() const {
    return std::any_of(use_.inputs.begin(), use_.inputs.end(), [](const Input& x) { return x.known & 64; });
  }

  // Adds the op itself; returns false if it was refused.
  bool AddOp(const char* name, Outcome* out) {
    tw_op* op = tw_op_create(graph_.get(), use_.op->name.c_str(), name);
    for (tw_output v : values_) tw_op_add_input(op, v);
    for (const tw_operation* before : steps_) tw_op_add_control(op, before);
    for (const AttrValue& a : use_.attrs) SetAttr(op, a);
    out->code = Take(tw_op_finish(op, nullptr), &out->message);
    return out->ok();
  }

  // Adds a dataset of the rows of the value, or an optional that holds it or nothing.
  tw_output EnterOther(size_t i, const Input& x) {
    const uint32_t dtype = tw_tensor_dtype(x.value.get());
    const bool empty = x.making == Making::kEmpty, rows = tw_tensor_rank(x.value.get()) > 0;
    const bool optional = x.argument->variant == Variant::kOptional;
    if (optional && empty) return Builder(graph_.get(), "OptionalNone", Text("optional", i)).Must();
    const tw_output value = EnterValue(i, x);
    Builder b(graph_.get(), optional ? "OptionalFromValue" : rows ? "TensorSliceDataset" : "TensorDataset", Text("other", i));
    tw_op_set_types(b.Reads(value).op(), "Toutput_types", &dtype, 1);
    const tw_shape unknown{nullptr, -1, 0};
    if (!optional) tw_op_set_shapes(b.op(), "output_shapes", &unknown, 1);
    const tw_output made = b.Must();
    return x.making == Making::kTwo ? Builder(graph_.get(), "Pack", Text("others", i)).Reads(made).Reads(made).Must() : made;
  }

  // A list cannot be fed: other ops make it from a value that is entered like any other.
  tw_output EnterList(size_t i, const Input& x) {
    if (!x.value) return EnterValue(i, x);
    if (x.argument->variant != Variant::kList) return EnterOther(i, x);
    const uint32_t dtype = tw_tensor_dtype(x.value.get());
    const bool rows = x.making != Making::kEmpty && x.making != Making::kReserved && tw_tensor_rank(x.value.get()) > 0;
    const tw_output value = EnterValue(i, x);
    std::vector<int64_t> dims = DimsOf(x.value.get());
    if (rows) dims.erase(dims.begin());
    const int64_t unknown = -1;
    const tw_output shape = x.knows_shape ? Vector(Text("element_shape", i), dims.data(), int64_t(dims.size()))
                                          : Vector(Text("element_shape", i), &unknown, -1);
    Builder list(graph_.get(),
                 rows                            ? "TensorListFromTensor"
                 : x.making == Making::kReserved ? "TensorListReserve"
                                                 : "EmptyTensorList",
                 Text("list", i));
    if (rows) list.Reads(value);
    list.Reads(shape);
    if (!rows) list.Reads(Scalar(Text("elements", i), 3));
    const tw_output made = list.Type("element_dtype", dtype).Type("shape_type", TW_INT64).Must();
    return x.making == Making::kTwo ? Builder(graph_.get(), "Pack", Text("lists", i)).Reads(made).Reads(made).Must() : made;
  }

  // n < 0: a scalar.
  tw_output Vector(const std::string& name, const int64_t* values, int64_t n) {
    tw_tensor* t = nullptr;
    Must(tw_tensor_create_copy(TW_INT64, &n, n < 0 ? 0 : 1, values, uint64_t(n < 0 ? 1 : n) * sizeof *values, &t), "making a tensor");
    const Tensor owner(t);
    return Constant(name, t);
  }

  tw_output Scalar(const std::string& name, int32_t value) {
    tw_tensor* t = nullptr;
    Must(tw_tensor_create_copy(TW_INT32, nullptr, 0, &value, sizeof value, &t), "making a tensor");
    const Tensor owner(t);
    return Constant(name, t);
  }

  // Adds sizes of results that cannot be fetched: the number of elements of a list or dataset,
  // whether an optional has a value, or the shape of a tensor of lists.
  void AddSizes() {
    const tw_operation* op = Operation("op");
    for (uint32_t k = 0; k < tw_operation_output_count(op); ++k) {
      uint32_t dtype = 0;
      tw_shape told{};
      Must(tw_graph_describe(graph_.get(), tw_operation_output(op, k), &dtype, &told), "describing an output");
      if (dtype != TW_VARIANT || !steps_.empty() || use_.op->name == "MutexLock") continue;
      const Variant variant = use_.op->makes;
      Builder size(graph_.get(),
                   variant == Variant::kDataset    ? "DatasetCardinality"
                   : variant == Variant::kOptional ? "OptionalHasValue"
                   : told.rank == 0                ? "TensorListLength"
                                                   : "Shape",
                   Text("size", k));
      size.Reads(tw_operation_output(op, k)).Must();
    }
  }

  tw_output EnterValue(size_t i, const Input& x) {
    const std::string name = Text("x", i);
    if (!x.value)
      return Builder(graph_.get(), "Placeholder", name).Type("dtype", x.argument->dtype ? x.argument->dtype : uint32_t{TW_VARIANT}).Must();
    const uint32_t dtype = tw_tensor_dtype(x.value.get());
    if (way_.entry == Way::Entry::kConstant || (way_.entry == Way::Entry::kPartly && x.known & 128)) return Constant(name, x.value.get());
    std::vector<int64_t> dims = DimsOf(x.value.get());
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k > 4 || !(x.known & 2 << k)) dims[k] = -1;
    }
    const bool told = way_.entry == Way::Entry::kPartly && x.known & 1;
    const tw_output fed = Builder(graph_.get(), "Placeholder", name).Type("dtype", dtype).Shape("shape", told ? &dims : nullptr).Must();
    Feed(name, x.value.get());
    if (way_.entry == Way::Entry::kFed) return fed;
    return Copied(Text("made", i), fed);  // memory that may be overwritten
  }

  // Adds the same value, made by an op that the optimizer does not remove.
  tw_output Copied(const std::string& name, tw_output value) {
    if (!yes_) {
      yes_ = Builder(graph_.get(), "Placeholder", "yes").Type("dtype", TW_BOOL).Must();
      Feed("yes", Yes());
    }
    return Builder(graph_.get(), "SelectV2", name).Reads(yes_).Reads(value).Reads(value).Must();
  }

  tw_output Constant(const std::string& name, tw_tensor* value) {
    Builder b(graph_.get(), "Const", name);
    b.Type("dtype", tw_tensor_dtype(value));
    tw_op_set_tensor(b.op(), "value", value);
    return b.Must();
  }

  static tw_tensor* Yes() {
    static tw_tensor* const yes = [] {
      const uint8_t one = 1;
      tw_tensor* t = nullptr;
      Must(tw_tensor_create_copy(TW_BOOL, nullptr, 0, &one, 1, &t), "making a tensor");
      return t;
    }();
    return yes;
  }

  void Feed(const std::string& name, tw_tensor* value) {
    feed_names_.push_back(name);
    feed_values_.push_back(value);
  }

  // Adds a handle of a variable in the given state.
  tw_output EnterHandle(size_t i, const Input& x) {
    if (x.state == State::kSameAsBefore && !handles_.empty()) return handles_.back().value;
    const std::string name = Text("x", i);
    if (!x.value || x.state == State::kOfAnotherRuntime || x.state == State::kNotFed) {
      const uint32_t dtype = x.argument->is_ref ? TW_FLOAT : TW_RESOURCE;
      const tw_output fed = Builder(graph_.get(), "Placeholder", name).Type("dtype", dtype).Must();
      if (x.state == State::kOfAnotherRuntime && dtype == TW_RESOURCE) Feed(name, ForeignHandle());
      return fed;
    }
    if (const Maker* maker = MakerOf(x.argument->opens)) return EnterKept(i, *maker);
    const std::vector<int64_t> dims = DimsOf(x.value.get());
    const uint32_t dtype = tw_tensor_dtype(x.value.get());
    const auto variable = [&](const char* op, const std::string& node) {
      Builder b(graph_.get(), op, node);
      b.Type("dtype", dtype).Shape("shape", x.known & 1 ? &dims : nullptr).Text("container", "fuzz").Text("shared_name", name);
      return b.Must();
    };
    const tw_output handle = variable("VarHandleOp", name);
    if (x.state != State::kUninitialised) {
      const tw_output held = Constant(Text("held", i), x.value.get());
      Builder(graph_.get(), "AssignVariableOp", "assign_" + name).Reads(handle).Reads(held).Must();
    }
    Builder(graph_.get(), "ReadVariableOp", "read_" + name).Reads(handle).Type("dtype", dtype).Must();
    Builder destroy(graph_.get(), "DestroyResourceOp", "destroy_" + name);
    tw_op_set_bool(destroy.Reads(handle).op(), "ignore_lookup_error", 1);
    destroy.Must();
    handles_.push_back({name, x.argument->is_ref ? variable("VariableV2", "ref_" + name) : handle, x.state});
    return handles_.back().value;
  }

  tw_output EnterKept(size_t i, const Maker& maker) {
    const tw_output handle = AddKept(graph_.get(), maker, use_, i, &steps_);
    if (!Lasts(maker)) return handle;
    Builder destroy(graph_.get(), "DestroyResourceOp", Text("gone_x", i));
    tw_op_set_bool(destroy.Reads(handle).op(), "ignore_lookup_error", 1);
    destroy.Must();
    kept_.push_back(Text("gone_x", i));
    return handle;
  }

  // Returns true if other nodes may read output k; a reference may refer to an uninitialised
  // variable.
  bool IsValue(const tw_operation* op, uint32_t k) const {
    uint32_t dtype = 0;
    Must(tw_graph_describe(graph_.get(), tw_operation_output(op, k), &dtype, nullptr), "describing an output");
    return dtype < TW_REF && dtype != TW_RESOURCE && dtype != TW_VARIANT;
  }

  // Adds copies of the results: a fetched result has its own memory, while a copied one may reuse
  // an input's memory.
  void AddCopies() {
    const tw_operation* op = Operation("op");
    for (uint32_t k = 0; k < tw_operation_output_count(op); ++k) {
      if (IsValue(op, k)) Copied(Text("copy", k), tw_operation_output(op, k));
    }
  }

  // Adds readers of the results, and of the op's input values, which must then stay unchanged.
  void AddReaders() {
    const tw_operation* op = Operation("op");
    for (uint32_t k = 0; k < tw_operation_output_count(op); ++k) {
      if (IsValue(op, k)) Builder(graph_.get(), "Identity", Text("result", k)).Reads(tw_operation_output(op, k)).Must();
    }
    for (size_t i = 0; i < use_.inputs.size(); ++i) {
      const Input& x = use_.inputs[i];
      if (!x.IsHandle() && !x.is_list && x.value) Builder(graph_.get(), "Identity", Text("again", i)).Reads(values_[i]).Must();
    }
  }

  const tw_operation* Operation(const std::string& name) {
    const tw_operation* found = nullptr;
    Must(tw_graph_find(graph_.get(), name.c_str(), &found), "finding an operation");
    return found;
  }
  bool Has(const std::string& name) { return tw_graph_has(graph_.get(), name.c_str()); }

  // Replaces the graph by its imported export.
  void Import(Outcome* out) {
    tw_buffer* bytes = nullptr;
    Must(tw_graph_export(graph_.get(), &bytes), "exporting");
    const Buffer owner(bytes);
    tw_graph* made = nullptr;
    Must(tw_graph_create(runtime_, &made), "making a graph");
    graph_.reset(made);
    out->code = Take(tw_graph_import(made, tw_buffer_data(bytes), tw_buffer_bytes(bytes), nullptr), &out->message);
    if (!out->ok()) Broken("what was added cannot be imported: " + out->message);
  }

  // Uses a separate container: a resource with a `shared_name` could otherwise collide with that of
  // another use.
  void Step(Outcome* out) {
    static std::atomic<uint64_t> scenes;
    const std::string container = "container=scene" + std::to_string(scenes.fetch_add(1));
    std::vector<const char*> options = way_.options;
    options.push_back(container.c_str());
    tw_session* made = nullptr;
    Must(tw_session_create(graph_.get(), options.data(), uint32_t(options.size()), &made), "making a session");
    session_.reset(made);
    RunAll("assign_", [](const Handle&) { return true; });
    RunAll("destroy_", [](const Handle& h) { return h.state == State::kDestroyed; });
    RunOp(out);
    for (const Handle& h : handles_) {
      if (!out->ok()) break;
      std::vector<Tensor> held;
      Outcome reading;
      RunOnce({{tw_operation_output(Operation("read_" + h.name), 0)}, {}}, &reading, &held);
      out->results.push_back(reading.ok() ? std::move(held[0]) : nullptr);
    }
    RunAll("destroy_", [](const Handle&) { return true; });
    for (const std::string& gone : kept_) {  // fails if the resource could not be made
      Outcome done;
      std::vector<Tensor> none;
      RunOnce({{}, {Operation(gone)}}, &done, &none);
    }
    Must(tw_session_reset(session_.get(), nullptr, nullptr), "emptying a container");
  }

  struct Handle {
    std::string name;
    tw_output value;
    State state;
  };

  // Runs the operations with that prefix for the variables that `takes` selects.
  template <class F>
  void RunAll(const char* prefix, F takes) {
    Request step;
    for (const Handle& h : handles_) {
      if (takes(h) && Has(prefix + h.name)) step.targets.push_back(Operation(prefix + h.name));
    }
    Outcome done;
    std::vector<Tensor> none;
    if (!step.targets.empty()) RunOnce(step, &done, &none);
    if (!done.ok() && !done.limited()) Broken("a variable cannot be made or destroyed: " + done.message);
  }

  // A fetched value and its expected value: that of output `of`, or of input `of`.
  struct Role {
    std::string text;
    size_t of;
    bool is_input;
  };

  void RunOp(Outcome* out) {
    const tw_operation* op = Operation("op");
    Request step{{}, {op}, true};
    std::vector<Role> roles;
    const auto fetch = [&](const char* what, size_t of, const tw_operation* from, size_t k, bool is_input = false) {
      step.fetches.push_back(tw_operation_output(from, uint32_t(k)));
      roles.push_back({Text(what, of), of, is_input});
    };
    out->outputs = tw_operation_output_count(op);
    for (size_t k = 0; k < out->outputs; ++k) {
      const std::string shown = Has(Text("size", k)) ? Text("size", k) : Text("copy", k);
      fetch("output ", k, Has(shown) ? Operation(shown) : op, Has(shown) ? 0 : k);
    }
    for (size_t k = 0; k < out->outputs; ++k) {
      if (Has("twin") && !Has(Text("size", k))) fetch("output of the twin ", k, Operation("twin"), k);
      if (Has(Text("result", k))) fetch("reader of output ", k, Operation(Text("result", k)), 0);
    }
    for (size_t i = 0; i < use_.inputs.size(); ++i) {
      if (Has(Text("again", i))) fetch("input ", i, Operation(Text("again", i)), 0, true);
    }
    RunOnce(step, out, &out->results);
    if (!out->ok() || way_.lender) return;
    CheckShapes(op, *out);
    CheckNeighbours(roles, out);
  }

  bool MayWait() const {
    return use_.op->makes_other ||
           std::any_of(use_.inputs.begin(), use_.inputs.end(), [](const Input& x) { return !x.argument->opens.empty(); });
  }

  void RunOnce(const Request& step, Outcome* out, std::vector<Tensor>* results) {
    std::vector<tw_output> feeds;
    for (size_t i = 0; i < feed_names_.size() && step.feeds; ++i) feeds.push_back(tw_operation_output(Operation(feed_names_[i]), 0));
    tw_signature what{};
    what.size = sizeof what;
    what.feeds = feeds.data();
    what.fetches = step.fetches.data();
    what.targets = step.targets.data();
    what.n_feeds = uint32_t(feeds.size());
    what.n_fetches = uint32_t(step.fetches.size());
    what.n_targets = uint32_t(step.targets.size());
    tw_run_options limits{};
    limits.size = sizeof limits;
    limits.timeout_ns = MayWait() ? kWaitNs : kTimeoutNs;
    std::vector<tw_tensor*> values = feed_values_;
    std::vector<Tensor> lent;
    for (size_t i = 0; i < feeds.size() && way_.lender; ++i) {
      lent.emplace_back(way_.lender->Lend(values[i]));
      if (lent.back()) values[i] = lent.back().get();
    }
    std::vector<tw_tensor*> fetched(step.fetches.size(), nullptr);
    bool again = false;
    do {
      if (way_.lender && step.feeds) way_.lender->Begin();
      tw_status* s = tw_session_run(session_.get(), &what, values.data(), &limits, fetched.data());
      again = way_.lender && step.feeds && way_.lender->End(!s);
      out->code = Take(s, &out->message);
      results->clear();
      for (tw_tensor* t : fetched) {
        if ((t != nullptr) != out->ok()) Broken("a run and its fetches disagree about its success");
        if (t) results->emplace_back(t);
      }
      std::fill(fetched.begin(), fetched.end(), nullptr);
    } while (again);
  }

  // Checks that the inferred shapes admit the actual ones.
  void CheckShapes(const tw_operation* op, const Outcome& out) {
    for (uint32_t k = 0; k < out.outputs; ++k) {
      uint32_t dtype = 0;
      tw_shape told{};
      Must(tw_graph_describe(graph_.get(), tw_operation_output(op, k), &dtype, &told), "describing an output");
      if (dtype == TW_VARIANT) continue;
      const tw_tensor* t = out.results[k].get();
      bool admits = dtype % TW_REF == tw_tensor_dtype(t) && (told.rank < 0 || uint32_t(told.rank) == tw_tensor_rank(t));
      for (int32_t d = 0; admits && d < told.rank; ++d) admits = told.dims[d] < 0 || told.dims[d] == tw_tensor_dim(t, uint32_t(d));
      if (!admits) Broken("output " + std::to_string(k) + " is not what the shape rule told, " + way_.name + ": " + Shown(use_));
    }
  }

  // Checks that the other readers got the op's results and unchanged inputs; then drops all but the
  // outputs.
  void CheckNeighbours(const std::vector<Role>& roles, Outcome* out) {
    for (size_t i = out->outputs; i < out->results.size(); ++i) {
      const Tensor& wanted = roles[i].is_input ? use_.inputs[roles[i].of].value : out->results[roles[i].of];
      const std::string difference = Difference(wanted, out->results[i]);
      if (!difference.empty()) Broken(roles[i].text + ", " + way_.name + ": " + difference + ": " + Shown(use_));
    }
    out->results.resize(out->outputs);
  }

  const Use& use_;
  const Way& way_;
  tw_runtime* runtime_;
  Graph graph_;
  Session session_;
  std::vector<tw_output> values_;
  tw_output yes_ = 0;
  std::vector<std::string> feed_names_;
  std::vector<tw_tensor*> feed_values_;
  std::vector<Handle> handles_;
  std::vector<const tw_operation*> steps_;  // they run before the op and prepare its resources
  std::vector<std::string> kept_;           // operations that destroy the resources
};

}  // namespace

Outcome Run(tw_runtime* runtime, const Use& use, const Way& way) { return Scene(runtime, use, way).Play(); }

}  // namespace thalweg::fuzz
