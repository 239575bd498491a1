// The steps by which this process gives up rights that graphs of strangers do not need. Each
// function returns whether its restriction is in force; none ends the process. Threads: REQUIRES
// that the process has one thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::sandbox {

constexpr int kMemory = 5;  // the descriptor of the memory that the pipe shares with the parent process

struct Settings {
  uint64_t memory = 0;               // bytes; 0: no limit
  uint64_t threads = 0;              // 0: no limit
  uint64_t descriptors = 0;          // 0: no limit
  std::vector<std::string> read;     // folders and files that stay visible
  std::vector<std::string> options;  // of the runtime
  std::string allow_files;           // of the server
};

// Enters a user namespace with only this user, under the same number. proc: /proc/self, opened
// while it was visible.
bool SeparateUsers(int proc);

// The namespaces in force: a network without any interface; a file system that consists of `read`,
// read-only.
struct Separated {
  bool users = false, network = false, view = false;
};
Separated Separate(const std::vector<std::string>& read, int proc);

// Uses Landlock to allow only reads beneath `read`, no TCP, and no signals to other processes.
// Returns Landlock's version; 0 if the kernel has none.
int LimitFiles(const std::vector<std::string>& read);

// Drops all capabilities and the means to gain any. If started by root, becomes the user `nobody`,
// in a user namespace (own_users) if that is allowed. Returns false if capabilities remain.
bool DropRights(int proc, bool* own_users);

struct Limited {
  bool memory = false, threads = false, descriptors = false;
};
Limited Limit(const Settings& settings, bool own_users);

// Allows only the system calls needed to compute and reply, from here on, in this thread and all
// later threads.
bool FilterCalls();

}  // namespace thalweg::sandbox
