#include "tools/conformance/sleep_meter.h"

#include <dirent.h>
#include <time.h>

#include <fstream>
#include <string>

namespace thalweg::conformance {
namespace {

int64_t Clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

// Returns the total time for which a thread has waited for a processor, ns; -1: not known.
int64_t Waited(const std::string& task) {
  std::ifstream in(task + "/schedstat");
  int64_t ran = 0, waited = -1;
  in >> ran >> waited;
  return in ? waited : -1;
}

}  // namespace

std::optional<SleepMeter::Point> SleepMeter::Read() {
  Point p{};
  DIR* d = opendir("/proc/self/task");
  if (!d) return {};
  while (const dirent* e = readdir(d)) {
    if (e->d_name[0] == '.') continue;
    const int64_t waited = Waited(std::string("/proc/self/task/") + e->d_name);
    if (waited > 0) p.waited += waited;  // a thread that has just ended has no count
  }
  closedir(d);
  p.own_waited = Waited("/proc/thread-self");
  if (p.own_waited < 0) return {};
  p.ran = Clock(CLOCK_PROCESS_CPUTIME_ID);
  p.own_ran = Clock(CLOCK_THREAD_CPUTIME_ID);
  p.wall = Clock(CLOCK_MONOTONIC);
  return p;
}

std::optional<Slept> SleepMeter::Stop() const {
  if (!begin_) return {};
  // Read takes the clocks last and Stop takes them first, so that the measured time does not include
  // reading the files.
  Point end{};
  end.wall = Clock(CLOCK_MONOTONIC);
  end.own_ran = Clock(CLOCK_THREAD_CPUTIME_ID);
  end.ran = Clock(CLOCK_PROCESS_CPUTIME_ID);
  const std::optional<Point> after = Read();
  if (!after) return {};
  const int64_t own = end.own_ran - begin_->own_ran, own_waited = after->own_waited - begin_->own_waited;
  Slept s;
  s.asleep = end.wall - begin_->wall - own - own_waited;
  s.others = end.ran - begin_->ran - own + after->waited - begin_->waited - own_waited;
  return s;
}

}  // namespace thalweg::conformance
