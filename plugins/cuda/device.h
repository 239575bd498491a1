// One GPU as Thalweg sees it: its primary context, memory, copies, events, and the functions of the modules that are built into the plugin.
// Context and modules are made at first use, so that listing the devices of a machine costs little.
// Threads: every method from any thread; errors are thrown.
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

// What recorded work needs for as long as it may be launched: memory that its calls took for themselves, and ways of libraries (ways.h).
struct Tape {
  std::vector<CUdeviceptr> memory;
  std::vector<std::shared_ptr<const void>> ways;
};

// How products of matrices are cut: a block of group * group threads computes group * rows by group * width elements in slices of `depth`.
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
  int ordinal() const { return id_; }  // among the devices of the process
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
  // Whether memory can be copied from here to `other` without the host; opens the way.
  bool Reaches(const Device& other);
  // From memory of this device to memory of `to`, whose context must be there.
  void EnqueuePeerCopy(CUstream stream, const tw_copy& c, const Device& to);

  // While a stream is being recorded: what the recording will need. NULL: it is not.
  Tape* TapeOf(CUstream stream);
  void SetTape(CUstream stream, Tape* tape);

  Profile& profile() { return profile_; }
  Others& others() { return others_; }
  Blas& blas() { return *blas_; }
  Dnn& dnn() { return *dnn_; }

  // Events say when work is over, not how long it took; they are used again and again.
  CUevent TakeEvent();
  void GiveEvent(CUevent event);

  // A function of the built-in modules; else, where there is a compiler, of one that is compiled for it.
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

  std::mutex mutex_;  // of the four that follow: made once, under it
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
