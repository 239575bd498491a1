#include "arrivals.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace thalweg::grpc_transport {
namespace {

// Returns 0 if fd is no socket.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

// Returns the host that a connection counts for: an address, or for IPv6 the network of one
// customer.
std::string CountedAs(const SocketAddress& from) {
  const std::string host = HostOf(from);
  if (host.find(':') == host.npos) return host;
  SocketAddress network = from;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&network.bytes);
  std::fill(v6->sin6_addr.s6_addr + 8, v6->sin6_addr.s6_addr + 16, uint8_t{0});
  return HostOf(network) + "/64";
}

}  // namespace

// Leaves a quarter of the descriptors to files and to other work of the process.
Arrivals::Limits Arrivals::LimitsFor(uint64_t descriptors) {
  Limits l;
  l.all = size_t(std::min<uint64_t>(descriptors - descriptors / 4, 16384));
  l.of_one = l.all - l.all / 4;
  l.waiting = std::max<size_t>(std::min<size_t>(l.all / 2, 2048), 1);
  l.waiting_of_one = std::max<size_t>(std::min<size_t>(l.waiting / 2, 512), 1);
  return l;
}

Arrivals::Iterator Arrivals::Forget(Iterator it) {
  StopWaiting(&it->second);
  const auto host = hosts_.find(it->second.host);
  if (--host->second.all == 0) hosts_.erase(host);
  return all_.erase(it);
}

void Arrivals::StopWaiting(Arrival* a) {
  if (!a->waits) return;
  a->waits = false;
  --waiting_;
  hosts_[a->host].waiting.erase(a->number);
}

// The descriptor number may belong to another file by now, so only a duplicate that has the same
// cookie is shut down. Without a descriptor for the duplicate, the connection ends later.
void Arrivals::Cut(const Arrival& a) const {
  const int same = fcntl(a.fd, F_DUPFD_CLOEXEC, 0);
  if (same < 0) return;
  if (CookieOf(same) == a.cookie) shutdown(same, SHUT_RDWR);
  close(same);
}

void Arrivals::ForgetOver() {
  for (auto it = all_.begin(); it != all_.end();) it = CookieOf(it->second.fd) == it->second.cookie ? std::next(it) : Forget(it);
}

std::string Arrivals::Add(int fd, const SocketAddress& from, Time now) {
  const std::string host = CountedAs(from);
  const auto full = [&]() -> std::string {
    const auto it = hosts_.find(host);
    const size_t own = it == hosts_.end() ? 0 : it->second.all, own_waiting = it == hosts_.end() ? 0 : it->second.waiting.size();
    if (own_waiting >= limits_.waiting_of_one) return "of its address " + std::to_string(own_waiting) + " have not said who they are";
    if (own >= limits_.of_one) return "its address has " + std::to_string(own) + " connections";
    if (all_.size() >= limits_.all) return "there are " + std::to_string(all_.size()) + " connections";
    return "";
  };
  std::string why = full();
  if ((!why.empty() || waiting_ >= limits_.waiting) && now - looked_ >= std::chrono::milliseconds(20)) {
    looked_ = now;
    ForgetOver();
    why = full();
  }
  if (!why.empty()) return why;
  if (waiting_ >= limits_.waiting) {
    const auto most = std::max_element(hosts_.begin(), hosts_.end(),
                                       [](const auto& a, const auto& b) { return a.second.waiting.size() < b.second.waiting.size(); });
    const auto own = hosts_.find(host);
    if (most->second.waiting.size() <= (own == hosts_.end() ? 0 : own->second.waiting.size()))
      return std::to_string(waiting_) + " have not said who they are";
    const auto oldest = all_.find(most->second.waiting.begin()->second);
    Cut(oldest->second);
    Forget(oldest);
  }
  const std::string text = TextOf(from);
  if (const auto before = all_.find(text); before != all_.end()) Forget(before);  // the same port again: the earlier connection has ended
  const Arrival a = {fd, CookieOf(fd), host, now, ++numbers_, true, 0};
  Host& h = hosts_[host];
  const auto it = all_.emplace(text, a).first;
  try {
    h.waiting.emplace(a.number, text);
  } catch (...) {
    all_.erase(it);
    throw;
  }
  ++h.all;
  ++waiting_;
  return "";
}

bool Arrivals::Stream(const std::string& from) {
  const auto it = all_.find(from);
  if (it == all_.end() || ++it->second.streams <= kStreams) return true;
  Cut(it->second);
  return false;
}

void Arrivals::LetIn(const std::string& from) {
  if (const auto it = all_.find(from); it != all_.end()) StopWaiting(&it->second);
}

size_t Arrivals::EndOlder(Time then) {
  ForgetOver();
  size_t ended = 0;
  for (auto it = all_.begin(); it != all_.end();) {
    if (!it->second.waits || it->second.came > then) {
      ++it;
      continue;
    }
    ++ended;
    Cut(it->second);
    it = Forget(it);
  }
  return ended;
}

}  // namespace thalweg::grpc_transport
