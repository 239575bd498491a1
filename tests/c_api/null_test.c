/* NULL wherever a pointer can be: a status or an empty answer, never a crash. */
#include "check.h"

#define REFUSED(call) FAILS((call), TW_INVALID_ARGUMENT, "NULL")

static void NullObjectsAreRefused(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  REFUSED(tw_buffer_create("", 0, NULL));
  REFUSED(tw_runtime_create(NULL, 0, NULL));
  REFUSED(tw_runtime_create_with(NULL, NULL));
  REFUSED(tw_runtime_default(NULL));
  REFUSED(tw_step_stats_create(NULL));
  REFUSED(tw_step_stats_json(NULL, NULL));
  REFUSED(tw_log_write(NULL, 0, NULL));
  REFUSED(tw_tensor_create(TW_FLOAT, NULL, 0, NULL));
  REFUSED(tw_tensor_create_copy(TW_FLOAT, NULL, 0, "", 4, NULL));
  REFUSED(tw_tensor_create_from(TW_FLOAT, NULL, 0, NULL, 4, NULL, NULL, NULL));
  REFUSED(tw_tensor_create_from_const(TW_FLOAT, NULL, 0, NULL, 4, NULL, NULL, NULL));
  REFUSED(tw_tensor_create_float(1, NULL));
  REFUSED(tw_tensor_create_double(1, NULL));
  REFUSED(tw_tensor_create_int32(1, NULL));
  REFUSED(tw_tensor_create_int64(1, NULL));
  REFUSED(tw_tensor_create_string("", 0, NULL));
  REFUSED(tw_tensor_reshape(NULL, NULL, 0, NULL));
  REFUSED(tw_tensor_get_string(NULL, 0, NULL, NULL));
  REFUSED(tw_tensor_set_string(NULL, 0, NULL, 0));
  REFUSED(tw_tensor_text(NULL, 0, NULL));
  REFUSED(tw_tensor_to_dlpack(NULL, NULL));
  REFUSED(tw_tensor_to_dlpack_versioned(NULL, NULL));
  REFUSED(tw_tensor_from_dlpack(NULL, NULL));
  REFUSED(tw_tensor_from_dlpack_versioned(NULL, NULL));
  REFUSED(tw_graph_create(NULL, NULL));
  REFUSED(tw_graph_find(NULL, "x", NULL));
  REFUSED(tw_graph_find(graph, NULL, NULL));
  CHECK(tw_graph_has(NULL, "x") == 0 && tw_graph_has(graph, NULL) == 0);
  REFUSED(tw_graph_find_output(NULL, "x", NULL));
  REFUSED(tw_graph_find_output(graph, "x", NULL));
  REFUSED(tw_graph_producer(NULL, 1, NULL, NULL));
  REFUSED(tw_graph_describe(NULL, 1, NULL, NULL));
  REFUSED(tw_graph_create_body(NULL, NULL));
  REFUSED(tw_graph_capture(NULL, NULL, 1, NULL, NULL, NULL));
  REFUSED(tw_graph_add_function(NULL, NULL, NULL, NULL));
  REFUSED(tw_graph_function_name(NULL, 0, NULL));
  CHECK(tw_graph_function_count(NULL) == 0);
  REFUSED(tw_graph_close_loop(NULL, NULL, 0, NULL));
  REFUSED(tw_graph_close_loop(graph, NULL, 0, NULL));
  REFUSED(tw_graph_import(NULL, "", 0, NULL));
  REFUSED(tw_graph_import(graph, NULL, 1, NULL));
  REFUSED(tw_graph_export(NULL, NULL));
  REFUSED(tw_graph_export(graph, NULL));
  REFUSED(tw_graph_verify(NULL, NULL, 1));
  REFUSED(tw_op_finish(NULL, NULL));
  REFUSED(tw_operation_attr(NULL, "x", NULL, NULL, NULL, NULL));
  REFUSED(tw_operation_attr_text(NULL, "x", NULL));
  REFUSED(tw_ops_create(NULL, NULL));
  REFUSED(tw_ops_json(NULL, 0, NULL));
  REFUSED(tw_gradients_add(NULL, NULL, NULL, 0, NULL, 0, NULL));
  REFUSED(tw_gradients_add(graph, NULL, NULL, 1, NULL, 0, NULL));
  REFUSED(tw_gradients_add_until(graph, NULL, NULL, 0, NULL, 0, NULL, 1, NULL));
  REFUSED(tw_session_create(NULL, NULL, 0, NULL));
  REFUSED(tw_session_create(graph, NULL, 0, NULL));
  REFUSED(tw_session_close(NULL));
  REFUSED(tw_session_run(NULL, NULL, NULL, NULL, NULL));
  REFUSED(tw_callable_create(NULL, NULL, NULL));
  REFUSED(tw_callable_run(NULL, NULL, NULL, NULL));
  REFUSED(tw_session_report(NULL, NULL));
  REFUSED(tw_callable_plan_json(NULL, NULL, NULL));
  REFUSED(tw_session_run_async(NULL, NULL, NULL, NULL, NULL, NULL));
  REFUSED(tw_callable_run_async(NULL, NULL, NULL, NULL, NULL));
  REFUSED(tw_cancel_token_create(NULL));
  REFUSED(tw_devices_create(NULL, NULL));
  REFUSED(tw_devices_memory_use(NULL, 0, NULL, NULL, NULL));
  REFUSED(tw_devices_statistics_json(NULL, 0, NULL));
  REFUSED(tw_plugin_load(NULL, NULL));
  REFUSED(tw_plugin_unload(NULL, NULL));
  REFUSED(tw_plugins_create(NULL, NULL));
  REFUSED(tw_checkpoint_write(NULL, NULL, NULL, 0));
  REFUSED(tw_checkpoint_write("x", NULL, NULL, 1));
  REFUSED(tw_checkpoint_open(NULL, NULL));
  REFUSED(tw_checkpoint_describe(NULL, "x", NULL, NULL, NULL));
  REFUSED(tw_checkpoint_read(NULL, "x", NULL));
  REFUSED(tw_checkpoint_verify(NULL, NULL));
  REFUSED(tw_lbfgs_create(NULL, 0, NULL, 0, NULL, NULL));
  REFUSED(tw_lbfgs_create(graph, 0, NULL, 1, NULL, NULL));
  REFUSED(tw_lbfgs_run(NULL, NULL, NULL, NULL, 0, 1, NULL));
  REFUSED(tw_variables_create(NULL, NULL));
  REFUSED(tw_saver_create(NULL, NULL, 0, NULL));
  REFUSED(tw_saver_create(graph, NULL, 1, NULL));
  REFUSED(tw_saver_save(NULL, NULL, NULL));
  REFUSED(tw_saver_restore(NULL, NULL, NULL));
  REFUSED(tw_saver_create_with(NULL, NULL, 0, NULL, NULL));
  REFUSED(tw_saver_values(NULL, NULL, NULL));
  REFUSED(tw_saver_restore_partial(NULL, NULL, NULL, NULL));
  REFUSED(tw_checkpoint_write_sharded(NULL, NULL, NULL, 0, 1));
  REFUSED(tw_checkpoint_latest(NULL, NULL, NULL));
  REFUSED(tw_checkpoint_latest("x", NULL, NULL));
  REFUSED(tw_checkpoint_write_in(NULL, NULL, NULL, NULL, 0, 1));
  REFUSED(tw_checkpoint_write_in(NULL, "x", NULL, NULL, 1, 1));
  REFUSED(tw_checkpoint_latest_in(NULL, NULL, NULL, NULL));
  REFUSED(tw_checkpoint_latest_in(NULL, "x", NULL, NULL));
  REFUSED(tw_checkpoint_open_in(NULL, NULL, NULL));
  REFUSED(tw_checkpoint_open_in(NULL, "x", NULL));
  REFUSED(tw_checkpointer_create(NULL, NULL, NULL, NULL, NULL));
  REFUSED(tw_checkpointer_step(NULL, 0, NULL, NULL));
  REFUSED(tw_checkpointer_save(NULL, 0, NULL));
  REFUSED(tw_checkpointer_wait(NULL));
  REFUSED(tw_checkpointer_restore(NULL, 0, NULL, NULL));
  REFUSED(tw_checkpointer_report(NULL, NULL));
  tw_graph_destroy(graph);
}

static void NullMayBeReleased(void) {
  tw_status_release(NULL);
  tw_buffer_retain(NULL);
  tw_buffer_release(NULL);
  tw_runtime_retain(NULL);
  tw_runtime_release(NULL);
  tw_tensor_retain(NULL);
  tw_tensor_release(NULL);
  tw_graph_destroy(NULL);
  tw_op_destroy(NULL);
  tw_ops_destroy(NULL);
  tw_session_destroy(NULL);
  tw_callable_destroy(NULL);
  tw_cancel_token_cancel(NULL);
  tw_step_stats_destroy(NULL);
  tw_cancel_token_destroy(NULL);
  tw_devices_destroy(NULL);
  tw_plugins_destroy(NULL);
  tw_checkpoint_close(NULL);
  tw_variables_destroy(NULL);
  tw_saver_destroy(NULL);
  tw_restore_report_destroy(NULL);
  tw_checkpointer_destroy(NULL);
  tw_checkpointer_options_init(NULL);
  tw_lbfgs_destroy(NULL);
  tw_lbfgs_reset(NULL);
  tw_lbfgs_options_init(NULL);
  tw_sgd_init(NULL);
  tw_polynomial_init(NULL);
  tw_cosine_restarts_init(NULL);
  tw_momentum_init(NULL);
  tw_adamax_init(NULL);
  tw_adagrad_init(NULL);
  tw_adadelta_init(NULL);
  tw_rmsprop_init(NULL);
  tw_ftrl_init(NULL);
  tw_moving_averages_init(NULL);
  tw_lstm_cell_init(NULL);
  tw_gru_cell_init(NULL);
  tw_sampled_loss_init(NULL);
  tw_adam_init(NULL);
}

static void GettersAnswerNothingForNull(void) {
  CHECK(tw_buffer_bytes(NULL) == 0 && *tw_buffer_data(NULL) == 0);
  CHECK(!tw_tensor_dtype(NULL) && !tw_tensor_rank(NULL) && tw_tensor_dim(NULL, 0) == -1 && !tw_tensor_dims(NULL));
  CHECK(!tw_tensor_count(NULL) && !tw_tensor_bytes(NULL) && !tw_tensor_data(NULL) && !tw_tensor_mutable_data(NULL));
  CHECK(tw_graph_count(NULL) == 0 && tw_graph_operation(NULL, 0) == NULL);
  CHECK(!*tw_operation_name(NULL) && !*tw_operation_type(NULL) && !*tw_operation_device(NULL));
  CHECK(!tw_operation_resource(NULL, 0, NULL));
  CHECK(!tw_operation_input_count(NULL) && !tw_operation_input(NULL, 0) && !tw_operation_output_count(NULL) &&
        !tw_operation_output(NULL, 0));
  CHECK(!tw_operation_control_count(NULL) && !tw_operation_control(NULL, 0) && !tw_operation_attr_count(NULL) &&
        !tw_operation_attr_name(NULL, 0));
  CHECK(!tw_ops_count(NULL) && !tw_ops_name(NULL, 0) && !tw_ops_schema(NULL, 0) && !tw_ops_doc(NULL, 0) && !tw_ops_plugin(NULL, 0));
  CHECK(!tw_ops_no_gradient(NULL, 0) && !tw_ops_kernel_count(NULL, 0) && !tw_ops_kernel(NULL, 0, 0));
  CHECK(!tw_cancel_token_cancelled(NULL));
  CHECK(!tw_devices_count(NULL) && !tw_devices_name(NULL, 0) && !tw_devices_kind(NULL, 0) && !tw_devices_uid(NULL, 0));
  CHECK(!tw_devices_description(NULL, 0) && !tw_devices_plugin(NULL, 0) && !tw_devices_memory(NULL, 0));
  CHECK(!tw_plugins_count(NULL) && !tw_plugins_id(NULL, 0) && !tw_plugins_version(NULL, 0) && !tw_plugins_path(NULL, 0));
  CHECK(!tw_plugins_build(NULL, 0) && !tw_plugins_reason(NULL, 0) && !tw_plugins_fix(NULL, 0) && !tw_plugins_op(NULL, 0, 0));
  CHECK(!tw_plugins_role_count(NULL, 0) && !tw_plugins_role(NULL, 0, 0) && !tw_plugins_digest(NULL, 0));
  CHECK(!tw_plugins_op_count(NULL, 0) && !tw_plugins_kernel_count(NULL, 0) && !tw_plugins_device_kind(NULL, 0, 0));
  CHECK(!tw_checkpoint_count(NULL) && !tw_checkpoint_name(NULL, 0));
  CHECK(!tw_saver_graph(NULL) && !tw_saver_count(NULL) && !tw_saver_variable(NULL, 0) && !tw_saver_name(NULL, 0));
  CHECK(!tw_restore_report_count(NULL) && tw_restore_report_outcome(NULL, 0) == TW_RESTORE_MISSING);
  CHECK(!tw_restore_report_variable(NULL, 0) && !tw_restore_report_name(NULL, 0) && !tw_restore_report_text(NULL, 0));
  CHECK(!tw_step_stats_total(NULL) && !tw_step_stats_node_count(NULL) && !tw_step_stats_node(NULL, 0));
  CHECK(!tw_step_stats_op_count(NULL) && !tw_step_stats_op(NULL, 0) && !*tw_operation_place(NULL) && !tw_status_place(NULL));
  CHECK(!tw_variables_count(NULL) && !tw_variables_handle(NULL, 0) && !tw_variables_name(NULL, 0));
}

static void BuildersTakeNull(void) {
  const tw_output x = 0;
  tw_gradient g = {1, 1};
  tw_op_add_input(NULL, 0);
  tw_op_add_inputs(NULL, NULL, 1);
  tw_op_add_control(NULL, NULL);
  tw_op_set_device(NULL, NULL);
  tw_op_set_priority(NULL, 1);
  tw_op_colocate_with(NULL, NULL);
  tw_op_set_place(NULL, NULL);
  tw_op_set_int(NULL, NULL, 0);
  tw_op_set_tensors(NULL, NULL, NULL, 0);
  CHECK(tw_scope_op1(NULL, "Neg", 0) == 0 && tw_scope_op(NULL, NULL, NULL, 3) == 0 && tw_scope_begin(NULL, NULL, NULL) == NULL);
  CHECK(tw_scope_end(NULL, NULL) == 0 && tw_scope_end_operation(NULL, NULL) == NULL && tw_scope_output(NULL, 0, 0) == 0);
  CHECK(tw_scope_name(NULL, NULL, 0) == 0 && tw_scope_group(NULL, NULL, NULL, 0) == NULL && tw_scope_constant(NULL, NULL) == 0);
  CHECK(tw_scope_scalar(NULL, TW_FLOAT, 0) == 0 && tw_scope_ints(NULL, NULL, 0) == 0);
  CHECK(tw_scope_placeholder(NULL, NULL, TW_FLOAT, NULL, 0) == 0 && tw_scope_graph(NULL) == NULL && !*tw_scope_prefix(NULL));
  CHECK(tw_scope_code(NULL) == TW_RESOURCE_EXHAUSTED);
  tw_scope_set_place(NULL, NULL);
  CHECK(!*tw_scope_place(NULL));
  tw_scope_fail(NULL, tw_status_create(TW_ABORTED, "dropped"));
  tw_scope_gradients(NULL, 0, &x, 1, &g);
  CHECK(g.values == 0 && g.rows == 0);
  CHECK(tw_variable_create(NULL, NULL, 0) == 0 && tw_variable_read(NULL, 0) == 0 && tw_variable_assign(NULL, 0, 0) == NULL);
  CHECK(tw_variable_initializer(NULL, NULL) == NULL);
  CHECK(tw_train_sgd(NULL, NULL, NULL, 1, NULL) == NULL && tw_train_momentum(NULL, NULL, NULL, 1, NULL) == NULL);
  CHECK(tw_train_adam(NULL, NULL, NULL, 1, NULL) == NULL && tw_train_adamax(NULL, NULL, NULL, 1, NULL) == NULL);
  CHECK(tw_train_adagrad(NULL, NULL, NULL, 1, NULL) == NULL && tw_train_adadelta(NULL, NULL, NULL, 1, NULL) == NULL);
  CHECK(tw_train_rmsprop(NULL, NULL, NULL, 1, NULL) == NULL && tw_train_ftrl(NULL, NULL, NULL, 1, NULL) == NULL);
  tw_decay_gradients(NULL, NULL, NULL, 1, 1);
  tw_decay_weights(NULL, NULL, NULL, 1, 0, 1);
  tw_clip_by_value(NULL, NULL, 1, 0, 1);
  tw_clip_by_norm(NULL, NULL, 1, 1);
  CHECK(tw_clip_by_global_norm(NULL, NULL, 1, 1) == 0);
  CHECK(tw_global_step(NULL) == 0 && tw_global_step_advance(NULL, NULL) == NULL);
  CHECK(tw_schedule_piecewise(NULL, 0, NULL, NULL, 1) == 0 && tw_schedule_exponential(NULL, 0, 1, 1, 1, 0) == 0);
  CHECK(tw_schedule_polynomial(NULL, 0, 1, 1, NULL) == 0 && tw_schedule_cosine(NULL, 0, 1, 1, 0) == 0);
  CHECK(tw_schedule_cosine_restarts(NULL, 0, 1, 1, NULL) == 0 && tw_schedule_warm_up(NULL, 0, 0, 1, 0) == 0);
  CHECK(tw_moving_averages_add(NULL, NULL, 1, NULL, NULL, NULL) == NULL && tw_moving_averages_swap(NULL, NULL, NULL, 1) == NULL);
  tw_lstm_cell_create(NULL, NULL, 0, 1, 1, 0, NULL);
  tw_gru_cell_create(NULL, NULL, 1, 1, 0, NULL);
  CHECK(tw_lstm_step(NULL, NULL, 0, 0, 0, NULL) == 0 && tw_gru_step(NULL, NULL, 0, 0) == 0);
  tw_lstm_unroll(NULL, NULL, NULL, 1, 0, 0, 0, NULL, NULL, NULL);
  tw_gru_unroll(NULL, NULL, NULL, 1, 0, 0, NULL, NULL);
  CHECK(tw_sampled_softmax(NULL, 0, 0, 0, 0, NULL) == 0 && tw_nce(NULL, 0, 0, 0, 0, NULL) == 0);
}

static void NullInsideAScopeIsTold(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  for (int i = 0; i < 6; ++i) {
    tw_scope* s = tw_scope_create(graph, NULL);
    if (i == 0) tw_scope_constant(s, NULL);
    if (i == 1) tw_scope_ints(s, NULL, 2);
    if (i == 2) tw_scope_begin(s, NULL, NULL);
    if (i == 3) tw_scope_name(s, NULL, 0);
    if (i == 4) tw_variable_create(s, NULL, 0);
    if (i == 5) tw_train_sgd(s, NULL, NULL, 1, NULL);
    REFUSED(tw_scope_finish(s));
  }
  tw_graph_destroy(graph);
}

MAIN(TEST(NullObjectsAreRefused), TEST(NullMayBeReleased), TEST(GettersAnswerNothingForNull), TEST(BuildersTakeNull),
     TEST(NullInsideAScopeIsTold))
