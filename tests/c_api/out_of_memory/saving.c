/* Checkpoints, savers and checkpointers. */
#include <stdio.h>
#include <string.h>

#include "programs.h"

static const tw_operation* by_adam(tw_scope* s, const tw_output* w, tw_gradient* g) { return tw_train_adam(s, w, g, 1, NULL); }

static const char* in_folder(const char* name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static tw_status* a_checkpoint(void) {
  const int64_t dims[] = {2, 3};
  const char* names[] = {"a", "b"};
  tw_tensor *t[2] = {NULL, NULL}, *read = NULL, *text = NULL;
  tw_checkpoint* checkpoint = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t[0]));
  TRY(tw_tensor_create_string("a text that is too long to be stored in place", 45, &t[1]));
  TRY(tw_checkpoint_write(in_folder("plain"), names, t, 2));
  TRY(tw_checkpoint_open(in_folder("plain"), &checkpoint));
  TRY(tw_checkpoint_read(checkpoint, "a", &read));
  TRY(tw_checkpoint_read(checkpoint, "b", &text));
  TRY(tw_checkpoint_verify(checkpoint, NULL));
done:
  tw_checkpoint_close(checkpoint);
  tw_tensor_release(t[0]);
  tw_tensor_release(t[1]);
  tw_tensor_release(read);
  tw_tensor_release(text);
  return status;
}

static tw_status* a_saver(void) {
  net n = {0};
  tw_saver* saver = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, by_adam, "container=oom_saver"));
  TRY(tw_saver_create(n.graph, NULL, 0, &saver));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_saver_save(saver, n.session, in_folder("saver")));
  TRY(tw_saver_restore(saver, n.session, in_folder("saver")));
done:
  tw_saver_destroy(saver);
  end_net(&n);
  return status;
}

static tw_status* a_partial_restore(void) {
  net n = {0};
  tw_saver* saver = NULL;
  tw_restore_report* report = NULL;
  const char *from[] = {"net/*", "net/w"}, *to[] = {"other/*", "other/weights"};
  const tw_saver_options options = {.size = sizeof options, .variables = from, .names = to, .n_names = 2, .shards = 2};
  tw_status* status = NULL;
  TRY(make_net(&n, by_adam, "container=oom_partial"));
  TRY(tw_saver_create_with(n.graph, NULL, 0, &options, &saver));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_saver_save(saver, n.session, in_folder("partial")));
  TRY(tw_saver_restore_partial(saver, n.session, in_folder("partial"), &report));
  EXPECT(tw_restore_report_outcome(report, 0) == TW_RESTORE_DONE);
done:
  tw_restore_report_destroy(report);
  tw_saver_destroy(saver);
  end_net(&n);
  return status;
}

/* Saves three times and keeps two, then restores the last. Earlier failures may have left any of
 * the checkpoints, but no damaged one. */
static tw_status* checkpointing(uint32_t flags, const char* where, const char* container) {
  net n = {0};
  tw_saver* saver = NULL;
  tw_checkpointer* c = NULL;
  tw_buffer* skipped = NULL;
  tw_checkpointer_options options;
  tw_status* status = NULL;
  int64_t step = -1;
  tw_checkpointer_options_init(&options);
  options.flags = flags;
  options.every_steps = 1;
  options.keep_last = 1;
  options.keep_best = 1;
  TRY(make_net(&n, NULL, container));
  TRY(tw_saver_create(n.graph, NULL, 0, &saver));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_checkpointer_create(saver, n.session, in_folder(where), &options, &c));
  for (int64_t i = 1; i <= 3; ++i) {
    const double metric = -(double)i;
    uint32_t saved = 0;
    TRY(tw_checkpointer_step(c, i, &metric, &saved));
  }
  TRY(tw_checkpointer_wait(c));
  TRY(tw_checkpointer_restore(c, TW_CHECKPOINT_BEST, &step, NULL));
  EXPECT(step >= 1 && step <= 3);
  TRY(tw_checkpointer_restore(c, TW_CHECKPOINT_LATEST, &step, &skipped));
  EXPECT(step == 3 && tw_buffer_bytes(skipped) == 0);
done:
  tw_buffer_release(skipped);
  tw_checkpointer_destroy(c);
  tw_saver_destroy(saver);
  end_net(&n);
  return status;
}
static tw_status* a_checkpointer(void) { return checkpointing(0, "front", "container=oom_front"); }
static tw_status* in_the_background(void) { return checkpointing(TW_CHECKPOINTER_BACKGROUND, "back", "container=oom_back"); }

const program saving_programs[] = {PROGRAM(a_checkpoint, 3),   PROGRAM(a_saver, 6),           PROGRAM(a_partial_restore, 6),
                                   PROGRAM(a_checkpointer, 6), PROGRAM(in_the_background, 6), {NULL, NULL, 0}};
