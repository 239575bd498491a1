// The functions of oneDNN that the pack calls. The library (40 MB, 2 ms to open) is opened when a
// kernel first needs it. Before that, the pack only checks that the library is there.
// Threads: Library from any thread; an Api is read-only.
#ifndef THALWEG_PLUGINS_ONEDNN_LIBRARY_H_
#define THALWEG_PLUGINS_ONEDNN_LIBRARY_H_

#include <atomic>
#include <mutex>
#include <string>

#include <oneapi/dnnl/dnnl.h>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::onednn {

// clang-format off
#define THALWEG_ONEDNN_FUNCTIONS(X) \
  X(dnnl_dilated_convolution_backward_data_desc_init) X(dnnl_dilated_convolution_backward_weights_desc_init) \
  X(dnnl_dilated_convolution_forward_desc_init) X(dnnl_engine_create) X(dnnl_engine_destroy) X(dnnl_matmul_desc_init) \
  X(dnnl_memory_create) X(dnnl_memory_desc_equal) X(dnnl_memory_desc_get_size) X(dnnl_memory_desc_init_by_strides) \
  X(dnnl_memory_desc_init_by_tag) X(dnnl_memory_destroy) X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_destroy) \
  X(dnnl_primitive_attr_set_scratchpad_mode) X(dnnl_primitive_create) X(dnnl_primitive_desc_create) X(dnnl_primitive_desc_destroy) \
  X(dnnl_primitive_desc_query) X(dnnl_primitive_desc_query_md) X(dnnl_primitive_destroy) X(dnnl_primitive_execute) \
  X(dnnl_reorder_primitive_desc_create) X(dnnl_sgemm) X(dnnl_stream_create) X(dnnl_stream_destroy)
// clang-format on

struct Api {
#define THALWEG_ONEDNN_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_ONEDNN_FUNCTIONS(THALWEG_ONEDNN_POINTER)
#undef THALWEG_ONEDNN_POINTER
  // Functions of the OpenMP library that oneDNN was built with, or NULL if it was built without
  // OpenMP.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  void (*round_bfloat16)(const float* x, uint16_t* y, int64_t n) = nullptr;  // of the instruction set in use
  int slots = 1;                                                             // the number of workers that share a call
  int64_t processors = 1;                                                    // of the machine, whether the process may use them or not
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;  // a CPU stream; it only tells primitives where to run
};

class Library {
 public:
  // Looks for the library. Opens it, and closes it at once, only if just the loader's cache knows it.
  // Throws NOT_FOUND, with a remedy, if there is none.
  explicit Library(const tw_host* host);
  ~Library();
  Library(const Library&) = delete;

  // Products and convolutions with fewer multiply-adds are left to the CPU plugin's own code. A value
  // up to 1 leaves only the work that the library cannot take.
  double least_work() const { return least_work_; }

  // Returns true if the setting `fuse` allows the graph compiler this kind of fusion: "bias",
  // "activation", or "filter" (a constant filter is packed once).
  bool fuses(std::string_view what) const;

  // Returns NULL if the library cannot be opened; the reason is logged once. The kernels then work
  // without it.
  const Api* Open() const;

 private:
  void Load() const;

  const tw_host* host_;
  std::string name_, fuse_;  // fuse_: words separated by commas; empty means all
  double least_work_ = 12e6;
  mutable std::once_flag once_;
  mutable Api api_;
  mutable std::atomic<bool> open_{false};
};

// While it exists, oneDNN's work for the calling thread stays on that thread, so the host's pool
// has the only threads. The destructor restores the program's own OpenMP setting.
class OneThread {
 public:
  explicit OneThread(const Api& api) : api_(api), before_(api.omp_get_max_threads ? api.omp_get_max_threads() : 1) {
    if (before_ > 1) api.omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) api_.omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  const Api& api_;
  int before_;
};

// Returns the error for a failure of `what`.
tw::Error Failure(dnnl_status_t status, const char* what);

inline void Check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) throw Failure(status, what);
}

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_LIBRARY_H_
