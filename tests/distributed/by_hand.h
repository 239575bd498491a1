// Processes of a cluster by hand: they send and receive the bytes of the socket transport. Used for
// peers of other versions, and for peers that answer when a test tells them to. Threads: a
// TaskByHand serves on its own thread.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/distributed/addresses.h"

namespace thalweg::testing {

enum Method { kHello = 1, kOpen, kWatch, kRegister, kRun, kReceive, kAbort, kForget, kStatus, kWatchedRun, kPush };

inline std::string OfHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// ---- Numbers and texts in messages ----

template <class T>
std::string Number(T v) {
  return std::string(reinterpret_cast<const char*>(&v), sizeof v);
}
inline std::string Text(const std::string& text) { return Number(uint32_t(text.size())) + text; }
// Reads the number at offset `at`.
inline uint64_t NumberAt(const std::string& bytes, size_t at) {
  uint64_t v = 0;
  if (at + sizeof v <= bytes.size()) std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

// Returns a request's head for the process of that incarnation; 0 means any process at the address.
inline std::string Request(int method, uint64_t incarnation, const std::string& fields = "") {
  return Number(uint8_t{1}) + Number(uint8_t(method)) + Number(incarnation) + fields;
}
inline std::string Good(const std::string& fields = "") { return std::string(2, '\0') + fields; }
inline std::string Failed(int code, const std::string& text) { return Number(uint8_t(code)) + Number(uint8_t{0}) + Text(text); }

// ---- Packets ----

enum Kind : uint64_t { kRequest, kAnswer, kPiece };
struct Frame {
  uint64_t kind = 0, id = 0, head = 0, bytes = 0;
};
inline std::string Packet(Kind kind, uint64_t id, const std::string& head, uint64_t body) {
  const Frame f = {kind, id, kind == kPiece ? 0 : head.size(), body};
  return std::string(reinterpret_cast<const char*>(&f), sizeof f) + head;
}
// Sends a message with its body, which must be small.
inline void Say(int fd, Kind kind, uint64_t id, const std::string& head, const std::string& body = "") {
  const std::string first = Packet(kind, id, head, body.size()), piece = Packet(kPiece, id, body, 0);
  EXPECT_EQ(send(fd, first.data(), first.size(), MSG_NOSIGNAL), ssize_t(first.size()));
  if (!body.empty()) {
    EXPECT_EQ(send(fd, piece.data(), piece.size(), MSG_NOSIGNAL), ssize_t(piece.size()));
  }
}
// Receives the next packet; returns false at the end of the connection.
inline bool Hear(int fd, Frame* frame, std::string* rest) {
  std::vector<char> packet(1 << 17);
  const ssize_t n = recv(fd, packet.data(), packet.size(), 0);
  if (n < ssize_t(sizeof *frame)) return false;
  std::memcpy(frame, packet.data(), sizeof *frame);
  rest->assign(packet.data() + sizeof *frame, size_t(n) - sizeof *frame);
  return true;
}

// ---- Callers ----

class ClientByHand {
 public:
  explicit ClientByHand(const std::string& address) : fd_(ConnectByHand(address)) {
    EXPECT_GE(fd_, 0) << address;
    const timeval patience = {10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~ClientByHand() { close(fd_); }
  ClientByHand(const ClientByHand&) = delete;
  ClientByHand& operator=(const ClientByHand&) = delete;
  // Sends a request; its answer is read later.
  uint64_t Begin(const std::string& head, const std::string& body = "") {
    Say(fd_, kRequest, ++id_, head, body);
    return id_;
  }
  // Returns the head of the answer and its body; "nothing" if the connection ends first. Skips
  // answers to other requests.
  std::string Await(uint64_t id, std::string* out_body) {
    Frame f;
    std::string answer, piece;
    do {
      if (!Hear(fd_, &f, &answer)) return "nothing";
    } while (f.kind != kAnswer || f.id != id);
    out_body->clear();
    const uint64_t bytes = f.bytes;
    while (out_body->size() < bytes && Hear(fd_, &f, &piece)) *out_body += piece;
    return answer;
  }
  std::string Ask(const std::string& head, const std::string& body = "", std::string* out_body = nullptr) {
    std::string unread;
    return Await(Begin(head, body), out_body ? out_body : &unread);
  }

 private:
  const int fd_;
  uint64_t id_ = 0;
};

// ---- Servers ----

// A request that a TaskByHand has received, and the connection for its answer.
struct Heard {
  int fd = -1;
  uint64_t id = 0;
  std::string head, body;
  int method() const { return head.size() > 1 ? head[1] : 0; }
  std::string fields() const { return head.size() > 10 ? head.substr(10) : ""; }
  void Answer(const std::string& answer, const std::string& with = "") const { Say(fd, kAnswer, id, answer, with); }
};

class TaskByHand {
 public:
  // serve: called with each complete request on the task's thread; answers it at once or later.
  TaskByHand(const std::string& address, std::function<void(const Heard&)> serve)
      : serve_(std::move(serve)), listener_(ListenByHand(address)), thread_([this] { Work(); }) {
    EXPECT_GE(listener_, 0) << address;
  }
  ~TaskByHand() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  TaskByHand(const TaskByHand&) = delete;
  TaskByHand& operator=(const TaskByHand&) = delete;

 private:
  void Work() {
    std::vector<pollfd> all = {{listener_, POLLIN, 0}};
    while (!stop_) {
      poll(all.data(), all.size(), 20);
      for (size_t i = 1; i < all.size(); ++i) {
        if (all[i].revents && !Take(all[i].fd)) {
          close(all[i].fd);
          all[i].fd = -1;
        }
      }
      if (all[0].revents) all.push_back({accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), POLLIN, 0});
    }
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i].fd >= 0) close(all[i].fd);
    }
  }
  // Returns false if the connection has ended.
  bool Take(int fd) {
    Frame f;
    std::string rest;
    if (!Hear(fd, &f, &rest)) return false;
    const std::pair key(fd, f.id);
    if (f.kind == kRequest) {
      coming_[key] = {{fd, f.id, std::move(rest), ""}, f.bytes};
    } else if (auto it = coming_.find(key); f.kind == kPiece && it != coming_.end()) {
      it->second.first.body += rest;
    }
    auto it = coming_.find(key);
    if (it == coming_.end() || it->second.first.body.size() < it->second.second) return true;
    const Heard whole = std::move(it->second.first);
    coming_.erase(it);
    serve_(whole);
    return true;
  }

  const std::function<void(const Heard&)> serve_;
  const int listener_;
  std::atomic<bool> stop_{false};
  std::map<std::pair<int, uint64_t>, std::pair<Heard, uint64_t>> coming_;  // requests in progress, with the expected sizes of their bodies
  std::thread thread_;
};

}  // namespace thalweg::testing
