/* Plugin resources in checkpoints: savers find, write and restore them beside variables,
 * unchanged. Another process reads the checkpoints that this one wrote. BOXES_1 and BOXES_2 are
 * one plugin that saves in format 1 and in format 2. */
#include "saving.h"

static const char* self;

/* A variable, two boxes, a filter, and a text box, which no saver accepts. */
typedef struct model {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_saver* saver;
  tw_output v, first, second, text, filter;
  tw_output value, number, other, found; /* their contents */
  tw_output by, keys;
  const tw_operation *init, *add, *add_other, *insert;
} model;

static tw_output named(tw_scope* s, const char* type, const char* name) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_set_string(op, "shared_name", name, strlen(name));
  return tw_scope_end(s, op);
}
static const tw_operation* change(tw_scope* s, const char* type, tw_output handle, tw_output by) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, handle);
  tw_op_add_input(op, by);
  return tw_scope_end_operation(s, op);
}

static model graph_of(const char* boxes) {
  model m = {0};
  OK(tw_runtime_create(NULL, 0, &m.runtime));
  OK(tw_plugin_load(m.runtime, FAKE));
  OK(tw_plugin_load(m.runtime, boxes));
  OK(tw_plugin_load(m.runtime, BLOOM));
  OK(tw_graph_create(m.runtime, &m.graph));
  tw_scope* s = tw_scope_create(m.graph, NULL);
  m.v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 1));
  m.by = tw_scope_placeholder(s, "by", TW_INT64, NULL, 0);
  m.keys = tw_scope_placeholder(s, "keys", TW_INT64, NULL, -1);
  m.first = named(s, "NumberBox", "first");
  m.second = named(s, "NumberBox", "second");
  m.text = named(s, "TextBox", "text");
  m.filter = named(s, "BloomFilter", "seen");
  m.value = tw_variable_read(s, m.v);
  m.number = tw_scope_op1(s, "NumberBoxGet", named(s, "NumberBox", "first")); /* another node of the same box */
  m.other = tw_scope_op1(s, "NumberBoxGet", m.second);
  m.found = tw_scope_op2(s, "BloomContains", m.filter, m.keys);
  m.add = change(s, "NumberBoxAdd", m.first, m.by);
  m.add_other = change(s, "NumberBoxAdd", m.second, m.by);
  m.insert = change(s, "BloomInsert", m.filter, m.keys);
  m.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(m.graph, NULL, 0, &m.session));
  return m;
}
static model new_model(const char* boxes) {
  model m = graph_of(boxes);
  OK(tw_saver_create(m.graph, NULL, 0, &m.saver));
  return m;
}
static void free_model(model* m) {
  tw_saver_destroy(m->saver);
  tw_session_destroy(m->session);
  tw_graph_destroy(m->graph);
  tw_runtime_release(m->runtime);
}

static void feed(model* m, tw_output what, const int64_t* values, int64_t n, const tw_operation* target) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_INT64, &n, what == m->keys ? 1 : 0, values, (uint64_t)n * sizeof *values, &t));
  tw_signature run = {.size = sizeof run, .feeds = &what, .n_feeds = 1, .targets = &target, .n_targets = 1};
  OK(tw_session_run(m->session, &run, &t, NULL, NULL));
  tw_tensor_release(t);
}
static void add(model* m, int64_t first, int64_t second) {
  feed(m, m->by, &first, 1, m->add);
  feed(m, m->by, &second, 1, m->add_other);
}
static void insert(model* m, int64_t key) { feed(m, m->keys, &key, 1, m->insert); }

static int64_t number(model* m, tw_output what) {
  tw_tensor* t = fetch(m->session, 0, NULL, what);
  const int64_t n = t ? *(const int64_t*)tw_tensor_data(t) : -1;
  tw_tensor_release(t);
  return n;
}
static int seen(model* m, int64_t key) {
  const int64_t n = 1;
  tw_tensor *t = NULL, *out = NULL;
  OK(tw_tensor_create_copy(TW_INT64, &n, 1, &key, sizeof key, &t));
  tw_signature what = {.size = sizeof what, .feeds = &m->keys, .n_feeds = 1, .fetches = &m->found, .n_fetches = 1};
  OK(tw_session_run(m->session, &what, &t, NULL, &out));
  const int yes = out && *(const uint8_t*)tw_tensor_data(out);
  tw_tensor_release(t);
  tw_tensor_release(out);
  return yes;
}
#define HOLDS(m, a, b, key) CHECK(number(&m, m.number) == (a) && number(&m, m.other) == (b) && seen(&m, 7) == (key))

/* Makes another process save 5, 6 and the key 7. */
static void write_by_another_process(const char* prefix, const char* format) {
  char command[2048];
  snprintf(command, sizeof command, "'%s' write '%s' %s", self, prefix, format);
  CHECK(system(command) == 0);
}
static int write_as_told(const char* prefix, const char* format) {
  model m = new_model(*format == '1' ? BOXES_1 : BOXES_2);
  run(m.session, m.init);
  add(&m, 5, 6);
  insert(&m, 7);
  OK(tw_saver_save(m.saver, m.session, prefix));
  free_model(&m);
  return failures > 0;
}

static void AnotherProcessFindsWhatWasSaved(void) {
  write_by_another_process(path("other"), "2");
  model m = new_model(BOXES_2);
  OK(tw_saver_restore(m.saver, m.session, path("other")));
  HOLDS(m, 5, 6, 1);
  CHECK(!seen(&m, 8) && as_float(fetch(m.session, 0, NULL, m.value)) == 1);
  free_model(&m);
}

static void ASaverListsVariablesThenResourcesEachOnce(void) {
  model m = new_model(BOXES_2);
  const char *names[] = {"v", "first", "second", "seen"}, *in_files[] = {"v", "first:resource", "second:resource", "seen:resource"};
  CHECK(tw_saver_count(m.saver) == 4);
  for (uint32_t i = 0; i < 4; ++i) {
    CHECK(tw_saver_variable(m.saver, i) && strcmp(tw_saver_variable(m.saver, i), names[i]) == 0);
    CHECK(tw_saver_name(m.saver, i) && strcmp(tw_saver_name(m.saver, i), in_files[i]) == 0);
  }
  free_model(&m);
}

static void TheFileHoldsTypeFormatAndBytes(void) {
  model m = new_model(BOXES_1);
  run(m.session, m.init);
  add(&m, 12, 0);
  OK(tw_saver_save(m.saver, m.session, path("layout")));
  tw_checkpoint* c = NULL;
  tw_tensor* t = NULL;
  OK(tw_checkpoint_open(path("layout"), &c));
  OK(tw_checkpoint_read(c, "first:resource", &t));
  const tw_string* s = t ? tw_tensor_data(t) : NULL;
  CHECK(s && tw_tensor_count(t) == 3);
  CHECK(s && s[0].size == 22 && memcmp(s[0].data, "org.example.box.number", 22) == 0);
  CHECK(s && s[1].size == 1 && s[1].data[0] == '1' && s[2].size == 2 && memcmp(s[2].data, "12", 2) == 0);
  tw_tensor_release(t);
  tw_checkpoint_close(c);
  free_model(&m);
}

static void AnOlderFormatIsReadAndANewerOneRefused(void) {
  write_by_another_process(path("old"), "1");
  write_by_another_process(path("new"), "2");
  model newer = new_model(BOXES_2);
  OK(tw_saver_restore(newer.saver, newer.session, path("old")));
  HOLDS(newer, 5, 6, 1);
  free_model(&newer);
  model older = new_model(BOXES_1);
  run(older.session, older.init);
  add(&older, 1, 2);
  FAILS(tw_saver_restore(older.saver, older.session, path("new")), TW_UNIMPLEMENTED,
        "org.example.box.number 'first' of plugin 'org.example.boxes' was saved in format 2, and the plugin reads up to 1");
  HOLDS(older, 1, 2, 0);
  free_model(&older);
}

/* Copies the checkpoint `from` to `to`, with `saved` as the tensor `name`. */
static void with_tensor(const char* from, const char* to, const char* name, const char* const saved[3]) {
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open(from, &c));
  const uint32_t n = tw_checkpoint_count(c);
  const char* names[8];
  tw_tensor* tensors[8] = {NULL};
  for (uint32_t i = 0; i < n && i < 8; ++i) {
    names[i] = tw_checkpoint_name(c, i);
    OK(tw_checkpoint_read(c, names[i], &tensors[i]));
    for (int k = 0; strcmp(names[i], name) == 0 && k < 3; ++k)
      OK(tw_tensor_set_string(tensors[i], (uint64_t)k, saved[k], strlen(saved[k])));
  }
  OK(tw_checkpoint_write(to, names, tensors, n));
  for (uint32_t i = 0; i < n; ++i) tw_tensor_release(tensors[i]);
  tw_checkpoint_close(c);
}

static void ADamagedResourceLeavesEverythingAsItIs(void) {
  char good[512], bad[512];
  snprintf(good, sizeof good, "%s", path("good"));
  snprintf(bad, sizeof bad, "%s", path("bad"));
  write_by_another_process(good, "2");
  model m = new_model(BOXES_2);
  run(m.session, m.init);
  add(&m, 1, 2);
  tw_output three = 0;
  tw_scope* s = tw_scope_create(m.graph, "later");
  three = tw_scope_scalar(s, TW_FLOAT, 3);
  const tw_operation* assign = tw_variable_assign(s, m.v, three);
  OK(tw_scope_finish(s));
  run(m.session, assign);
  const struct {
    const char *name, *saved[3];
    uint32_t code;
    const char* part;
  } cases[] = {
      {"seen:resource", {"org.example.bloom.filter", "1", "abc"}, TW_DATA_LOSS, "these 3 bytes are no Bloom filter"},
      {"seen:resource", {"org.example.bloom.filter", "2", "abc"}, TW_UNIMPLEMENTED, "saved in format 2, and the plugin reads up to 1"},
      {"seen:resource", {"org.example.bloom.filter", "x", "abc"}, TW_DATA_LOSS, "'x' was saved as its format"},
      {"second:resource",
       {"org.example.box.number", "1", "12x"},
       TW_DATA_LOSS,
       "number 'second' of plugin 'org.example.boxes': '12x' is no"},
      {"second:resource", {"org.example.box.number", "2", "12x"}, TW_DATA_LOSS, "a number has 8 bytes, not 3"},
      {"first:resource",
       {"org.nobody.table", "4", ""},
       TW_INVALID_ARGUMENT,
       "cannot become what was saved, a org.nobody.table of format 4"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    with_tensor(good, bad, cases[i].name, cases[i].saved);
    FAILS(tw_saver_restore(m.saver, m.session, bad), cases[i].code, cases[i].part);
    if (cases[i].code != TW_INVALID_ARGUMENT) {
      FAILS(tw_saver_restore_partial(m.saver, m.session, bad, NULL), cases[i].code, cases[i].part);
    }
    HOLDS(m, 1, 2, 0);
    CHECK(as_float(fetch(m.session, 0, NULL, m.value)) == 3);
  }
  OK(tw_saver_restore(m.saver, m.session, good));
  HOLDS(m, 5, 6, 1);
  free_model(&m);
}

static void WhatFitsIsRestoredAndTheRestIsReported(void) {
  char good[512], bad[512];
  snprintf(good, sizeof good, "%s", path("good"));
  snprintf(bad, sizeof bad, "%s", path("bad"));
  write_by_another_process(good, "2");
  const char* const table[3] = {"org.nobody.table", "4", ""};
  with_tensor(good, bad, "second:resource", table);
  const char *of = "seen", *as = "elsewhere";
  tw_saver_options options = {.size = sizeof options, .variables = &of, .names = &as, .n_names = 1};
  model m = graph_of(BOXES_2);
  OK(tw_saver_create_with(m.graph, NULL, 0, &options, &m.saver));
  run(m.session, m.init);
  FAILS(tw_saver_restore(m.saver, m.session, good), TW_NOT_FOUND, "elsewhere:resource");
  add(&m, 1, 2);
  tw_restore_report* report = NULL;
  OK(tw_saver_restore_partial(m.saver, m.session, bad, &report));
  const uint32_t wanted[] = {TW_RESTORE_DONE, TW_RESTORE_DONE, TW_RESTORE_OTHER_DTYPE, TW_RESTORE_MISSING, TW_RESTORE_UNUSED};
  CHECK(tw_restore_report_count(report) == 5);
  for (uint32_t i = 0; i < 5; ++i) CHECK(tw_restore_report_outcome(report, i) == wanted[i]);
  CHECK(strstr(tw_restore_report_text(report, 1), "org.example.box.number 'first' restored from 'first:resource'"));
  CHECK(strstr(tw_restore_report_text(report, 2), "left as it was: 'second:resource' in the file is a org.nobody.table"));
  tw_restore_report_destroy(report);
  HOLDS(m, 5, 2, 0);
  free_model(&m);
}

static void OnlyWhatIsListedIsSaved(void) {
  model m = graph_of(BOXES_2);
  const tw_output listed[] = {m.second};
  FAILS(tw_saver_create(m.graph, &m.text, 1, &m.saver), TW_UNIMPLEMENTED, "is a org.example.box.text, which cannot be saved");
  FAILS(tw_saver_create(m.graph, &m.number, 1, &m.saver), TW_INVALID_ARGUMENT, "is no variable");
  OK(tw_saver_create(m.graph, listed, 1, &m.saver));
  add(&m, 1, 2);
  OK(tw_saver_save(m.saver, m.session, path("listed")));
  add(&m, 10, 20);
  OK(tw_saver_restore(m.saver, m.session, path("listed")));
  HOLDS(m, 11, 2, 0);
  uint32_t saved = 7;
  const tw_operation* made = NULL;
  OK(tw_graph_producer(m.graph, m.text, &made, NULL));
  CHECK(strcmp(tw_operation_resource(made, 0, &saved), "org.example.box.text") == 0 && saved == 0);
  OK(tw_graph_producer(m.graph, m.v, &made, NULL));
  CHECK(strcmp(tw_operation_resource(made, 0, &saved), "variable") == 0 && saved == 1);
  CHECK(!tw_operation_resource(made, 1, &saved) && saved == 0);
  OK(tw_graph_producer(m.graph, m.value, &made, NULL));
  CHECK(!tw_operation_resource(made, 0, NULL));
  free_model(&m);
}

/* Saves in the background and in several files, and restores the newest whole checkpoint. */
static void CheckpointersCarryResources(void) {
  model m = new_model(BOXES_2);
  run(m.session, m.init);
  tw_checkpointer_options options;
  tw_checkpointer_options_init(&options);
  options.flags = TW_CHECKPOINTER_BACKGROUND;
  options.keep_last = 2;
  options.shards = 2;
  tw_checkpointer* c = NULL;
  OK(tw_checkpointer_create(m.saver, m.session, path("run"), &options, &c));
  for (int step = 1; step <= 3; ++step) {
    add(&m, 1, 10);
    OK(tw_checkpointer_save(c, step, NULL));
  }
  OK(tw_checkpointer_wait(c));
  add(&m, 100, 100);
  int64_t step = 0;
  OK(tw_checkpointer_restore(c, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 3);
  HOLDS(m, 3, 30, 0);
  tw_checkpointer_destroy(c);
  free_model(&m);
}

/* The same program with boxes on a device; a checkpoint does not record the device. */
static void BoxesOnADeviceAreSavedToo(void) {
  write_by_another_process(path("cpu"), "2");
  model m = {0};
  OK(tw_runtime_create(NULL, 0, &m.runtime));
  OK(tw_plugin_load(m.runtime, FAKE));
  OK(tw_plugin_load(m.runtime, BOXES_2));
  OK(tw_graph_create(m.runtime, &m.graph));
  tw_scope* s = tw_scope_create(m.graph, NULL);
  tw_op* op = tw_scope_begin(s, "NumberBox", "first");
  tw_op_set_device(op, "FAKE:0");
  m.first = tw_scope_end(s, op);
  m.second = named(s, "NumberBox", "second");
  m.number = tw_scope_op1(s, "NumberBoxGet", m.first);
  m.other = tw_scope_op1(s, "NumberBoxGet", m.second);
  OK(tw_scope_finish(s));
  const char* strict = "fallback=fail";
  OK(tw_session_create(m.graph, &strict, 1, &m.session));
  OK(tw_saver_create(m.graph, NULL, 0, &m.saver));
  OK(tw_saver_restore(m.saver, m.session, path("cpu")));
  CHECK(number(&m, m.number) == 5 && number(&m, m.other) == 6);
  OK(tw_saver_save(m.saver, m.session, path("device")));
  free_model(&m);
}

static void AHandleOfAnotherTypeNeverReachesAKernel(void) {
  model m = graph_of(BOXES_2);
  tw_scope* s = tw_scope_create(m.graph, "wrong");
  const tw_output text_of_number = tw_scope_op1(s, "TextBoxGet", m.first), number_of_text = tw_scope_op1(s, "NumberBoxGet", m.text),
                  number_of_filter = tw_scope_op1(s, "NumberBoxGet", m.filter), number_of_variable = tw_scope_op1(s, "NumberBoxGet", m.v),
                  unsaid = tw_scope_op1(s, "AnyBoxGet", m.first), opened = tw_scope_op1(s, "BoxSaveOpened", m.first),
                  variable = tw_scope_op1(s, "SaveResource", m.v), text = tw_scope_op1(s, "SaveResource", m.text);
  OK(tw_scope_finish(s));
  run(m.session, m.init);
  const struct {
    tw_output y;
    uint32_t code;
    const char* part;
  } cases[] = {
      {text_of_number, TW_INVALID_ARGUMENT,
       "'box' is a handle of the org.example.box.number 'first', but must be one of a org.example.box.text"},
      {number_of_text, TW_INVALID_ARGUMENT,
       "'box' is a handle of the org.example.box.text 'text', but must be one of a org.example.box.number"},
      {number_of_filter, TW_INVALID_ARGUMENT, "of the org.example.bloom.filter 'seen', but must be one of a org.example.box.number"},
      {number_of_variable, TW_INVALID_ARGUMENT, "of the variable 'v', but must be one of a org.example.box.number"},
      {unsaid, TW_FAILED_PRECONDITION,
       "'box' is the org.example.box.number 'first', which is no variable: it has no value to read, fetch or assign"},
      {opened, TW_FAILED_PRECONDITION, "opens resources and asks the host to save one"},
      {variable, TW_INVALID_ARGUMENT, "'v' is a variable; save what ReadVariableOp answers"},
      {text, TW_UNIMPLEMENTED, "org.example.box.text 'text' of plugin 'org.example.boxes': this type of resource cannot be saved"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    tw_signature what = {.size = sizeof what, .fetches = &cases[i].y, .n_fetches = 1};
    tw_tensor* out = NULL;
    FAILS(tw_session_run(m.session, &what, NULL, NULL, &out), cases[i].code, cases[i].part);
  }
  CHECK(number(&m, m.number) == 0);
  free_model(&m);
}

/* The box keeps its type in use until the runtime forgets the box. */
static void APluginStaysWhileItsResourcesLive(void) {
  model m = new_model(BOXES_2);
  run(m.session, m.init);
  add(&m, 1, 2);
  tw_saver_destroy(m.saver);
  tw_session_destroy(m.session);
  tw_graph_destroy(m.graph);
  FAILS(tw_plugin_unload(m.runtime, "org.example.boxes"), TW_FAILED_PRECONDITION, "org.example.boxes");
  tw_runtime_release(m.runtime);
}

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 4 && strcmp(argv[1], "write") == 0) return write_as_told(argv[2], argv[3]);
  const test tests[] = {TEST(AnotherProcessFindsWhatWasSaved),
                        TEST(ASaverListsVariablesThenResourcesEachOnce),
                        TEST(TheFileHoldsTypeFormatAndBytes),
                        TEST(AnOlderFormatIsReadAndANewerOneRefused),
                        TEST(ADamagedResourceLeavesEverythingAsItIs),
                        TEST(WhatFitsIsRestoredAndTheRestIsReported),
                        TEST(OnlyWhatIsListedIsSaved),
                        TEST(CheckpointersCarryResources),
                        TEST(BoxesOnADeviceAreSavedToo),
                        TEST(AHandleOfAnotherTypeNeverReachesAKernel),
                        TEST(APluginStaysWhileItsResourcesLive)};
  return run_in_folder(tests, sizeof tests / sizeof *tests);
}
