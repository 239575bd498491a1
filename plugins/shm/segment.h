// Segment: the memory that the members of a group share. Rank 0 makes it, the others open it; each
// member holds a file lock on its byte as long as its process lives.
// Memory: a head, a slot for each member, two windows for each member, and a window for results.
// Threads: one member uses its Segment from one thread, except Break, Failure and WakeAll (any).
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "../common/collective_call.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::shm {

using common::Failed;
using common::Task;

struct Slot {
  alignas(64) std::atomic<uint32_t> phase;  // counts the member's meetings; a futex
  std::atomic<uint32_t> left;               // 1: the member has left the group
  std::atomic<int32_t> process;             // 0: the member has not come yet
  uint32_t reserved;
  Task tasks[2];  // of its operations with even and odd numbers
};

class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;

  // Makes a file of a new name in the folder. window: bytes, a multiple of 64. window_setting: the name
  // of the setting that says it.
  void Create(const std::string& folder, uint32_t members, uint64_t window, const char* window_setting);
  // Opens the file of rank 0. Returns false if there is none, or if rank 0 is lost; the file of a lost
  // one is removed.
  bool Open(const std::string& path, uint32_t members);
  // Takes the member's lock and says that it has come. ALREADY_EXISTS if the rank is taken.
  void Come(uint32_t rank);
  // Removes the file's name. Members that have opened it keep the memory.
  void Unlink();

  const std::string& path() const { return path_; }
  uint32_t members() const { return members_; }
  uint64_t window() const { return window_; }
  Slot& slot(uint32_t rank) const;
  char* in(uint32_t which, uint32_t rank) const;  // which: 0 or 1
  char* out() const;
  bool came() const { return came_; }  // Come has succeeded
  // Returns false if the member's process has ended. REQUIRES: the member has come.
  bool IsAlive(uint32_t rank) const;

  // Records the group's first failure, which all members get; later ones are ignored.
  void Break(uint32_t code, const std::string& text);
  // Returns the group's failure; its code is 0 if there is none.
  Failed Failure() const;
  // Wakes the members that wait for this one.
  void WakeAll(uint32_t rank) const;

 private:
  struct Head;
  Head& head() const { return *static_cast<Head*>(memory_); }
  static uint64_t WindowsAt(uint32_t members);
  static uint64_t Bytes(uint32_t members, uint64_t window);
  void Map(uint64_t bytes);

  std::string path_;
  int file_ = -1;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0, window_ = 0;
  uint32_t members_ = 0;
  bool came_ = false;
};

// Waits until the number differs from `seen`, for at most `nanoseconds`; may return early.
void FutexWait(const std::atomic<uint32_t>& number, uint32_t seen, int64_t nanoseconds);
void FutexWake(const std::atomic<uint32_t>& number);

}  // namespace thalweg::shm
