// TouchedResources: a thread that wakes calls waiting at touched resources, for touches where no
// step may be told directly: an engine may drop a value under its lock, and the value's destructor
// touches the resource. The thread exists only while a call waits at a held resource. Threads: any.
// Its lock is a leaf: no other lock is taken under it.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace thalweg {

class Resource;

class TouchedResources {
 public:
  static TouchedResources& Get();

  // Begin counts a waiting call and End removes it; the thread exists while there are any. Begin
  // throws if the thread cannot be made.
  void Begin();
  void End();
  // Wakes the calls that wait at the resource soon. Allocates nothing and never blocks for long.
  void Add(Resource* at);

 private:
  void Work();

  std::mutex mu_;
  std::condition_variable changed_;
  Resource* first_ = nullptr;  // list, linked by Resource::next_touched
  uint64_t calls_ = 0;         // waiting calls
  int64_t process_ = 0;        // process of the thread; 0: there is none
};

}  // namespace thalweg
