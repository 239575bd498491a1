// One OpenCL device as Thalweg sees it: a context, memory, copies, and the programs that kernels asked for. Context and queue are made
// at first use, so that listing the devices of a machine costs nothing. Threads: every method from any thread; errors are thrown.
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

// How kernels cut their work on a device; the build options of the same names. See kernels/matmul.cl.
struct Tile {
  size_t group, rows, width, depth, passes;
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
  // Among all devices that the plugin found.
  int32_t number() const { return number_; }
  void SetNumber(int32_t number) { number_ = number; }
  const std::string& description() const { return description_; }
  uint64_t memory() const { return memory_; }
  uint64_t largest() const { return largest_; }
  const std::vector<Tile>& tiles() const { return tiles_; }  // that fit; the first one does for small work
  // The number of the tile that is best for large work: what find() answered when it was first asked on this machine. It is kept beside
  // compiled programs; text: of the program that was measured.
  template <class Find>
  size_t best_tile(const tw_host* host, const std::string& text, Find&& find) {
    std::lock_guard lock(tile_mutex_);
    if (!best_tile_) best_tile_ = KeptTile(host, text);
    if (!best_tile_) KeepTile(host, text, *(best_tile_ = find()));
    return *best_tile_;
  }
  bool blocked() const { return blocked_; }  // an item does best with elements that follow each other: a CPU
  bool has_double() const { return has_double_; }
  uint64_t cache_bytes() const { return cache_bytes_; }  // results that are larger need not go through the caches
  // Whether commands may run beside each other on queues: so said the setting, and the device can do it.
  bool out_of_order() const { return out_of_order_; }
  void RunOutOfOrder();

  Profile& profile() { return profile_; }
  Others& others() { return others_; }

  cl_context context();
  // In order. For work that is waited for at once; what is asynchronous has a queue of its own, see stream.h.
  cl_command_queue queue();

  cl_mem Allocate(uint64_t bytes);
  cl_mem Copied(const void* from, uint64_t bytes);  // new memory that holds these bytes
  // Starts the copy on `queue`, after those events; the host's side may be used again when `*out_event` is over.
  void EnqueueCopy(cl_command_queue queue, const tw_copy& c, cl_uint n, const cl_event* after, cl_event* out_event);
  // Copies at once what is small enough, where the memory is the processor's own. REQUIRES: nothing under way touches it. False: not done.
  bool CopyNow(const tw_copy& c);

  // A kernel object of its own for each caller: the arguments of one are shared by all threads that hold it.
  // text: of the program that the kernel is a function of.
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
  std::mutex tile_mutex_;  // taken before the others
  std::optional<size_t> best_tile_;
  bool blocked_, has_double_, out_of_order_ = false;
  uint64_t cache_bytes_;
  std::shared_ptr<Pages> pages_;  // NULL: the device's memory is not the host's

  std::mutex mutex_;  // of the two that follow: made once, under it
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;

  std::mutex program_mutex_;                    // taken before mutex_; a compiler run of seconds keeps nobody from copying
  std::map<std::string, cl_program> programs_;  // by their text
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_DEVICE_H_
