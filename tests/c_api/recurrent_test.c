/* Recurrent cells against their formulas: variables, one step, unrolled sequences of several lengths, training. */
#include "check.h"

enum { BATCH = 2, INPUT = 3, CELL = 2, STEPS = 4 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static tw_output matrix(tw_scope* s, const float* values, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  tw_tensor* tensor = NULL;
  OK(tw_tensor_create_copy(TW_FLOAT, dims, 2, values, (uint64_t)(rows * columns) * sizeof(float), &tensor));
  const tw_output made = tw_scope_constant(s, tensor);
  tw_tensor_release(tensor);
  return made;
}

static void vector(tw_session* session, tw_output what, uint64_t n, float* out) {
  tw_tensor* t = fetch(session, 0, NULL, what);
  CHECK(t && tw_tensor_count(t) == n);
  if (t && tw_tensor_count(t) == n) memcpy(out, tw_tensor_data(t), n * sizeof(float));
  tw_tensor_release(t);
}

static float inputs_of[STEPS][BATCH * INPUT];

static void draw_inputs(void) {
  for (int t = 0; t < STEPS; ++t)
    for (int k = 0; k < BATCH * INPUT; ++k) inputs_of[t][k] = (float)sin(1.0 + 3 * t + 0.7 * k);
}

/* Computes h and c of one row after one step; x: INPUT numbers, w: [INPUT + CELL, 4 CELL]. */
static void lstm_row(const float* x, const float* w, const float* b, double forget_bias, double* c, double* h) {
  double gate[4 * CELL];
  for (int k = 0; k < 4 * CELL; ++k) {
    gate[k] = b[k];
    for (int i = 0; i < INPUT; ++i) gate[k] += (double)x[i] * w[i * 4 * CELL + k];
    for (int i = 0; i < CELL; ++i) gate[k] += h[i] * w[(INPUT + i) * 4 * CELL + k];
  }
  for (int k = 0; k < CELL; ++k) {
    c[k] = sigmoid(gate[2 * CELL + k] + forget_bias) * c[k] + sigmoid(gate[k]) * tanh(gate[CELL + k]);
    h[k] = sigmoid(gate[3 * CELL + k]) * tanh(c[k]);
  }
}

static void SequencesEndWhereTheirLengthsSay(void) {
  draw_inputs();
  const int32_t lengths_of[BATCH] = {4, 2};
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "net");
  tw_lstm_cell cell;
  tw_lstm_cell_create(s, "lstm", TW_FLOAT, INPUT, CELL, 7, &cell);
  CHECK(cell.forget_bias == 1 && cell.cell_clip == 0 && !cell.wci);
  tw_output in[STEPS], out[STEPS], c = 0, h = 0;
  for (int t = 0; t < STEPS; ++t) in[t] = matrix(s, inputs_of[t], BATCH, INPUT);
  tw_lstm_unroll(s, &cell, in, STEPS, tw_scope_ints(s, lengths_of, BATCH), 0, 0, out, &c, &h);
  const tw_output kernel = tw_variable_read(s, cell.kernel), bias = tw_variable_read(s, cell.bias);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  float w[(INPUT + CELL) * 4 * CELL], b[4 * CELL], last_c[BATCH * CELL], last_h[BATCH * CELL], y[BATCH * CELL];
  vector(session, kernel, (INPUT + CELL) * 4 * CELL, w);
  vector(session, bias, 4 * CELL, b);
  vector(session, c, BATCH * CELL, last_c);
  vector(session, h, BATCH * CELL, last_h);
  const double reach = sqrt(6.0 / (INPUT + CELL + 4 * CELL));
  int below = 0;
  for (int k = 0; k < (INPUT + CELL) * 4 * CELL; ++k) {
    CHECK(fabs(w[k]) <= reach);
    below += w[k] < 0;
  }
  CHECK(below > 5 && below < 35 && b[0] == 0);
  double state[BATCH][CELL] = {{0}}, said[BATCH][CELL] = {{0}};
  for (int t = 0; t < STEPS; ++t) {
    vector(session, out[t], BATCH * CELL, y);
    for (int row = 0; row < BATCH; ++row) {
      const int going = t < lengths_of[row];
      if (going) lstm_row(inputs_of[t] + row * INPUT, w, b, 1, state[row], said[row]);
      for (int k = 0; k < CELL; ++k) CHECK(near(y[row * CELL + k], going ? said[row][k] : 0, 1e-5));
    }
  }
  for (int k = 0; k < BATCH * CELL; ++k)
    CHECK(near(last_c[k], state[k / CELL][k % CELL], 1e-5) && near(last_h[k], said[k / CELL][k % CELL], 1e-5));
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void GruStepsFollowTheirFormula(void) {
  draw_inputs();
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_gru_cell cell;
  tw_gru_cell_create(s, "gru", INPUT, CELL, 3, &cell);
  tw_output in[STEPS], out[STEPS], h = 0;
  for (int t = 0; t < STEPS; ++t) in[t] = matrix(s, inputs_of[t], BATCH, INPUT);
  tw_gru_unroll(s, &cell, in, STEPS, 0, 0, out, &h);
  const tw_output once = tw_gru_step(s, &cell, in[0], 0);
  const tw_output read[] = {tw_variable_read(s, cell.gates_kernel), tw_variable_read(s, cell.candidate_kernel),
                            tw_variable_read(s, cell.gates_bias)};
  const tw_operation *init = tw_variable_initializer(s, "init"), *found = NULL;
  OK(tw_scope_finish(s));
  OK(tw_graph_find(graph, "gru/candidate/bias", &found));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  float w_ru[(INPUT + CELL) * 2 * CELL], w_c[(INPUT + CELL) * CELL], b_ru[2 * CELL], y[BATCH * CELL], first[BATCH * CELL],
      last[BATCH * CELL];
  vector(session, read[0], (INPUT + CELL) * 2 * CELL, w_ru);
  vector(session, read[1], (INPUT + CELL) * CELL, w_c);
  vector(session, read[2], 2 * CELL, b_ru);
  vector(session, once, BATCH * CELL, first);
  vector(session, h, BATCH * CELL, last);
  CHECK(b_ru[0] == 1 && b_ru[2 * CELL - 1] == 1);
  double state[BATCH][CELL] = {{0}};
  for (int t = 0; t < STEPS; ++t) {
    vector(session, out[t], BATCH * CELL, y);
    for (int row = 0; row < BATCH; ++row) {
      const float* x = inputs_of[t] + row * INPUT;
      double gate[2 * CELL], c[CELL];
      for (int k = 0; k < 2 * CELL; ++k) {
        gate[k] = 1;
        for (int i = 0; i < INPUT; ++i) gate[k] += (double)x[i] * w_ru[i * 2 * CELL + k];
        for (int i = 0; i < CELL; ++i) gate[k] += state[row][i] * w_ru[(INPUT + i) * 2 * CELL + k];
        gate[k] = sigmoid(gate[k]);
      }
      for (int k = 0; k < CELL; ++k) {
        c[k] = 0;
        for (int i = 0; i < INPUT; ++i) c[k] += (double)x[i] * w_c[i * CELL + k];
        for (int i = 0; i < CELL; ++i) c[k] += gate[i] * state[row][i] * w_c[(INPUT + i) * CELL + k];
      }
      for (int k = 0; k < CELL; ++k) {
        state[row][k] = gate[CELL + k] * state[row][k] + (1 - gate[CELL + k]) * tanh(c[k]);
        CHECK(near(y[row * CELL + k], state[row][k], 1e-5));
        if (t == 0) CHECK(near(first[row * CELL + k], state[row][k], 1e-5));
        if (t == STEPS - 1) CHECK(last[row * CELL + k] == y[row * CELL + k]);
      }
    }
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void PeepholesAndGivenStatesCount(void) {
  const float row[] = {0.5f, -0.25f}, hole[] = {0.75f, -1.5f}, w[4 * 4 * CELL] = {0};
  const int64_t two = CELL, eight = 4 * CELL;
  const float bias[4 * CELL] = {0};
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_tensor *hole_value = NULL, *bias_value = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_tensor_create_copy(TW_FLOAT, &two, 1, hole, sizeof hole, &hole_value));
  OK(tw_tensor_create_copy(TW_FLOAT, &eight, 1, bias, sizeof bias, &bias_value));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_lstm_cell cell;
  tw_lstm_cell_init(&cell);
  cell.kernel = matrix(s, w, 4, 4 * CELL);
  cell.bias = tw_scope_constant(s, bias_value);
  cell.wci = cell.wcf = cell.wco = tw_scope_constant(s, hole_value);
  cell.forget_bias = 0.5;
  const tw_output given = matrix(s, row, 1, CELL);
  tw_output c = 0;
  const tw_output h = tw_lstm_step(s, &cell, given, given, given, &c);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  float got_c[CELL], got_h[CELL];
  vector(session, c, CELL, got_c);
  vector(session, h, CELL, got_h);
  for (int k = 0; k < CELL; ++k) {
    const double state = sigmoid(0.5 + row[k] * hole[k]) * row[k];
    CHECK(near(got_c[k], state, 1e-6) && near(got_h[k], sigmoid(state * hole[k]) * tanh(state), 1e-6));
  }
  tw_tensor_release(hole_value);
  tw_tensor_release(bias_value);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void MistakesAreNamed(void) {
  draw_inputs();
  for (int which = 0; which < 9; ++which) {
    tw_graph* graph = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    const tw_output x = matrix(s, inputs_of[0], BATCH, INPUT);
    tw_lstm_cell lstm;
    tw_gru_cell gru;
    tw_output out = 1, c = 1, h = 1;
    tw_lstm_cell_init(&lstm);
    tw_gru_cell_init(&gru);
    if (which == 0) tw_lstm_cell_create(s, "a", TW_DOUBLE, 1, 1, 0, &lstm);
    if (which == 1) tw_lstm_cell_create(s, "a", TW_FLOAT, -1, 1, 0, &lstm);
    if (which == 2) tw_gru_cell_create(s, "a", INT64_MAX, 2, 0, &gru);
    if (which == 3) CHECK(tw_lstm_step(s, &lstm, x, 0, 0, &c) == 0 && c == 0);
    if (which == 4) CHECK(tw_gru_step(s, &gru, x, 0) == 0);
    if (which >= 5) tw_lstm_cell_create(s, "a", which == 8 ? 999 : TW_FLOAT, INPUT, CELL, 0, &lstm);
    if (which == 5) tw_lstm_unroll(s, &lstm, NULL, 1, 0, 0, 0, &out, &c, &h);
    if (which == 6) tw_lstm_unroll(s, &lstm, &x, 0, 0, 0, 0, NULL, &c, &h);
    lstm.wci = lstm.kernel;
    if (which == 7) CHECK(tw_lstm_step(s, &lstm, x, 0, 0, &c) == 0);
    if (which == 5 || which == 6) CHECK(c == 0 && h == 0 && (which == 6 || out == 0));
    const char* const says[] = {
        "double", "-1", "9223372036854775807", "kernel", "kernel", "inputs", "no steps", "wcf", "dtype is 999; it must be half or float"};
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, says[which]);
    tw_graph_destroy(graph);
  }
}

/* The target is which of the first two inputs was larger, several steps later. */
static void CellsLearn(void) {
  draw_inputs();
  for (int kind = 0; kind < 2; ++kind) {
    tw_graph* graph = NULL;
    tw_session* session = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    tw_lstm_cell lstm;
    tw_gru_cell gru;
    tw_output in[STEPS], h = 0;
    for (int t = 0; t < STEPS; ++t) in[t] = matrix(s, inputs_of[t], BATCH, INPUT);
    if (kind == 0) {
      tw_lstm_cell_create(s, "lstm", TW_FLOAT, INPUT, CELL, 5, &lstm);
      tw_lstm_unroll(s, &lstm, in, STEPS, 0, 0, 0, NULL, NULL, &h);
    } else {
      tw_gru_cell_create(s, "gru", INPUT, CELL, 5, &gru);
      tw_gru_unroll(s, &gru, in, STEPS, 0, 0, NULL, &h);
    }
    const float wanted[BATCH * CELL] = {0.5f, -0.5f, -0.5f, 0.5f};
    const tw_output loss = tw_scope_op1(s, "L2Loss", tw_scope_op2(s, "Sub", h, matrix(s, wanted, BATCH, CELL)));
    const tw_output weights[] = {kind ? gru.gates_kernel : lstm.kernel, kind ? gru.gates_bias : lstm.bias, gru.candidate_kernel,
                                 gru.candidate_bias};
    const uint32_t n = kind ? 4 : 2;
    tw_gradient gradients[4];
    tw_scope_gradients(s, loss, weights, n, gradients);
    tw_adam adam;
    tw_adam_init(&adam);
    adam.learning_rate = tw_scope_scalar(s, TW_FLOAT, 0.05);
    const tw_operation *train = tw_train_adam(s, weights, gradients, n, &adam), *init = tw_variable_initializer(s, "init");
    OK(tw_scope_finish(s));
    OK(tw_session_create(graph, NULL, 0, &session));
    run(session, init);
    float before = 0, after = 0;
    vector(session, loss, 1, &before);
    for (int step = 0; step < 200; ++step) run(session, train);
    vector(session, loss, 1, &after);
    CHECK(before > 0.1f && after < 0.01f * before);
    tw_session_destroy(session);
    tw_graph_destroy(graph);
  }
}

/* The outputs, the last state and the gradients of both by weights and inputs. */
typedef struct sequence {
  tw_output outputs, c, h, loss;
  tw_gradient gradients[3];
} sequence;

static sequence differentiated(tw_scope* s, sequence q, tw_output inputs, tw_output kernel, tw_output bias, int n_states) {
  const int32_t all[] = {0, 1, 2};
  const tw_output states = n_states == 2 ? tw_scope_op2(s, "Add", q.c, q.h) : q.h;
  q.loss = tw_scope_op2(s, "Add", tw_scope_op2(s, "Sum", tw_scope_op2(s, "Mul", q.outputs, q.outputs), tw_scope_ints(s, all, 3)),
                        tw_scope_op2(s, "Sum", tw_scope_op1(s, "Sin", states), tw_scope_ints(s, all, 2)));
  const tw_output xs[] = {kernel, bias, inputs};
  tw_scope_gradients(s, q.loss, xs, 3, q.gradients);
  return q;
}

static void expect_same(tw_session* session, tw_output a, tw_output b) {
  tw_tensor *x = fetch(session, 0, NULL, a), *y = fetch(session, 0, NULL, b);
  CHECK(x && y && tw_tensor_count(x) == tw_tensor_count(y) && tw_tensor_count(x) > 0);
  for (uint64_t i = 0; x && y && i < tw_tensor_count(x) && tw_tensor_count(x) == tw_tensor_count(y); ++i)
    CHECK(near(((const float*)tw_tensor_data(x))[i], ((const float*)tw_tensor_data(y))[i], 1e-6));
  tw_tensor_release(x);
  tw_tensor_release(y);
}

static void ALoopGivesWhatTheUnrolledStepsGiveGradientsToo(void) {
  draw_inputs();
  for (int which = 0; which < 4; ++which) {
    const int is_lstm = which < 2;
    const int32_t lengths_of[BATCH] = {4, 2};
    const int64_t dims[] = {STEPS, BATCH, INPUT};
    tw_graph* graph = NULL;
    tw_session* session = NULL;
    tw_tensor* all = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    OK(tw_tensor_create_copy(TW_FLOAT, dims, 3, inputs_of, sizeof inputs_of, &all));
    const tw_output inputs = tw_scope_constant(s, all), lengths = which % 2 ? tw_scope_ints(s, lengths_of, BATCH) : 0;
    tw_lstm_cell lstm;
    tw_gru_cell gru;
    if (is_lstm)
      tw_lstm_cell_create(s, "cell", TW_FLOAT, INPUT, CELL, 7, &lstm);
    else
      tw_gru_cell_create(s, "cell", INPUT, CELL, 7, &gru);
    tw_op* op = tw_scope_begin(s, "Unpack", NULL);
    tw_op_add_input(op, inputs);
    tw_op_set_int(op, "num", STEPS);
    const tw_output steps = tw_scope_end(s, op);
    tw_output in[STEPS], out[STEPS];
    for (uint32_t t = 0; t < STEPS; ++t) in[t] = tw_scope_output(s, steps, t);
    sequence a = {0}, b = {0};
    if (is_lstm) {
      tw_lstm_unroll(s, &lstm, in, STEPS, lengths, 0, 0, out, &a.c, &a.h);
      tw_lstm_loop(s, &lstm, inputs, lengths, 0, 0, &b.outputs, &b.c, &b.h);
    } else {
      tw_gru_unroll(s, &gru, in, STEPS, lengths, 0, out, &a.h);
      tw_gru_loop(s, &gru, inputs, lengths, 0, &b.outputs, &b.h);
    }
    a.outputs = tw_scope_op(s, "Pack", out, STEPS);
    const tw_output kernel = is_lstm ? lstm.kernel : gru.gates_kernel, bias = is_lstm ? lstm.bias : gru.candidate_bias;
    a = differentiated(s, a, inputs, kernel, bias, is_lstm ? 2 : 1);
    b = differentiated(s, b, inputs, kernel, bias, is_lstm ? 2 : 1);
    const tw_operation* init = tw_variable_initializer(s, "init");
    OK(tw_scope_finish(s));
    OK(tw_session_create(graph, NULL, 0, &session));
    run(session, init);
    expect_same(session, a.outputs, b.outputs);
    expect_same(session, a.h, b.h);
    if (is_lstm) expect_same(session, a.c, b.c);
    for (int i = 0; i < 3; ++i) expect_same(session, a.gradients[i].values, b.gradients[i].values);
    tw_tensor_release(all);
    tw_session_destroy(session);
    tw_graph_destroy(graph);
  }
}

static void ALoopHasAsManyStepsAsItsInputs(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t open[] = {-1, -1, INPUT};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, open, 3);
  tw_lstm_cell cell;
  tw_lstm_cell_create(s, "lstm", TW_FLOAT, INPUT, CELL, 7, &cell);
  tw_output outputs = 0, h = 0;
  tw_lstm_loop(s, &cell, x, 0, 0, 0, &outputs, NULL, &h);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  const float values[5 * 3 * INPUT] = {0.5f};
  for (int64_t steps = 1; steps <= 5; steps += 2) {
    tw_tensor *in = floats((int64_t[]){steps, 3, INPUT}, 3, values), *all = fetch(session, x, in, outputs),
              *last = fetch(session, x, in, h);
    CHECK(all && tw_tensor_dims(all)[0] == steps && tw_tensor_dims(all)[1] == 3 && tw_tensor_dims(all)[2] == CELL);
    if (all && last)
      CHECK(memcmp((const float*)tw_tensor_data(all) + (steps - 1) * 3 * CELL, tw_tensor_data(last), 3 * CELL * sizeof(float)) == 0);
    tw_tensor_release(in);
    tw_tensor_release(all);
    tw_tensor_release(last);
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);

  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
  tw_lstm_cell_create(s, "lstm", TW_FLOAT, INPUT, CELL, 7, &cell);
  tw_lstm_loop(s, &cell, matrix(s, values, 2, INPUT), 0, 0, 0, &outputs, NULL, NULL);
  CHECK(outputs == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "inputs has rank 2; it must be [steps, batch, input]");
  tw_graph_destroy(graph);
}

MAIN(TEST(SequencesEndWhereTheirLengthsSay), TEST(ALoopGivesWhatTheUnrolledStepsGiveGradientsToo), TEST(ALoopHasAsManyStepsAsItsInputs),
     TEST(GruStepsFollowTheirFormula), TEST(PeepholesAndGivenStatesCount), TEST(MistakesAreNamed), TEST(CellsLearn))
