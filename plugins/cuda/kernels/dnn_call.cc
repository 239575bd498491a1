#include "kernels/dnn_call.h"

#include <algorithm>

#include "kernels/images.h"
#include "kernels/product.h"

namespace thalweg::opencl {
namespace {

int64_t After(Size size, Size out, Size stride, Size filter, Size dilation, Size before) {
  return std::max<Size>(0, (out - 1) * stride + (filter - 1) * dilation + 1 - size - before);
}

}  // namespace

uint32_t DnnCall::Stored(uint32_t type, const Axes& dims, const Axes& steps, const Place& at, uint32_t aligned) {
  const uint32_t element = ElementBytes(type);
  memory_.push_back({at, element, 0});
  return graph_.Stored(type, aligned ? aligned : Alignment(at, element), dims, steps);
}

uint32_t DnnCall::Number(float value) {
  memory_.push_back({{}, 0, value});
  return graph_.Number();
}

DnnCall::Way DnnCall::Find(Device& device, const tw_host* host) const {
  device.Enter();
  return device.dnn().Find(host, graph_);
}

void DnnCall::Run(Device& device, const tw_frame* f, const char* what, const Way& way) const {
  const uint64_t bytes = cuda::Dnn::Workspace(*way);
  const Temporary workspace(device, bytes);
  cuda::Submit(device, f->stream, what, [&](CUstream queue) {
    std::vector<CUdeviceptr> memory;
    for (const Memory& m : memory_) memory.push_back(m.element ? Address(m.at, queue, m.element) : reinterpret_cast<CUdeviceptr>(&m.value));
    device.dnn().Enqueue(*way, queue, memory, bytes ? workspace.On(queue) : 0);
  });
  if (f->stream) static_cast<cuda::Stream*>(f->stream)->Hold(way);
}

bool DnnCall::Run(Device& device, const tw_frame* f, const char* what) const {
  const Way way = Find(device, f->host);
  if (way) Run(device, f, what, way);
  return way != nullptr;
}

DnnCall::Operation::Window DnnWindow(const Window& w) {
  return {{w.filter_height, w.filter_width},
          {w.stride_height, w.stride_width},
          {w.dilation_height, w.dilation_width},
          {w.before_height, w.before_width},
          {After(w.height, w.out_height, w.stride_height, w.filter_height, w.dilation_height, w.before_height),
           After(w.width, w.out_width, w.stride_width, w.filter_width, w.dilation_width, w.before_width)}};
}

}  // namespace thalweg::opencl
