// One OpenCL device: a context, memory, copies, and the programs that kernels requested. The
// context and the queue are created at first use, so that listing the devices of a machine costs
// nothing. Threads: every method may be called from any thread; errors are thrown.
#ifndef THALWEG_PLUGINS_OPENCL_DEVICE_H_
#define THALWEG_PLUGINS_OPENCL_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api.h"
#include "others.h"
#include "pages.h"
#include "profile.h"

namespace thalweg::opencl {

// How kernels divide their work on a device; the build options have the same names. See
// kernels/matmul.cl.
struct Tile {
  size_t group, rows, width, depth, passes;
};

class Device {
 public:
  // index: distinguishes devices of one platform that have the same name.
  Device(const Api& cl, cl_platform_id platform, cl_device_id device, uint32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Api& cl() const { return cl_; }
  cl_device_id id() const { return id_; }
  const std::string& uid() const { return uid_; }
  // The device's number among all devices that the plugin found.
  int32_t number() const { return number_; }
  void SetNumber(int32_t number) { number_ = number; }
  const std::string& description() const { return description_; }
  uint64_t memory() const { return memory_; }
  uint64_t largest() const { return largest_; }
  const std::vector<Tile>& tiles() const { return tiles_; }  // those that fit the device; the first one is for small work
  // Returns the index of the best tile for large work. find() measures it the first time on this
  // machine, and the result is stored with the compiled programs. text: the program that find()
  // measures.
  template <class Find>
  size_t best_tile(const tw_host* host, const std::string& text, Find&& find) {
    std::lock_guard lock(tile_mutex_);
    if (!best_tile_) best_tile_ = KeptTile(host, text);
    if (!best_tile_) KeepTile(host, text, *(best_tile_ = find()));
    return *best_tile_;
  }
  bool blocked() const { return blocked_; }  // true for a CPU: an item works best on consecutive elements
  bool has_double() const { return has_double_; }
  uint64_t cache_bytes() const { return cache_bytes_; }  // larger results should bypass the caches
  // Returns true if commands may run concurrently on one queue: the setting asks for it and the
  // device supports it.
  bool out_of_order() const { return out_of_order_; }
  void RunOutOfOrder();

  Profile& profile() { return profile_; }
  Others& others() { return others_; }

  cl_context context();
  // The in-order queue for work whose end the caller waits for at once. Asynchronous work has
  // queues of its own, see stream.h.
  cl_command_queue queue();

  cl_mem Allocate(uint64_t bytes);
  cl_mem Copied(const void* from, uint64_t bytes);  // allocates memory that holds these bytes
  // Enqueues the copy on `queue`, after the `n` events. When `*out_event` is complete, the host's
  // memory may be reused.
  void EnqueueCopy(cl_command_queue queue, const tw_copy& c, cl_uint n, const cl_event* after, cl_event* out_event);
  // Copies at once if the device is a CPU in host memory, the copy is small, one side is the host's,
  // and profiling is off; else returns false and does nothing. REQUIRES: no enqueued command uses
  // the memory.
  bool CopyNow(const tw_copy& c);

  // Creates a kernel object for one caller, because threads that share an object share its
  // arguments. text: the program that contains the function `name`.
  cl_kernel MakeKernel(const tw_host* host, const std::string& text, const char* name);

 private:
  cl_mem Create(cl_mem_flags flags, uint64_t bytes, void* host, const char* what);
  cl_mem OnPages(uint64_t bytes, const void* from);
  cl_program Build(const tw_host* host, const std::string& text);
  std::optional<size_t> KeptTile(const tw_host* host, const std::string& text) const;
  void KeepTile(const tw_host* host, const std::string& text, size_t tile) const;

  const Api& cl_;
  const cl_device_id id_;
  int32_t number_ = 0;
  Profile profile_;
  Others others_{cl_};
  std::string uid_, description_, identity_;  // identity_: what a compiled program depends on
  uint64_t memory_, largest_;
  std::vector<Tile> tiles_;
  std::mutex tile_mutex_;  // acquired before the others
  std::optional<size_t> best_tile_;
  bool blocked_, has_double_, out_of_order_ = false;
  bool keeps_programs_ = false;  // the driver has a cache of compiled programs
  uint64_t cache_bytes_;
  std::shared_ptr<Pages> pages_;  // NULL if the device does not share the host's memory

  std::mutex mutex_;  // guards the creation of the next two members
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;

  std::mutex program_mutex_;                    // acquired before mutex_; copies do not wait for a compiler run of seconds
  std::map<std::string, cl_program> programs_;  // by program text
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_DEVICE_H_
