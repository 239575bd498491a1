#include "kernels/kernel.h"

#include <algorithm>

#include "kernels/product.h"

namespace thalweg::opencl {

int64_t NumberAt(const tw_frame* f, Device& device, const Place& from) {
  int64_t value = 0;
  cuda::Submit(device, f->stream, "reading a number", [&](CUstream queue) {
    const cuda::Driver& driver = device.driver();
    Check(driver, driver.cuMemcpyDtoHAsync(&value, Address(from, queue, sizeof value), sizeof value, queue), "reading a number");
    Check(driver, driver.cuStreamSynchronize(queue), "waiting for a number");
  });
  return value;
}

Kernel::Kernel(const tw_host* host, Device& device, const std::string& text, const char* name)
    : device_(device), name_(name), function_(device.Function(host, text, name)) {}

void Kernel::Set(CUstream queue, Arguments* list, const Place& place) const {
  const CUdeviceptr memory = place.of ? place.of->On(queue) : place.memory;
  if (place.of && place.of->content()) list->Need(place.of->content());
  list->Add(&memory, sizeof memory);
  list->Add(&place.first, sizeof place.first);
}

// Functions loop over the rest of the items if a grid is cut off at the limits.
void Kernel::Launch(CUstream queue, Range items, Range group, void** arguments) const {
  constexpr size_t kMostX = (size_t(1) << 31) - 1, kMost = 65535;
  const auto blocks = [](size_t n, size_t by, size_t most) { return unsigned(std::min((n + by - 1) / by, most)); };
  const cuda::Driver& driver = device_.driver();
  Check(driver,
        driver.cuLaunchKernel(function_, blocks(items.x, group.x, kMostX), blocks(items.y, group.y, kMost), blocks(items.z, group.z, kMost),
                              unsigned(group.x), unsigned(group.y), unsigned(group.z), 0, queue, arguments, nullptr),
        name_);
}

LateKernel::LateKernel(const tw::Node& n, std::string text, const char* name)
    : host_(n.host()), device_(*static_cast<Device*>(n.node->device)), text_(std::move(text)), name_(name) {}

const Kernel& LateKernel::operator*() const {
  std::lock_guard lock(mutex_);
  if (!kernel_) kernel_ = std::make_unique<Kernel>(host_, device_, text_, name_);
  return *kernel_;
}

CUdeviceptr Temporary::On(CUstream queue) const {
  if (memory_) return memory_;
  if (cuda::Tape* tape = device_.TapeOf(queue)) return Keep(&tape->memory);
  memory_ = device_.AllocateOn(queue, bytes_);
  queue_ = queue;
  if (content_) {
    const cuda::Driver& driver = device_.driver();
    Check(driver, driver.cuMemcpyHtoDAsync(memory_, content_->data(), bytes_, queue), "a copy to the device");
  }
  return memory_;
}

// Memory for a recorded call: the recording owns it, and it is filled once.
CUdeviceptr Temporary::Keep(std::vector<CUdeviceptr>* tape) const {
  tape->reserve(tape->size() + 1);
  memory_ = device_.Allocate(bytes_);
  tape->push_back(memory_);
  if (!content_) return memory_;
  const cuda::Driver& driver = device_.driver();
  Check(driver, driver.cuMemcpyHtoDAsync(memory_, content_->data(), bytes_, device_.stream()), "a copy to the device");
  Check(driver, driver.cuStreamSynchronize(device_.stream()), "a copy to the device");
  return memory_;
}

Temporary::~Temporary() {
  if (queue_) device_.driver().cuMemFreeAsync(memory_, queue_);
}

}  // namespace thalweg::opencl
