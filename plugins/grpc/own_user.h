// Processes of the same user on the same machine meet at a Unix socket beside the TCP address: its name is abstract, so it is of the
// network namespace that the address is of, and goes with the process. The kernel says at either end who is at the other one (SO_PEERCRED,
// as of connect and listen). Threads: any.
#pragma once
#include <string>

#include "address.h"

namespace thalweg::grpc_transport {

// "@thalweg.grpc.127.0.0.1:4000", where the @ stands for the zero byte of an abstract name.
SocketAddress OwnUserSocket(const SocketAddress& tcp);
// Whether who has connected to it, or listens there, is a process of this one's effective user.
bool IsOwnUser(int fd);

enum class Met { kYes, kOther, kNobody, kFailed };
// Connects to who listens at that address of this machine. kYes: *out_fd, to be closed by who asked. kOther: it is another user's.
// kFailed: *why says what is missing here.
Met MeetOwnUser(const HostPort& at, int* out_fd, std::string* why);
// Whether somebody listens there by TCP. REQUIRES: a host of this machine.
bool SomebodyListens(const HostPort& at);

}  // namespace thalweg::grpc_transport
