#include "peer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "group.h"

namespace thalweg::ring {
namespace {

constexpr int64_t kConnecting = 5'000'000'000;  // nanoseconds for an attempt to connect
constexpr int64_t kRetry = 200'000'000;         // nanoseconds between attempts
constexpr int64_t kDraining = 1'000'000'000;    // nanoseconds without bytes after which a broken peer is lost
constexpr int kWrites = 16;                     // writes in a round, so that one process does not keep others waiting

}  // namespace

// ---- Connecting ----

void Peer::Reach(const Record& record) {
  record_ = record;
  if (state_ == State::kIdle && (trouble_.empty() || hub_->now() - since_ >= kRetry)) Connect();
}

void Peer::Take(std::unique_ptr<Incoming> incoming) {
  incoming_ = std::move(incoming);
  incoming_->set_peer(this);
}

void Peer::Connect() {
  trouble_.clear();
  since_ = hub_->now();
  fd_ = socket(record_.address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return FailToConnect(std::strerror(errno));
  KeepAlive(fd_, hub_->settings());
  if (connect(fd_, record_.address.get(), record_.address.size) != 0 && errno != EINPROGRESS) return FailToConnect(std::strerror(errno));
  if (!hub_->Watch(fd_, EPOLLIN | EPOLLOUT, this)) return FailToConnect(std::strerror(errno));
  state_ = State::kConnecting;
}

// The system has an answer to the attempt.
void Peer::Greet() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error) return FailToConnect(std::strerror(error));
  Hello hello;
  hello.token = record_.token;
  hello.from = hub_->record().process;
  // The buffer of a new connection has room for these bytes.
  if (send(fd_, &hello, sizeof hello, MSG_NOSIGNAL) != ssize_t(sizeof hello)) return FailToConnect(std::strerror(errno));
  state_ = State::kGreeting;
  welcomed_ = 0;
  hub_->Rewatch(fd_, EPOLLIN, this);
}

void Peer::ReadWelcome() {
  const ssize_t n = recv(fd_, reinterpret_cast<char*>(&welcome_) + welcomed_, sizeof welcome_ - welcomed_, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) return FailToConnect(std::strerror(errno));
  if (n == 0) return FailToConnect("it is another process than that of the store");
  welcomed_ += size_t(n);
  if (welcomed_ < sizeof welcome_) return;
  if (welcome_.magic != kMagic || welcome_.process != process_) return FailToConnect("it is another process than that of the store");
  state_ = State::kOpen;
  hub_->Wake(this);
  hub_->Opened(this);
}

void Peer::FailToConnect(const std::string& why) {
  CloseOutgoing();
  state_ = State::kIdle;
  since_ = hub_->now();
  texts_.clear();
  trouble_ = record_.address.text() + ": " + why;
  hub_->ReapSoon();
}

// ---- Ending ----

void Peer::CloseOutgoing() noexcept {
  if (fd_ >= 0) {
    hub_->Unwatch(fd_);
    close(fd_);
  }
  fd_ = -1;
  wants_room_ = false;
  sends_ = false;
  current_ = Current();
  sources_.clear();
}

void Peer::Close() noexcept {
  CloseOutgoing();
  texts_.clear();
  state_ = State::kIdle;
  if (incoming_) incoming_->Close();
}

void Peer::Break(const std::string& why) noexcept {
  if (state_ == State::kBroken || fd_ < 0) return;
  CloseOutgoing();
  texts_.clear();
  state_ = State::kBroken;
  since_ = hub_->now();
  try {
    trouble_ = why;
  } catch (const std::bad_alloc&) {
    trouble_.clear();  // the loss is told without a reason
  }
}

bool Peer::IsLost() const { return state_ == State::kBroken && (!has_incoming() || hub_->now() - since_ >= kDraining); }

void Peer::Tick() {
  if ((state_ == State::kConnecting || state_ == State::kGreeting) && hub_->now() - since_ >= kConnecting) {
    FailToConnect("no answer within " + std::to_string(kConnecting / 1'000'000'000) + " s");
  }
}

// ---- Events ----

void Peer::Ready(uint32_t events) {
  if (fd_ < 0) return;
  if (state_ == State::kConnecting) return Greet();
  if (state_ == State::kGreeting) return ReadWelcome();
  if (events & EPOLLOUT) {
    Want(false);
    hub_->Wake(this);
  }
  if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP))) return;
  // The process sends nothing on this connection, so this is its end.
  char byte;
  const ssize_t n = recv(fd_, &byte, 1, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  Break(n > 0 ? "it has sent bytes that are no frame of this engine" : TroubleText(n < 0 ? errno : 0, hub_->settings()));
}

void Peer::PutOnLine(Peer** first) noexcept {
  if (on_line_) return;
  on_line_ = true;
  next_ = *first;
  *first = this;
}

Peer* Peer::TakeOffLine() {
  on_line_ = false;
  return std::exchange(next_, nullptr);
}

void Peer::Want(bool room) {
  if (wants_room_ == room) return;
  wants_room_ = room;
  hub_->Rewatch(fd_, room ? EPOLLIN | EPOLLOUT : EPOLLIN, this);
}

// ---- Sending ----

void Peer::Send(const Frame& frame, std::string_view text) noexcept {
  if (state_ == State::kBroken) return;  // it is about to be lost
  try {
    texts_.push_back({frame, std::string(text.substr(0, kMostText))});
    texts_.back().frame.length = uint32_t(texts_.back().text.size());
  } catch (const std::bad_alloc&) {
    Break("no memory for a message to it");
    return;
  }
  hub_->Wake(this);
}

void Peer::HasBytes(Group* group, uint32_t rank) {
  const auto same = [&](const Source& s) { return s.group == group && s.rank == rank; };
  if (state_ != State::kOpen || std::any_of(sources_.begin(), sources_.end(), same)) return;
  sources_.push_back({group, rank});
  hub_->Wake(this);
}

// The rest of a frame that has begun is sent from a copy, because other groups use the connection
// too.
void Peer::Forget(const Group* group) noexcept {
  std::erase_if(sources_, [&](const Source& s) { return s.group == group; });
  if (!sends_ || current_.source.group != group) return;
  try {
    if (current_.data) current_.text.assign(current_.data, current_.frame.length);
  } catch (const std::bad_alloc&) {
    Break("no memory for a message to it");
    return;
  }
  current_.data = nullptr;
  current_.source = {nullptr, 0};
}

bool Peer::HasWords() const {
  const bool can = state_ == State::kConnecting || state_ == State::kGreeting || state_ == State::kOpen;
  return can && (!texts_.empty() || sends_);
}

// Sends what there is, as far as the connection takes it.
void Peer::Pump() {
  for (int i = 0; i < kWrites; ++i) {
    if (state_ != State::kOpen || wants_room_ || (!sends_ && !Next())) return;
    if (!Write()) return;
  }
  hub_->Wake(this);
}

// Chooses the next frame: messages first, then the bytes of the groups in turn. Returns false if
// there is none.
bool Peer::Next() {
  current_ = Current();
  if (!texts_.empty()) {
    current_.frame = texts_.front().frame;
    current_.text = std::move(texts_.front().text);
    texts_.pop_front();
    return sends_ = true;
  }
  while (!sources_.empty()) {
    const Source source = sources_.front();
    sources_.pop_front();
    if (!source.group->Take(source.rank, &current_.frame, &current_.data)) continue;
    current_.source = source;
    sources_.push_back(source);
    return sends_ = true;
  }
  return false;
}

// Returns false if the connection takes no more now.
bool Peer::Write() {
  constexpr size_t kHead = sizeof(Frame);
  const char* body = current_.data ? current_.data : current_.text.data();
  const uint64_t done = current_.written > kHead ? current_.written - kHead : 0;
  iovec parts[2];
  msghdr message = {};
  message.msg_iov = parts;
  if (current_.written < kHead) {
    parts[message.msg_iovlen++] = {reinterpret_cast<char*>(&current_.frame) + current_.written, kHead - current_.written};
  }
  if (done < current_.frame.length) parts[message.msg_iovlen++] = {const_cast<char*>(body) + done, current_.frame.length - done};
  const ssize_t n = sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) {
    Want(true);
    return false;
  }
  if (n < 0) {
    Break(TroubleText(errno, hub_->settings()));
    return false;
  }
  current_.written += uint64_t(n);
  if (current_.written < kHead + current_.frame.length) return true;
  sends_ = false;
  const Source source = std::exchange(current_.source, {nullptr, 0});
  if (source.group) source.group->Written(source.rank);
  return true;
}

// ---- Asking ----

namespace {

// Waits for the event. Returns false when the time is over.
bool Wait(int fd, short event, int milliseconds) {
  pollfd p = {fd, event, 0};
  return poll(&p, 1, milliseconds) == 1;
}

struct Socket {
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  int fd = -1;
};

}  // namespace

Answer AskFor(const Record& record, int milliseconds) {
  Socket s;
  s.fd = socket(record.address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s.fd < 0) return Answer::kNobody;
  if (connect(s.fd, record.address.get(), record.address.size) != 0 && (errno != EINPROGRESS || !Wait(s.fd, POLLOUT, milliseconds))) {
    return Answer::kNobody;
  }
  Hello hello;
  hello.token = record.token;
  hello.door = record.door;
  if (send(s.fd, &hello, sizeof hello, MSG_NOSIGNAL) != ssize_t(sizeof hello)) return Answer::kNobody;
  Welcome welcome;
  for (size_t here = 0; here < sizeof welcome;) {
    if (!Wait(s.fd, POLLIN, milliseconds)) return Answer::kNobody;
    const ssize_t n = recv(s.fd, reinterpret_cast<char*>(&welcome) + here, sizeof welcome - here, 0);
    if (n <= 0) return Answer::kNobody;
    here += size_t(n);
  }
  if (welcome.magic != kMagic || welcome.process != record.process) return Answer::kNobody;
  return welcome.is_there ? Answer::kThere : Answer::kGone;
}

}  // namespace thalweg::ring
