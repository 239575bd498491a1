/* A plugin whose init does something forbidden: ACT is one of the functions below. Otherwise it
 * equals healthy.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "mutants/toy.h"

static UNUSED void exits(void) { exit(0); }

static UNUSED void aborts(void) { abort(); }

static UNUSED int deeper(volatile int n) {
  volatile char room[4096];
  room[0] = (char)n;
  return n < 0 ? 0 : deeper(n + 1) + room[0];
}
static UNUSED void overflows(void) { (void)deeper(0); }

static UNUSED void loops(void) {
  for (volatile int on = 1; on;) {
  }
}

/* Writes half a million lines to standard output and standard error. */
static UNUSED void talks(void) {
  for (int i = 0; i < 500000; ++i) {
    printf("{ line %d\n", i);
    if (i % 100 == 0) fprintf(stderr, "\"line %d\n", i);
  }
  fflush(stdout);
}

/* Forks one child that sleeps, out of reach of signals to the group, and one that returns as if
 * it were the first process. */
static UNUSED void forks(void) {
  if (fork() == 0) {
    setsid();
    sleep(600);
    _exit(0);
  }
  (void)!fork();
}

static UNUSED void closes(void) {
  for (int fd = 0; fd < 3; ++fd) close(fd);
}

static UNUSED void closes_all(void) {
  for (int fd = 0; fd < 1024; ++fd) close(fd);
}

static UNUSED void removes(void) {
  Dl_info info;
  if (dladdr((void*)(uintptr_t)&removes, &info)) unlink(info.dli_fname);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  ACT();
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
