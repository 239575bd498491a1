// This machine as the others of a cluster see it: its address, free ports, and whether two
// processes share one. Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

// Returns an IP address at which other machines reach this one, "10.0.0.7" or "fd00::7".
// interface: the network interface that has it; "": the one of the default route, or else the
// first that is up; the loopback address if there is none.
// Throws std::runtime_error naming the interfaces if that one has no address.
std::string OwnAddress(const std::string& interface);

// Returns a text that is equal in processes that reach each other by the loopback interface: those
// of one running kernel and one network namespace.
std::string OwnPlace();

std::string OwnHostName();

// Returns free ports. All are bound at the same time, so no two are equal. If another process takes
// a port before its server does, that server fails. Throws std::runtime_error.
std::vector<int> FreePorts(int64_t n);

}  // namespace thalweg::cli
