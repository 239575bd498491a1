// Resolves the name of a host, with a deadline. getaddrinfo alone waits for silent name servers for
// as long as resolv.conf allows. glibc does the waiting (getaddrinfo_a), and its code stays when a
// plugin is unloaded. Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_LOOKUP_H_
#define THALWEG_PLUGINS_COMMON_LOOKUP_H_

#include <netdb.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace thalweg::common {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

namespace lookup {

// The data that glibc reads and writes during a lookup; they must exist until it ends, even if the
// caller has given up.
struct Request {
  Request(std::string host_, std::string port_, int flags) : host(std::move(host_)), port(std::move(port_)) {
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    block.ar_name = host.empty() ? nullptr : host.c_str();
    block.ar_service = port.c_str();
    block.ar_request = &hints;
  }
  ~Request() {
    if (block.ar_result) freeaddrinfo(block.ar_result);
  }
  Request(const Request&) = delete;
  const std::string host, port;
  addrinfo hints = {};
  gaicb block = {};
};

// Keeps a lookup that is still running, and frees those that have ended since: callers that did not
// wait leave at most this behind.
inline void Abandon(std::unique_ptr<Request> request) {
  static auto* mu = new std::mutex;
  static auto* all = new std::vector<std::unique_ptr<Request>>;
  std::lock_guard lock(*mu);
  all->erase(std::remove_if(all->begin(), all->end(), [](const auto& r) { return gai_error(&r->block) != EAI_INPROGRESS; }), all->end());
  if (request) all->push_back(std::move(request));
}

}  // namespace lookup

// Returns NULL on failure; *out_error is then the code for gai_strerror, or EAI_AGAIN if the time
// is over.
// host: empty means any address, for a listener. patience: the longest wait; <= 0: only hosts that
// need no lookup.
inline AddressList Lookup(const std::string& host, const std::string& port, int flags, std::chrono::nanoseconds patience, int* out_error) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICHOST;
  *out_error = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (*out_error != EAI_NONAME) return {*out_error ? nullptr : found, freeaddrinfo};
  *out_error = EAI_AGAIN;
  if (patience.count() <= 0) return {nullptr, freeaddrinfo};
  auto request = std::make_unique<lookup::Request>(host, port, flags);
  gaicb* list[] = {&request->block};
  // The lookup thread inherits a mask that blocks all signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  *out_error = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (*out_error) return {nullptr, freeaddrinfo};
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) break;
    const timespec most = {time_t(left / 1'000'000'000), long(left % 1'000'000'000)};
    const int waited = gai_suspend(list, 1, &most);
    if (waited != EAI_INTR) break;
  }
  *out_error = gai_error(list[0]);
  if (*out_error == EAI_INPROGRESS && gai_cancel(list[0]) != EAI_CANCELED) {
    lookup::Abandon(std::move(request));
    *out_error = EAI_AGAIN;
    return {nullptr, freeaddrinfo};
  }
  if (*out_error == EAI_INPROGRESS) *out_error = EAI_AGAIN;
  lookup::Abandon(nullptr);
  addrinfo* result = *out_error ? nullptr : request->block.ar_result;
  if (result) request->block.ar_result = nullptr;
  return {result, freeaddrinfo};
}

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_LOOKUP_H_
