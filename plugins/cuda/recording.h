// Recorded work of a stream: a graph of the driver, and the resources of its calls, which live as
// long as the recording. Threads: one at a time.
#ifndef THALWEG_PLUGINS_CUDA_RECORDING_H_
#define THALWEG_PLUGINS_CUDA_RECORDING_H_

#include <vector>

#include "device.h"

namespace thalweg::cuda {

class Recording {
 public:
  explicit Recording(Device& device) : device_(device) {}
  ~Recording();  // REQUIRES: the device's context is current and no replay is pending
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Replaces the recording by `graph` and `tape`; takes both, also on failure. The driver updates
  // the present graph in place if it can.
  void Become(CUgraph graph, Tape tape);
  void Launch(CUstream queue) const;

 private:
  bool Update(CUgraph graph);

  Device& device_;
  CUgraphExec graph_ = nullptr;
  Tape tape_;
};

// Releases memory that calls allocated while their stream was being recorded.
void ReleaseAll(Device& device, const std::vector<CUdeviceptr>& memory);

extern const tw_capture_set kCapture;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_RECORDING_H_
