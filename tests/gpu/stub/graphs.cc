// Stream capture, and graphs of the captured work.
#include <algorithm>

#include "state.h"

using namespace stub;

EXPORT CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamBeginCapture")) return error;
  if (stream->recorded) Wrong("a stream is recorded that is being recorded");
  stream->recorded = true;
  stream->broken = false;
  stream->kept.clear();
  Now().taken_while_recorded.clear();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  const CUresult error = Enter("cuStreamEndCapture");
  if (!stream->recorded) {
    Wrong("recording ends that did not begin");
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  *graph = nullptr;
  stream->recorded = Mutant("capture_left_open");
  std::vector<Work> kept = std::move(stream->kept);
  stream->kept.clear();
  if (Mutant("captured_memory_back_early"))
    for (uintptr_t m : s.taken_while_recorded) s.memory[m].gone = true;
  if (error || stream->broken) return error ? error : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = new CUgraph_st{std::move(kept)};
  s.graphs.insert(*graph);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  std::lock_guard lock(Now().mutex);
  Enter("cuGraphDestroy");
  if (!Now().graphs.erase(graph)) {
    Wrong("a graph is destroyed that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphInstantiateWithFlags")) return error;
  *executable = new CUgraphExec_st{graph->work};
  Now().executables.insert(*executable);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo*) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphExecUpdate")) return error;
  if (executable->running.use_count() > 1) Wrong("a graph is changed while it runs");
  const auto same = [](const Work& a, const Work& b) { return a.what == b.what && a.touches.size() == b.touches.size(); };
  if (!std::equal(executable->work.begin(), executable->work.end(), graph->work.begin(), graph->work.end(), same))
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  if (!Mutant("graph_not_updated")) executable->work = graph->work;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  std::lock_guard lock(Now().mutex);
  Enter("cuGraphExecDestroy");
  if (!Now().executables.erase(executable)) {
    Wrong("an executable graph is destroyed that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (executable->running.use_count() > 1) Wrong("a graph is destroyed while it runs");
  delete executable;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphLaunch")) return error;
  if (!Now().executables.count(executable)) {
    Wrong("a graph is launched that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Mutant("graph_not_launched")) return CUDA_SUCCESS;
  for (Work w : executable->work) {
    w.graph = executable->running;
    Enqueue(Mutant("graph_on_another_stream") ? Another(stream) : stream, std::move(w));
  }
  return CUDA_SUCCESS;
}
