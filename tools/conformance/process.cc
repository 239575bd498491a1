#include "tools/conformance/process.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "framework/base/strings.h"

namespace thalweg::conformance {
namespace {

int64_t Entries(const char* folder) {
  int64_t n = 0;
  DIR* d = opendir(folder);
  if (!d) return 0;
  while (const dirent* e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

int64_t Words(const std::string& file) {
  std::ifstream in(file);
  int64_t n = 0;
  for (std::string word; in >> word;) ++n;
  return n;
}

int64_t Lines(const char* file) {
  std::ifstream in(file);
  int64_t n = 0;
  for (std::string line; std::getline(in, line);) ++n;
  return n;
}

}  // namespace

ProcessState ReadProcess() {
  ProcessState s;
  s.threads = Entries("/proc/self/task");
  s.files = Entries("/proc/self/fd");
  s.children = Words(StrCat("/proc/self/task/", getpid(), "/children"));
  s.mappings = Lines("/proc/self/maps");
  s.heap = ReadHeap();
  return s;
}

int64_t ReadHeap() {
  const struct mallinfo2 m = mallinfo2();
  return int64_t(m.uordblks + m.hblkhd);
}

int64_t SettledThreads(int64_t expected) {
  int64_t n = Entries("/proc/self/task");
  for (int tries = 0; n > expected && tries < 50; ++tries) {
    usleep(10000);
    n = Entries("/proc/self/task");
  }
  return n;
}

std::string Added(const ProcessState& before, const ProcessState& after) {
  std::string text;
  auto add = [&](int64_t n, const char* what) {
    if (n > 0) text += StrCat(text.empty() ? "" : " and ", n, " ", what, n == 1 ? "" : "s");
  };
  add(after.threads - before.threads, "thread");
  add(after.files - before.files, "open file");
  if (after.children > before.children) text += StrCat(text.empty() ? "" : " and ", after.children - before.children, " child processes");
  return text.empty() ? text : text + " more than before";
}

}  // namespace thalweg::conformance
