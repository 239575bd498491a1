#include "recording.h"

#include <memory>

#include "stream.h"

namespace thalweg::cuda {

// Errors are ignored: the memory of a lost device is gone anyway.
void ReleaseAll(Device& device, const std::vector<CUdeviceptr>& memory) {
  if (memory.empty()) return;
  try {
    const CUstream stream = device.stream();
    for (CUdeviceptr m : memory) device.driver().cuMemFreeAsync(m, stream);
  } catch (const tw::Error&) {
  }
}

Recording::~Recording() {
  if (graph_) device_.driver().cuGraphExecDestroy(graph_);
  ReleaseAll(device_, tape_.memory);
}

bool Recording::Update(CUgraph graph) {
  CUgraphExecUpdateResultInfo why{};
  return graph_ && device_.driver().cuGraphExecUpdate(graph_, graph, &why) == CUDA_SUCCESS;
}

void Recording::Become(CUgraph graph, Tape tape) {
  const Driver& driver = device_.driver();
  ReleaseAll(device_, tape_.memory);
  std::swap(tape_, tape);  // the old tape is released after the graph no longer uses it
  CUresult error = CUDA_SUCCESS;
  if (!Update(graph)) {
    if (graph_) driver.cuGraphExecDestroy(graph_);
    graph_ = nullptr;
    error = driver.cuGraphInstantiateWithFlags(&graph_, graph, 0);
    if (error != CUDA_SUCCESS) graph_ = nullptr;
  }
  driver.cuGraphDestroy(graph);
  Check(driver, error, "making a graph of recorded work");
}

void Recording::Launch(CUstream queue) const { Check(device_.driver(), device_.driver().cuGraphLaunch(graph_, queue), "recorded work"); }

namespace {

tw_status* Begin(const tw_host* host, const tw_capture_config* c) {
  return tw::guard(host, [&] { static_cast<Stream*>(c->stream)->BeginRecording(); });
}
tw_status* End(const tw_host* host, void* stream, void** out_recording) {
  return tw::guard(host, [&] {
    Stream& s = *static_cast<Stream*>(stream);
    auto recording = std::make_unique<Recording>(s.device());
    s.EndRecording(recording.get());
    *out_recording = recording.release();
  });
}
tw_status* EndInto(const tw_host* host, void* stream, void* recording) {
  return tw::guard(host, [&] { static_cast<Stream*>(stream)->EndRecording(static_cast<Recording*>(recording)); });
}
tw_status* Replay(const tw_host* host, void* stream, void* recording) {
  return tw::guard(host, [&] {
    Stream& s = *static_cast<Stream*>(stream);
    s.device().Enter();
    s.Timed("recorded work", [&] { static_cast<Recording*>(recording)->Launch(s.queue()); });
  });
}
void Release(const tw_host* host, void* self, void* recording) {
  host->status->release(tw::guard(host, [&] { static_cast<Device*>(self)->Enter(); }));
  delete static_cast<Recording*>(recording);
}

}  // namespace

const tw_capture_set kCapture = {TW_SIZED(tw_capture_set), Begin, End, Replay, Release, EndInto};

}  // namespace thalweg::cuda
