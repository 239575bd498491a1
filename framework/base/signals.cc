#include "framework/base/signals.h"

#include <pthread.h>

#include <csignal>
#include <initializer_list>

namespace thalweg {

void LeaveSignalsToTheProgram() {
  sigset_t left;
  sigfillset(&left);
  for (const int ours : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&left, ours);
  pthread_sigmask(SIG_BLOCK, &left, nullptr);
}

}  // namespace thalweg
