/* Starts a thread that shutdown does not end. */
#include <pthread.h>
#include <unistd.h>

#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  pthread_t thread;
  (void)h, (void)out_instance;
  TW_TRY(toy_register(r, NULL, NULL, NULL, NULL));
  /* A function of the C library, so that the thread outlives the plugin's code. */
  pthread_create(&thread, NULL, (void* (*)(void*))(void*)sleep, (void*)(uintptr_t)1000);
  pthread_detach(thread);
  return NULL;
}
TOY_PLUGIN(init, NULL)
