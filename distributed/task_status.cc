#include "distributed/task_status.h"

#include <unistd.h>

#include <cstdio>

namespace thalweg::distributed {

std::string TaskStatus::Put() const {
  WireWriter w;
  hello.Put(&w);
  WireWriter all;
  all.Text(w.bytes());
  all.Number(age);
  all.Number(memory);
  all.Number(uint32_t(devices.size()));
  for (const DeviceStatus& d : devices) {
    all.Text(d.name);
    all.Number(d.used);
    all.Number(d.limit);
  }
  all.Number(uint32_t(received.size()));
  for (const PeerStatus& p : received) {
    all.Text(p.title);
    all.Number(p.values);
    all.Number(p.bytes);
  }
  all.Number(uint32_t(runs.size()));
  for (const RunStatus& r : runs) {
    for (uint64_t v : {r.session, r.step, uint64_t(r.age), uint64_t(r.idle)}) all.Number(v);
    all.Number(r.n_waits);
    all.Number(uint32_t(r.waits.size()));
    for (const auto& [key, from] : r.waits) {
      all.Text(key);
      all.Text(from);
    }
  }
  return all.Take();
}

StatusOr<TaskStatus> TaskStatus::Get(std::string_view bytes) {
  WireReader r(bytes);
  TaskStatus m;
  ASSIGN_OR_RETURN(m.hello, Hello::Get(r.Text()));
  m.age = r.Number<int64_t>();
  m.memory = r.Number<uint64_t>();
  const uint32_t n_devices = r.Count(sizeof(uint32_t) + 2 * sizeof(uint64_t));
  for (uint32_t i = 0; i < n_devices && r.ok(); ++i) {
    DeviceStatus& d = m.devices.emplace_back();
    d.name = r.Text();
    d.used = r.Number<uint64_t>();
    d.limit = r.Number<uint64_t>();
  }
  const uint32_t n_peers = r.Count(sizeof(uint32_t) + 2 * sizeof(uint64_t));
  for (uint32_t i = 0; i < n_peers && r.ok(); ++i) {
    PeerStatus& p = m.received.emplace_back();
    p.title = r.Text();
    p.values = r.Number<uint64_t>();
    p.bytes = r.Number<uint64_t>();
  }
  const uint32_t n_runs = r.Count(4 * sizeof(uint64_t) + 2 * sizeof(uint32_t));
  for (uint32_t i = 0; i < n_runs && r.ok(); ++i) {
    RunStatus& run = m.runs.emplace_back();
    run.session = r.Number<uint64_t>();
    run.step = r.Number<uint64_t>();
    run.age = r.Number<int64_t>();
    run.idle = r.Number<int64_t>();
    run.n_waits = r.Number<uint32_t>();
    const uint32_t n = r.Count(2 * sizeof(uint32_t));
    for (uint32_t k = 0; k < n && r.ok(); ++k) {
      const std::string_view key = r.Text();
      run.waits.emplace_back(key, r.Text());
    }
  }
  RETURN_IF_ERROR(r.End("the status of a task"));
  return m;
}

void Traffic::Received(const std::string& title, uint64_t bytes) {
  std::lock_guard lock(mu_);
  PeerStatus& p = all_[title];
  ++p.values;
  p.bytes += bytes;
}

std::vector<PeerStatus> Traffic::All() const {
  std::lock_guard lock(mu_);
  std::vector<PeerStatus> all;
  for (const auto& [title, p] : all_) {
    all.push_back(p);
    all.back().title = title;
  }
  return all;
}

uint64_t ProcessMemory() {
  std::FILE* f = std::fopen("/proc/self/statm", "re");
  if (!f) return 0;
  unsigned long long total = 0, resident = 0;
  const int n = std::fscanf(f, "%llu %llu", &total, &resident);
  std::fclose(f);
  return n == 2 ? resident * uint64_t(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace thalweg::distributed
