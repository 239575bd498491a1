// Where an endpoint is met. Each address belongs to a socket, over which peers meet before UCX
// connects them: a Unix socket between processes of this machine, TCP between machines. Threads: any.
#pragma once
#include <string>

#include "thalweg/plugin/plugin.h"

namespace thalweg::ucx_transport {

enum class Found { kYes, kNobody, kOther, kTaken, kFailed };

struct Meeting {
  int fd = -1;        // non-blocking; owned by the caller
  std::string bound;  // of a listener: its address
  std::string why;    // of a failure
};

// Returns true if the text is host:port with a host that other machines may reach.
bool LeadsOut(const std::string& address);

// Starts to listen. kTaken: somebody listens there already. network: at a TCP socket if the address is host:port; else, and for names, at a
// Unix socket that only this machine reaches. Empty: at a free Unix socket.
Found ListenAt(const std::string& address, bool network, Meeting* out);

// Connects, or starts to (TCP). kOther: the listener belongs to another user. A host name is looked
// up for at most five seconds.
Found ConnectTo(const std::string& address, bool network, Meeting* out);

// Returns true if the process at the other end of a Unix socket has this process's effective user.
bool IsOwnUser(int fd);

}  // namespace thalweg::ucx_transport
