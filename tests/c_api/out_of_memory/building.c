/* Runtimes, tensors, graphs, and queries about them. */
#include "programs.h"

static const tw_operation* by_sgd(tw_scope* s, const tw_output* w, tw_gradient* g) { return tw_train_sgd(s, w, g, 1, NULL); }

static const tw_operation* by_adam(tw_scope* s, const tw_output* w, tw_gradient* g) { return tw_train_adam(s, w, g, 1, NULL); }

static tw_status* a_runtime(void) {
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  tw_runtime* made = NULL;
  tw_devices* devices = NULL;
  tw_status* status = NULL;
  TRY(tw_runtime_create(options, 2, &made));
  TRY(tw_devices_create(made, &devices));
done:
  tw_devices_destroy(devices);
  tw_runtime_release(made);
  return status;
}

static tw_status* a_graph(void) {
  tw_graph* graph = NULL;
  const tw_operation* found = NULL;
  tw_output value = 0;
  uint32_t dtype = 0;
  tw_shape shape;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, "a");
  const tw_output x = tw_scope_scalar(s, TW_FLOAT, 2);
  tw_scope_name(s, "y", tw_scope_op2(s, "Add", tw_scope_op2(s, "Mul", x, x), x));
  TRY(tw_scope_finish(s));
  TRY(tw_graph_find(graph, "a/y", &found));
  TRY(tw_graph_find_output(graph, "a/y:0", &value));
  TRY(tw_graph_describe(graph, value, &dtype, &shape));
done:
  tw_graph_destroy(graph);
  return status;
}

static tw_status* attributes(void) {
  const int64_t dims[] = {2, 2};
  const char* words[] = {"SAME"};
  tw_graph* graph = NULL;
  tw_tensor* t = NULL;
  tw_buffer* text = NULL;
  const tw_operation *made = NULL, *image = NULL;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &graph));
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  tw_op* op = tw_op_create(graph, "Const", "c");
  tw_op_set_tensor(op, "value", t);
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_device(op, "CPU:0");
  TRY(finish(op, &made));
  op = tw_op_create(graph, "Placeholder", "image");
  const int64_t image_dims[] = {1, 4, 4, 1};
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_shape(op, "shape", image_dims, 4);
  TRY(finish(op, &image));
  op = tw_op_create(graph, "MaxPool", "pool");
  const int64_t sizes[] = {1, 2, 2, 1};
  tw_op_add_input(op, tw_operation_output(image, 0));
  tw_op_set_ints(op, "ksize", sizes, 4);
  tw_op_set_ints(op, "strides", sizes, 4);
  tw_op_set_string(op, "padding", words[0], 4);
  tw_op_add_control(op, made);
  TRY(finish(op, &made));
  TRY(tw_operation_attr_text(made, "ksize", &text));
  const void* values = NULL;
  TRY(tw_operation_attr(made, "strides", NULL, NULL, NULL, &values));
done:
  tw_buffer_release(text);
  tw_tensor_release(t);
  tw_graph_destroy(graph);
  return status;
}

static tw_status* export_and_import(void) {
  net n = {0};
  tw_graph* copy = NULL;
  tw_buffer* bytes = NULL;
  const tw_import_options options = {.size = sizeof options, .prefix = "copy", .device = "CPU:0"};
  tw_status* status = NULL;
  TRY(make_net(&n, by_sgd, "container=oom_export"));
  TRY(tw_graph_export(n.graph, &bytes));
  TRY(tw_graph_create(runtime, &copy));
  TRY(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  TRY(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options));
done:
  tw_buffer_release(bytes);
  tw_graph_destroy(copy);
  end_net(&n);
  return status;
}

static tw_status* verify(void) {
  net n = {0};
  tw_buffer* bytes = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, NULL, "container=oom_verify"));
  TRY(tw_graph_export(n.graph, &bytes));
  TRY(tw_graph_verify(runtime, tw_buffer_data(bytes), tw_buffer_bytes(bytes)));
done:
  tw_buffer_release(bytes);
  end_net(&n);
  return status;
}

static tw_status* gradients(void) {
  net n = {0};
  tw_gradient g[2] = {{0, 0}, {0, 0}};
  tw_status* status = NULL;
  TRY(make_net(&n, NULL, "container=oom_gradients"));
  const tw_output xs[] = {n.in, n.w};
  TRY(tw_gradients_add(n.graph, &n.loss, NULL, 1, xs, 2, g));
  TRY(tw_gradients_add_until(n.graph, &n.loss, NULL, 1, xs, 2, &n.in, 1, g));
done:
  end_net(&n);
  return status;
}

static tw_status* dlpack(void) {
  const int64_t dims[] = {2, 3};
  tw_tensor *t = NULL, *back = NULL, *versioned = NULL;
  void* managed = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  TRY(tw_tensor_to_dlpack(t, &managed));
  TRY(tw_tensor_from_dlpack(managed, &back));
  TRY(tw_tensor_to_dlpack_versioned(t, &managed));
  TRY(tw_tensor_from_dlpack_versioned(managed, &versioned));
done:
  tw_tensor_release(t);
  tw_tensor_release(back);
  tw_tensor_release(versioned);
  return status;
}

static tw_status* strings(void) {
  const int64_t dims[] = {3};
  tw_tensor *t = NULL, *s = NULL;
  tw_buffer* text = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_STRING, dims, 1, &t));
  for (uint64_t i = 0; i < 3; ++i) TRY(tw_tensor_set_string(t, i, "longer than what a string keeps in itself", 41));
  TRY(tw_tensor_create_string("another one of the longer texts", 31, &s));
  TRY(tw_tensor_text(t, 0, &text));
done:
  tw_tensor_release(t);
  tw_tensor_release(s);
  tw_buffer_release(text);
  return status;
}

static int released;
static void count_release(void* user) {
  (void)user;
  ++released;
}

static tw_status* tensors(void) {
  static _Alignas(64) float memory[6];
  const int64_t dims[] = {2, 3}, other[] = {3, 2};
  tw_tensor *from = NULL, *fixed = NULL, *shaped = NULL, *one = NULL;
  tw_buffer* text = NULL;
  tw_status* status = NULL;
  released = 0;
  status = tw_tensor_create_from(TW_FLOAT, dims, 2, memory, sizeof memory, count_release, NULL, &from);
  if (status) {
    EXPECT(released == 1); /* also if the call fails */
    goto done;
  }
  TRY(tw_tensor_create_from_const(TW_FLOAT, dims, 2, memory, sizeof memory, NULL, NULL, &fixed));
  TRY(tw_tensor_reshape(from, other, 2, &shaped));
  TRY(tw_tensor_create_double(2, &one));
  TRY(tw_tensor_text(shaped, 3, &text));
done:
  tw_tensor_release(from);
  tw_tensor_release(fixed);
  tw_tensor_release(shaped);
  tw_tensor_release(one);
  tw_buffer_release(text);
  EXPECT(released == 1);
  return status;
}

static tw_status* ops(void) {
  tw_ops* list = NULL;
  tw_buffer* json = NULL;
  tw_status* status = NULL;
  TRY(tw_ops_create(runtime, &list));
  for (uint32_t i = 0; i < tw_ops_count(list); i += 40) {
    TRY(tw_ops_json(list, i, &json));
    tw_buffer_release(json);
    json = NULL;
  }
done:
  tw_buffer_release(json);
  tw_ops_destroy(list);
  return status;
}

/* x * x if x > 0, else 0, and the cumulative sums of rows, with their gradient. */
static tw_status* blocks(void) {
  tw_graph* graph = NULL;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {3, 2};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2), zero = tw_scope_op1(s, "ZerosLike", x);
  const int32_t both[] = {0, 1}, first[] = {0};
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  tw_output y = tw_scope_op2(tw_block_scope(then), "Mul", x, x), row = 0, sum = 0, sums = 0;
  tw_block_give(then, &y, 1);
  tw_block_give(otherwise, &zero, 1);
  const tw_output total = tw_scope_op2(s, "Sum", x, tw_scope_ints(s, both, 2));
  tw_cond(s, NULL, tw_scope_op2(s, "Greater", total, tw_scope_scalar(s, TW_FLOAT, 0)), then, otherwise, &y, 1);
  const tw_output start = tw_scope_op2(s, "Sum", zero, tw_scope_ints(s, first, 1));
  tw_block* each = tw_each_begin(s, &y, 1, &start, 1, 0, &row, &sum);
  sum = tw_scope_op2(tw_block_scope(each), "Add", sum, row);
  tw_each_end(s, NULL, each, &sum, &sum, 1, NULL, &sums);
  tw_gradient dx;
  tw_scope_gradients(s, tw_scope_op2(s, "Sum", sums, tw_scope_ints(s, both, 2)), &x, 1, &dx);
  TRY(tw_scope_finish(s));
done:
  tw_graph_destroy(graph);
  return status;
}

static tw_status* lists(void) {
  net n = {0};
  tw_plugins* plugins = NULL;
  tw_devices* devices = NULL;
  tw_variables* variables = NULL;
  tw_status* status = NULL;
  TRY(tw_plugins_create(runtime, &plugins));
  TRY(tw_devices_create(runtime, &devices));
  TRY(make_net(&n, by_adam, "container=oom_lists"));
  TRY(tw_variables_create(n.graph, &variables));
done:
  tw_plugins_destroy(plugins);
  tw_devices_destroy(devices);
  tw_variables_destroy(variables);
  end_net(&n);
  return status;
}

const program building_programs[] = {PROGRAM(a_runtime, 0), PROGRAM(a_graph, 0),   PROGRAM(attributes, 0), PROGRAM(export_and_import, 1),
                                     PROGRAM(verify, 1),    PROGRAM(gradients, 0), PROGRAM(dlpack, 0),     PROGRAM(strings, 0),
                                     PROGRAM(tensors, 0),   PROGRAM(ops, 0),       PROGRAM(lists, 0),      PROGRAM(blocks, 0),
                                     {NULL, NULL, 0}};
