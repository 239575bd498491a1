// The steps by which this process gives up what graphs of strangers do not need. Each answers whether it is in force; none ends the
// process. Threads: called while there is one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::sandbox {

constexpr int kMemory = 5;  // the descriptor of the memory that the pipe shares with who made this process

struct Settings {
  uint64_t memory = 0;               // bytes; 0: no limit
  uint64_t threads = 0;              // 0: no limit
  uint64_t descriptors = 0;          // 0: no limit
  std::vector<std::string> read;     // folders and files that can be seen
  std::vector<std::string> options;  // of the runtime
  std::string allow_files;           // of the server
};

// A namespace of users in which this one has the same number, and no other is. proc: /proc/self, opened while it could be seen.
bool SeparateUsers(int proc);

// Namespaces: a network without any interface; a file system that consists of `read`, read-only.
struct Separated {
  bool users = false, network = false, view = false;
};
Separated Separate(const std::vector<std::string>& read, int proc);

// By Landlock: nothing but reading beneath `read`; no TCP, no signals to others. Answers its version; 0: the kernel has none.
int LimitFiles(const std::vector<std::string>& read);

// No capabilities, and no way to get any; started by root, the user `nobody`, in a namespace of users (own_users) where that is allowed.
// False: it has some still.
bool DropRights(int proc, bool* own_users);

struct Limited {
  bool memory = false, threads = false, descriptors = false;
};
Limited Limit(const Settings& settings, bool own_users);

// Nothing but the system calls that computing and answering takes, from here on, in all threads to come.
bool FilterCalls();

}  // namespace thalweg::sandbox
