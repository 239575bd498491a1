// The transport `pipe`: calls between two processes over a socket and memory that both were given, as a sandbox and the process that made
// it. Its address names them by descriptors of this process, of which whoever listens or connects there makes copies: `fd3m5` means one of
// a connected pair of Unix sockets that keep the bounds of packets (SOCK_SEQPACKET), and memory of RingPair::Make. `fd3-4m5`: both ends are
// in one process, which listens at the first and connects at the second. The end that connects only calls, the end that listens only
// answers: whatever else comes from the other side ends the connection, since a sandbox may say anything. Threads: any.
#pragma once
#include <memory>

#include "framework/registry/role.h"

namespace thalweg::distributed {

constexpr std::string_view kPipeScheme = "pipe";

std::shared_ptr<const TransportRole> PipeTransport();

}  // namespace thalweg::distributed
