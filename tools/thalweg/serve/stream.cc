#include "stream.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace thalweg::cli::serve {
namespace {

constexpr uint64_t kLeastRate = 16 << 10;  // bytes a second
constexpr std::chrono::seconds kLinger{2};

Deadline Pace(Deadline begin, std::chrono::milliseconds slack, uint64_t bytes) {
  return begin + slack + std::chrono::milliseconds(bytes * 1000 / kLeastRate);
}

void Address(int socket, int (*get)(int, sockaddr*, socklen_t*), std::string* ip, int* port) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (get(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
  if (address.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    *port = ntohs(in->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
    *port = ntohs(in->sin6_port);
  }
  *ip = text;
}

}  // namespace

bool ConnectionStream::Ready(short events, Deadline deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one = {socket_, events, 0};
    const int n = poll(&one, 1, int(std::min<int64_t>(left, 1 << 30)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

ssize_t ConnectionStream::Fill(Deadline deadline) {
  while (Ready(POLLIN, deadline)) {
    const ssize_t n = recv(socket_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    at_ = 0;
    end_ = n > 0 ? size_t(n) : 0;
    return n;
  }
  return -1;
}

bool ConnectionStream::Await(std::chrono::milliseconds wait) { return at_ < end_ || Fill(Clock::now() + wait) > 0; }

void ConnectionStream::Begin() {
  began_ = Clock::now();
  header_ = {};
  chunks_.reset();
  answering_ = false;
  body_bytes_ = 0;
}

// Returns false if the bytes, which are the next ones, are no request.
bool ConnectionStream::Check(const char* bytes, size_t n) {
  for (; n > 0 && !header_.whole(); ++bytes, --n) {
    if (!header_.Take(*bytes)) return false;
  }
  body_bytes_ += n;
  return !chunks_ || chunks_->Take(bytes, n);
}

ssize_t ConnectionStream::read(char* to, size_t size) {
  answering_ = false;  // what was written before the body is read is no answer: 100 Continue
  if (at_ == end_) {
    const ssize_t n = Fill(Pace(began_, slack_, body_bytes_));
    if (n <= 0) return n;
  }
  const size_t n = std::min(size, end_ - at_);
  std::memcpy(to, buffer_ + at_, n);
  at_ += n;
  return Check(to, n) ? ssize_t(n) : -1;
}

ssize_t ConnectionStream::write(const char* from, size_t size) {
  if (!answering_) {
    answered_ = Clock::now();
    written_bytes_ = 0;
  }
  answering_ = true;
  for (;;) {
    const ssize_t n = send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      written_bytes_ += uint64_t(n);
      return n;
    }
    if (errno != EINTR && errno != EAGAIN) return -1;
    if (!Ready(POLLOUT, Pace(answered_, slack_, written_bytes_))) return -1;
  }
}

void ConnectionStream::Linger() {
  if (shutdown(socket_, SHUT_WR) != 0) return;
  const Deadline deadline = Clock::now() + std::min<std::chrono::milliseconds>(kLinger, slack_);
  while (Fill(deadline) > 0) {
  }
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const { Address(socket_, getpeername, &ip, &port); }
void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const { Address(socket_, getsockname, &ip, &port); }

}  // namespace thalweg::cli::serve
