// The base of this plugin's kernels: a body that runs later, on the queue, on arrays whose cells
// are looked up only then. The frame and its views have been destroyed by that time, so a body's
// data is copied.
#ifndef THALWEG_PLUGINS_FAKE_KERNELS_KERNEL_H_
#define THALWEG_PLUGINS_FAKE_KERNELS_KERNEL_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "stream.h"

namespace thalweg::fake {

using Dims = std::vector<int64_t>;

// A copy of a view that outlives the view's frame.
struct Array {
  explicit Array(const tw_view* v) : data(v->data), offset(v->offset), bytes(v->bytes), count(v->count), dims(v->dims, v->dims + v->rank) {}
  const void* data;
  uint64_t offset, bytes, count;
  Dims dims;
  char* cells = nullptr;  // valid only while the body runs
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(cells);
  }
};

class Kernel {
 public:
  explicit Kernel(const tw::Node& n)
      : device_(*static_cast<Device*>(n.node->device)),
        title_(std::string(n.node->op, n.node->op_len) + " '" + std::string(n.name()) + "'") {}

  Device& device() const { return device_; }

  // Enqueues body(arrays), with an array for each view. Throws for a view that is not in the
  // device's memory.
  template <class Body>
  void Launch(const tw_frame* f, std::initializer_list<const tw_view*> views, Body body) const {
    device_.Enter(title_);
    std::vector<Array> arrays(views.begin(), views.end());
    Find(&arrays);
    uint64_t elements = 0;
    for (const Array& a : arrays) elements = std::max(elements, a.count);
    Submit(device_, f->stream,
           {Command::kKernel, title_,
            [this_device = &device_, title = title_, arrays, body]() mutable {
              Find(*this_device, title, &arrays);
              body(arrays);
            },
            nullptr, nullptr, 0, elements});
  }

 private:
  void Find(std::vector<Array>* arrays) const { Find(device_, title_, arrays); }
  static void Find(Device& device, const std::string& title, std::vector<Array>* arrays) {
    for (Array& a : *arrays) {
      try {
        if (a.bytes) a.cells = device.memory().Cells(a.data, a.offset, a.bytes);
      } catch (const tw::Error& e) {
        throw tw::Error{e.code, title + " on " + device.uid() + ": " + e.text};
      }
    }
  }

  Device& device_;
  const std::string title_;
};

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_KERNELS_KERNEL_H_
