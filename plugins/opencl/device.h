// One OpenCL device as Thalweg sees it: a context, memory, copies, and the program that holds all kernels. Context and program are made
// at first use, so that listing the devices of a machine costs nothing. Threads: every method from any thread; errors are thrown.
#ifndef THALWEG_PLUGINS_OPENCL_DEVICE_H_
#define THALWEG_PLUGINS_OPENCL_DEVICE_H_

#include <mutex>
#include <string>

#include "api.h"

namespace thalweg::opencl {

// How kernels cut their work on a device; the build options of the same names. See kernels/matmul.cl.
struct Tile {
  size_t group, rows, width, depth;
};

class Device {
 public:
  // index: tells apart devices of one platform that share a name.
  Device(const Api& cl, cl_platform_id platform, cl_device_id device, uint32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Api& cl() const { return cl_; }
  cl_device_id id() const { return id_; }
  const std::string& uid() const { return uid_; }
  const std::string& description() const { return description_; }
  uint64_t memory() const { return memory_; }
  uint64_t largest() const { return largest_; }
  const Tile& tile() const { return tile_; }

  cl_context context();
  // In order. For work that is waited for at once; what is asynchronous has a queue of its own, see stream.h.
  cl_command_queue queue();

  cl_mem Allocate(uint64_t bytes);
  // Starts the copy on `queue`; where the host's side may be used again is when `*out_event` is over.
  void EnqueueCopy(cl_command_queue queue, const tw_copy& c, cl_event* out_event);

  // A kernel object of its own for each caller: the arguments of one are shared by all threads that hold it.
  cl_kernel MakeKernel(const tw_host* host, const char* name);

 private:
  void Build(const tw_host* host);  // REQUIRES: program_mutex_

  const Api& cl_;
  const cl_device_id id_;
  std::string uid_, description_, identity_;  // identity_: what a compiled program depends on
  uint64_t memory_, largest_;
  Tile tile_;

  std::mutex mutex_;  // of the two that follow: made once, under it
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;

  std::mutex program_mutex_;  // taken before mutex_; a compiler run of seconds keeps nobody from copying
  cl_program program_ = nullptr;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_DEVICE_H_
