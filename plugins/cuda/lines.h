// Maps a timeline to the stream that signals it, so that one stream waits for another on the device
// itself. One per runtime. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_LINES_H_
#define THALWEG_PLUGINS_CUDA_LINES_H_

#include <map>
#include <mutex>

#include "thalweg/plugin/abi.h"

namespace thalweg::cuda {

class Stream;

class Lines {
 public:
  void Add(const tw_timeline* line, Stream* stream) {
    std::lock_guard lock(mutex_);
    streams_[line] = stream;
  }
  void Remove(const tw_timeline* line) {
    std::lock_guard lock(mutex_);
    streams_.erase(line);
  }
  // Calls use(stream) with the timeline's stream, which is not destroyed meanwhile. Returns false
  // if no stream has the timeline, or if use returns false.
  template <class Use>
  bool With(const tw_timeline* line, Use&& use) {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(line);
    return found != streams_.end() && use(*found->second);
  }

 private:
  std::mutex mutex_;
  std::map<const tw_timeline*, Stream*> streams_;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_LINES_H_
