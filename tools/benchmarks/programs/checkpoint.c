/* Writes and reads a checkpoint of 1 GB, sixteen tensors of 64 MB. argument: the folder for it.
 * Each reply is one time. */
#include <stdio.h>
#include <string.h>

#include "checkpoint_data.h"
#include "thalweg_worker.h"

static void prefix_in(const char* folder, char* out, size_t room) { snprintf(out, room, "%s/thalweg", folder); }

void answer_checkpoint_write(const char* argument) {
  static tw_tensor* tensors[kCheckpointParts];
  static char names[kCheckpointParts][16];
  const char* list[kCheckpointParts];
  const int64_t dims[] = {kCheckpointPartBytes / 4};
  for (int i = 0; i < kCheckpointParts; ++i) {
    if (!tensors[i]) {
      check(tw_tensor_create(TW_FLOAT, dims, 1, &tensors[i]));
      checkpoint_fill(tw_tensor_mutable_data(tensors[i]), i);
    }
    snprintf(names[i], sizeof names[i], "part%d", i);
    list[i] = names[i];
  }
  char prefix[4096];
  prefix_in(argument, prefix, sizeof prefix);
  const double begin = worker_now_ns();
  check(tw_checkpoint_write(prefix, list, tensors, kCheckpointParts));
  const double taken = worker_now_ns() - begin;
  worker_reply("%.9g", taken);
}

void answer_checkpoint_read(const char* argument) {
  char prefix[4096];
  prefix_in(argument, prefix, sizeof prefix);
  tw_tensor* tensors[kCheckpointParts];
  const double begin = worker_now_ns();
  tw_checkpoint* checkpoint;
  check(tw_checkpoint_open(prefix, &checkpoint));
  for (int i = 0; i < kCheckpointParts; ++i) {
    char name[16];
    snprintf(name, sizeof name, "part%d", i);
    check(tw_checkpoint_read(checkpoint, name, &tensors[i]));
  }
  const double taken = worker_now_ns() - begin;
  for (int i = 0; i < kCheckpointParts; ++i) {
    if (!checkpoint_right(tw_tensor_data(tensors[i]), i)) worker_fail("part %d is not what was written", i);
    tw_tensor_release(tensors[i]);
  }
  tw_checkpoint_close(checkpoint);
  worker_reply("%.9g", taken);
}
