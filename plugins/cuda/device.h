// One GPU as Thalweg sees it: its primary context, memory, copies, events, and the functions of the modules that are built into the plugin.
// Context and modules are made at first use, so that listing the devices of a machine costs little.
// Threads: every method from any thread; errors are thrown.
#ifndef THALWEG_PLUGINS_CUDA_DEVICE_H_
#define THALWEG_PLUGINS_CUDA_DEVICE_H_

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "driver.h"
#include "lines.h"

namespace thalweg::cuda {

// How products of matrices are cut: a block of group * group threads computes group * rows by group * width elements in slices of `depth`.
struct Tile {
  size_t group, rows, width, depth;
};

class Device {
 public:
  Device(const Driver& driver, Lines& lines, CUdevice id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  Lines& lines() const { return lines_; }
  const std::string& uid() const { return uid_; }
  const std::string& description() const { return description_; }
  uint64_t memory() const { return memory_; }
  static Tile tile() { return {16, 4, 4, 16}; }
  static bool blocked() { return false; }  // neighbouring threads do neighbouring elements
  static bool has_double() { return true; }

  // Makes the device's context the calling thread's. First in every call that reaches the driver.
  void Enter();
  // For work that is waited for at once, and the order in which memory is taken and given back.
  CUstream stream();

  // Usable on every stream as soon as it is there. Where there is none left, what the driver keeps for later is given back first.
  CUdeviceptr Allocate(uint64_t bytes);
  // Usable on that stream only, from where it stands.
  CUdeviceptr AllocateOn(CUstream stream, uint64_t bytes);
  void Release(CUdeviceptr memory);
  // Starts the copy on `stream`.
  void EnqueueCopy(CUstream stream, const tw_copy& c);

  // Events say when work is over, not how long it took; they are used again and again.
  CUevent TakeEvent();
  void GiveEvent(CUevent event);

  // A function of the built-in modules.
  CUfunction Function(const std::string& text, const char* name);

 private:
  void Open();  // REQUIRES: mutex_

  const Driver& driver_;
  Lines& lines_;
  const CUdevice id_;
  std::string uid_, description_;
  size_t memory_ = 0;

  std::mutex mutex_;  // of the four that follow: made once, under it
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  std::map<size_t, CUmodule> modules_;

  std::mutex event_mutex_;
  std::vector<CUevent> events_;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DEVICE_H_
