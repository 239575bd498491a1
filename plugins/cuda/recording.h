// Recorded work of a stream: a graph of the driver's, and what its calls need, which lasts as long as it does.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_CUDA_RECORDING_H_
#define THALWEG_PLUGINS_CUDA_RECORDING_H_

#include <vector>

#include "device.h"

namespace thalweg::cuda {

class Recording {
 public:
  explicit Recording(Device& device) : device_(device) {}
  ~Recording();  // REQUIRES: the device's context; no replay is under way
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Becomes what the graph says; both are taken, also on failure. What is there is changed in place where the driver can do so.
  void Become(CUgraph graph, Tape tape);
  void Launch(CUstream queue) const;

 private:
  bool Update(CUgraph graph);

  Device& device_;
  CUgraphExec graph_ = nullptr;
  Tape tape_;
};

// Memory that calls took for themselves while their stream was being recorded.
void ReleaseAll(Device& device, const std::vector<CUdeviceptr>& memory);

extern const tw_capture_set kCapture;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_RECORDING_H_
