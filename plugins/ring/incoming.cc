#include "incoming.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "group.h"
#include "peer.h"

namespace thalweg::ring {
namespace {

constexpr int kReads = 16;  // reads in a round, so that one process does not keep others waiting

bool IsOurs(const Token& said, const Token& own) {
  return ((said.words[0] ^ own.words[0]) | (said.words[1] ^ own.words[1])) == 0;  // takes equally long for all
}

}  // namespace

void KeepAlive(int fd, const Settings& settings) {
  const int seconds = std::max<int>(1, int(settings.lost_after / 1000));
  const int on = 1, idle = std::max(1, seconds / 2), pause = std::max(1, (seconds - idle) / 4),
            count = std::max(1, (seconds - idle) / pause);
  const unsigned most = settings.lost_after;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof pause);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string TroubleText(int error, const Settings& settings) {
  if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
    return "its host has given no sign of life for " + std::to_string(settings.lost_after) + " ms";
  }
  if (error == 0 || error == ECONNRESET || error == EPIPE) return "its connection has ended";
  return std::string("its connection has failed: ") + std::strerror(error);
}

Incoming::Incoming(Hub* hub, int fd) : hub_(hub), fd_(fd), since_(hub->now()) {
  KeepAlive(fd_, hub_->settings());
  if (!hub_->Watch(fd_, EPOLLIN, this)) throw tw::Error{TW_UNAVAILABLE, std::string("cannot watch a connection: ") + std::strerror(errno)};
}

Incoming::~Incoming() { Close(); }

void Incoming::Close() noexcept {
  if (fd_ < 0) return;
  hub_->Unwatch(fd_);
  close(fd_);
  fd_ = -1;
  hub_->ReapSoon();
}

void Incoming::GiveUp(const std::string& why) noexcept {
  Close();
  if (peer_) hub_->Lose(peer_, why);
}

void Incoming::End(const std::string& why) {
  Close();
  if (peer_) hub_->Lose(peer_, why);
}

void Incoming::Ready(uint32_t) {
  for (int i = 0; i < kReads && fd_ >= 0; ++i) {
    if (!Step()) return;
  }
}

// Reads at most n bytes and adds their number to *received. Returns false if none are here, or if
// the connection has ended.
bool Incoming::Receive(void* to, size_t n, size_t* received) {
  const ssize_t got = recv(fd_, to, n, 0);
  if (got > 0) {
    *received += size_t(got);
    if (peer_) peer_->Heard();
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  End(TroubleText(got < 0 ? errno : 0, hub_->settings()));
  return false;
}

// Returns false if there is nothing more to read now.
bool Incoming::Step() {
  if (!peer_) return ReadHello();
  if (head_ < sizeof frame_) {
    if (!Receive(reinterpret_cast<char*>(&frame_) + head_, sizeof frame_ - head_, &head_)) return false;
    if (head_ == sizeof frame_) Begin();
    return true;
  }
  if (frame_.kind == Kind::kData) return ReadData();
  size_t received = frame_.length - left_;
  if (!Receive(text_.data() + received, left_, &received)) return false;
  left_ = frame_.length - uint32_t(received);
  if (left_ > 0) return true;
  head_ = 0;
  if (Group* g = hub_->Find(frame_.door)) g->Receive(peer_, frame_, text_);
  return true;
}

bool Incoming::ReadHello() {
  if (!Receive(reinterpret_cast<char*>(&hello_) + head_, sizeof hello_ - head_, &head_)) return false;
  if (head_ < sizeof hello_) return true;
  head_ = 0;
  const Record& own = hub_->record();
  if (hello_.magic != kMagic || !IsOurs(hello_.token, own.token)) {
    Close();
    return false;
  }
  // A process that already has a connection gets no Welcome, because it would greet members over this one, which ends.
  if (hello_.from != 0 && !hub_->Adopt(this, hello_.from)) {
    Close();
    return false;
  }
  Welcome welcome;
  welcome.process = own.process;
  welcome.is_there = hub_->Find(hello_.door) ? 1 : 0;
  // The buffer of a new connection has room for these bytes.
  const bool sent = send(fd_, &welcome, sizeof welcome, MSG_NOSIGNAL) == ssize_t(sizeof welcome);
  if (sent && hello_.from != 0) return true;
  End(TroubleText(sent ? 0 : errno, hub_->settings()));
  return false;
}

// The head of a frame is here.
void Incoming::Begin() {
  const bool is_data = frame_.kind == Kind::kData;
  if (frame_.kind < Kind::kJoin || frame_.kind > Kind::kLeave || frame_.length > (is_data ? kMostData : kMostText) ||
      (is_data && frame_.length == 0)) {
    return End("it has sent bytes that are no frame of this engine");
  }
  left_ = frame_.length;
  text_.clear();
  Group* g = hub_->Find(frame_.door);
  if (is_data) {
    if (g) g->Expect(peer_, frame_);
    return;
  }
  text_.resize(left_);
  if (left_ > 0) return;
  head_ = 0;
  if (g) g->Receive(peer_, frame_, text_);
}

// Puts bytes where the operation wants them. Drops those of an operation that has ended.
bool Incoming::ReadData() {
  Group* g = hub_->Find(frame_.door);
  Operation::Place place = g ? g->PlaceFor(peer_, frame_) : Operation::Place{};
  const bool wanted = place.data != nullptr;
  if (!wanted) place = {hub_->dropped(), Hub::kDropped};
  size_t received = 0;
  if (!Receive(place.data, std::min<uint64_t>(place.size, left_), &received)) return false;
  left_ -= uint32_t(received);
  if (left_ == 0) head_ = 0;
  if (wanted) g->Got(frame_, received);
  return true;
}

}  // namespace thalweg::ring
