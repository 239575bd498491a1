// A link between two addresses that a test can harm, each way, or listen to: it holds up what comes, as a network that is repaired later,
// swallows it, ends connections, with half of what was on its way or without telling the other end, and is slow. Its connections know
// nothing of each other, so what goes by several of them comes in any order. Threads: any.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/distributed/addresses.h"

namespace thalweg::testing {

// What befalls all of it while it lasts. Of chance it takes what the connection's number says.
struct Harm {
  int delay_ms = 0, more_ms = 0;  // that whatever is read waits, and up to so many more
  int stalls = 0;                 // of a hundred of them stand for 300 ms
  int64_t bytes_per_second = 0;   // 0: any
  int64_t end_after = -1;         // bytes, both ways together, after which a connection passes half of what it has read and ends; -1: never
  bool half_open = false;         // where one end hangs up, the other is not told
};

class Relay {
 public:
  // Whoever connects to `here` reaches `there`; over gRPC also by the Unix sockets beside both.
  Relay(const std::string& here, std::string there)
      : there_(std::move(there)), listener_(ListenByHand(here)), beside_(here.starts_with("grpc:") ? OwnUserByHand(here, true) : -1) {
    threads_.push_back(std::make_unique<std::thread>([this] { Accept(); }));
  }
  ~Relay() {
    stop_ = true;
    Hold(false, false);
    for (size_t i = 0; i < Threads(); ++i) Thread(i).join();
    close(listener_);
    if (beside_ >= 0) close(beside_);
  }
  // Keeps it until it is let go. from: the first connection, in the order in which they came, that it is done to.
  void Hold(bool forth, bool back, int from = 0) {
    from_ = from;
    held_[0] = forth;
    held_[1] = back;
  }
  void Swallow(bool forth, bool back) {
    swallows_[0] = forth;
    swallows_[1] = back;
  }
  void Be(const Harm& harm) {
    std::lock_guard lock(mu_);
    harm_ = harm;
  }
  // Ends all connections that there are; from: the first of them, as of Hold. both: also for who was connected to, else only for who came:
  // with Harm::half_open the other end is not told then.
  void Cut(size_t from = 0, bool both = true) {
    std::lock_guard lock(mu_);
    for (size_t i = from; i < all_.size(); ++i) {
      if (both) {
        all_[i]->End();
      } else {
        shutdown(all_[i]->of[0], SHUT_RDWR);
      }
    }
  }
  // The one that came last, alone.
  void CutLast() {
    std::lock_guard lock(mu_);
    if (!all_.empty()) all_.back()->End();
  }
  int connections() const { return connections_; }
  // That went forth by a connection.
  uint64_t BytesForth(int number) {
    std::lock_guard lock(mu_);
    uint64_t n = 0;
    for (const auto& packet : heard_[number]) n += packet.size();
    return n;
  }
  // What went forth by each connection: packets, or, of a stream, what was read at once.
  std::vector<std::vector<std::string>> Heard() {
    std::lock_guard lock(mu_);
    std::vector<std::vector<std::string>> all;
    for (auto& [number, packets] : heard_) all.push_back(packets);
    return all;
  }

 private:
  struct Ends {
    Ends(int a, int b) : of{a, b} {}
    ~Ends() {
      close(of[0]);
      close(of[1]);
    }
    void End() {
      shutdown(of[0], SHUT_RDWR);
      shutdown(of[1], SHUT_RDWR);
    }
    const int of[2];
    std::atomic<int64_t> passed{0};
  };

  size_t Threads() {
    std::lock_guard lock(mu_);
    return threads_.size();
  }
  std::thread& Thread(size_t i) {
    std::lock_guard lock(mu_);
    return *threads_[i];
  }
  Harm Now() {
    std::lock_guard lock(mu_);
    return harm_;
  }
  bool Wait(int fd) const {
    pollfd p = {fd, POLLIN, 0};
    while (!stop_) {
      if (poll(&p, 1, 20) > 0) return true;
    }
    return false;
  }
  void Pause(int64_t us) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
    while (!stop_ && std::chrono::steady_clock::now() < until) {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - std::chrono::steady_clock::now());
      std::this_thread::sleep_for(std::min(left, std::chrono::microseconds(20'000)));
    }
  }

  // Who has come; -1: nobody will.
  int Next() const {
    pollfd both[] = {{listener_, POLLIN, 0}, {beside_, POLLIN, 0}};
    while (!stop_) {
      if (poll(both, 2, 20) > 0) return accept4(both[0].revents ? listener_ : beside_, nullptr, nullptr, SOCK_CLOEXEC);
    }
    return -1;
  }

  void Accept() {
    while (!stop_) {
      const int from = Next(), to = from < 0 ? -1 : ConnectAsOwnUser(there_);
      if (to < 0) {
        if (from >= 0) close(from);
        continue;
      }
      auto both = std::make_shared<Ends>(from, to);
      std::lock_guard lock(mu_);
      all_.push_back(both);
      const int number = connections_++;
      for (int way : {0, 1}) threads_.push_back(std::make_unique<std::thread>([=, this] { Pump(both.get(), way, number); }));
    }
  }

  void Pump(Ends* both, int way, int number) {
    const int from = both->of[way], to = both->of[1 - way];
    std::mt19937 random(unsigned(2 * number + way));
    std::vector<char> bytes(1 << 20);
    bool half_open = false;
    while (Wait(from)) {
      const ssize_t n = recv(from, bytes.data(), bytes.size(), 0);
      const Harm harm = Now();
      half_open = harm.half_open;
      if (n <= 0) break;
      while (held_[way] && number >= from_ && !stop_) Pause(2000);
      if (way == 0) {
        std::lock_guard lock(mu_);
        heard_[number].emplace_back(bytes.data(), size_t(n));
      }
      if (swallows_[way]) continue;
      if (harm.delay_ms || harm.more_ms) Pause(1000 * (harm.delay_ms + int(random() % unsigned(harm.more_ms + 1))));
      if (harm.stalls && int(random() % 100) < harm.stalls) Pause(300'000);
      if (harm.bytes_per_second) Pause(n * 1'000'000 / harm.bytes_per_second);
      both->passed += n;
      const bool ends = harm.end_after >= 0 && both->passed > harm.end_after;
      if (!Pass(to, bytes.data(), ends ? n / 2 : n) || ends) {
        half_open = half_open && ends;
        break;
      }
    }
    if (half_open) return (void)shutdown(from, SHUT_RDWR);
    both->End();
  }

  static bool Pass(int to, const char* bytes, ssize_t n) {
    for (ssize_t at = 0, w; at < n; at += w) {
      w = send(to, bytes + at, size_t(n - at), MSG_NOSIGNAL);
      if (w <= 0) return false;
    }
    return true;
  }

  const std::string there_;
  const int listener_, beside_;
  std::atomic<bool> stop_{false}, held_[2] = {false, false}, swallows_[2] = {false, false};  // forth, back
  std::atomic<int> from_{0}, connections_{0};
  std::mutex mu_;
  Harm harm_;
  std::vector<std::shared_ptr<Ends>> all_;
  std::vector<std::unique_ptr<std::thread>> threads_;
  std::map<int, std::vector<std::string>> heard_;
};

}  // namespace thalweg::testing
