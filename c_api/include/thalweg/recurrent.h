/* Recurrent cells: variables, one step, and sequences of steps. A sequence is unrolled (the number
 * of steps is fixed in the graph) or a loop (the number of steps is that of the inputs of a run).
 * Each sequence of a batch may end earlier. Both forms give the same numbers.
 * A cell is a record of its weights, which are variables (handles) or values. The gates, the order
 * of the weights' columns and the names of variables are those of the ops LSTMBlockCell and
 * GRUBlockCell, and of TensorFlow's cells of these names.
 * All functions work through a scope (scope.h), which keeps the failures; results are then 0.
 * Threads: as the scope. Everything here: since 0.1.
 *
 *     tw_lstm_cell cell;
 *     tw_lstm_cell_create(s, "lstm", TW_FLOAT, 28, 64, 1, &cell);
 *     tw_lstm_unroll(s, &cell, inputs, 28, 0, 0, 0, outputs, &c, &h);       from zeros; h: the last output of each sequence */
#ifndef THALWEG_RECURRENT_H
#define THALWEG_RECURRENT_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#include "thalweg/variable.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- LSTM (half or float) ---- */

typedef struct tw_lstm_cell {
  uint32_t size, flags;
  tw_output kernel;        /* [input + cell, 4 cell]: columns of the input gate, the new content, the forget gate and the output gate */
  tw_output bias;          /* [4 cell] */
  tw_output wci, wcf, wco; /* [cell] each: peephole weights of the input, forget and output gates; 0: none. All three or none */
  double forget_bias;      /* added before the sigmoid of the forget gate */
  double cell_clip;        /* states are kept in [-cell_clip, cell_clip]; 0: unbounded */
} tw_lstm_cell;
/* Defaults: no weights, forget_bias 1, cell_clip 0. NULL is fine. */
TW_EXPORT void tw_lstm_cell_init(tw_lstm_cell* cell);
/* Makes the variables `name`/kernel, drawn uniformly from +-sqrt(6 / (rows + columns)) (Glorot and
 * Bengio, 2010), and `name`/bias, 0, and fills *out_cell with them and the defaults. seed: of the
 * random draw; 0 means another seed in each session. Errors: INVALID_ARGUMENT unless input_size >=
 * 0, cell_size > 0 and 4 cell_size (input_size + cell_size) fits into 63 bits; dtype other than
 * half or float. */
TW_EXPORT void tw_lstm_cell_create(tw_scope* scope, const char* name, uint32_t dtype, int64_t input_size, int64_t cell_size, int64_t seed,
                                   tw_lstm_cell* out_cell);
/* Adds one step. x: [batch, input]; c, h: [batch, cell], state and output of the previous step; 0
 * means zeros. Returns the output, and the state in *out_c. */
TW_EXPORT tw_output tw_lstm_step(tw_scope* scope, const tw_lstm_cell* cell, tw_output x, tw_output c, tw_output h, tw_output* out_c);
/* Adds n > 0 steps. inputs: n values [batch, input]. lengths: int32 or int64 [batch]; sequence b
 * ends before step lengths[b], and its later outputs are 0 and its state stays. 0 means that all
 * have n steps. c, h: as above. out_outputs: n values; may be NULL. *out_c, *out_h: state and
 * output after the last step of each sequence; either may be NULL. Source: TensorFlow's static_rnn. */
TW_EXPORT void tw_lstm_unroll(tw_scope* scope, const tw_lstm_cell* cell, const tw_output* inputs, uint32_t n, tw_output lengths,
                              tw_output c, tw_output h, tw_output* out_outputs, tw_output* out_c, tw_output* out_h);
/* The same in a loop. inputs: [steps, batch, input]. lengths: a length above the number of steps
 * counts as that number. *out_outputs: [steps, batch, cell]; may be NULL, as may the other outputs.
 * Source: TensorFlow's dynamic_rnn, with time first. */
TW_EXPORT void tw_lstm_loop(tw_scope* scope, const tw_lstm_cell* cell, tw_output inputs, tw_output lengths, tw_output c, tw_output h,
                            tw_output* out_outputs, tw_output* out_c, tw_output* out_h);

/* ---- GRU (float) ---- */

typedef struct tw_gru_cell {
  uint32_t size, flags;
  tw_output gates_kernel, gates_bias;         /* [input + cell, 2 cell] and [2 cell]: reset gate, update gate */
  tw_output candidate_kernel, candidate_bias; /* [input + cell, cell] and [cell]: new content */
} tw_gru_cell;
/* No weights. NULL is fine. */
TW_EXPORT void tw_gru_cell_init(tw_gru_cell* cell);
/* The same as tw_lstm_cell_create with `name`/gates/kernel, /gates/bias (1, so that the state lasts
 * at first), /candidate/kernel and /candidate/bias (0). All are float. */
TW_EXPORT void tw_gru_cell_create(tw_scope* scope, const char* name, int64_t input_size, int64_t cell_size, int64_t seed,
                                  tw_gru_cell* out_cell);
/* Adds one step. Returns the output, which is also the state. h: 0 means zeros. */
TW_EXPORT tw_output tw_gru_step(tw_scope* scope, const tw_gru_cell* cell, tw_output x, tw_output h);
/* As tw_lstm_unroll. */
TW_EXPORT void tw_gru_unroll(tw_scope* scope, const tw_gru_cell* cell, const tw_output* inputs, uint32_t n, tw_output lengths, tw_output h,
                             tw_output* out_outputs, tw_output* out_h);
/* As tw_lstm_loop. */
TW_EXPORT void tw_gru_loop(tw_scope* scope, const tw_gru_cell* cell, tw_output inputs, tw_output lengths, tw_output h,
                           tw_output* out_outputs, tw_output* out_h);

#ifdef __cplusplus
}
#endif
#endif
