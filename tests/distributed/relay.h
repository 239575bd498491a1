// A link between two addresses on which a test can inject faults in each direction, and which
// records messages. It can hold messages back until it is repaired, drop them, end connections
// (after half of the bytes in transit, or without telling the other end), and slow down. Its
// connections are independent, so messages on different connections arrive in any order. Threads:
// any.
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

// The faults of the link while they last. Random values depend on the connection's number.
struct Harm {
  int delay_ms = 0, more_ms = 0;  // each read waits delay_ms, plus up to more_ms
  int stalls = 0;                 // percentage of reads that wait for 300 ms
  int64_t bytes_per_second = 0;   // 0: no limit
  int64_t end_after = -1;         // a connection ends after so many bytes (both directions), passing on half of the last read; -1: never
  bool half_open = false;         // if one end hangs up, the other end is not told
};

class Relay {
 public:
  // Forwards connections to `here` on to `there`; over gRPC also the Unix sockets beside both.
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
  // Holds messages back until it is called again. from: the number of the first connection that it
  // affects, in the order of connecting.
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
  // Ends all open connections, from number `from` on (see Hold). both: also closes the end of the
  // callee; else only the end of the caller, and with Harm::half_open the other end is not told.
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
  // Ends only the latest connection.
  void CutLast() {
    std::lock_guard lock(mu_);
    if (!all_.empty()) all_.back()->End();
  }
  int connections() const { return connections_; }
  // Returns the bytes that a connection passed to `there`.
  uint64_t BytesForth(int number) {
    std::lock_guard lock(mu_);
    uint64_t n = 0;
    for (const auto& packet : heard_[number]) n += packet.size();
    return n;
  }
  // Returns the data passed to `there` by each connection: packets or, for a stream, the bytes of
  // each read.
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

  // Returns the next connection; -1: no more will come.
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
  std::atomic<bool> stop_{false}, held_[2] = {false, false}, swallows_[2] = {false, false};  // [to `there`, back]
  std::atomic<int> from_{0}, connections_{0};
  std::mutex mu_;
  Harm harm_;
  std::vector<std::shared_ptr<Ends>> all_;
  std::vector<std::unique_ptr<std::thread>> threads_;
  std::map<int, std::vector<std::string>> heard_;
};

}  // namespace thalweg::testing
