// A link between two addresses of the socket transport that a test can hold up, each way, or listen to. What is held up comes later, as on
// a network that is repaired. Threads: any.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

namespace thalweg::testing {

// An abstract address, as the transport makes them.
inline int SocketAt(const std::string& name, bool listens) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  name.copy(at.sun_path + 1, sizeof at.sun_path - 1);
  const auto* address = reinterpret_cast<const sockaddr*>(&at);
  const auto size = socklen_t(sizeof at.sun_family + 1 + name.size());
  const bool ok = listens ? bind(fd, address, size) == 0 && listen(fd, 64) == 0 : connect(fd, address, size) == 0;
  if (ok) return fd;
  close(fd);
  return -1;
}

class Relay {
 public:
  // Whoever connects to `here` reaches `there`; names without their scheme.
  Relay(const std::string& here, std::string there) : there_(std::move(there)), listener_(SocketAt(here, true)) {
    threads_.push_back(std::make_unique<std::thread>([this] { Accept(); }));
  }
  ~Relay() {
    stop_ = true;
    forth_held_ = back_held_ = false;
    for (size_t i = 0; i < Threads(); ++i) Thread(i).join();
    close(listener_);
  }
  // only: of the connections, in the order in which they came; -1: all.
  void Hold(bool forth, bool back, int only = -1) {
    only_ = only;
    forth_held_ = forth;
    back_held_ = back;
  }
  // The packets that went forth so far.
  std::vector<std::string> Heard() {
    std::lock_guard lock(mu_);
    return heard_;
  }

 private:
  size_t Threads() {
    std::lock_guard lock(mu_);
    return threads_.size();
  }
  std::thread& Thread(size_t i) {
    std::lock_guard lock(mu_);
    return *threads_[i];
  }
  bool Wait(int fd) const {
    pollfd p = {fd, POLLIN, 0};
    while (!stop_) {
      if (poll(&p, 1, 20) > 0) return true;
    }
    return false;
  }

  void Accept() {
    while (Wait(listener_)) {
      const int from = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), to = from < 0 ? -1 : SocketAt(there_, false);
      if (to < 0) {
        if (from >= 0) close(from);
        continue;
      }
      auto both = std::make_shared<Ends>(from, to);
      std::lock_guard lock(mu_);
      const int number = connections_++;
      threads_.push_back(std::make_unique<std::thread>([=, this] { Pump(both->from, both->to, number, &forth_held_, true); }));
      threads_.push_back(std::make_unique<std::thread>([=, this] { Pump(both->to, both->from, number, &back_held_, false); }));
    }
  }

  struct Ends {
    Ends(int a, int b) : from(a), to(b) {}
    ~Ends() {
      close(from);
      close(to);
    }
    const int from, to;
  };

  void Pump(int from, int to, int number, const std::atomic<bool>* held, bool forth) {
    std::vector<char> packet(1 << 20);
    while (Wait(from)) {
      const ssize_t n = recv(from, packet.data(), packet.size(), 0);
      if (n <= 0) break;
      while (*held && (only_ < 0 || only_ == number) && !stop_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (forth) {
        std::lock_guard lock(mu_);
        heard_.emplace_back(packet.data(), size_t(n));
      }
      if (send(to, packet.data(), size_t(n), MSG_NOSIGNAL) != n) break;
    }
    shutdown(from, SHUT_RDWR);
    shutdown(to, SHUT_RDWR);
  }

  const std::string there_;
  const int listener_;
  std::atomic<bool> stop_{false}, forth_held_{false}, back_held_{false};
  std::atomic<int> only_{-1};
  int connections_ = 0;
  std::mutex mu_;
  std::vector<std::unique_ptr<std::thread>> threads_;
  std::vector<std::string> heard_;
};

}  // namespace thalweg::testing
