/* Shared by the parts of the Thalweg worker: the runtime, and error checks. */
#ifndef THALWEG_BENCHMARKS_THALWEG_WORKER_H
#define THALWEG_BENCHMARKS_THALWEG_WORKER_H
#include "thalweg/thalweg.h"
#include "worker.h"

extern tw_runtime* runtime; /* its number of threads comes from the command line */

void check(tw_status* status); /* fails the worker unless status is NULL */
/* Opens a session of `graph`; option: "key=value" or NULL. */
tw_session* open_session(tw_graph* graph, const char* option);

/* One run of a callable, as an argument for worker_reply_time. */
typedef struct prepared {
  tw_callable* callable;
  tw_tensor* feeds[2];
  uint32_t n_fetches; /* 0 or 1 */
} prepared;
void run_prepared(void* user);

void answer_callable(const char* argument); /* empty_step.c */
void answer_run(const char* argument);
void answer_noop_fixed(const char* argument); /* chain.c */
void answer_noop_counted(const char* argument);
void answer_add_chain(const char* argument);
void answer_handoff(const char* argument);  /* handoff.c */
void answer_loop(const char* argument);     /* loop.c */
void answer_mlp_load(const char* argument); /* mlp.c */
void answer_mlp_losses(const char* argument);
void answer_mlp_step(const char* argument);
void answer_mlp_null_load(const char* argument);
void answer_mlp_null_step(const char* argument);
void answer_mlp_matmuls(const char* argument);
void answer_wide(const char* argument); /* wide.c */
void answer_wide_one(const char* argument);
void answer_wide_idle(const char* argument);
void answer_wide_idle_one(const char* argument);
void answer_empty_graph(const char* argument);
void answer_graph_write(const char* argument); /* load.c */
void answer_graph_load(const char* argument);
void answer_graph_plan(const char* argument);
void answer_first_step(const char* argument);
void answer_later_step(const char* argument);
void answer_device_load(const char* argument);
void answer_null_first_step(const char* argument);
void answer_null_later_step(const char* argument);
void answer_plugin_load(const char* argument);
void answer_plugins_known(const char* argument);
void answer_checkpoint_write(const char* argument); /* checkpoint.c */
void answer_checkpoint_read(const char* argument);
void answer_embedding_load(const char* argument); /* embedding.c */
void answer_embedding_losses(const char* argument);
void answer_embedding_step(const char* argument);
void answer_chains(const char* argument);       /* chains.c */
void answer_control_flow(const char* argument); /* control_flow.c */
void answer_lstm_losses(const char* argument);  /* lstm.c */
void answer_lstm_step(const char* argument);
void answer_swapping_longest(const char* argument); /* swapping.c */
void answer_swapping_step(const char* argument);
void answer_extend(const char* argument);      /* extend.c */
void answer_copies_peak(const char* argument); /* copies.c */
void answer_elementwise(const char* argument); /* elementwise.c */
void answer_product(const char* argument);     /* kernels.c */
void answer_product_sum(const char* argument);
void answer_convolution(const char* argument);
void answer_convolution_sum(const char* argument);
void answer_cluster(const char* argument); /* cluster.c */
void answer_cluster_rows(const char* argument);
void answer_cluster_stop(const char* argument);

#endif
