// TouchedResources: the thread that calls those who wait at resources that were touched where no step may be told of it: an engine lets a
// value go under its lock, and the value's destructor touches the resource. It is there only while a call waits at a held resource.
// Threads: any. The lock is the last that anybody takes.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace thalweg {

class Resource;

class TouchedResources {
 public:
  static TouchedResources& Get();

  // One more call waits, or one less: while there are any there is the thread. Throws where it cannot be made.
  void Begin();
  void End();
  // Those who wait there are called soon. Needs no memory and never blocks for long.
  void Add(Resource* at);

 private:
  void Work();

  std::mutex mu_;
  std::condition_variable changed_;
  Resource* first_ = nullptr;  // a list, by Resource::next_touched
  uint64_t calls_ = 0;         // that wait
  int64_t process_ = 0;        // where the thread is; 0: there is none
};

}  // namespace thalweg
