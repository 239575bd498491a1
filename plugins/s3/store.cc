#include "store.h"

#include <memory>

namespace thalweg::s3 {
namespace {

void LogWarning(const tw_host* host, const std::string& text) {
  const std::string line = "s3: " + text;
  host->run->log(host, 2, line.data(), line.size());
}

}  // namespace

Process::Process(const Settings& settings, const tw_host* host)
    : place(FindPlace(settings)),
      http(place.ca, settings.silence, 2 * settings.threads),
      credentials(settings, &http, [host](const std::string& text) { LogWarning(host, text); }),
      client(settings, place, &http, &credentials),
      objects(&client),
      parts(settings.threads),
      workers(settings.threads) {}

// Only windows that nobody waits for are still being read.
Process::~Process() { http.Stop(); }

bool Process::EnterName(const std::string& path) {
  std::lock_guard lock(mu_);
  return writing_.insert(path).second;
}

void Process::LeaveName(const std::string& path) noexcept {
  std::lock_guard lock(mu_);
  writing_.erase(path);
}

Store::~Store() {
  const Process* p = process_;
  if (p && p->origin.here()) delete p;
}

void Store::Open(const tw_host* host) {
  host_ = host;
  settings_ = ReadSettings(host);
  memory_ = settings_.memory;
}

Process& Store::here() {
  Process* p = process_;
  if (p && p->origin.here()) return *p;
  auto fresh = std::make_unique<Process>(settings_, host_);
  // Another thread may be faster; the parent's part is left alone.
  if (process_.compare_exchange_strong(p, fresh.get())) return *fresh.release();
  return *p;
}

void Store::Warn(const std::string& text) const { LogWarning(host_, text); }

bool Store::TakeMemory(uint64_t bytes) {
  uint64_t left = memory_;
  while (left >= bytes) {
    if (memory_.compare_exchange_weak(left, left - bytes)) return true;
  }
  return false;
}

}  // namespace thalweg::s3
