/* The machine's worker: probes and prototypes with which the other workers are compared. usage:
 * machine_worker */
#include "machine_worker.h"

#include <stddef.h>

int main(void) {
  static const worker_command commands[] = {
      {"fma", answer_fma},           {"triad", answer_triad},       {"stream", answer_stream}, {"mutex", answer_mutex},
      {"loop", answer_loop},         {"closures", answer_closures}, {"spawn", answer_spawn},   {"raw_write", answer_raw_write},
      {"raw_read", answer_raw_read}, {"dlopen", answer_dlopen},     {"tcp", answer_tcp},       {NULL, NULL},
  };
  worker_serve(commands);
  return 0;
}
