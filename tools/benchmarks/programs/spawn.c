/* Times programs from posix_spawn to the end of waitpid. */
#define _POSIX_C_SOURCE 200809L
#include <spawn.h>

#include <sys/wait.h>

#include "machine_worker.h"

extern char** environ;

static void spawn(void* user) {
  char* const arguments[] = {user, NULL};
  pid_t pid;
  int status;
  if (posix_spawn(&pid, user, NULL, NULL, arguments, environ) != 0) worker_fail("cannot start '%s'", (char*)user);
  if (waitpid(pid, &status, 0) != pid || status != 0) worker_fail("'%s' ended with status %d", (char*)user, status);
}

/* argument: the program's path. Five timed starts, after three to warm up. */
void answer_spawn(const char* argument) { worker_reply_time(spawn, (void*)argument, 5, 1, 1); }
