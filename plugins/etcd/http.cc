#include "http.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "../common/lookup.h"
#include "thalweg/plugin/abi.h"
#include "tls.h"

namespace thalweg::etcd {
namespace {

constexpr uint64_t kMostBody = uint64_t{1} << 30;
constexpr int64_t kLookup = 5'000'000'000;  // nanoseconds for a name, if there is no other deadline

uint64_t Number(const std::string& text, int base) {
  char* end = nullptr;
  const uint64_t n = std::strtoull(text.c_str(), &end, base);
  if (end == text.c_str() || n > kMostBody)
    throw Failed(TW_UNAVAILABLE, "what answers is no etcd: its length is '" + text.substr(0, 40) + "'");
  return n;
}

}  // namespace

Address Address::Parse(const std::string& text) {
  Address a;
  a.tls = text.compare(0, 8, "https://") == 0;
  const std::string rest = text.substr(a.tls ? 8 : text.compare(0, 7, "http://") == 0 ? 7 : 0);
  const size_t at = rest.rfind(':');
  if (at == std::string::npos || at == 0 || at + 1 == rest.size())
    throw Failed(TW_INVALID_ARGUMENT, "'" + text + "' is no address; give host:port, or https://host:port");
  a.host = rest.substr(0, at);
  a.port = rest.substr(at + 1);
  if (a.host.front() == '[' && a.host.back() == ']') a.host = a.host.substr(1, a.host.size() - 2);
  return a;
}

Exchange::Exchange(const Address& address, const std::string& folder, Now now, int64_t deadline)
    : at_(address), address_(address.text()), now_(std::move(now)), deadline_(deadline) {
  try {
    Connect();
    if (at_.tls) Shake(folder);
  } catch (...) {
    if (fd_ >= 0) close(fd_);
    throw;
  }
}

Exchange::~Exchange() { close(fd_); }

void Exchange::Connect() {
  const int64_t left = deadline_ ? deadline_ - now_() : kLookup;
  int error = 0;
  const common::AddressList all = common::Lookup(at_.host, at_.port, 0, std::chrono::nanoseconds(left), &error);
  if (!all && deadline_ && now_() >= deadline_)
    throw Failed(TW_DEADLINE_EXCEEDED, "'" + address_ + "' was not found in time: no name server has answered");
  if (!all) throw Failed(TW_UNAVAILABLE, "'" + address_ + "' cannot be found: " + gai_strerror(error));
  int why = 0;
  for (const addrinfo* a = all.get(); a; a = a->ai_next) {
    fd_ = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ >= 0 && (connect(fd_, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)) {
      Wait(POLLOUT);
      socklen_t size = sizeof why;
      getsockopt(fd_, SOL_SOCKET, SO_ERROR, &why, &size);
      if (why == 0) return KeepAlive();
    } else {
      why = errno;
    }
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  throw Failed(TW_UNAVAILABLE, "'" + address_ + "' cannot be reached: " + std::strerror(why));
}

// A watch waits without a deadline, and a machine that has gone sends nothing.
void Exchange::KeepAlive() {
  for (const auto& [level, option, value] : {std::tuple(SOL_SOCKET, int(SO_KEEPALIVE), 1),
                                             {IPPROTO_TCP, int(TCP_KEEPIDLE), 5},
                                             {IPPROTO_TCP, int(TCP_KEEPINTVL), 2},
                                             {IPPROTO_TCP, int(TCP_KEEPCNT), 3}}) {
    setsockopt(fd_, level, option, &value, sizeof value);
  }
}

void Exchange::Shake(const std::string& folder) {
  tls_ = std::make_unique<Tls>(at_.host, folder);
  for (std::string bytes;;) {
    const bool done = tls_->Shake();
    Write(tls_->Give());
    if (done) return;
    if (!Read(&bytes)) throw Failed(TW_UNAVAILABLE, "'" + address_ + "' hangs up before it has proven who it is; does it speak TLS?");
    tls_->Take(bytes);
  }
}

void Exchange::Wait(short what) {
  pollfd p = {fd_, what, 0};
  for (;;) {
    int ms = -1;
    if (deadline_) {
      const int64_t left = deadline_ - now_();
      if (left <= 0) throw Failed(TW_DEADLINE_EXCEEDED, "'" + address_ + "' has not answered in time");
      ms = int(std::min<int64_t>(left / 1'000'000 + 1, 60'000));
    }
    if (poll(&p, 1, ms) > 0) return;
  }
}

void Exchange::Hang() { shutdown(fd_, SHUT_RDWR); }

void Exchange::Ask(const std::string& path, const std::string& token, const std::string& json) {
  std::string text = "POST " + path + " HTTP/1.1\r\nHost: " + address_ + "\r\nContent-Type: application/json\r\nConnection: close\r\n";
  if (!token.empty()) text += "Authorization: " + token + "\r\n";
  text += "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + json;
  if (tls_) {
    tls_->Send(text);
    text = tls_->Give();
  }
  Write(text);
  const std::string first = HeadLine();
  if (first.compare(0, 7, "HTTP/1.") != 0 || first.size() < 12)
    throw Failed(TW_UNAVAILABLE, "what answers at '" + address_ + "' is no etcd");
  status_ = std::atoi(first.c_str() + 9);
  left_ = kMostBody;
  for (std::string line; !(line = HeadLine()).empty();) {
    std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    if (line.compare(0, 15, "content-length:") == 0) left_ = Number(line.substr(15), 10);
    if (line == "transfer-encoding: chunked") chunked_ = true;
  }
  if (chunked_) left_ = 0;
}

void Exchange::Write(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    Wait(POLLOUT);
    const ssize_t n = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      const std::string why = std::strerror(errno);
      HearWhy();
      throw Failed(TW_UNAVAILABLE, "'" + address_ + "' hangs up: " + why);
    }
    if (n > 0) at += size_t(n);
  }
}

// A server that requires a client certificate says so after the handshake, and hangs up: reads the
// pending bytes and throws that error.
void Exchange::HearWhy() {
  char bytes[4096];
  for (ssize_t n; tls_ && (n = recv(fd_, bytes, sizeof bytes, 0)) > 0;) {
    tls_->Take({bytes, size_t(n)});
    tls_->Receive();
  }
}

// Reads bytes from the connection; returns false if it has ended.
bool Exchange::Read(std::string* bytes) {
  bytes->resize(16384);
  for (;;) {
    Wait(POLLIN);
    const ssize_t n = recv(fd_, bytes->data(), bytes->size(), 0);
    if (n > 0) return bytes->resize(size_t(n)), true;
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
  }
}

// Reads more text of the other side; returns false if it has hung up.
bool Exchange::Fill() {
  const size_t before = raw_.size();
  for (std::string bytes; raw_.size() == before;) {
    if (tls_ && tls_->over()) return false;
    if (!Read(&bytes)) return false;
    if (tls_) {
      tls_->Take(bytes);
      bytes = tls_->Receive();
      Write(tls_->Give());
    }
    raw_ += bytes;
  }
  return true;
}

std::string Exchange::HeadLine() {
  size_t at;
  while ((at = raw_.find("\r\n")) == std::string::npos) {
    if (raw_.size() > 1 << 16 || !Fill()) throw Failed(TW_UNAVAILABLE, "'" + address_ + "' hangs up before it has answered");
  }
  std::string line = raw_.substr(0, at);
  raw_.erase(0, at + 2);
  return line;
}

// Reads more of the body; returns false at its end.
bool Exchange::Body() {
  if (over_) return false;
  if (chunked_ && left_ == 0) {
    left_ = Number(HeadLine(), 16);
    if (left_ == 0) return !(over_ = true);
  }
  if (raw_.empty() && (left_ == 0 || !Fill())) return !(over_ = true);
  const size_t n = size_t(std::min<uint64_t>(left_, raw_.size()));
  text_.append(raw_, 0, n);
  raw_.erase(0, n);
  left_ -= n;
  if (chunked_ && left_ == 0) HeadLine();
  return true;
}

bool Exchange::NextLine(std::string* line) {
  size_t at;
  while ((at = text_.find('\n')) == std::string::npos) {
    if (!Body()) break;
  }
  if (at == std::string::npos && text_.empty()) return false;
  *line = text_.substr(0, at);
  text_.erase(0, at == std::string::npos ? at : at + 1);
  return true;
}

std::string Exchange::Rest() {
  while (Body()) {
  }
  return std::move(text_);
}

}  // namespace thalweg::etcd
