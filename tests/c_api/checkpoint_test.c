/* Checkpoints without a graph, and savers. Files are in a temporary folder, which is removed. */
#include "saving.h"

static void WhatIsWrittenIsRead(void) {
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  tw_tensor *f = floats(dims, 2, values), *text = NULL, *back = NULL;
  OK(tw_tensor_create_string("hello", 5, &text));
  const char* names[] = {"layer/w", "a"};
  tw_tensor* tensors[] = {f, text};
  OK(tw_checkpoint_write(path("plain"), names, tensors, 2));
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open(path("plain"), &c));
  CHECK(tw_checkpoint_count(c) == 2 && strcmp(tw_checkpoint_name(c, 0), "a") == 0 && strcmp(tw_checkpoint_name(c, 1), "layer/w") == 0);
  CHECK(tw_checkpoint_name(c, 2) == NULL);
  uint32_t dtype = 0;
  uint64_t bytes = 0;
  tw_shape shape;
  OK(tw_checkpoint_describe(c, "layer/w", &dtype, &shape, &bytes));
  CHECK(dtype == TW_FLOAT && shape.rank == 2 && shape.dims[1] == 3 && bytes == 24);
  OK(tw_checkpoint_read(c, "layer/w", &back));
  CHECK(memcmp(tw_tensor_data(back), values, sizeof values) == 0);
  tw_tensor_release(back);
  OK(tw_checkpoint_read(c, "a", &back));
  const char* data = NULL;
  OK(tw_tensor_get_string(back, 0, &data, &bytes));
  CHECK(bytes == 5 && memcmp(data, "hello", 5) == 0);
  tw_tensor_release(back);
  OK(tw_checkpoint_verify(c, NULL));
  OK(tw_checkpoint_verify(c, "a"));
  FAILS(tw_checkpoint_read(c, "b", &back), TW_NOT_FOUND, "b");
  FAILS(tw_checkpoint_describe(c, "b", NULL, NULL, NULL), TW_NOT_FOUND, "no tensor 'b'");
  FAILS(tw_checkpoint_verify(c, "b"), TW_NOT_FOUND, "no tensor 'b'");
  tw_checkpoint_close(c);
  tw_tensor_release(f);
  tw_tensor_release(text);
}

static void DamageIsNamed(void) {
  tw_tensor* one = scalar(1);
  const char* name = "x";
  tw_checkpoint* c = NULL;
  tw_tensor* back = NULL;
  OK(tw_checkpoint_write(path("damaged"), &name, &one, 1));
  FILE* file = fopen(path("damaged.data-00000-of-00001"), "r+b");
  CHECK(file && fputc(0x55, file) != EOF && fclose(file) == 0);
  OK(tw_checkpoint_open(path("damaged"), &c));
  FAILS(tw_checkpoint_read(c, "x", &back), TW_DATA_LOSS, "x");
  FAILS(tw_checkpoint_verify(c, "x"), TW_DATA_LOSS, "x");
  FAILS(tw_checkpoint_verify(c, NULL), TW_DATA_LOSS, "damaged");
  tw_checkpoint_close(c);
  FAILS(tw_checkpoint_open(path("none"), &c), TW_NOT_FOUND, "none");
  file = fopen(path("foreign.index"), "wb");
  CHECK(file && fputs("this is no table", file) >= 0 && fclose(file) == 0);
  FAILS(tw_checkpoint_open(path("foreign"), &c), TW_DATA_LOSS, "foreign");
  tw_tensor_release(one);
}

static void WrongWritesLeaveTheOldCheckpoint(void) {
  tw_tensor* one = scalar(1);
  const char* names[] = {"x", "x"};
  tw_tensor* tensors[] = {one, one};
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_write(path("old"), names, tensors, 1));
  FAILS(tw_checkpoint_write(path("old"), names, tensors, 2), TW_ALREADY_EXISTS, "x");
  tensors[1] = NULL;
  FAILS(tw_checkpoint_write(path("old"), names, tensors, 2), TW_INVALID_ARGUMENT, "tensors[1]");
  CHECK(tw_status_code(NULL) == TW_OK);
  tw_status* s = tw_checkpoint_write(path("no/such/folder/x"), names, tensors, 1);
  CHECK(s != NULL);
  tw_status_release(s);
  OK(tw_checkpoint_open(path("old"), &c));
  OK(tw_checkpoint_verify(c, NULL));
  tw_checkpoint_close(c);
  tw_tensor_release(one);
}

static void ASaverBringsVariablesBack(void) {
  program p = new_program("container=save", 1.5f);
  tw_saver* saver = NULL;
  OK(tw_saver_create(p.graph, NULL, 0, &saver));
  FAILS(tw_saver_save(saver, p.session, path("variables")), TW_FAILED_PRECONDITION, "");
  run(p.session, p.init);
  OK(tw_saver_save(saver, p.session, path("variables")));
  run(p.session, p.clear);
  CHECK(as_float(fetch(p.session, 0, NULL, p.a_value)) == 0);
  OK(tw_saver_restore(saver, p.session, path("variables")));
  CHECK(as_float(fetch(p.session, 0, NULL, p.a_value)) == 1.5f);
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open(path("variables"), &c));
  CHECK(tw_checkpoint_count(c) == 2 && strcmp(tw_checkpoint_name(c, 1), "b") == 0);
  tw_checkpoint_close(c);
  FAILS(tw_saver_restore(saver, p.session, path("nothing")), TW_NOT_FOUND, "nothing");
  tw_saver_destroy(saver);
  free_program(&p);
}

static void ASaverIsPartOfTheGraphUnderTensorFlowsNames(void) {
  program p = new_program("container=names", 2.5f);
  tw_saver *saver = NULL, *second = NULL;
  tw_buffer* bytes = NULL;
  OK(tw_saver_create(p.graph, &p.a, 1, &saver));
  OK(tw_saver_create(p.graph, NULL, 0, &second));
  const char* names[] = {"save/Const", "save/control_dependency", "save/restore_all", "save_1/restore_all"};
  const tw_operation* operation = NULL;
  for (int i = 0; i < 4; ++i) OK(tw_graph_find(p.graph, names[i], &operation));
  run(p.session, p.init);
  OK(tw_saver_save(saver, p.session, path("one")));

  /* Another program loads the graph and restores by name only. */
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_export(p.graph, &bytes));
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  const char* options[] = {"container=names2", "trust_imported=true"};
  OK(tw_session_create(graph, options, 2, &session));
  tw_output prefix = 0, value = 0;
  OK(tw_graph_find_output(graph, "save/Const", &prefix));
  OK(tw_graph_find_output(graph, "ReadVariableOp", &value));
  OK(tw_graph_find(graph, "save/restore_all", &operation));
  tw_tensor* text = NULL;
  OK(tw_tensor_create_string(path("one"), strlen(path("one")), &text));
  const tw_signature what = {.size = sizeof what, .feeds = &prefix, .n_feeds = 1, .targets = &operation, .n_targets = 1};
  OK(tw_session_run(session, &what, &text, NULL, NULL));
  CHECK(as_float(fetch(session, 0, NULL, value)) == 2.5f);
  tw_tensor_release(text);
  tw_buffer_release(bytes);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_saver_destroy(saver);
  tw_saver_destroy(second);
  free_program(&p);
}

static void ACheckpointThatDoesNotFitIsRefused(void) {
  program p = new_program("container=unfit", 1);
  tw_saver* saver = NULL;
  const int64_t three[] = {3};
  const float values[] = {1, 2, 3};
  tw_tensor *wrong = floats(three, 1, values), *one = scalar(1);
  OK(tw_saver_create(p.graph, &p.a, 1, &saver));
  const char* name = "a";
  OK(tw_checkpoint_write(path("unfit"), &name, &wrong, 1));
  FAILS(tw_saver_restore(saver, p.session, path("unfit")), TW_INVALID_ARGUMENT, "[3]");
  name = "z";
  OK(tw_checkpoint_write(path("unfit"), &name, &one, 1));
  FAILS(tw_saver_restore(saver, p.session, path("unfit")), TW_NOT_FOUND, "a");
  tw_tensor_release(wrong);
  tw_tensor_release(one);
  tw_saver_destroy(saver);
  free_program(&p);
}

/* In the order of the variables, the first would be assigned before the second is checked. */
static void ARefusedRestoreChangesNothing(void) {
  const int64_t two[] = {2}, three[] = {3};
  const float ones[] = {1, 1}, nines[] = {9, 9, 9};
  tw_tensor *start = floats(two, 1, ones), *fits = floats(two, 1, nines), *wrong = floats(three, 1, nines);
  const char* names[] = {"a", "b"};
  tw_tensor* tensors[] = {fits, wrong};
  OK(tw_checkpoint_write(path("partly"), names, tensors, 2));
  const char* engines[] = {"engine=fixed", "engine=counted"};
  for (int i = 0; i < 2; ++i) {
    const char* options[] = {i ? "container=partly1" : "container=partly0", engines[i]};
    tw_graph* graph = NULL;
    tw_session* session = NULL;
    tw_saver* saver = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    const tw_output a = tw_variable_create(s, "a", tw_scope_constant(s, start));
    tw_variable_create(s, "b", tw_scope_constant(s, start));
    const tw_operation* init = tw_variable_initializer(s, "init");
    const tw_output value = tw_variable_read(s, a);
    OK(tw_scope_finish(s));
    OK(tw_session_create(graph, options, 2, &session));
    run(session, init);
    OK(tw_saver_create(graph, NULL, 0, &saver));
    FAILS(tw_saver_restore(saver, session, path("partly")), TW_INVALID_ARGUMENT, "save/check/b");
    CHECK(as_float(fetch(session, 0, NULL, value)) == 1);
    tw_saver_destroy(saver);
    tw_session_destroy(session);
    tw_graph_destroy(graph);
  }
  tw_tensor_release(start);
  tw_tensor_release(fits);
  tw_tensor_release(wrong);
}

static void ASaverNeedsVariables(void) {
  tw_graph* graph = NULL;
  tw_saver* saver = NULL;
  OK(tw_graph_create(NULL, &graph));
  FAILS(tw_saver_create(graph, NULL, 0, &saver), TW_FAILED_PRECONDITION, "no variables");
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_scalar(s, TW_FLOAT, 1);
  OK(tw_scope_finish(s));
  FAILS(tw_saver_create(graph, &x, 1, &saver), TW_INVALID_ARGUMENT, "'Const' is no variable");
  tw_graph_destroy(graph);
}

int main(void) {
  const test tests[] = {TEST(WhatIsWrittenIsRead),
                        TEST(DamageIsNamed),
                        TEST(WrongWritesLeaveTheOldCheckpoint),
                        TEST(ASaverBringsVariablesBack),
                        TEST(ASaverIsPartOfTheGraphUnderTensorFlowsNames),
                        TEST(ACheckpointThatDoesNotFitIsRefused),
                        TEST(ARefusedRestoreChangesNothing),
                        TEST(ASaverNeedsVariables)};
  return run_in_folder(tests, sizeof(tests) / sizeof(tests[0]));
}
