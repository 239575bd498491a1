/* Thalweg's worker, over the public C API. usage: thalweg_worker THREADS [OPTION OF THE RUNTIME...] */
#include "thalweg_worker.h"

#include <stdio.h>

tw_runtime* runtime;

void check(tw_status* status) {
  if (status) worker_fail("%s", tw_status_message(status));
}

tw_session* open_session(tw_graph* graph, const char* option) {
  tw_session* session;
  check(tw_session_create(graph, &option, option != NULL, &session));
  return session;
}

void run_prepared(void* user) {
  const prepared* p = user;
  tw_tensor* fetched = NULL;
  check(tw_callable_run(p->callable, p->feeds, NULL, p->n_fetches ? &fetched : NULL));
  tw_tensor_release(fetched);
}

int main(int argc, char** argv) {
  static const worker_command commands[] = {
      {"callable", answer_callable},
      {"run", answer_run},
      {"noop_fixed", answer_noop_fixed},
      {"noop_counted", answer_noop_counted},
      {"add_chain", answer_add_chain},
      {"handoff", answer_handoff},
      {"loop", answer_loop},
      {"mlp_load", answer_mlp_load},
      {"mlp_losses", answer_mlp_losses},
      {"mlp_step", answer_mlp_step},
      {"mlp_null_load", answer_mlp_null_load},
      {"mlp_null_step", answer_mlp_null_step},
      {"mlp_matmuls", answer_mlp_matmuls},
      {"wide", answer_wide},
      {"wide_one", answer_wide_one},
      {"wide_idle", answer_wide_idle},
      {"wide_idle_one", answer_wide_idle_one},
      {"empty_graph", answer_empty_graph},
      {"graph_write", answer_graph_write},
      {"graph_load", answer_graph_load},
      {"graph_plan", answer_graph_plan},
      {"first_step", answer_first_step},
      {"later_step", answer_later_step},
      {"device_load", answer_device_load},
      {"null_first_step", answer_null_first_step},
      {"null_later_step", answer_null_later_step},
      {"plugin_load", answer_plugin_load},
      {"plugins_known", answer_plugins_known},
      {"checkpoint_write", answer_checkpoint_write},
      {"checkpoint_read", answer_checkpoint_read},
      {"embedding_load", answer_embedding_load},
      {"embedding_losses", answer_embedding_losses},
      {"embedding_step", answer_embedding_step},
      {"chains", answer_chains},
      {"control_flow", answer_control_flow},
      {"lstm_losses", answer_lstm_losses},
      {"lstm_step", answer_lstm_step},
      {"swapping_longest", answer_swapping_longest},
      {"swapping_step", answer_swapping_step},
      {"extend", answer_extend},
      {"copies_peak", answer_copies_peak},
      {"elementwise", answer_elementwise},
      {"product", answer_product},
      {"product_sum", answer_product_sum},
      {"convolution", answer_convolution},
      {"convolution_sum", answer_convolution_sum},
      {"cluster", answer_cluster},
      {"cluster_rows", answer_cluster_rows},
      {"cluster_stop", answer_cluster_stop},
      {NULL, NULL},
  };
  char threads[32];
  snprintf(threads, sizeof threads, "threads=%d", worker_number(argc > 1 ? argv[1] : ""));
  const char* options[8] = {threads};
  uint32_t n = 1;
  for (int i = 2; i < argc && n < 8; ++i) options[n++] = argv[i];
  check(tw_runtime_create(options, n, &runtime));
  worker_serve(commands);
  tw_runtime_release(runtime);
  return 0;
}
