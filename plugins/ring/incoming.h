// Incoming: a connection that another process has opened, and the reader of its frames. Until the
// process has proved that it knows our token, it is a stranger, which can send a Hello and nothing
// else.
// Threads: that of the hub.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "hub.h"
#include "wire.h"

namespace thalweg::ring {

class Incoming final : public Watched {
 public:
  // Takes fd, unless it throws.
  Incoming(Hub* hub, int fd);
  ~Incoming();
  Incoming(const Incoming&) = delete;

  void Ready(uint32_t events) override;
  void GiveUp(const std::string& why) noexcept override;
  void set_peer(Peer* peer) { peer_ = peer; }
  int64_t since() const { return since_; }
  bool closed() const { return fd_ < 0; }
  void Close() noexcept;

 private:
  bool Step();
  bool Receive(void* to, size_t n, size_t* received);
  bool ReadHello();
  void Begin();
  bool ReadData();
  void End(const std::string& why);

  Hub* const hub_;
  int fd_;
  Peer* peer_ = nullptr;  // NULL: a stranger
  const int64_t since_;

  Hello hello_;
  Frame frame_;
  size_t head_ = 0;    // bytes of hello_ or frame_ that are here
  uint32_t left_ = 0;  // bytes that follow frame_ and are not here yet
  std::string text_;
};

// Makes the system report a host that is lost, within the setting lost_after_ms.
void KeepAlive(int fd, const Settings& settings);
// Returns a text for an errno of a connection.
std::string TroubleText(int error, const Settings& settings);

}  // namespace thalweg::ring
