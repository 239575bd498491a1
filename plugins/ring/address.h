// The network address of this process, and the record by which other members find it.
// Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "thalweg/cpp/plugin.hpp"
#include "wire.h"

namespace thalweg::ring {

// Settings of the plugin.
struct Settings {
  std::string address;                     // name or number of this host's address; empty: see `interface`
  std::string interface;                   // whose address is used; empty: that of the default route
  uint32_t first_port = 0, last_port = 0;  // of the listener; 0: any
  uint64_t window = 1 << 20;               // bytes of a member that may wait here to be folded
  uint32_t lost_after = 10'000;            // milliseconds without a sign of life after which a host is lost
  bool levels = true;                      // fold within hosts first
  std::string host;                        // tells members of one machine apart
  std::string folder = "/dev/shm";         // of the memory that members of a host share
  uint64_t shared_window = 256 << 10;      // bytes that a member copies to it at once
};
// Throws tw::Error naming the setting and its value.
Settings SettingsOf(const tw_host* host);

class SocketAddress {
 public:
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes_); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes_); }
  int family() const { return bytes_.ss_family; }
  void set_port(uint16_t port);
  std::string text() const;  // "10.0.0.7:4000", "[fd00::7]:4000"
  // Reads a text of that form. Returns false if it has another one.
  bool Parse(const std::string& text);

  socklen_t size = sizeof(sockaddr_storage);

 private:
  sockaddr_storage bytes_ = {};
};

// Returns a listening socket on this host's address, and the address with its port.
// Throws tw::Error: an address that cannot be found or is not this host's, no free port.
int Listen(const Settings& settings, SocketAddress* bound);

// Returns a random number other than 0.
uint64_t RandomNumber();
// Returns the name without spaces.
std::string OwnHostName();

// A member as it stands in the store of its group, in ten words: ring VERSION MEMBERS PROCESS TOKEN
// TOKEN DOOR PID HOST ADDRESS.
struct Record {
  uint32_t version = kVersion, members = 0;
  uint64_t process = 0;  // number of the process
  Token token;           // of the process
  uint64_t door = 0;     // number of the group in the process
  uint64_t pid = 0;
  std::string host;
  SocketAddress address;

  std::string text() const;
  // Parse reads only the version of a record of another version. It returns false if the text is no
  // record.
  bool Parse(std::string_view text);
};

}  // namespace thalweg::ring
