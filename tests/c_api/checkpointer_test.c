/* Savers with names, shards and partial restores; checkpointers; the latest checkpoint of a
 * folder. */
#include "saving.h"

static int exists(const char* name) { return access(path(name), F_OK) == 0; }

static void damage(const char* name) {
  FILE* file = fopen(path(name), "r+b");
  CHECK(file && fputc(0x55, file) != EOF && fclose(file) == 0);
}

static float value_of(const program* p) { return as_float(fetch(p->session, 0, NULL, p->a_value)); }

static void assign(program* p, float value) {
  tw_scope* s = tw_scope_create(p->graph, NULL);
  const tw_operation* set = tw_variable_assign(s, p->a, tw_scope_scalar(s, TW_FLOAT, value));
  OK(tw_scope_finish(s));
  run(p->session, set);
}

/* ---- Savers ---- */

static void RulesSayWhatVariablesAreCalledInFiles(void) {
  program p = new_program("container=rules", 1);
  const char *from[] = {"a", "*"}, *to[] = {"other/alpha", "model/*"};
  const tw_saver_options options = {.size = sizeof options, .variables = from, .names = to, .n_names = 2};
  tw_saver* saver = NULL;
  OK(tw_saver_create_with(p.graph, NULL, 0, &options, &saver));
  CHECK(tw_saver_count(saver) == 2 && tw_saver_graph(saver) == p.graph);
  CHECK(strcmp(tw_saver_variable(saver, 0), "a") == 0 && strcmp(tw_saver_name(saver, 0), "other/alpha") == 0);
  CHECK(strcmp(tw_saver_name(saver, 1), "model/b") == 0 && tw_saver_name(saver, 2) == NULL && tw_saver_variable(saver, 2) == NULL);
  run(p.session, p.init);
  OK(tw_saver_save(saver, p.session, path("rules")));
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open(path("rules"), &c));
  CHECK(tw_checkpoint_count(c) == 2 && strcmp(tw_checkpoint_name(c, 0), "model/b") == 0);
  tw_checkpoint_close(c);
  run(p.session, p.clear);
  OK(tw_saver_restore(saver, p.session, path("rules")));
  CHECK(value_of(&p) == 1);
  tw_saver_destroy(saver);
  free_program(&p);
}

static void WrongRulesAreRefused(void) {
  program p = new_program("container=wrong", 1);
  tw_saver* saver = NULL;
  const struct {
    const char *from, *to, *part;
  } wrong[] = {{"a*b", "x", "rule 0, 'a*b' to 'x'"},
               {"a*", "x", "end in *"},
               {"", "x", "rule 0"},
               {"a", "b", "'a' and 'b' would both be 'b'"},
               {"a*", "*", "leave variable 'a' no name"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    const tw_saver_options options = {.size = sizeof options, .variables = &wrong[i].from, .names = &wrong[i].to, .n_names = 1};
    FAILS(tw_saver_create_with(p.graph, NULL, 0, &options, &saver), TW_INVALID_ARGUMENT, wrong[i].part);
  }
  const tw_saver_options small = {.size = 8}, flags = {.size = sizeof flags, .flags = 4}, null = {.size = sizeof null, .n_names = 1};
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &small, &saver), TW_INVALID_ARGUMENT, "size is 8");
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &flags, &saver), TW_INVALID_ARGUMENT, "flags 4");
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &null, &saver), TW_INVALID_ARGUMENT, "rule 0 has a NULL");
  const char *from[] = {"a", "a"}, *to[] = {"x", "y"};
  const tw_saver_options twice = {.size = sizeof twice, .variables = from, .names = to, .n_names = 2};
  const tw_saver_options many = {.size = sizeof many, .shards = 1001};
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &twice, &saver), TW_INVALID_ARGUMENT, "rule 1, 'a' to 'y'");
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &many, &saver), TW_INVALID_ARGUMENT, "shards is 1001");
  free_program(&p);
}

static void ARuleThatIsForNoVariableIsRefused(void) {
  program p = new_program("container=unused", 1);
  tw_saver* saver = NULL;
  const char *from[] = {"*", "alpha"}, *to[] = {"model/*", "old"};
  tw_saver_options options = {.size = sizeof options, .variables = from, .names = to, .n_names = 2};
  FAILS(tw_saver_create_with(p.graph, NULL, 0, &options, &saver), TW_INVALID_ARGUMENT,
        "'alpha' to 'old' is for none of the 2 variables; the closest is 'a'; mend it");
  from[1] = "b"; /* in the graph, but not in the saver */
  FAILS(tw_saver_create_with(p.graph, &p.a, 1, &options, &saver), TW_INVALID_ARGUMENT, "none of the 1 variables");
  options.flags = TW_SAVER_UNUSED_RULES;
  OK(tw_saver_create_with(p.graph, &p.a, 1, &options, &saver));
  CHECK(tw_saver_count(saver) == 1 && strcmp(tw_saver_name(saver, 0), "model/a") == 0);
  tw_saver_destroy(saver);
  free_program(&p);
}

static void ASaverWritesSeveralDataFiles(void) {
  program p = new_program("container=shards", 3);
  const tw_saver_options options = {.size = sizeof options, .shards = 2};
  tw_saver* saver = NULL;
  OK(tw_saver_create_with(p.graph, NULL, 0, &options, &saver));
  run(p.session, p.init);
  OK(tw_saver_save(saver, p.session, path("sharded")));
  CHECK(exists("sharded.data-00000-of-00002") && exists("sharded.data-00001-of-00002"));
  OK(tw_saver_save(saver, p.session, path("sharded"))); /* under new names, not over the existing files */
  CHECK(exists("sharded.data-00002-of-00004") && exists("sharded.data-00003-of-00004") && !exists("sharded.data-00000-of-00002"));
  run(p.session, p.clear);
  OK(tw_saver_restore(saver, p.session, path("sharded")));
  CHECK(value_of(&p) == 3);
  tw_saver_destroy(saver);
  tw_tensor* one = scalar(1);
  const char* name = "x";
  FAILS(tw_checkpoint_write_sharded(path("none"), &name, &one, 1, 0), TW_INVALID_ARGUMENT, "1 to 1000");
  FAILS(tw_checkpoint_write_sharded(path("none"), &name, &one, 1, 4000000000u), TW_INVALID_ARGUMENT, "1 to 1000");
  tw_tensor_release(one);
  free_program(&p);
}

/* The saved values do not change, whatever the session does next. */
static void ValuesAreASnapshot(void) {
  program p = new_program("container=values", 5);
  tw_saver* saver = NULL;
  tw_tensor* values[2];
  OK(tw_saver_create(p.graph, NULL, 0, &saver));
  FAILS(tw_saver_values(saver, p.session, values), TW_FAILED_PRECONDITION, "");
  CHECK(!values[0] && !values[1]);
  run(p.session, p.init);
  OK(tw_saver_values(saver, p.session, values));
  run(p.session, p.clear);
  CHECK(as_float(values[0]) == 5 && *(const int64_t*)tw_tensor_data(values[1]) == 42 && value_of(&p) == 0);
  tw_tensor_release(values[1]);
  tw_saver_destroy(saver);
  free_program(&p);
}

static void APartialRestoreTakesWhatFitsAndSaysWhatDoesNot(void) {
  const int64_t two[] = {2}, three[] = {3};
  const float ones[] = {1, 1, 1}, nines[] = {9, 9, 9};
  tw_tensor *start = floats(two, 1, ones), *fits = floats(two, 1, nines), *longer = floats(three, 1, nines), *whole = NULL;
  OK(tw_tensor_create_int32(7, &whole));
  const char* names[] = {"old/fits", "old/longer", "old/whole", "old/unused"};
  tw_tensor* tensors[] = {fits, longer, whole, fits};
  OK(tw_checkpoint_write(path("other"), names, tensors, 4));

  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_saver* saver = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const char* variables[] = {"new/fits", "new/longer", "new/whole", "new/head"};
  tw_output reads[4];
  for (int i = 0; i < 4; ++i) reads[i] = tw_variable_read(s, tw_variable_create(s, variables[i], tw_scope_constant(s, start)));
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  const char* options[] = {"container=partial"};
  OK(tw_session_create(graph, options, 1, &session));
  run(session, init);
  const char *from = "new/*", *to = "old/*";
  const tw_saver_options rules = {.size = sizeof rules, .variables = &from, .names = &to, .n_names = 1};
  OK(tw_saver_create_with(graph, NULL, 0, &rules, &saver));
  for (int again = 0; again < 2; ++again) {
    tw_restore_report* r = NULL;
    OK(tw_saver_restore_partial(saver, session, path("other"), &r));
    const uint32_t outcomes[] = {TW_RESTORE_DONE, TW_RESTORE_OTHER_SHAPE, TW_RESTORE_OTHER_DTYPE, TW_RESTORE_MISSING, TW_RESTORE_UNUSED};
    const char* texts[] = {"restored from 'old/fits'", "[2], 'old/longer' in the file has [3]",
                           "is float, 'old/whole' in the file is int32", "no tensor 'old/head'", "'old/unused' of the file"};
    CHECK(tw_restore_report_count(r) == 5);
    for (uint32_t i = 0; i < 5; ++i) {
      CHECK(tw_restore_report_outcome(r, i) == outcomes[i] && strstr(tw_restore_report_text(r, i), texts[i]));
      CHECK(i == 4 ? !tw_restore_report_variable(r, i) : strcmp(tw_restore_report_variable(r, i), variables[i]) == 0);
    }
    CHECK(strcmp(tw_restore_report_name(r, 4), "old/unused") == 0 && !tw_restore_report_name(r, 5) && !tw_restore_report_text(r, 5));
    tw_restore_report_destroy(r);
  }
  for (int i = 0; i < 4; ++i) CHECK(as_float(fetch(session, 0, NULL, reads[i])) == (i == 0 ? 9 : 1));
  FAILS(tw_saver_restore_partial(saver, session, path("no such"), NULL), TW_NOT_FOUND, "no such");
  damage("other.data-00000-of-00001");
  run(session, init);
  FAILS(tw_saver_restore_partial(saver, session, path("other"), NULL), TW_DATA_LOSS, "old/fits");
  CHECK(as_float(fetch(session, 0, NULL, reads[0])) == 1);
  for (int i = 0; i < 3; ++i) tw_tensor_release(tensors[i]);
  tw_tensor_release(start);
  tw_saver_destroy(saver);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* ---- Checkpointers ---- */

typedef struct training {
  program p;
  tw_saver* saver;
  tw_checkpointer* c;
} training;

static training begin(const char* container, const char* name, const tw_checkpointer_options* options) {
  training t = {.p = new_program(container, 0)};
  run(t.p.session, t.p.init);
  OK(tw_saver_create(t.p.graph, NULL, 0, &t.saver));
  OK(tw_checkpointer_create(t.saver, t.p.session, path(name), options, &t.c));
  return t;
}

static void end(training* t) {
  tw_checkpointer_destroy(t->c);
  tw_saver_destroy(t->saver);
  free_program(&t->p);
}

/* Runs steps 1 to n; the variable equals the step. Returns the number of steps that saved. */
static int train(training* t, int n) {
  int saves = 0;
  for (int step = 1; step <= n; ++step) {
    uint32_t saved = 0;
    assign(&t->p, (float)step);
    OK(tw_checkpointer_step(t->c, step, NULL, &saved));
    saves += (int)saved;
  }
  return saves;
}

static tw_checkpointer_options every(int64_t steps, uint32_t flags) {
  tw_checkpointer_options options;
  tw_checkpointer_options_init(&options);
  options.every_steps = steps;
  options.flags = flags;
  return options;
}

static void TrainingGoesOnWhereItWasSaved(void) {
  for (uint32_t flags = 0; flags < 2; ++flags) {
    const char* run_name = flags ? "run1" : "run0";
    tw_checkpointer_options options = every(2, flags);
    options.keep_last = 2;
    training t = begin("container=train", run_name, &options);
    int64_t step = -7;
    FAILS(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL), TW_NOT_FOUND, "has no checkpoint");
    CHECK(step == -7);
    CHECK(train(&t, 7) == 3);
    OK(tw_checkpointer_wait(t.c));
    tw_checkpointer_stats stats = {.size = sizeof stats};
    OK(tw_checkpointer_report(t.c, &stats));
    CHECK(stats.step == 6 && stats.saves == 3 && stats.failed == 0 && stats.bytes == 12 && stats.write_ns > 0 && stats.stall_ns > 0);
    CHECK(flags || stats.stall_ns >= stats.write_ns);
    end(&t);
    char name[64];
    for (int i = 1; i <= 3; ++i) {
      snprintf(name, sizeof name, "%s/model.ckpt-%d.index", run_name, 2 * i);
      CHECK(exists(name) == (i > 1));
    }
    t = begin("container=again", run_name, &options);
    tw_buffer* skipped = NULL;
    OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, &skipped));
    CHECK(step == 6 && value_of(&t.p) == 6 && tw_buffer_bytes(skipped) == 0);
    tw_buffer_release(skipped);
    uint32_t saved = 1;
    OK(tw_checkpointer_step(t.c, 7, NULL, &saved));
    CHECK(saved == 0); /* the step count continues */
    end(&t);
  }
}

static void DamagedCheckpointsArePassedOverAndNamed(void) {
  const tw_checkpointer_options options = every(1, 0);
  training t = begin("container=damaged", "damaged", &options);
  CHECK(train(&t, 4) == 4);
  damage("damaged/model.ckpt-4.data-00000-of-00001"); /* its size is right: only the checksum detects the damage */
  CHECK(remove(path("damaged/model.ckpt-3.index")) == 0);
  tw_buffer *skipped = NULL, *prefix = NULL;
  int64_t step = 0;
  OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, &skipped));
  CHECK(step == 2 && value_of(&t.p) == 2);
  CHECK(strstr(tw_buffer_data(skipped), "model.ckpt-4") && strstr(tw_buffer_data(skipped), "model.ckpt-3"));
  tw_buffer_release(skipped);
  CHECK(truncate(path("damaged/model.ckpt-4.data-00000-of-00001"), 3) == 0);
  OK(tw_checkpoint_latest(path("damaged"), &prefix, &skipped));
  CHECK(strcmp(tw_buffer_data(prefix), path("damaged/model.ckpt-2")) == 0 && strstr(tw_buffer_data(skipped), "torn"));
  tw_buffer_release(prefix);
  tw_buffer_release(skipped);
  CHECK(truncate(path("damaged/checkpoint"), 30) == 0); /* truncates the state file as well */
  OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 2);
  CHECK(truncate(path("damaged/model.ckpt-1.index"), 30) == 0 && truncate(path("damaged/model.ckpt-2.index"), 30) == 0);
  FAILS(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL), TW_DATA_LOSS, "no whole checkpoint");
  FAILS(tw_checkpoint_latest(path("damaged"), &prefix, NULL), TW_DATA_LOSS, "no whole checkpoint");
  FAILS(tw_checkpoint_latest(path("not there"), &prefix, NULL), TW_NOT_FOUND, "not there");
  end(&t);
}

static void TheBestStayAndCanBeRestored(void) {
  tw_checkpointer_options options = every(1, TW_CHECKPOINTER_SMALLER_IS_BETTER);
  options.keep_last = 1;
  options.keep_best = 1;
  training t = begin("container=best", "best", &options);
  const double losses[] = {5, 2, 4, 3};
  int64_t step = 0;
  FAILS(tw_checkpointer_restore(t.c, TW_CHECKPOINT_BEST, &step, NULL), TW_NOT_FOUND, "");
  for (int i = 0; i < 4; ++i) {
    assign(&t.p, (float)i);
    OK(tw_checkpointer_step(t.c, i + 1, &losses[i], NULL));
  }
  CHECK(exists("best/model.ckpt-2.index") && exists("best/model.ckpt-4.index"));
  CHECK(!exists("best/model.ckpt-1.index") && !exists("best/model.ckpt-3.index"));
  OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_BEST, &step, NULL));
  CHECK(step == 2 && value_of(&t.p) == 1);
  FAILS(tw_checkpointer_restore(t.c, 2, &step, NULL), TW_INVALID_ARGUMENT, "which is 2");
  end(&t);
}

static void ACheckpointOfAnotherModelIsNoFallback(void) {
  const tw_checkpointer_options options = every(1, 0);
  training t = begin("container=another", "another", &options);
  tw_tensor* one = scalar(1);
  const char* name = "z";
  int64_t step = 0;
  OK(tw_checkpoint_write(path("another/model.ckpt-9"), &name, &one, 1));
  FAILS(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL), TW_FAILED_PRECONDITION, "no tensor 'a'");
  tw_tensor_release(one);
  end(&t);
}

/* The folder disappears while the background thread writes: the next call reports the failure,
 * and training continues. */
static void AFailureInTheBackgroundReachesTheNextCall(void) {
  const tw_checkpointer_options options = every(1, TW_CHECKPOINTER_BACKGROUND);
  training t = begin("container=background", "gone", &options);
  CHECK(rmdir(path("gone")) == 0);
  OK(tw_checkpointer_save(t.c, 1, NULL));
  FAILS(tw_checkpointer_wait(t.c), TW_NOT_FOUND, "gone");
  OK(tw_checkpointer_wait(t.c));
  OK(tw_checkpointer_save(t.c, 2, NULL));
  tw_checkpointer_stats stats = {.size = sizeof stats};
  for (stats.failed = 0; stats.failed < 2;) OK(tw_checkpointer_report(t.c, &stats));
  CHECK(mkdir(path("gone"), 0777) == 0);
  FAILS(tw_checkpointer_save(t.c, 3, NULL), TW_NOT_FOUND, "model.ckpt-2"); /* reports the old failure, and still saves */
  OK(tw_checkpointer_wait(t.c));
  CHECK(exists("gone/model.ckpt-3.index"));
  OK(tw_checkpointer_report(t.c, &stats));
  CHECK(stats.failed == 2 && stats.saves == 1 && stats.step == 3);
  end(&t);
}

/* No descriptor is left. The newest checkpoint is not damaged, so neither an older one nor a new
 * start may replace it. */
static void AMachineThatLacksSomethingIsNoDamage(void) {
  const tw_checkpointer_options options = every(1, 0);
  training t = begin("container=lack", "lack", &options);
  CHECK(train(&t, 2) == 2);
  int64_t step = 0;
  struct rlimit before, none;
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  for (int left = 0; left < 2; ++left) {
    const int next = dup(0);
    none = before;
    none.rlim_cur = (rlim_t)(next + left);
    close(next);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    tw_status* failed = tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL);
    tw_buffer* prefix = NULL;
    tw_status* also = tw_checkpoint_latest(path("lack"), &prefix, NULL);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    FAILS(failed, TW_RESOURCE_EXHAUSTED, "errno 24");
    FAILS(also, TW_RESOURCE_EXHAUSTED, "errno 24");
  }
  OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 2);
  end(&t);
}

static void TwoNamesInAFolderKeepAndFindTheirOwn(void) {
  tw_checkpointer_options options = every(1, 0);
  options.keep_last = 1;
  training t = begin("container=names", "names", &options);
  tw_checkpointer* other = NULL;
  options.name = "other";
  OK(tw_checkpointer_create(t.saver, t.p.session, path("names"), &options, &other));
  for (int step = 1; step <= 3; ++step) {
    const double metric = step;
    assign(&t.p, (float)step);
    OK(tw_checkpointer_save(t.c, step, &metric));
    assign(&t.p, (float)(10 * step));
    OK(tw_checkpointer_save(other, 10 * step, NULL));
  }
  CHECK(exists("names/model.ckpt-3.index") && exists("names/other-30.index"));
  CHECK(!exists("names/model.ckpt-2.index") && !exists("names/other-20.index"));
  int64_t step = 0;
  OK(tw_checkpointer_restore(t.c, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 3 && value_of(&t.p) == 3);
  OK(tw_checkpointer_restore(other, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 30 && value_of(&t.p) == 30);
  FAILS(tw_checkpointer_restore(other, TW_CHECKPOINT_BEST, &step, NULL), TW_NOT_FOUND, "none of 'other' was saved with a metric");
  tw_buffer* prefix = NULL;
  OK(tw_checkpoint_latest(path("names"), &prefix, NULL));
  CHECK(strcmp(tw_buffer_data(prefix), path("names/other-30")) == 0);
  tw_buffer_release(prefix);
  tw_checkpointer_destroy(other);
  end(&t);
}

static void WrongUseOfACheckpointerIsRefused(void) {
  tw_checkpointer_options options = every(1, 0);
  training t = begin("container=use", "use", &options);
  tw_checkpointer* c = NULL;
  FAILS(tw_checkpointer_save(t.c, -1, NULL), TW_INVALID_ARGUMENT, "step is -1");
  options.name = "a/b";
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "'a/b' is no file name");
  options = every(-1, 0);
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "every_steps -1");
  options = every(1, 64);
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "flags is 64");
  options = every(1, 0);
  options.shards = 1001;
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "shards is 1001");
  options = every(1, 0);
  options.reserved = 1;
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "reserved is 1");
  options = every(1, 0);
  options.size = 16;
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use"), &options, &c), TW_INVALID_ARGUMENT, "size 16");
  FAILS(tw_checkpointer_create(t.saver, t.p.session, path("use/no/such"), NULL, &c), TW_NOT_FOUND, "use/no/such");
  tw_checkpointer_stats stats = {.size = 8};
  FAILS(tw_checkpointer_report(t.c, &stats), TW_INVALID_ARGUMENT, "tw_checkpointer_stats");
  OK(tw_checkpointer_create(t.saver, t.p.session, path("use"), NULL, &c));
  tw_checkpointer_destroy(c);
  end(&t);
}

int main(void) {
  const test tests[] = {TEST(RulesSayWhatVariablesAreCalledInFiles),
                        TEST(WrongRulesAreRefused),
                        TEST(ARuleThatIsForNoVariableIsRefused),
                        TEST(ASaverWritesSeveralDataFiles),
                        TEST(ValuesAreASnapshot),
                        TEST(APartialRestoreTakesWhatFitsAndSaysWhatDoesNot),
                        TEST(TrainingGoesOnWhereItWasSaved),
                        TEST(DamagedCheckpointsArePassedOverAndNamed),
                        TEST(TheBestStayAndCanBeRestored),
                        TEST(ACheckpointOfAnotherModelIsNoFallback),
                        TEST(AFailureInTheBackgroundReachesTheNextCall),
                        TEST(AMachineThatLacksSomethingIsNoDamage),
                        TEST(TwoNamesInAFolderKeepAndFindTheirOwn),
                        TEST(WrongUseOfACheckpointerIsRefused)};
  return run_in_folder(tests, sizeof(tests) / sizeof(tests[0]));
}
