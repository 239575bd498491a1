/* Imported graphs: the rights that a session gives them. Files are in a temporary folder, which
 * is removed. */
#define _XOPEN_SOURCE 700
#include <stddef.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

static char folder[256]; /* holds "allowed", and whatever files a graph managed to write beside it */

static const char* path(const char* name) {
  static char text[4][512];
  static int next;
  next = (next + 1) % 4;
  snprintf(text[next], sizeof text[next], "%s/%s", folder, name);
  return text[next];
}

static int is_there(const char* name) { return access(path(name), F_OK) == 0; }

static tw_output text_constant(tw_scope* s, const char* text) {
  const int64_t one = 1;
  tw_tensor* t = NULL;
  OK(tw_tensor_create(TW_STRING, &one, 1, &t));
  OK(tw_tensor_set_string(t, 0, text, strlen(text)));
  const tw_output constant = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return constant;
}

static tw_output prefix_constant(tw_scope* s, const char* text) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create_string(text, strlen(text), &t));
  const tw_output constant = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return constant;
}

/* Exports a graph with `save`, which writes a checkpoint under the prefix, `restore`, which
 * reads it, and a harmless `sum`. */
static tw_buffer* hostile_graph(const char* prefix) {
  tw_graph* graph = NULL;
  tw_buffer* bytes = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output where = prefix_constant(s, prefix), names = text_constant(s, "v"), slices = text_constant(s, "");
  tw_op* save = tw_scope_begin(s, "SaveV2", "save");
  tw_op_add_input(save, where);
  tw_op_add_input(save, names);
  tw_op_add_input(save, slices);
  tw_op_add_input(save, tw_scope_scalar(s, TW_FLOAT, 7));
  tw_scope_end_operation(s, save);
  tw_op* restore = tw_scope_begin(s, "RestoreV2", "restore");
  const uint32_t dtype = TW_FLOAT;
  tw_op_add_input(restore, where);
  tw_op_add_input(restore, names);
  tw_op_add_input(restore, slices);
  tw_op_set_types(restore, "dtypes", &dtype, 1);
  tw_scope_end(s, restore);
  tw_op* sum = tw_scope_begin(s, "Add", "sum");
  tw_op_add_input(sum, tw_scope_scalar(s, TW_FLOAT, 1));
  tw_op_add_input(sum, tw_scope_scalar(s, TW_FLOAT, 2));
  tw_scope_end(s, sum);
  OK(tw_scope_finish(s));
  OK(tw_graph_export(graph, &bytes));
  tw_graph_destroy(graph);
  return bytes;
}

static tw_graph* import(const char* prefix) {
  tw_buffer* bytes = hostile_graph(prefix);
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  tw_buffer_release(bytes);
  return graph;
}

/* Runs the operation of that name in a new session with one option (NULL: none). */
static tw_status* run_named(tw_graph* graph, const char* name, const char* option) {
  tw_session* session = NULL;
  const tw_operation* target = NULL;
  tw_status* status = tw_session_create(graph, &option, option ? 1 : 0, &session);
  if (status) return status;
  OK(tw_graph_find(graph, name, &target));
  const tw_signature what = {.size = sizeof what, .targets = &target, .n_targets = 1};
  status = tw_session_run(session, &what, NULL, NULL, NULL);
  tw_session_destroy(session);
  return status;
}

static const char* allow(void) {
  static char text[600];
  snprintf(text, sizeof text, "allow_files=%s", path("allowed"));
  return text;
}

static void FilesAreRefusedAtFirst(void) {
  tw_graph* graph = import(path("stolen"));
  tw_status* status = run_named(graph, "save", NULL);
  CHECK(tw_status_code(status) == TW_PERMISSION_DENIED && strcmp(tw_status_operation(status), "save") == 0);
  CHECK(strstr(tw_status_message(status), "SaveV2 'save' of an imported graph touches files; give the session allow_files=DIR"));
  tw_status_release(status);
  FAILS(run_named(graph, "restore", NULL), TW_PERMISSION_DENIED, "RestoreV2 'restore'");
  CHECK(!is_there("stolen.index"));
  OK(run_named(graph, "sum", NULL));
  tw_graph_destroy(graph);
}

static void AnAllowedFolderIsTheLimit(void) {
  tw_graph *inside = import("model"), *up = import("../stolen"), *elsewhere = import(path("stolen"));
  OK(run_named(inside, "save", allow()));
  CHECK(is_there("allowed/model.index") && !is_there("model.index"));
  OK(run_named(inside, "restore", allow()));
  FAILS(run_named(up, "save", allow()), TW_PERMISSION_DENIED, "'..'");
  FAILS(run_named(elsewhere, "save", allow()), TW_PERMISSION_DENIED, "does not lie beneath");
  CHECK(!is_there("stolen.index"));

  OK(run_named(elsewhere, "save", "trust_imported=true"));
  CHECK(is_there("stolen.index"));
  FAILS(run_named(elsewhere, "restore", allow()), TW_PERMISSION_DENIED, "does not lie beneath");
  FAILS(run_named(up, "restore", allow()), TW_PERMISSION_DENIED, "'..'");
  OK(run_named(elsewhere, "restore", "trust_imported=true"));
  CHECK(symlink(path("stolen.index"), path("allowed/link.index")) == 0);
  tw_graph* link = import("link");
  FAILS(run_named(link, "restore", allow()), TW_PERMISSION_DENIED, "symbolic link");
  tw_graph_destroy(inside);
  tw_graph_destroy(up);
  tw_graph_destroy(elsewhere);
  tw_graph_destroy(link);
}

static void ASaverOfTheProgramIsFree(void) {
  tw_graph *source = NULL, *graph = NULL;
  tw_buffer* bytes = NULL;
  OK(tw_graph_create(NULL, &source));
  tw_scope* s = tw_scope_create(source, NULL);
  tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 3));
  tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_graph_export(source, &bytes));
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  tw_saver* saver = NULL;
  tw_session* session = NULL;
  const tw_operation* init = NULL;
  OK(tw_saver_create(graph, NULL, 0, &saver));
  const char* option = "container=imported";
  OK(tw_session_create(graph, &option, 1, &session));
  OK(tw_graph_find(graph, "init", &init));
  run(session, init);
  OK(tw_saver_save(saver, session, path("own")));
  OK(tw_saver_restore(saver, session, path("own")));
  CHECK(is_there("own.index"));
  tw_saver_destroy(saver);
  tw_session_destroy(session);
  tw_buffer_release(bytes);
  tw_graph_destroy(source);
  tw_graph_destroy(graph);
}

static void OpsCanBeChosen(void) {
  tw_graph* graph = import("model");
  OK(run_named(graph, "sum", "allow_ops=Const,Add"));
  FAILS(run_named(graph, "sum", "allow_ops=Const"), TW_PERMISSION_DENIED, "op Add is not in the session's allow_ops");
  FAILS(run_named(graph, "sum", "deny_ops=Add,Mul"), TW_PERMISSION_DENIED, "op Add is in the session's deny_ops");
  FAILS(run_named(graph, "sum", "deny_ops=Ad"), TW_INVALID_ARGUMENT, "defines op 'Ad'");
  FAILS(run_named(graph, "sum", "allow_files=/no/such/folder"), TW_NOT_FOUND, "session option 'allow_files'");
  tw_graph_destroy(graph);
}

static void ImportsHaveLimits(void) {
  tw_buffer* bytes = hostile_graph("x");
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_import_options options = {.size = sizeof options, .max_operations = 3};
  FAILS(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options), TW_RESOURCE_EXHAUSTED, "more than 3 nodes");
  options = (tw_import_options){.size = sizeof options, .max_bytes = 100};
  FAILS(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options), TW_RESOURCE_EXHAUSTED, "at most 100");
  CHECK(tw_graph_count(graph) == 0);
  /* The first version of the record has no limits. */
  options = (tw_import_options){.size = offsetof(tw_import_options, max_bytes), .max_operations = 3};
  OK(tw_graph_import(graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options));
  tw_graph_destroy(graph);

  /* A constant of 2^20 zeros is encoded in a few bytes. */
  static const unsigned char bomb[] =
      "\x0a\x34\x0a\x01"
      "c"
      "\x12\x05"
      "Const"
      "*\x0b\x0a\x05"
      "dtype"
      "\x12\x02\x30\x01"
      "*\x1b\x0a\x05"
      "value"
      "\x12\x12"
      "B\x10\x08\x01\x12\x06\x12\x04\x08\x80\x80\x40*\x04\x00\x00\x00\x00";
  OK(tw_graph_create(NULL, &graph));
  options = (tw_import_options){.size = sizeof options, .max_unfolded_bytes = 1 << 20};
  FAILS(tw_graph_import(graph, bomb, sizeof bomb - 1, &options), TW_RESOURCE_EXHAUSTED, "");
  OK(tw_graph_import(graph, bomb, sizeof bomb - 1, NULL));
  tw_graph_destroy(graph);
  tw_buffer_release(bytes);
}

static void MemoryAndTimeHaveLimits(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output n = tw_scope_placeholder(s, "n", TW_INT32, (const int64_t[]){1}, 1);
  const tw_output filled = tw_scope_op2(s, "Fill", n, tw_scope_scalar(s, TW_FLOAT, 1));
  OK(tw_scope_finish(s));
  const char* options[] = {"memory_limit=1M", "step_timeout_ms=600000"};
  OK(tw_session_create(graph, options, 2, &session));
  const tw_signature what = {.size = sizeof what, .feeds = &n, .n_feeds = 1, .fetches = &filled, .n_fetches = 1};
  const int64_t one = 1;
  const int32_t sizes[] = {1000, 1 << 30};
  for (int i = 0; i < 2; ++i) {
    tw_tensor *size = NULL, *out = NULL;
    OK(tw_tensor_create_copy(TW_INT32, &one, 1, &sizes[i], sizeof sizes[i], &size));
    if (i == 0)
      OK(tw_session_run(session, &what, &size, NULL, &out));
    else
      FAILS(tw_session_run(session, &what, &size, NULL, &out), TW_RESOURCE_EXHAUSTED, "of the 1048576 bytes of its memory_limit");
    tw_tensor_release(out);
    tw_tensor_release(size);
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

int main(void) {
  if (make_folder(folder, sizeof folder, "imported") || mkdir(path("allowed"), 0700) != 0) return 1;
  const test tests[] = {
      TEST(FilesAreRefusedAtFirst), TEST(AnAllowedFolderIsTheLimit), TEST(ASaverOfTheProgramIsFree),
      TEST(OpsCanBeChosen),         TEST(ImportsHaveLimits),         TEST(MemoryAndTimeHaveLimits),
  };
  const int result = run_tests(tests, sizeof(tests) / sizeof(tests[0]));
  remove_folder(folder);
  return result;
}
