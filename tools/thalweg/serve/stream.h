// The bytes of one connection. Limits what a slow or hostile client can hold: the size of a header (framing.h), and the time of a request
// and of an answer. A client has `slack` for the header, and then `slack` plus one second for each 16 KiB that it sent or took. So a client
// that sends one byte now and then does not hold its thread for long, and a large body may take its time.
// Thread: one thread at a time; another thread may shut the socket down, which ends every wait here.
#pragma once
#include <httplib.h>

#include <chrono>
#include <optional>
#include <string>

#include "framing.h"
#include "settings.h"

namespace thalweg::cli::serve {

class ConnectionStream final : public httplib::Stream {
 public:
  ConnectionStream(socket_t socket, std::chrono::milliseconds slack) : socket_(socket), slack_(slack) {}

  // Waits for the first byte of a request, for `wait` at most. Returns false if none came. A byte of a pipelined request is there.
  bool Await(std::chrono::milliseconds wait);
  // Begins a request: its limits count from here.
  void Begin();
  // The body of the request comes in chunks. Call it when the header was read.
  void ExpectChunks() { chunks_.emplace(); }
  // Ends the answer, and discards for a while what the client still sends. A socket that is closed with unread bytes is reset, and
  // the client would lose the answer.
  void Linger();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;  // 0: the client closed; -1: a limit, a failure, or bytes that are no request
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Returns the bytes that a system call moved, and waits until it can move some. -1: failure or deadline.
  ssize_t Fill(Deadline deadline);
  bool Ready(short events, Deadline deadline) const;
  bool Check(const char* bytes, size_t n);

  const socket_t socket_;
  const std::chrono::milliseconds slack_;
  char buffer_[16384];
  size_t at_ = 0, end_ = 0;
  Deadline began_, answered_;
  bool answering_ = false;
  HeaderCheck header_;
  std::optional<ChunkCheck> chunks_;  // of a body in chunks
  uint64_t body_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace thalweg::cli::serve
