/* Importers of strangers through tw_model: recognition by contents, signatures, defaults, steps and
 * functions, and files that try to lead out of their folder. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "../c_api/folder.h"
#include "check.h"

static char folder[200];

static const char* in_folder(const char* name) {
  static char path[4][400];
  static int next;
  next = (next + 1) % 4;
  snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
  return path[next];
}
static void write_file(const char* name, const void* bytes, size_t n) {
  FILE* f = fopen(in_folder(name), "wb");
  CHECK(f && fwrite(bytes, 1, n, f) == n);
  if (f) fclose(f);
}
static void write_text(const char* name, const char* text) { write_file(name, text, strlen(text)); }

static tw_runtime* new_runtime(void) {
  tw_runtime* r = NULL;
  const char* options[] = {"load_plugins=true"};
  OK(tw_runtime_create(options, 0, &r));
  OK(tw_plugin_load(r, LINEAR));
  OK(tw_plugin_load(r, STEPS));
  return r;
}
static const float kWeights[] = {1, 2, 3, 4, 5, 6}, kBias[] = {10, 20};

static void write_linear(void) {
  write_file("w.bin", kWeights, sizeof kWeights);
  write_file("b.bin", kBias, sizeof kBias);
  write_text("model.any", "linear 1\nin 3\nout 2\nweights w.bin\nbias b.bin\n");
}

static void AModelOfAStrangersFormatRuns(void) {
  tw_runtime* r = new_runtime();
  tw_model* m = NULL;
  tw_buffer* importer = NULL;
  write_linear();
  OK(tw_model_recognise(r, in_folder("model.any"), &importer));
  CHECK(importer && strcmp(tw_buffer_data(importer), "linear") == 0);
  tw_buffer_release(importer);
  OK(tw_model_load(r, in_folder("model.any"), NULL, &m));
  if (!m) return;
  CHECK(strcmp(tw_model_importer(m), "linear") == 0);
  CHECK(tw_model_signature_count(m) == 1 && tw_model_signature_at(m, 1) == NULL);
  const tw_model_signature* s = tw_model_signature_at(m, 0);
  CHECK(strcmp(s->name, "apply") == 0 && s->n_inputs == 1 && s->n_outputs == 1);
  CHECK(s->inputs[0]->dtype == TW_FLOAT && s->inputs[0]->shape->rank == 2 && s->inputs[0]->shape->dims[0] == -1 &&
        s->inputs[0]->shape->dims[1] == 3);
  CHECK(strcmp(s->inputs[0]->symbols[0], "batch") == 0 && strcmp(s->outputs[0]->symbols[0], "batch") == 0);
  CHECK(strcmp(s->outputs[0]->name, "y") == 0 && s->outputs[0]->shape->dims[1] == 2);
  const char *key = NULL, *text = NULL;
  CHECK(tw_model_property_count(m) == 1);
  OK(tw_model_property(m, 0, &key, &text));
  CHECK(strcmp(key, "format") == 0 && strcmp(text, "linear 1") == 0);
  FAILS(tw_model_property(m, 1, &key, &text), TW_INVALID_ARGUMENT, "1 properties");

  const float x[] = {1, 0, 0, 0, 1, 1};
  const int64_t dims[] = {2, 3}, wrong[] = {3, 2};
  tw_tensor *in = floats(dims, 2, x), *bad = floats(wrong, 2, x), *y = NULL;
  for (int i = 0; i < 2; ++i) {
    OK(tw_model_run(m, i ? "apply" : NULL, &in, NULL, &y));
    const float* v = tw_tensor_data(y);
    CHECK(v && v[0] == 11 && v[1] == 22 && v[2] == 18 && v[3] == 30);
    tw_tensor_release(y);
  }
  FAILS(tw_model_run(m, NULL, &bad, NULL, &y), TW_INVALID_ARGUMENT, "input 'x' has shape [3, 2]; the model takes [?, 3]");
  CHECK(y == NULL);
  tw_tensor* none = NULL;
  FAILS(tw_model_run(m, NULL, &none, NULL, &y), TW_INVALID_ARGUMENT, "missing: 'x'");
  FAILS(tw_model_run(m, "aply", &in, NULL, &y), TW_NOT_FOUND, "it has 'apply'");
  CHECK(tw_graph_count(tw_model_graph(m)) > 3);
  tw_callable *one = NULL, *two = NULL;
  OK(tw_model_callable(m, NULL, &one));
  OK(tw_model_callable(m, "apply", &two));
  CHECK(one && one == two);
  tw_tensor_release(in);
  tw_tensor_release(bad);
  tw_model_destroy(m);
  tw_runtime_release(r);
}

/* What a load refuses: the text of the file, the code, and a part of the message. */
typedef struct refused {
  const char* text;
  uint32_t code;
  const char* part;
} refused;

static void AFileCannotLeadOutOfItsFolder(void) {
  tw_runtime* r = new_runtime();
  char outside[300], text[400];
  write_linear();
  snprintf(outside, sizeof outside, "%s-outside", folder);
  FILE* f = fopen(outside, "wb");
  CHECK(f && fwrite(kWeights, 1, sizeof kWeights, f) == sizeof kWeights);
  if (f) fclose(f);
  CHECK(symlink(outside, in_folder("link")) == 0 && link(outside, in_folder("hard")) == 0 && mkfifo(in_folder("pipe"), 0600) == 0 &&
        symlink("/dev", in_folder("dev")) == 0);
  snprintf(text, sizeof text, "linear 1\nin 3\nout 2\nweights ../%s\n", strrchr(outside, '/') + 1);
  const refused all[] = {{text, TW_PERMISSION_DENIED, "has '..' in it"},
                         {"linear 1\nin 3\nout 2\nweights /etc/passwd\n", TW_PERMISSION_DENIED, "beneath the model's folder"},
                         {"linear 1\nin 3\nout 2\nweights link\n", TW_PERMISSION_DENIED, "symbolic link"},
                         {"linear 1\nin 3\nout 2\nweights hard\n", TW_PERMISSION_DENIED, "hard links"},
                         {"linear 1\nin 3\nout 2\nweights pipe\n", TW_INVALID_ARGUMENT, "not a regular file"},
                         {"linear 1\nin 3\nout 2\nweights dev/zero\n", TW_PERMISSION_DENIED, "symbolic link"},
                         {"linear 1\nin 3\nout 2\nweights mem://x\n", TW_PERMISSION_DENIED, "beneath the model's folder"},
                         {"linear 1\nin 3\nout 2\nweights missing\n", TW_NOT_FOUND, "missing"},
                         {"linear 1\nin 3\nout 1000000\nweights w.bin\n", TW_INVALID_ARGUMENT, "needs 12000000 bytes, not 24"},
                         {"linear 1\nin 99999999999999999999\nout x\nweights w.bin\n", TW_INVALID_ARGUMENT, ": in; "},
                         {"linear 2\n", TW_INVALID_ARGUMENT, "no importer recognises"},
                         {"", TW_INVALID_ARGUMENT, "linear (linear functions of the example)"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    tw_model* m = NULL;
    write_text("bad.any", all[i].text);
    FAILS(tw_model_load(r, in_folder("bad.any"), NULL, &m), all[i].code, all[i].part);
    CHECK(m == NULL);
  }
  tw_model* m = NULL;
  FAILS(tw_model_load(r, in_folder("nowhere"), NULL, &m), TW_NOT_FOUND, "nowhere");
  FAILS(tw_model_load(r, "/dev/zero", NULL, &m), TW_INVALID_ARGUMENT, "not a regular file");
  FAILS(tw_model_load(r, folder, NULL, &m), TW_INVALID_ARGUMENT, "what the folder holds");
  tw_model_options o = {sizeof o, .max_file_bytes = 60};
  FAILS(tw_model_load(r, in_folder("model.any"), &o, &m), TW_RESOURCE_EXHAUSTED, "max_file_bytes");
  remove(outside);
  tw_runtime_release(r);
}

static float run_steps(tw_model* m, float x, const float* more) {
  tw_tensor *in[] = {scalar(x), more ? scalar(*more) : NULL}, *y = NULL;
  OK(tw_model_run(m, NULL, in, NULL, &y));
  const float value = y ? *(const float*)tw_tensor_data(y) : NAN;
  tw_tensor_release(in[0]);
  tw_tensor_release(in[1]);
  tw_tensor_release(y);
  return value;
}

static void StepsSetVariablesAndModelsShareNoState(void) {
  tw_runtime* r = new_runtime();
  tw_model *a = NULL, *b = NULL;
  const char* option = "start=5";
  tw_model_options o = {sizeof o, .options = &option, .n_options = 1};
  const float two = 2;
  write_text("a.steps", "steps");
  OK(tw_model_load(r, in_folder("a.steps"), NULL, &a));
  OK(tw_model_load(r, in_folder("a.steps"), &o, &b));
  if (!a || !b) return;
  CHECK(run_steps(a, 4, NULL) == 30); /* (4 + 1) * 2 * 3 */
  CHECK(run_steps(a, 4, &two) == 36);
  CHECK(run_steps(b, 4, NULL) == 50);
  OK(tw_model_run(a, "grow", NULL, NULL, NULL));
  CHECK(run_steps(a, 4, NULL) == 40);
  CHECK(run_steps(b, 4, NULL) == 50);
  const tw_model_signature* s = NULL;
  OK(tw_model_find(a, NULL, &s));
  CHECK(strcmp(s->name, "apply") == 0 && s->inputs[0]->is_optional == 0 && s->inputs[1]->is_optional == 1);
  CHECK(tw_graph_has(tw_model_graph(a), "weights_of__w"));
  tw_model_destroy(a);
  tw_model_destroy(b);
  const char* only = "grow";
  tw_model_options one = {sizeof one, .signatures = &only, .n_signatures = 1};
  OK(tw_model_load(r, in_folder("a.steps"), &one, &a));
  CHECK(tw_model_signature_count(a) == 1);
  tw_model_destroy(a);
  only = "shrink";
  FAILS(tw_model_load(r, in_folder("a.steps"), &one, &a), TW_NOT_FOUND, "no signature 'shrink'");
  tw_runtime_release(r);
}

static void AllProblemsOfAModelAreOneError(void) {
  tw_runtime* r = new_runtime();
  tw_model* m = NULL;
  write_text("p.steps", "steps problems");
  FAILS(tw_model_load(r, in_folder("p.steps"), NULL, &m), TW_NOT_FOUND, "importer 'steps': op 'Foo' is missing; op 'Bar' is missing");
  const refused all[] = {{"steps sticky", TW_NOT_FOUND, "NoSuchOpAtAll"},
                         {"steps twice", TW_ALREADY_EXISTS, "signature 'apply' already"},
                         {"steps foreign", TW_INVALID_ARGUMENT, "belongs to another graph"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    write_text("p.steps", all[i].text);
    FAILS(tw_model_load(r, in_folder("p.steps"), NULL, &m), all[i].code, all[i].part);
  }
  const char* wrong = "begin=5";
  tw_model_options o = {sizeof o, .options = &wrong, .n_options = 1};
  write_text("p.steps", "steps");
  FAILS(tw_model_load(r, in_folder("p.steps"), &o, &m), TW_INVALID_ARGUMENT, "no option 'begin'; its options are 'start'");
  tw_model_options named = {sizeof named, .importer = "liner"};
  FAILS(tw_model_load(r, in_folder("p.steps"), &named, &m), TW_NOT_FOUND, "no importer 'liner'");
  named.importer = "linear";
  FAILS(tw_model_load(r, in_folder("p.steps"), &named, &m), TW_INVALID_ARGUMENT, "the first line is not: linear 1");
  tw_buffer* text = NULL;
  OK(tw_model_importers(r, &text));
  CHECK(strstr(tw_buffer_data(text), "steps\tsteps of the test\t.steps\tstart: a digit, the first value of w\n"));
  tw_buffer_release(text);
  tw_runtime_release(r);
}

int main(void) {
  const test tests[] = {TEST(AModelOfAStrangersFormatRuns), TEST(AFileCannotLeadOutOfItsFolder),
                        TEST(StepsSetVariablesAndModelsShareNoState), TEST(AllProblemsOfAModelAreOneError)};
  if (make_folder(folder, sizeof folder, "importer")) return 1;
  const int failed = run_tests(tests, sizeof tests / sizeof *tests);
  remove_folder(folder);
  return failed;
}
