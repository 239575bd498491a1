/* tw::Scope adds operations, gradients and optimizers, conditions and loops (scope.h and the
 * headers that work through scopes); its option records are here, too. Threads: one scope belongs
 * to one thread at a time. Since 0.1. */
#ifndef THALWEG_CPP_SCOPE_HPP
#define THALWEG_CPP_SCOPE_HPP
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/accumulate.h"
#include "thalweg/average.h"
#include "thalweg/clip.h"
#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/tensor.hpp"
#include "thalweg/flow.h"
#include "thalweg/function.h"
#include "thalweg/gradients.h"
#include "thalweg/recurrent.h"
#include "thalweg/sampled.h"
#include "thalweg/schedule.h"
#include "thalweg/scope.h"
#include "thalweg/sharded.h"
#include "thalweg/sync.h"
#include "thalweg/train.h"
#include "thalweg/variable.h"

namespace tw {

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
/* A sharded table (sharded.h). `all` must outlive it. */
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
  /* A scope that somebody else finishes: that of a block (flow.h). */
  explicit Scope(tw_scope* lent) : s_(lent), finished_(true) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { tw_status_release(finished_ ? nullptr : tw_scope_finish(s_)); }
  void finish() {
    finished_ = true;
    raise(tw_scope_finish(std::exchange(s_, nullptr)));
  }
  tw_scope* c() const { return s_; }
  /* Sets the place of the operations that are added next: s.at(TW_PLACE).op(...). */
  Scope& at(const char* place) {
    tw_scope_set_place(s_, place);
    return *this;
  }
  /* Sets the device of the operations that are added next and name none:
   * s.on("/job:ps/task:0").variable(...). */
  Scope& on(const char* device) {
    tw_scope_set_device(s_, device);
    return *this;
  }

  /* Sets the container of state that is added next and names none: s.in("shared").variable(...). */
  Scope& in(const std::string& container) {
    tw_scope_set_container(s_, container.c_str());
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

  /* ---- Training (train.h, clip.h, schedule.h, average.h); one entry of `gradients` for each of
   * `variables` ---- */

  template <class Rule>
  const tw_operation* train(const Rule& rule, const std::vector<tw_output>& variables, const std::vector<tw_gradient>& gradients) {
    return rule.add(s_, variables.data(), gradients.data(), same(variables, gradients));
  }
  const tw_operation* accumulate(std::vector<tw_gradient>& gradients, uint32_t sub_batches, const char* name = nullptr) {
    return tw_accumulate_gradients(s_, name, gradients.data(), uint32_t(gradients.size()), sub_batches);
  }
  /* Synchronous training (sync.h): replaces gradients by their means over the replicas;
   * apply(gradients) makes the optimizer's operation. */
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
  /* Returns the operation that updates the averages after `after` has run; writes their variables
   * to *averages. */
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

  /* ---- Conditions and loops (flow.h). Functions of the block's scope write the blocks and return
   * their results:
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
  /* cond and body also get the loop variables. shapes: a shape invariant for each variable, as
   * dims; none: their own shapes. */
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
  /* Returns the results from a call of a new function, made of the part of the graph that the
   * results need and args do not (tw_graph_outline). */
  Values outline(const char* name, const Values& args, const Values& results) {
    const tw_function_spec what{sizeof what, 0, name, args.data(), results.data(), nullptr, uint32_t(args.size()), uint32_t(results.size()),
                                0,           1};
    const tw_operation* call = nullptr;
    if (tw_status* s = tw_graph_outline(tw_scope_graph(s_), &what, &call)) tw_scope_fail(s_, s);
    Values made(results.size());
    for (uint32_t i = 0; call && i < results.size(); ++i) made[i] = tw_operation_output(call, i);
    return made;
  }
  /* Returns the results of f(scope, slices) for each slice of elems along their first axis, stacked
   * along a new one. */
  template <class F>
  Values map(F&& f, const Values& elems) {
    return each([&](Scope& in, const Values&, const Values& slices) { return std::pair(Values{}, f(in, slices)); }, elems, {}).second;
  }
  /* Returns the last states. f(scope, states, slices) returns the next states. */
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
  /* Returns the states of foldl after each slice, stacked along a new first axis. */
  template <class F>
  Values scan(F&& f, const Values& elems, const Values& initial, bool reverse = false) {
    const auto step = [&](Scope& in, const Values& states, const Values& slices) {
      const Values next = f(in, states, slices);
      return std::pair(next, next);
    };
    return each(step, elems, initial, reverse).second;
  }
  /* f(scope, states, slices) returns the next states and the results of a slice. Returns the last
   * states and the stacked results. */
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
  /* Returns an output for each input; *state: in: the first state, out: the last one. */
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
  /* Returns the outputs [steps, batch, cell]. */
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
    /* Gives the block the results of `write`, a function of the block's scope. */
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
  /* Returns the common length of two lists. */
  template <class T>
  uint32_t same(const std::vector<tw_output>& variables, const std::vector<T>& others) {
    if (variables.size() != others.size()) fail("there must be one gradient or average for each variable");
    return uint32_t(variables.size() < others.size() ? variables.size() : others.size());
  }

  tw_scope* s_;
  bool finished_ = false;
};

}  // namespace tw
#endif
