/* C++17 sugar over the application API: handles that clean up after themselves, exceptions instead of statuses, vectors instead of
 * pointers with counts. Header only, so nothing of C++ crosses the library's boundary. Whatever is missing here is one `.c()` away.
 *
 *   tw::Graph graph;
 *   tw::Scope s(graph);
 *   tw_output x = s.placeholder("x", TW_FLOAT, {});
 *   tw_output y = s.op("Add", {s.op("Mul", {x, x}), s.scalar(TW_FLOAT, 1)});
 *   s.finish();
 *   tw::Session session(graph);
 *   std::cout << session.run({{x, tw::Tensor(3.0f)}}, {y})[0].text();
 *
 * Errors: tw::StatusError, with the status's code and message. Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_THALWEG_HPP
#define THALWEG_CPP_THALWEG_HPP
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "thalweg/thalweg.h"

namespace tw {

class StatusError : public std::runtime_error {
 public:
  StatusError(uint32_t code, const std::string& message, std::string operation = {}, std::string place = {})
      : std::runtime_error(message), code_(code), operation_(std::move(operation)), place_(std::move(place)) {}
  uint32_t code() const { return code_; }                     /* TW_NOT_FOUND, ... */
  const std::string& operation() const { return operation_; } /* the one that failed, by name; "": none */
  const std::string& place() const { return place_; }         /* where it was made, see tw_op_set_place; "": not known */

 private:
  uint32_t code_;
  std::string operation_, place_;
};

/* Throws what a status says and releases it; NULL passes. */
inline void raise(tw_status* status) {
  if (!status) return;
  const char *operation = tw_status_operation(status), *place = tw_status_place(status);
  const StatusError error(tw_status_code(status), tw_status_message(status), operation ? operation : "", place ? place : "");
  tw_status_release(status);
  throw error;
}

/* The element type of a C++ type. */
template <class T>
inline constexpr uint32_t type_of = TW_INVALID_TYPE;
template <>
inline constexpr uint32_t type_of<float> = TW_FLOAT;
template <>
inline constexpr uint32_t type_of<double> = TW_DOUBLE;
template <>
inline constexpr uint32_t type_of<int8_t> = TW_INT8;
template <>
inline constexpr uint32_t type_of<int16_t> = TW_INT16;
template <>
inline constexpr uint32_t type_of<int32_t> = TW_INT32;
template <>
inline constexpr uint32_t type_of<int64_t> = TW_INT64;
template <>
inline constexpr uint32_t type_of<uint8_t> = TW_UINT8;
template <>
inline constexpr uint32_t type_of<uint16_t> = TW_UINT16;
template <>
inline constexpr uint32_t type_of<uint32_t> = TW_UINT32;
template <>
inline constexpr uint32_t type_of<uint64_t> = TW_UINT64;
template <>
inline constexpr uint32_t type_of<bool> = TW_BOOL;

/* Owns a C object; moves, does not copy. */
template <class T, void (*Destroy)(T*)>
class Owned {
 public:
  T* c() const { return object_.get(); }

 protected:
  void own(T* object) { object_.reset(object); }
  T* disown() { return object_.release(); }

 private:
  struct Delete {
    void operator()(T* object) const { Destroy(object); }
  };
  std::unique_ptr<T, Delete> object_;
};

/* A text that a call hands out. */
inline std::string take_text(tw_buffer* buffer) {
  std::string text(tw_buffer_data(buffer), tw_buffer_bytes(buffer));
  tw_buffer_release(buffer);
  return text;
}

/* A shared reference to a tensor; copying shares. */
class Tensor {
 public:
  Tensor() = default;
  /* Takes over a reference. */
  static Tensor adopt(tw_tensor* t) {
    Tensor made;
    made.t_ = t;
    return made;
  }
  explicit Tensor(float value) { raise(tw_tensor_create_float(value, &t_)); }
  explicit Tensor(double value) { raise(tw_tensor_create_double(value, &t_)); }
  explicit Tensor(int32_t value) { raise(tw_tensor_create_int32(value, &t_)); }
  explicit Tensor(int64_t value) { raise(tw_tensor_create_int64(value, &t_)); }
  explicit Tensor(const std::string& value) { raise(tw_tensor_create_string(value.data(), value.size(), &t_)); }
  template <class T>
  Tensor(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    static_assert(type_of<T> != TW_INVALID_TYPE && !std::is_same_v<T, bool>, "no element type of this C++ type");
    raise(tw_tensor_create_copy(type_of<T>, dims.data(), uint32_t(dims.size()), values.data(), values.size() * sizeof(T), &t_));
  }
  Tensor(const Tensor& o) : t_(o.t_) { tw_tensor_retain(t_); }
  Tensor(Tensor&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() { tw_tensor_release(t_); }

  tw_tensor* c() const { return t_; }
  explicit operator bool() const { return t_ != nullptr; }
  uint32_t dtype() const { return tw_tensor_dtype(t_); }
  std::vector<int64_t> dims() const { return {tw_tensor_dims(t_), tw_tensor_dims(t_) + tw_tensor_rank(t_)}; }
  uint64_t count() const { return tw_tensor_count(t_); }
  /* The device in whose memory it is; "": host memory. */
  std::string device() const { return tw_tensor_device(t_) ? tw_tensor_device(t_) : ""; }
  Tensor to_host() const {
    tw_tensor* made = nullptr;
    raise(tw_tensor_to_host(t_, &made));
    return adopt(made);
  }
  /* runtime: whose device; NULL is the default one. */
  Tensor to_device(const std::string& device, tw_runtime* runtime = nullptr) const {
    tw_tensor* made = nullptr;
    raise(tw_tensor_to_device(t_, runtime, device.c_str(), &made));
    return adopt(made);
  }
  /* Its elements. Throws if T is not its type, or it is in the memory of a device. */
  template <class T>
  const T* data() const {
    if (!device().empty()) throw StatusError(TW_FAILED_PRECONDITION, "the tensor is on " + device() + "; take to_host() first");
    if (dtype() != type_of<T>) throw StatusError(TW_INVALID_ARGUMENT, std::string("the tensor holds ") + name(dtype()));
    return static_cast<const T*>(tw_tensor_data(t_));
  }
  template <class T>
  std::vector<T> values() const {
    return {data<T>(), data<T>() + count()};
  }
  std::string string(uint64_t i = 0) const {
    const char* data = nullptr;
    uint64_t bytes = 0;
    raise(tw_tensor_get_string(t_, i, &data, &bytes));
    return {data, bytes};
  }
  std::string text(uint64_t max_elements = 0) const {
    tw_buffer* text = nullptr;
    raise(tw_tensor_text(t_, max_elements, &text));
    return take_text(text);
  }

 private:
  static const char* name(uint32_t dtype) { return tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "nothing"; }
  tw_tensor* t_ = nullptr;
};

class Runtime : public Owned<tw_runtime, tw_runtime_release> {
 public:
  explicit Runtime(const std::vector<const char*>& options = {}) {
    tw_runtime* made = nullptr;
    raise(tw_runtime_create(options.data(), uint32_t(options.size()), &made));
    own(made);
  }
  explicit Runtime(const tw_runtime_config& config) {
    tw_runtime* made = nullptr;
    raise(tw_runtime_create_with(&config, &made));
    own(made);
  }
  void load_plugin(const std::string& path) const { raise(tw_plugin_load(c(), path.c_str())); }
  void unload_plugin(const std::string& id) const { raise(tw_plugin_unload(c(), id.c_str())); }
};

class Graph : public Owned<tw_graph, tw_graph_destroy> {
 public:
  Graph() { create(nullptr); }
  explicit Graph(const Runtime& runtime) { create(runtime.c()); }
  bool has(const std::string& name) const { return tw_graph_has(c(), name.c_str()) != 0; }
  const tw_operation* find(const std::string& name) const {
    const tw_operation* found = nullptr;
    raise(tw_graph_find(c(), name.c_str(), &found));
    return found;
  }
  tw_output output(const std::string& name) const {
    tw_output found = 0;
    raise(tw_graph_find_output(c(), name.c_str(), &found));
    return found;
  }
  void close_loop(const tw_operation* merge, uint32_t input, const tw_operation* next_iteration) {
    raise(tw_graph_close_loop(c(), merge, input, next_iteration));
  }
  void import_graph_def(const std::string& graph_def, const char* prefix = nullptr) {
    tw_import_options options = {};
    options.size = sizeof(options);
    options.prefix = prefix;
    raise(tw_graph_import(c(), graph_def.data(), graph_def.size(), &options));
  }
  std::string graph_def() const {
    tw_buffer* bytes = nullptr;
    raise(tw_graph_export(c(), &bytes));
    return take_text(bytes);
  }

 private:
  void create(tw_runtime* runtime) {
    tw_graph* made = nullptr;
    raise(tw_graph_create(runtime, &made));
    own(made);
  }
};

/* A record of options with the defaults filled in. */
template <class Options, void (*Init)(Options*)>
struct Record : Options {
  Record() : Options() { Init(this); }
};
using Polynomial = Record<tw_polynomial, tw_polynomial_init>;
using CosineRestarts = Record<tw_cosine_restarts, tw_cosine_restarts_init>;
using LstmCell = Record<tw_lstm_cell, tw_lstm_cell_init>;
/* State and output; 0: zeros. */
struct LstmState {
  tw_output c = 0, h = 0;
};
using GruCell = Record<tw_gru_cell, tw_gru_cell_init>;
using SampledLoss = Record<tw_sampled_loss, tw_sampled_loss_init>;
using SyncOptions = Record<tw_sync_options, tw_sync_options_init>;
/* A table in shards (sharded.h), which must live while it is used. */
struct Sharded : tw_sharded {
  explicit Sharded(const std::vector<tw_output>& all, uint32_t by = TW_SHARDED_MOD)
      : tw_sharded{sizeof(tw_sharded), 0, all.data(), uint32_t(all.size()), by} {}
};
using While = Record<tw_while_options, tw_while_options_init>;

/* An optimizer of train.h: its record with the defaults filled in, for Scope::train.
 *   tw::Adam adam;
 *   adam.learning_rate = rate;
 *   const tw_operation* step = s.train(adam, variables, gradients); */
template <class Options, void (*Init)(Options*),
          const tw_operation* (*Add)(tw_scope*, const tw_output*, const tw_gradient*, uint32_t, const Options*)>
struct Optimizer : Record<Options, Init> {
  const tw_operation* add(tw_scope* s, const tw_output* variables, const tw_gradient* gradients, uint32_t n) const {
    return Add(s, variables, gradients, n, this);
  }
};
using Sgd = Optimizer<tw_sgd, tw_sgd_init, tw_train_sgd>;
using Momentum = Optimizer<tw_momentum, tw_momentum_init, tw_train_momentum>;
using Adam = Optimizer<tw_adam, tw_adam_init, tw_train_adam>;
using AdaMax = Optimizer<tw_adamax, tw_adamax_init, tw_train_adamax>;
using Adagrad = Optimizer<tw_adagrad, tw_adagrad_init, tw_train_adagrad>;
using Adadelta = Optimizer<tw_adadelta, tw_adadelta_init, tw_train_adadelta>;
using RmsProp = Optimizer<tw_rmsprop, tw_rmsprop_init, tw_train_rmsprop>;
using Ftrl = Optimizer<tw_ftrl, tw_ftrl_init, tw_train_ftrl>;

using Values = std::vector<tw_output>;

/* Adds operations; the first failure is thrown by finish, and lost without it. */
class Scope {
 public:
  explicit Scope(const Graph& graph, const char* prefix = nullptr) : s_(tw_scope_create(graph.c(), prefix)) {}
  /* One that somebody else finishes: that of a block (flow.h). */
  explicit Scope(tw_scope* lent) : s_(lent), finished_(true) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { tw_status_release(finished_ ? nullptr : tw_scope_finish(s_)); }
  void finish() {
    finished_ = true;
    raise(tw_scope_finish(std::exchange(s_, nullptr)));
  }
  tw_scope* c() const { return s_; }
  /* Where what comes next is made: s.at(TW_PLACE).op(...). */
  Scope& at(const char* place) {
    tw_scope_set_place(s_, place);
    return *this;
  }
  /* What comes next and names no device runs there: s.on("/job:ps/task:0").variable(...). */
  Scope& on(const char* device) {
    tw_scope_set_device(s_, device);
    return *this;
  }

  /* describe(tw_op*) may add attributes, controls and a device. */
  tw_output op(const char* type, const std::vector<tw_output>& inputs) {
    return tw_scope_op(s_, type, inputs.data(), uint32_t(inputs.size()));
  }
  template <class Describe>
  tw_output op(const char* type, const std::vector<tw_output>& inputs, Describe&& describe, const char* name = nullptr) {
    tw_op* op = tw_scope_begin(s_, type, name);
    tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
    describe(op);
    return tw_scope_end(s_, op);
  }
  tw_output constant(const Tensor& value) { return tw_scope_constant(s_, value.c()); }
  tw_output scalar(uint32_t dtype, double value) { return tw_scope_scalar(s_, dtype, value); }
  tw_output ints(const std::vector<int32_t>& values) { return tw_scope_ints(s_, values.data(), uint32_t(values.size())); }
  tw_output placeholder(const char* name, uint32_t dtype, const std::vector<int64_t>& dims) {
    return tw_scope_placeholder(s_, name, dtype, dims.data(), int32_t(dims.size()));
  }
  tw_output variable(const char* name, tw_output initial) { return tw_variable_create(s_, name, initial); }
  tw_output read(tw_output variable) { return tw_variable_read(s_, variable); }
  tw_output name(const char* name, tw_output value) { return tw_scope_name(s_, name, value); }
  /* As tw_gradients_add_within. */
  std::vector<tw_gradient> gradients_within(uint64_t memory_budget, tw_output loss, const std::vector<tw_output>& xs) {
    std::vector<tw_gradient> found(xs.size());
    if (tw_graph* graph = tw_scope_graph(s_)) {
      tw_scope_fail(
          s_, tw_gradients_add_within(graph, &loss, nullptr, 1, xs.data(), uint32_t(xs.size()), nullptr, 0, memory_budget, found.data()));
    }
    return found;
  }
  /* recompute: as tw_gradients_add_recomputing. */
  std::vector<tw_gradient> gradients(tw_output loss, const std::vector<tw_output>& xs, bool recompute = false) {
    std::vector<tw_gradient> found(xs.size());
    const auto n = uint32_t(xs.size());
    tw_graph* graph = recompute ? tw_scope_graph(s_) : nullptr;
    if (!recompute) tw_scope_gradients(s_, loss, xs.data(), n, found.data());
    if (graph) tw_scope_fail(s_, tw_gradients_add_recomputing(graph, &loss, nullptr, 1, xs.data(), n, nullptr, 0, found.data()));
    return found;
  }
  const tw_operation* initializer(const char* name = nullptr) { return tw_variable_initializer(s_, name); }

  /* ---- Training (train.h, clip.h, schedule.h, average.h); `gradients` are as many as `variables` ---- */

  template <class Rule>
  const tw_operation* train(const Rule& rule, const std::vector<tw_output>& variables, const std::vector<tw_gradient>& gradients) {
    return rule.add(s_, variables.data(), gradients.data(), same(variables, gradients));
  }
  const tw_operation* accumulate(std::vector<tw_gradient>& gradients, uint32_t sub_batches, const char* name = nullptr) {
    return tw_accumulate_gradients(s_, name, gradients.data(), uint32_t(gradients.size()), sub_batches);
  }
  /* Synchronous training (sync.h): replaces gradients by their means over the replicas; apply(gradients) makes the optimizer's operation.
   */
  template <class F>
  tw_sync_ops sync(const SyncOptions& options, const std::vector<tw_output>& variables, std::vector<tw_gradient> gradients, F&& apply) {
    tw_sync_ops ops = {};
    ops.size = sizeof(ops);
    const uint32_t n = same(variables, gradients);
    std::unique_ptr<tw_sync, void (*)(tw_sync*)> begun(tw_sync_begin(s_, &options, variables.data(), gradients.data(), n), tw_sync_destroy);
    const std::string before = tw_scope_device(s_);
    if (options.device) tw_scope_set_device(s_, options.device);
    const tw_operation* applied = apply(gradients);
    tw_scope_set_device(s_, before.c_str());
    tw_sync_end(s_, begun.release(), applied, &ops);
    return ops;
  }
  void clip_by_value(std::vector<tw_gradient>& gradients, double low, double high) {
    tw_clip_by_value(s_, gradients.data(), uint32_t(gradients.size()), low, high);
  }
  void clip_by_norm(std::vector<tw_gradient>& gradients, double max_norm) {
    tw_clip_by_norm(s_, gradients.data(), uint32_t(gradients.size()), max_norm);
  }
  tw_output clip_by_global_norm(std::vector<tw_gradient>& gradients, double max_norm) {
    return tw_clip_by_global_norm(s_, gradients.data(), uint32_t(gradients.size()), max_norm);
  }
  void decay_gradients(const std::vector<tw_output>& variables, std::vector<tw_gradient>& gradients, double decay) {
    tw_decay_gradients(s_, variables.data(), gradients.data(), same(variables, gradients), decay);
  }
  void decay_weights(const std::vector<tw_output>& variables, std::vector<tw_gradient>& gradients, tw_output learning_rate, double decay) {
    tw_decay_weights(s_, variables.data(), gradients.data(), same(variables, gradients), learning_rate, decay);
  }
  tw_output global_step() { return tw_global_step(s_); }
  const tw_operation* advance_global_step(const tw_operation* after) { return tw_global_step_advance(s_, after); }
  /* values: one more than boundaries. */
  tw_output piecewise(tw_output step, const std::vector<double>& boundaries, const std::vector<double>& values) {
    if (values.size() != boundaries.size() + 1) fail("there must be one value more than boundaries");
    return tw_schedule_piecewise(s_, step, boundaries.data(), values.data(), uint32_t(boundaries.size()));
  }
  tw_output exponential(tw_output step, double initial, double steps, double factor, bool staircase = false) {
    return tw_schedule_exponential(s_, step, initial, steps, factor, staircase);
  }
  tw_output polynomial(tw_output step, double initial, double steps, const Polynomial& options = {}) {
    return tw_schedule_polynomial(s_, step, initial, steps, &options);
  }
  tw_output cosine(tw_output step, double initial, double steps, double alpha = 0) {
    return tw_schedule_cosine(s_, step, initial, steps, alpha);
  }
  tw_output cosine_restarts(tw_output step, double initial, double first_steps, const CosineRestarts& options = {}) {
    return tw_schedule_cosine_restarts(s_, step, initial, first_steps, &options);
  }
  tw_output warm_up(tw_output step, tw_output value, double steps, double start = 0) {
    return tw_schedule_warm_up(s_, step, value, steps, start);
  }
  /* The operation that updates the averages once `after` is done; their variables into *averages. */
  const tw_operation* moving_averages(const std::vector<tw_output>& variables, const tw_operation* after, std::vector<tw_output>* averages,
                                      double decay = 0.999, tw_output updates = 0) {
    tw_moving_averages options;
    tw_moving_averages_init(&options);
    options.decay = decay;
    options.updates = updates;
    averages->assign(variables.size(), 0);
    return tw_moving_averages_add(s_, variables.data(), uint32_t(variables.size()), &options, after, averages->data());
  }
  const tw_operation* swap_moving_averages(const std::vector<tw_output>& variables, const std::vector<tw_output>& averages) {
    return tw_moving_averages_swap(s_, variables.data(), averages.data(), same(variables, averages));
  }

  /* ---- Conditions and loops (flow.h). What runs is written by functions of the block's scope, which answer its results:
   *   auto y = s.cond(positive, [&](tw::Scope& in) { return tw::Values{in.op("Mul", {x, x})}; },
   *                   [&](tw::Scope& in) { return tw::Values{in.op("Neg", {x})}; }); ---- */

  template <class Then, class Otherwise>
  Values cond(tw_output pred, Then&& then, Otherwise&& otherwise, const char* name = nullptr) {
    Block first(s_), second(s_);
    Values results = first.give(then);
    second.give(otherwise);
    tw_cond(s_, name, pred, first.take(), second.take(), results.data(), uint32_t(results.size()));
    return results;
  }
  Values switch_case(tw_output index, const std::vector<std::function<Values(Scope&)>>& branches, const char* name = nullptr) {
    std::vector<Block> blocks;
    std::vector<tw_block*> taken;
    Values results;
    for (const auto& branch : branches) results = blocks.emplace_back(s_).give(branch);
    for (Block& block : blocks) taken.push_back(block.take());
    tw_switch_case(s_, name, index, taken.data(), uint32_t(taken.size()), results.data(), uint32_t(results.size()));
    return results;
  }
  /* cond and body: given the loop variables, too. shapes: a shape invariant for each, as dims; none: their own shapes. */
  template <class Cond, class Body>
  Values while_loop(Cond&& cond, Body&& body, const Values& first, const std::vector<std::vector<int64_t>>& shapes = {},
                    const While& options = {}) {
    std::vector<tw_shape> kept;
    for (const auto& dims : shapes) kept.push_back({dims.data(), int32_t(dims.size()), 0});
    if (!shapes.empty() && shapes.size() != first.size()) fail("there must be a shape invariant for each loop variable");
    Block goes_on(s_), next(s_);
    goes_on.give([&](Scope& in) { return Values{cond(in, goes_on.arguments(first, kept))}; });
    next.give([&](Scope& in) { return body(in, next.arguments(first, kept)); });
    Values last(first.size());
    tw_while_loop(s_, goes_on.take(), next.take(), first.data(), uint32_t(first.size()), &options, last.data());
    return last;
  }
  /* The results, computed by a call of a new function: of the part of the graph that they need and args do not (tw_graph_outline). */
  Values outline(const char* name, const Values& args, const Values& results) {
    const tw_function_spec what{sizeof what, 0, name, args.data(), results.data(), nullptr, uint32_t(args.size()), uint32_t(results.size()),
                                0,           1};
    const tw_operation* call = nullptr;
    if (tw_status* s = tw_graph_outline(tw_scope_graph(s_), &what, &call)) tw_scope_fail(s_, s);
    Values made(results.size());
    for (uint32_t i = 0; call && i < results.size(); ++i) made[i] = tw_operation_output(call, i);
    return made;
  }
  /* What f(scope, slices) gives for each slice of elems along their first axis, along a new one. */
  template <class F>
  Values map(F&& f, const Values& elems) {
    return each([&](Scope& in, const Values&, const Values& slices) { return std::pair(Values{}, f(in, slices)); }, elems, {}).second;
  }
  /* What f(scope, states, slices) gives in the end, and goes on from with the next slice. */
  template <class F>
  Values foldl(F&& f, const Values& elems, const Values& initial) {
    return each([&](Scope& in, const Values& states, const Values& slices) { return std::pair(Values(f(in, states, slices)), Values{}); },
                elems, initial)
        .first;
  }
  template <class F>
  Values foldr(F&& f, const Values& elems, const Values& initial) {
    return each([&](Scope& in, const Values& states, const Values& slices) { return std::pair(Values(f(in, states, slices)), Values{}); },
                elems, initial, true)
        .first;
  }
  /* What foldl has after each slice, along a new first axis. */
  template <class F>
  Values scan(F&& f, const Values& elems, const Values& initial, bool reverse = false) {
    const auto step = [&](Scope& in, const Values& states, const Values& slices) {
      const Values next = f(in, states, slices);
      return std::pair(next, next);
    };
    return each(step, elems, initial, reverse).second;
  }
  /* f(scope, states, slices) gives the next states and what is kept of each slice; answers the last states and all of that. */
  template <class F>
  std::pair<Values, Values> each(F&& f, const Values& elems, const Values& initial, bool reverse = false) {
    Values slices(elems.size()), states(initial.size());
    Block block(tw_each_begin(s_, elems.data(), uint32_t(elems.size()), initial.data(), uint32_t(initial.size()), reverse, slices.data(),
                              states.data()));
    Scope in(tw_block_scope(block.c()));
    std::pair<Values, Values> made = f(in, states, slices);
    if (made.first.size() != initial.size()) fail("the function must give a value for each initial one");
    Values all(made.second.size());
    tw_each_end(s_, nullptr, block.take(), made.first.data(), made.second.data(), uint32_t(all.size()), states.data(), all.data());
    return {states, all};
  }

  /* ---- Recurrent cells (recurrent.h), losses over many classes (sampled.h) ---- */

  LstmCell lstm_cell(const char* name, uint32_t dtype, int64_t input_size, int64_t cell_size, int64_t seed = 0) {
    LstmCell cell;
    tw_lstm_cell_create(s_, name, dtype, input_size, cell_size, seed, &cell);
    return cell;
  }
  GruCell gru_cell(const char* name, int64_t input_size, int64_t cell_size, int64_t seed = 0) {
    GruCell cell;
    tw_gru_cell_create(s_, name, input_size, cell_size, seed, &cell);
    return cell;
  }
  LstmState step(const LstmCell& cell, tw_output x, LstmState before = {}) {
    LstmState after;
    after.h = tw_lstm_step(s_, &cell, x, before.c, before.h, &after.c);
    return after;
  }
  tw_output step(const GruCell& cell, tw_output x, tw_output before = 0) { return tw_gru_step(s_, &cell, x, before); }
  /* An output for each input; *state: the first state, and then the last one. */
  std::vector<tw_output> unroll(const LstmCell& cell, const std::vector<tw_output>& inputs, LstmState* state, tw_output lengths = 0) {
    std::vector<tw_output> outputs(inputs.size());
    const LstmState first = *state;
    tw_lstm_unroll(s_, &cell, inputs.data(), uint32_t(inputs.size()), lengths, first.c, first.h, outputs.data(), &state->c, &state->h);
    return outputs;
  }
  std::vector<tw_output> unroll(const GruCell& cell, const std::vector<tw_output>& inputs, tw_output* state, tw_output lengths = 0) {
    std::vector<tw_output> outputs(inputs.size());
    tw_gru_unroll(s_, &cell, inputs.data(), uint32_t(inputs.size()), lengths, *state, outputs.data(), state);
    return outputs;
  }
  /* The outputs [steps, batch, cell]. */
  tw_output loop(const LstmCell& cell, tw_output inputs, LstmState* state, tw_output lengths = 0) {
    tw_output outputs = 0;
    const LstmState first = *state;
    tw_lstm_loop(s_, &cell, inputs, lengths, first.c, first.h, &outputs, &state->c, &state->h);
    return outputs;
  }
  tw_output loop(const GruCell& cell, tw_output inputs, tw_output* state, tw_output lengths = 0) {
    tw_output outputs = 0;
    tw_gru_loop(s_, &cell, inputs, lengths, *state, &outputs, state);
    return outputs;
  }
  tw_output sampled_softmax(tw_output weights, tw_output biases, tw_output labels, tw_output inputs, const SampledLoss& options = {}) {
    return tw_sampled_softmax(s_, weights, biases, labels, inputs, &options);
  }
  tw_output lookup(const Sharded& table, tw_output ids) { return tw_sharded_lookup(s_, &table, ids); }
  tw_output softmax(const Sharded& weights, const Sharded* biases, tw_output labels, tw_output inputs) {
    return tw_sharded_softmax(s_, &weights, biases, labels, inputs);
  }
  tw_output sampled_softmax(const Sharded& weights, const Sharded& biases, tw_output labels, tw_output inputs,
                            const SampledLoss& options = {}) {
    return tw_sharded_sampled_softmax(s_, &weights, &biases, labels, inputs, &options);
  }
  tw_output nce(tw_output weights, tw_output biases, tw_output labels, tw_output inputs, const SampledLoss& options = {}) {
    return tw_nce(s_, weights, biases, labels, inputs, &options);
  }

 private:
  class Block : public Owned<tw_block, tw_block_destroy> {
   public:
    explicit Block(tw_scope* around) { own(tw_block_begin(around)); }
    explicit Block(tw_block* begun) { own(begun); }
    tw_block* take() { return disown(); }
    /* What `write`, a function of the block's scope, answers. */
    template <class Write>
    Values give(Write&& write) {
      Scope in(tw_block_scope(c()));
      Values results = write(in);
      tw_block_give(c(), results.data(), uint32_t(results.size()));
      return results;
    }
    Values arguments(const Values& like, const std::vector<tw_shape>& shapes) {
      Values made(like.size());
      tw_block_arguments(c(), like.data(), uint32_t(like.size()), shapes.size() == like.size() ? shapes.data() : nullptr, made.data());
      return made;
    }
  };

  void fail(const char* text) { tw_scope_fail(s_, tw_status_create(TW_INVALID_ARGUMENT, text)); }
  /* The length of two lists. */
  template <class T>
  uint32_t same(const std::vector<tw_output>& variables, const std::vector<T>& others) {
    if (variables.size() != others.size()) fail("there must be one gradient or average for each variable");
    return uint32_t(variables.size() < others.size() ? variables.size() : others.size());
  }

  tw_scope* s_;
  bool finished_ = false;
};

/* What a run did: give `c()` to it in tw_run_options.stats. */
class StepStats : public Owned<tw_step_stats, tw_step_stats_destroy> {
 public:
  StepStats() {
    tw_step_stats* made = nullptr;
    raise(tw_step_stats_create(&made));
    own(made);
  }
  const tw_step_total& total() const { return *tw_step_stats_total(c()); }
  /* Their texts live until the next run with the object. */
  std::vector<tw_step_node> nodes() const { return all<tw_step_node>(tw_step_stats_node_count(c()), tw_step_stats_node); }
  std::vector<tw_step_op> ops() const { return all<tw_step_op>(tw_step_stats_op_count(c()), tw_step_stats_op); }
  std::vector<tw_step_wait> waits() const { return all<tw_step_wait>(tw_step_stats_wait_count(c()), tw_step_stats_wait); }
  void set_limit(uint32_t records) { tw_step_stats_set_limit(c(), records); }
  std::string json() const {
    tw_buffer* text = nullptr;
    raise(tw_step_stats_json(c(), &text));
    return take_text(text);
  }
  /* Several runs in one trace. */
  static std::string trace(const std::vector<const tw_step_stats*>& steps) {
    tw_buffer* text = nullptr;
    raise(tw_step_stats_trace(steps.data(), uint32_t(steps.size()), &text));
    return take_text(text);
  }

 private:
  template <class T>
  std::vector<T> all(uint32_t n, const T* (*get)(const tw_step_stats*, uint32_t)) const {
    std::vector<T> list;
    for (uint32_t i = 0; i < n; ++i) list.push_back(*get(c(), i));
    return list;
  }
};

using Feeds = std::vector<std::pair<tw_output, Tensor>>;

/* What a session lets the operations of imported graphs do, and what its steps may take: the options of these names (session.h). What is
 * left as it is has the option's default. */
struct Limits {
  std::vector<std::string> allow_ops, deny_ops;
  std::string allow_files;
  uint64_t memory_limit = 0;
  uint32_t step_timeout_ms = 0;
  bool trust_imported = false;
  std::vector<std::string> options() const {
    std::vector<std::string> texts;
    for (const std::string& op : allow_ops) texts.push_back("allow_ops=" + op);
    for (const std::string& op : deny_ops) texts.push_back("deny_ops=" + op);
    if (!allow_files.empty()) texts.push_back("allow_files=" + allow_files);
    if (memory_limit) texts.push_back("memory_limit=" + std::to_string(memory_limit));
    if (step_timeout_ms) texts.push_back("step_timeout_ms=" + std::to_string(step_timeout_ms));
    if (trust_imported) texts.push_back("trust_imported=true");
    return texts;
  }
};

class Session : public Owned<tw_session, tw_session_destroy> {
 public:
  explicit Session(const Graph& graph, const std::vector<const char*>& options = {}) { create(graph, options); }
  Session(const Graph& graph, std::vector<const char*> options, const Limits& limits) {
    const std::vector<std::string> texts = limits.options();
    for (const std::string& text : texts) options.push_back(text.c_str());
    create(graph, options);
  }
  std::vector<Tensor> run(const Feeds& feeds, const std::vector<tw_output>& fetches, const std::vector<const tw_operation*>& targets = {},
                          const tw_run_options* options = nullptr) {
    std::vector<tw_output> names;
    std::vector<tw_tensor*> values, out(fetches.size());
    for (const auto& [name, value] : feeds) {
      names.push_back(name);
      values.push_back(value.c());
    }
    tw_signature what = {};
    what.size = sizeof(what);
    what.feeds = names.data();
    what.n_feeds = uint32_t(names.size());
    what.fetches = fetches.data();
    what.n_fetches = uint32_t(fetches.size());
    what.targets = targets.data();
    what.n_targets = uint32_t(targets.size());
    raise(tw_session_run(c(), &what, values.data(), options, out.data()));
    std::vector<Tensor> results;
    for (tw_tensor* t : out) results.push_back(Tensor::adopt(t));
    return results;
  }
  void close() { raise(tw_session_close(c())); }
  tw_session_info report() const {
    tw_session_info info = {};
    info.size = sizeof(info);
    raise(tw_session_report(c(), &info));
    return info;
  }

 private:
  void create(const Graph& graph, const std::vector<const char*>& options) {
    tw_session* made = nullptr;
    raise(tw_session_create(graph.c(), options.data(), uint32_t(options.size()), &made));
    own(made);
  }
};

/* A task of a cluster in this process, listening; see server.h.
 *   tw::Server server(runtime, R"({"ps": ["unix:ps0"]})", "ps", 0);
 *   tw::Session session(graph, {("target=" + server.address()).c_str()}); */
class Server : public Owned<tw_server, tw_server_destroy> {
 public:
  Server(const Runtime& runtime, const std::string& cluster, const char* job, uint32_t task, const std::vector<const char*>& options = {}) {
    tw_server* made = nullptr;
    raise(tw_server_create(runtime.c(), cluster.c_str(), job, task, options.data(), uint32_t(options.size()), &made));
    own(made);
    raise(tw_server_start(made));
  }
  std::string address() const {
    tw_buffer* text = nullptr;
    raise(tw_server_address(c(), &text));
    return take_text(text);
  }
  void stop() { raise(tw_server_stop(c())); }
  void join(int64_t timeout_ns = 0) { raise(tw_server_join(c(), timeout_ns)); }
};

/* JSON of what the tasks of a cluster say of themselves (server.h). options: of a session, `target` among them. */
inline std::string cluster_status(const Runtime& runtime, const std::vector<const char*>& options, int64_t timeout_ns = 0) {
  tw_buffer* json = nullptr;
  raise(tw_cluster_status(runtime.c(), options.data(), uint32_t(options.size()), timeout_ns, &json));
  return take_text(json);
}

/* One step in parts: `PartialRun run(session, {x, y}, {a, b}); run({{x, one}}, {a}); run({{y, two}}, {b})`; see session.h. */
class PartialRun : public Owned<tw_partial_run, tw_partial_run_destroy> {
 public:
  PartialRun(Session& session, const std::vector<tw_output>& feeds, const std::vector<tw_output>& fetches,
             const std::vector<const tw_operation*>& targets = {}) {
    tw_partial_run* made = nullptr;
    const tw_signature what = signature(feeds, fetches, targets);
    raise(tw_partial_run_create(session.c(), &what, &made));
    own(made);
  }
  std::vector<Tensor> operator()(const Feeds& feeds, const std::vector<tw_output>& fetches,
                                 const std::vector<const tw_operation*>& targets = {}, const tw_run_options* options = nullptr) {
    std::vector<tw_output> names;
    std::vector<tw_tensor*> values, out(fetches.size());
    for (const auto& [name, value] : feeds) {
      names.push_back(name);
      values.push_back(value.c());
    }
    const tw_signature part = signature(names, fetches, targets);
    raise(tw_partial_run_run(c(), &part, values.data(), options, out.data()));
    std::vector<Tensor> results;
    for (tw_tensor* t : out) results.push_back(Tensor::adopt(t));
    return results;
  }
  uint64_t left() const { return tw_partial_run_left(c()); }

 private:
  static tw_signature signature(const std::vector<tw_output>& feeds, const std::vector<tw_output>& fetches,
                                const std::vector<const tw_operation*>& targets) {
    tw_signature what = {};
    what.size = sizeof(what);
    what.feeds = feeds.data();
    what.n_feeds = uint32_t(feeds.size());
    what.fetches = fetches.data();
    what.n_fetches = uint32_t(fetches.size());
    what.targets = targets.data();
    what.n_targets = uint32_t(targets.size());
    return what;
  }
};

/* Minimises a loss over all of its data at once; see lbfgs.h. The graph must outlive it. */
class Lbfgs : public Owned<tw_lbfgs, tw_lbfgs_destroy> {
 public:
  static tw_lbfgs_options defaults() {
    tw_lbfgs_options options;
    tw_lbfgs_options_init(&options);
    return options;
  }
  Lbfgs(const Graph& graph, tw_output loss, const std::vector<tw_output>& variables, const tw_lbfgs_options& options = defaults()) {
    tw_lbfgs* made = nullptr;
    raise(tw_lbfgs_create(graph.c(), loss, variables.data(), uint32_t(variables.size()), &options, &made));
    own(made);
  }
  tw_lbfgs_report run(Session& session, const Feeds& feeds = {}, uint32_t max_iterations = 100) {
    std::vector<tw_output> names;
    std::vector<tw_tensor*> values;
    for (const auto& [name, value] : feeds) {
      names.push_back(name);
      values.push_back(value.c());
    }
    tw_lbfgs_report report = {};
    report.size = sizeof(report);
    raise(tw_lbfgs_run(c(), session.c(), names.data(), values.data(), uint32_t(names.size()), max_iterations, &report));
    return report;
  }
  void reset() { tw_lbfgs_reset(c()); }
};

/* Places for variables on the tasks of a job; see spread.h. */
class Spread : public Owned<tw_spread, tw_spread_destroy> {
 public:
  Spread(const std::string& job, uint32_t tasks, uint32_t how = TW_SPREAD_IN_TURN) {
    tw_spread* made = nullptr;
    raise(tw_spread_create(job.c_str(), tasks, how, &made));
    own(made);
  }
  std::string next(uint64_t bytes) { return tw_spread_next(c(), bytes); }
  uint64_t bytes(uint32_t task) const { return tw_spread_bytes(c(), task); }
};

/* Saves and restores variables; see saver.h. The graph must outlive it. */
class Saver : public Owned<tw_saver, tw_saver_destroy> {
 public:
  /* Pairs of a variable and what it is called in files, or of beginnings of names that end in `*`. */
  using Names = std::vector<std::pair<std::string, std::string>>;
  struct Restored {
    uint32_t outcome; /* TW_RESTORE_... */
    std::string variable, name, text;
  };

  /* flags: TW_SAVER_... */
  explicit Saver(const Graph& graph, const std::vector<tw_output>& variables = {}, const Names& names = {}, uint32_t shards = 1,
                 uint32_t flags = 0) {
    std::vector<const char*> from, to;
    for (const auto& [variable, name] : names) {
      from.push_back(variable.c_str());
      to.push_back(name.c_str());
    }
    tw_saver_options options = {};
    options.size = sizeof(options);
    options.flags = flags;
    options.variables = from.data();
    options.names = to.data();
    options.n_names = uint32_t(names.size());
    options.shards = shards;
    tw_saver* made = nullptr;
    raise(tw_saver_create_with(graph.c(), variables.data(), uint32_t(variables.size()), &options, &made));
    own(made);
  }
  void save(Session& session, const std::string& prefix) { raise(tw_saver_save(c(), session.c(), prefix.c_str())); }
  void restore(Session& session, const std::string& prefix) { raise(tw_saver_restore(c(), session.c(), prefix.c_str())); }
  /* With TW_SAVER_BY_TASK: the tasks that save their own, and restoring one of them. */
  std::vector<std::string> tasks() const {
    std::vector<std::string> all;
    for (uint32_t k = 0; k < tw_saver_task_count(c()); ++k) all.emplace_back(tw_saver_task(c(), k));
    return all;
  }
  void restore_task(Session& session, const std::string& prefix, uint32_t k) {
    raise(tw_saver_restore_task(c(), session.c(), prefix.c_str(), k));
  }
  std::vector<Restored> restore_partial(Session& session, const std::string& prefix) {
    tw_restore_report* made = nullptr;
    raise(tw_saver_restore_partial(c(), session.c(), prefix.c_str(), &made));
    const std::unique_ptr<tw_restore_report, void (*)(tw_restore_report*)> report(made, tw_restore_report_destroy);
    std::vector<Restored> all;
    for (uint32_t i = 0; i < tw_restore_report_count(made); ++i) {
      const char* variable = tw_restore_report_variable(made, i);
      all.push_back(
          {tw_restore_report_outcome(made, i), variable ? variable : "", tw_restore_report_name(made, i), tw_restore_report_text(made, i)});
    }
    return all;
  }
};

/* Keeps checkpoints of a session in a folder; see checkpointer.h. Saver and session must outlive it. */
class Checkpointer : public Owned<tw_checkpointer, tw_checkpointer_destroy> {
 public:
  static tw_checkpointer_options defaults() {
    tw_checkpointer_options options;
    tw_checkpointer_options_init(&options);
    return options;
  }
  Checkpointer(const Saver& saver, const Session& session, const std::string& folder, const tw_checkpointer_options& options = defaults()) {
    tw_checkpointer* made = nullptr;
    raise(tw_checkpointer_create(saver.c(), session.c(), folder.c_str(), &options, &made));
    own(made);
  }
  bool step(int64_t step, const double* metric = nullptr) {
    uint32_t saved = 0;
    raise(tw_checkpointer_step(c(), step, metric, &saved));
    return saved != 0;
  }
  void save(int64_t step, const double* metric = nullptr) { raise(tw_checkpointer_save(c(), step, metric)); }
  void wait() { raise(tw_checkpointer_wait(c())); }
  /* The step of what was restored; throws TW_NOT_FOUND for a folder without checkpoints. */
  int64_t restore(uint32_t which = TW_CHECKPOINT_LATEST) {
    int64_t step = 0;
    raise(tw_checkpointer_restore(c(), which, &step, nullptr));
    return step;
  }
  /* The same, or `none` for such a folder. */
  int64_t restore_or(int64_t none) {
    try {
      return restore();
    } catch (const StatusError& e) {
      if (e.code() != TW_NOT_FOUND) throw;
      return none;
    }
  }
  tw_checkpointer_stats report() const {
    tw_checkpointer_stats stats = {};
    stats.size = sizeof(stats);
    raise(tw_checkpointer_report(c(), &stats));
    return stats;
  }
};

}  // namespace tw
#endif
