// Mutexes. A step locks one and holds the lock as a value; destroying the value unlocks the mutex.
#include "ops/register.h"

namespace thalweg::ops {

void register_mutex(tw::Plugin& p) {
  p.op(R"(
      MutexV2() -> (resource: resource[]); container: string = ""; shared_name: string = ""; stateful; once;
      resource resource org.thalweg.mutex; no_gradient "it has no inputs"; doc "a mutex, which one holder has at a time")");
  p.op(R"(
      MutexLock(mutex: resource) -> (mutex_lock: variant[]); stateful; resource mutex org.thalweg.mutex;
      no_gradient "a lock has no derivative"; doc "waits until nobody holds the mutex, and holds it for as long as the value lives")");
  p.op(R"(
      ConsumeMutexLock(mutex_lock: variant) -> (); stateful; no_gradient "it has no outputs";
      doc "reads a lock, so that it lives until this runs")");
}

}  // namespace thalweg::ops
