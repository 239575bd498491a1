// The transport `pipe`: calls between two processes over a socket and memory that both were given,
// such as a sandbox and the process that made it. Its address names descriptors of this process;
// listen and connect duplicate them. `fd3m5`: descriptor 3 is one of a connected pair of Unix
// sockets that keep packet boundaries (SOCK_SEQPACKET), and 5 is memory of RingPair::Make.
// `fd3-4m5`: both ends are in one process, which listens at the first and connects at the second.
// The connecting end only calls, the listening end only answers: anything else from the other side
// ends the connection, since a sandbox may send anything. Threads: any.
#pragma once
#include <memory>

#include "framework/registry/role.h"

namespace thalweg::distributed {

constexpr std::string_view kPipeScheme = "pipe";

std::shared_ptr<const TransportRole> PipeTransport();

}  // namespace thalweg::distributed
