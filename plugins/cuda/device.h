// One GPU: its primary context, memory, copies, events, and the functions of the modules that are
// built into the plugin. The context and the modules are created at first use, so that listing the
// devices of a machine costs little. Threads: every method may be called from any thread; errors
// are thrown.
#ifndef THALWEG_PLUGINS_CUDA_DEVICE_H_
#define THALWEG_PLUGINS_CUDA_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "blas.h"
#include "compiler.h"
#include "dnn.h"
#include "driver.h"
#include "lines.h"
#include "others.h"
#include "profile.h"

namespace thalweg::cuda {

// Resources that recorded work needs as long as it may be launched: memory that its calls
// allocated, and plans of libraries (ways.h).
struct Tape {
  std::vector<CUdeviceptr> memory;
  std::vector<std::shared_ptr<const void>> ways;
};

// How matrix products are tiled: a block of group * group threads computes group * rows by group *
// width elements in slices of `depth`.
struct Tile {
  size_t group, rows, width, depth;
};

class Device {
 public:
  Device(const Driver& driver, Lines& lines, const Vendors& vendors, BlasLibrary& blas, std::shared_ptr<DnnLibrary> dnn, Compiler& compiler,
         CUdevice id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  Lines& lines() const { return lines_; }
  const std::string& uid() const { return uid_; }
  int ordinal() const { return id_; }  // number among the devices of the process
  const std::string& description() const { return description_; }
  uint64_t memory() const { return memory_; }
  static Tile tile() { return {16, 4, 4, 16}; }
  static bool blocked() { return false; }  // neighbouring threads process neighbouring elements
  static bool has_double() { return true; }

  // Makes the device's context current in the calling thread. Every call that reaches the driver
  // does this first.
  void Enter();
  // The stream for work that the caller waits for at once; it also orders allocations and releases
  // of memory.
  CUstream stream();

  // Allocates memory that every stream may use at once. If there is none left, the driver first
  // frees the memory that it keeps for reuse.
  CUdeviceptr Allocate(uint64_t bytes);
  // Allocates memory that only work enqueued later on that stream may use.
  CUdeviceptr AllocateOn(CUstream stream, uint64_t bytes);
  void Release(CUdeviceptr memory);
  // Enqueues the copy on `stream`.
  void EnqueueCopy(CUstream stream, const tw_copy& c);
  // Returns true if memory can be copied from this device to `other` without the host; enables the
  // access.
  bool Reaches(const Device& other);
  // Copies memory of this device to memory of `to`. REQUIRES: the context of `to` exists.
  void EnqueuePeerCopy(CUstream stream, const tw_copy& c, const Device& to);

  // The tape of a stream that is being recorded, or NULL.
  Tape* TapeOf(CUstream stream);
  void SetTape(CUstream stream, Tape* tape);

  Profile& profile() { return profile_; }
  Others& others() { return others_; }
  Blas& blas() { return *blas_; }
  Dnn& dnn() { return *dnn_; }

  // Events without timing, which are reused.
  CUevent TakeEvent();
  void GiveEvent(CUevent event);

  // Returns a function of the built-in modules. If there is none and NVRTC is available, compiles
  // the text.
  CUfunction Function(const tw_host* host, const std::string& text, const char* name);
  bool compiles(const tw_host* host) { return compiler_.there(host); }

 private:
  void Open();  // REQUIRES: mutex_
  CUfunction FindBuiltIn(const std::string& text, const std::string& function);
  CUfunction FindCompiled(const tw_host* host, const std::string& text, const char* name, const std::string& function);

  const Driver& driver_;
  Lines& lines_;
  const CUdevice id_;
  std::string uid_, description_, architecture_;
  size_t memory_ = 0;

  std::mutex mutex_;  // guards the creation of the next four members
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  std::map<size_t, CUmodule> modules_;

  std::mutex event_mutex_;
  std::vector<CUevent> events_;
  Profile profile_;
  Others others_{*this};
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<Dnn> dnn_;

  Compiler& compiler_;
  std::mutex compile_mutex_;
  std::map<std::string, CUmodule> compiled_;  // by function

  std::mutex tape_mutex_;
  std::map<CUstream, Tape*> tapes_;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DEVICE_H_
