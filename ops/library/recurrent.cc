// Recurrent cells, and sequences of steps, unrolled and in a loop.
#include "thalweg/recurrent.h"

#include <algorithm>
#include <cmath>

#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/flow.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_lstm_cell_init(tw_lstm_cell* cell) {
  if (cell) *cell = {sizeof(tw_lstm_cell), 0, 0, 0, 0, 0, 0, 1, 0};
}

void tw_gru_cell_init(tw_gru_cell* cell) {
  if (cell) *cell = {sizeof(tw_gru_cell), 0, 0, 0, 0, 0};
}

namespace {

// ---- Variables ----

tw_output DrawnEvenly(tw_scope* scope, uint32_t dtype, int64_t rows, int64_t columns, int64_t seed, int64_t seed2) {
  OpenOp op(scope, "RandomUniform");
  tw_op_add_input(op, Longs(scope, {rows, columns}));
  tw_op_set_type(op, "dtype", dtype);
  tw_op_set_int(op, "seed", seed);
  tw_op_set_int(op, "seed2", seed ? seed2 : 0);
  const double reach = std::sqrt(6.0 / (double(rows) + double(columns)));
  const tw_output scaled = tw_scope_op2(scope, "Mul", op.End(), tw_scope_scalar(scope, dtype, 2 * reach));
  return tw_scope_op2(scope, "Sub", scaled, tw_scope_scalar(scope, dtype, reach));
}

tw_output Full(tw_scope* scope, uint32_t dtype, int64_t n, double value) {
  return tw_scope_op2(scope, "Fill", Longs(scope, {n}), tw_scope_scalar(scope, dtype, value));
}

bool CheckSizes(tw_scope* scope, const char* function, const char* name, int64_t input, int64_t cell, int64_t gates) {
  int64_t rows = 0, columns = 0, all = 0;
  if (!name) Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + ": name is NULL");
  const bool fits = input >= 0 && cell > 0 && !__builtin_add_overflow(input, cell, &rows) &&
                    !__builtin_mul_overflow(gates, cell, &columns) && !__builtin_mul_overflow(rows, columns, &all);
  if (!fits) {
    Fail(scope, TW_INVALID_ARGUMENT,
         std::string(function) + ": input_size is " + std::to_string(input) + " and cell_size " + std::to_string(cell) +
             "; they must be at least 0 and 1, and the number of weights must fit into 63 bits");
  }
  return Good(scope);
}

tw_output Variable(tw_scope* scope, const char* name, const char* part, tw_output initial) {
  return tw_variable_create(scope, (std::string(name) + "/" + part).c_str(), initial);
}

// ---- Steps ----

// Returns the size of axis i of a value; -1 if it is unknown or exceeds int32.
int32_t Known(tw_scope* scope, tw_output value, int32_t axis) {
  const int64_t dim = Describe(scope, value).Dim(axis);
  return dim <= INT32_MAX ? int32_t(std::max<int64_t>(dim, -1)) : -1;
}

// Returns zeros [batch, cell]. batch: that axis of x. cell: elements of `bias` for each of the
// cell's gates. Sizes that are known now are known for the zeros.
tw_output Zeros(tw_scope* scope, tw_output x, int32_t axis, tw_output bias, int32_t gates) {
  const int32_t one = 1, columns = Known(scope, bias, 0), known[] = {Known(scope, x, axis), columns < 0 ? -1 : columns / gates};
  const tw_output zero = tw_scope_scalar(scope, TW_FLOAT, 0);
  if (known[0] >= 0 && known[1] >= 0) return tw_scope_op2(scope, "Fill", tw_scope_ints(scope, known, 2), zero);
  const tw_output batch =
      tw_scope_op3(scope, "Slice", tw_scope_op1(scope, "Shape", x), tw_scope_ints(scope, &axis, 1), tw_scope_ints(scope, &one, 1));
  const tw_output cell = tw_scope_op2(scope, "FloorDiv", tw_scope_op1(scope, "Shape", bias), tw_scope_ints(scope, &gates, 1));
  const tw_output parts[] = {batch, cell, tw_scope_scalar(scope, TW_INT32, 0)};
  OpenOp dims(scope, "ConcatV2");
  tw_op_add_inputs(dims, parts, 2);
  tw_op_add_input(dims, parts[2]);
  const tw_output zeros = tw_scope_op2(scope, "Fill", dims.End(), zero);
  return known[1] > 0 ? tw_scope_op2(scope, "Reshape", zeros, tw_scope_ints(scope, known, 2)) : zeros;
}

// Returns the rows of `now` for sequences that are still going in step t, else those of
// `otherwise`.
tw_output WhileGoing(tw_scope* scope, tw_output going, tw_output now, tw_output otherwise) {
  if (!going) return now;
  return tw_scope_op3(scope, "SelectV2", going, now, otherwise);
}

// Returns [batch, 1]: whether step t belongs to a sequence; 0 if all sequences go on. t, lengths:
// int64.
tw_output Going(tw_scope* scope, tw_output lengths, tw_output t) {
  if (!lengths) return 0;
  const tw_output more = tw_scope_op2(scope, "Less", t, lengths);
  return tw_scope_op2(scope, "ExpandDims", more, tw_scope_scalar(scope, TW_INT32, 1));
}

bool CheckInputs(tw_scope* scope, const char* function, const tw_output* inputs, uint32_t n) {
  if (!inputs || n == 0) Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + (inputs ? ": there are no steps" : ": inputs is NULL"));
  return Good(scope);
}

// Checks a value that holds the inputs of all steps.
bool CheckSequence(tw_scope* scope, const char* function, tw_output inputs) {
  const int32_t rank = Describe(scope, inputs).shape.rank;
  if (rank >= 0 && rank != 3)
    Fail(scope, TW_INVALID_ARGUMENT,
         std::string(function) + ": inputs has rank " + std::to_string(rank) + "; it must be [steps, batch, input]");
  return Good(scope);
}

struct LstmState {
  tw_output c, h;
};

class Lstm {
 public:
  Lstm(tw_scope* scope, const char* function, const tw_lstm_cell* given) : scope_(scope) {
    cell_ = ReadOptions(scope, "tw_lstm_cell", given, tw_lstm_cell_init);
    peephole_ = cell_.wci || cell_.wcf || cell_.wco;
    const bool whole = !peephole_ || (cell_.wci && cell_.wcf && cell_.wco);
    if (!cell_.kernel || !cell_.bias || !whole)
      Fail(scope, TW_INVALID_ARGUMENT,
           std::string(function) +
               (whole ? ": the cell has no kernel or no bias" : ": the cell has some of wci, wcf and wco; set all three or none"));
    if (!Good(scope)) return;
    for (tw_output* weight : {&cell_.kernel, &cell_.bias}) *weight = WeightValue(scope, *weight);
    for (tw_output* weight : {&cell_.wci, &cell_.wcf, &cell_.wco}) *weight = peephole_ ? WeightValue(scope, *weight) : 0;
    dtype_ = Describe(scope, cell_.bias).dtype;
    none_ = peephole_ ? 0 : CastTo(scope, Full(scope, TW_FLOAT, 0, 0), dtype_);
  }

  // Returns the same cell in a block inside the scope.
  Lstm In(tw_scope* block) const {
    Lstm inside = *this;
    inside.scope_ = block;
    return inside;
  }
  LstmState Begin(tw_output x, tw_output c, tw_output h, int32_t batch_axis = 0) const {
    const tw_output zeros = c && h ? 0 : CastTo(scope_, Zeros(scope_, x, batch_axis, cell_.bias, 4), dtype_);
    return {c ? c : zeros, h ? h : zeros};
  }
  LstmState Step(tw_output x, const LstmState& before) const {
    OpenOp op(scope_, "LSTMBlockCell");
    for (tw_output input : {x, before.c, before.h, cell_.kernel, Hole(cell_.wci), Hole(cell_.wcf), Hole(cell_.wco), cell_.bias})
      tw_op_add_input(op, input);
    tw_op_set_float(op, "forget_bias", cell_.forget_bias);
    tw_op_set_float(op, "cell_clip", cell_.cell_clip);
    tw_op_set_bool(op, "use_peephole", peephole_);
    const tw_output first = op.End();
    return {tw_scope_output(scope_, first, 1), tw_scope_output(scope_, first, 6)};
  }
  // Adds a step that keeps the states of ended sequences; *output is 0 for these.
  LstmState Step(tw_output x, const LstmState& before, tw_output going, tw_output* output) const {
    const LstmState now = Step(x, before);
    *output = WhileGoing(scope_, going, now.h, going ? tw_scope_scalar(scope_, dtype_, 0) : 0);
    return {WhileGoing(scope_, going, now.c, before.c), WhileGoing(scope_, going, now.h, before.h)};
  }

 private:
  tw_output Hole(tw_output weight) const { return peephole_ ? weight : none_; }

  tw_scope* scope_;
  tw_lstm_cell cell_;
  bool peephole_ = false;
  uint32_t dtype_ = TW_FLOAT;
  tw_output none_ = 0;
};

class Gru {
 public:
  Gru(tw_scope* scope, const char* function, const tw_gru_cell* given) : scope_(scope) {
    cell_ = ReadOptions(scope, "tw_gru_cell", given, tw_gru_cell_init);
    for (tw_output* weight : {&cell_.gates_kernel, &cell_.gates_bias, &cell_.candidate_kernel, &cell_.candidate_bias}) {
      if (!*weight) Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + ": the cell lacks a kernel or a bias");
      if (Good(scope)) *weight = WeightValue(scope, *weight);
    }
  }
  Gru In(tw_scope* block) const {
    Gru inside = *this;
    inside.scope_ = block;
    return inside;
  }
  tw_output Begin(tw_output x, tw_output h, int32_t batch_axis = 0) const {
    return h ? h : Zeros(scope_, x, batch_axis, cell_.candidate_bias, 1);
  }
  tw_output Step(tw_output x, tw_output before) const {
    const tw_output in[] = {x, before, cell_.gates_kernel, cell_.candidate_kernel, cell_.gates_bias, cell_.candidate_bias};
    return tw_scope_output(scope_, tw_scope_op(scope_, "GRUBlockCell", in, 6), 3);
  }
  tw_output Step(tw_output x, tw_output before, tw_output going, tw_output* output) const {
    const tw_output now = Step(x, before);
    *output = WhileGoing(scope_, going, now, going ? tw_scope_scalar(scope_, TW_FLOAT, 0) : 0);
    return WhileGoing(scope_, going, now, before);
  }

 private:
  tw_scope* scope_;
  tw_gru_cell cell_;
};

void Set(tw_scope* scope, tw_output* out, tw_output value) {
  if (out) *out = Good(scope) ? value : 0;
}

}  // namespace

void tw_lstm_cell_create(tw_scope* scope, const char* name, uint32_t dtype, int64_t input_size, int64_t cell_size, int64_t seed,
                         tw_lstm_cell* out_cell) {
  tw_lstm_cell_init(out_cell);
  Protect(scope, [&] {
    if (dtype != TW_FLOAT && dtype != TW_HALF) {
      const char* named = tw_dtype_name(dtype);
      Fail(scope, TW_INVALID_ARGUMENT,
           "tw_lstm_cell_create: dtype is " + (named ? named : std::to_string(dtype)) + "; it must be half or float");
    }
    if (!out_cell) Fail(scope, TW_INVALID_ARGUMENT, "tw_lstm_cell_create: out_cell is NULL");
    if (!CheckSizes(scope, "tw_lstm_cell_create", name, input_size, cell_size, 4)) return 0;
    const tw_output weights = DrawnEvenly(scope, dtype, input_size + cell_size, 4 * cell_size, seed, 1);
    const tw_output kernel = Variable(scope, name, "kernel", weights);
    const tw_output bias = Variable(scope, name, "bias", Full(scope, dtype, 4 * cell_size, 0));
    Set(scope, &out_cell->kernel, kernel);
    Set(scope, &out_cell->bias, bias);
    return 0;
  });
}

tw_output tw_lstm_step(tw_scope* scope, const tw_lstm_cell* cell, tw_output x, tw_output c, tw_output h, tw_output* out_c) {
  Set(scope, out_c, 0);
  return Protect(scope, [&]() -> tw_output {
    const Lstm lstm(scope, "tw_lstm_step", cell);
    if (!Good(scope)) return 0;
    const LstmState after = lstm.Step(x, lstm.Begin(x, c, h));
    Set(scope, out_c, after.c);
    return Good(scope) ? after.h : 0;
  });
}

void tw_lstm_unroll(tw_scope* scope, const tw_lstm_cell* cell, const tw_output* inputs, uint32_t n, tw_output lengths, tw_output c,
                    tw_output h, tw_output* out_outputs, tw_output* out_c, tw_output* out_h) {
  if (out_outputs) std::fill(out_outputs, out_outputs + n, 0);
  Set(scope, out_c, 0);
  Set(scope, out_h, 0);
  Protect(scope, [&] {
    const Lstm lstm(scope, "tw_lstm_unroll", cell);
    if (!CheckInputs(scope, "tw_lstm_unroll", inputs, n)) return 0;
    if (lengths) lengths = CastTo(scope, lengths, TW_INT64);
    LstmState state = lstm.Begin(inputs[0], c, h);
    for (uint32_t t = 0; t < n && Good(scope); ++t) {
      tw_output output = 0;
      state = lstm.Step(inputs[t], state, Going(scope, lengths, lengths ? tw_scope_scalar(scope, TW_INT64, t) : 0), &output);
      if (out_outputs) Set(scope, &out_outputs[t], output);
    }
    Set(scope, out_c, state.c);
    Set(scope, out_h, state.h);
    return 0;
  });
}

void tw_lstm_loop(tw_scope* scope, const tw_lstm_cell* cell, tw_output inputs, tw_output lengths, tw_output c, tw_output h,
                  tw_output* out_outputs, tw_output* out_c, tw_output* out_h) {
  for (tw_output* out : {out_outputs, out_c, out_h}) Set(scope, out, 0);
  Protect(scope, [&] {
    const Lstm lstm(scope, "tw_lstm_loop", cell);
    if (!CheckSequence(scope, "tw_lstm_loop", inputs)) return 0;
    if (lengths) lengths = CastTo(scope, lengths, TW_INT64);
    const LstmState first = lstm.Begin(inputs, c, h, 1);
    const tw_output initial[] = {first.c, first.h};
    tw_output x = 0, before[2] = {0, 0}, output = 0, outputs = 0, last[2] = {0, 0};
    tw_block* block = tw_each_begin(scope, &inputs, 1, initial, 2, 0, &x, before);
    tw_scope* in = tw_block_scope(block);
    const tw_output going = Going(in, lengths, lengths ? CastTo(in, tw_each_index(block), TW_INT64) : 0);
    const LstmState after = lstm.In(in).Step(x, {before[0], before[1]}, going, &output);
    const tw_output next[] = {after.c, after.h};
    tw_each_end(scope, nullptr, block, next, &output, out_outputs != nullptr, last, &outputs);
    Set(scope, out_outputs, outputs);
    Set(scope, out_c, last[0]);
    Set(scope, out_h, last[1]);
    return 0;
  });
}

void tw_gru_cell_create(tw_scope* scope, const char* name, int64_t input_size, int64_t cell_size, int64_t seed, tw_gru_cell* out_cell) {
  tw_gru_cell_init(out_cell);
  Protect(scope, [&] {
    if (!out_cell) Fail(scope, TW_INVALID_ARGUMENT, "tw_gru_cell_create: out_cell is NULL");
    if (!CheckSizes(scope, "tw_gru_cell_create", name, input_size, cell_size, 2)) return 0;
    const int64_t rows = input_size + cell_size;
    const tw_output made[] = {
        Variable(scope, name, "gates/kernel", DrawnEvenly(scope, TW_FLOAT, rows, 2 * cell_size, seed, 1)),
        Variable(scope, name, "gates/bias", Full(scope, TW_FLOAT, 2 * cell_size, 1)),
        Variable(scope, name, "candidate/kernel", DrawnEvenly(scope, TW_FLOAT, rows, cell_size, seed, 2)),
        Variable(scope, name, "candidate/bias", Full(scope, TW_FLOAT, cell_size, 0)),
    };
    Set(scope, &out_cell->gates_kernel, made[0]);
    Set(scope, &out_cell->gates_bias, made[1]);
    Set(scope, &out_cell->candidate_kernel, made[2]);
    Set(scope, &out_cell->candidate_bias, made[3]);
    return 0;
  });
}

tw_output tw_gru_step(tw_scope* scope, const tw_gru_cell* cell, tw_output x, tw_output h) {
  return Protect(scope, [&]() -> tw_output {
    const Gru gru(scope, "tw_gru_step", cell);
    if (!Good(scope)) return 0;
    const tw_output after = gru.Step(x, gru.Begin(x, h));
    return Good(scope) ? after : 0;
  });
}

void tw_gru_unroll(tw_scope* scope, const tw_gru_cell* cell, const tw_output* inputs, uint32_t n, tw_output lengths, tw_output h,
                   tw_output* out_outputs, tw_output* out_h) {
  if (out_outputs) std::fill(out_outputs, out_outputs + n, 0);
  Set(scope, out_h, 0);
  Protect(scope, [&] {
    const Gru gru(scope, "tw_gru_unroll", cell);
    if (!CheckInputs(scope, "tw_gru_unroll", inputs, n)) return 0;
    if (lengths) lengths = CastTo(scope, lengths, TW_INT64);
    tw_output state = gru.Begin(inputs[0], h);
    for (uint32_t t = 0; t < n && Good(scope); ++t) {
      tw_output output = 0;
      state = gru.Step(inputs[t], state, Going(scope, lengths, lengths ? tw_scope_scalar(scope, TW_INT64, t) : 0), &output);
      if (out_outputs) Set(scope, &out_outputs[t], output);
    }
    Set(scope, out_h, state);
    return 0;
  });
}

void tw_gru_loop(tw_scope* scope, const tw_gru_cell* cell, tw_output inputs, tw_output lengths, tw_output h, tw_output* out_outputs,
                 tw_output* out_h) {
  for (tw_output* out : {out_outputs, out_h}) Set(scope, out, 0);
  Protect(scope, [&] {
    const Gru gru(scope, "tw_gru_loop", cell);
    if (!CheckSequence(scope, "tw_gru_loop", inputs)) return 0;
    if (lengths) lengths = CastTo(scope, lengths, TW_INT64);
    const tw_output initial = gru.Begin(inputs, h, 1);
    tw_output x = 0, before = 0, output = 0, outputs = 0, last = 0;
    tw_block* block = tw_each_begin(scope, &inputs, 1, &initial, 1, 0, &x, &before);
    tw_scope* in = tw_block_scope(block);
    const tw_output going = Going(in, lengths, lengths ? CastTo(in, tw_each_index(block), TW_INT64) : 0);
    const tw_output next = gru.In(in).Step(x, before, going, &output);
    tw_each_end(scope, nullptr, block, &next, &output, out_outputs != nullptr, &last, &outputs);
    Set(scope, out_outputs, outputs);
    Set(scope, out_h, last);
    return 0;
  });
}
