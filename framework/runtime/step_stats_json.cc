// The Trace Event Format: times are microseconds, a row per thread. "X" is a bar, "b" and "e" the ends of one that lies across threads.
#include "framework/json/json.h"
#include "framework/runtime/step_stats.h"

namespace thalweg {
namespace {

constexpr int64_t kProcess = 1;

Json& Event(Json& json, std::string_view name, const char* phase, int64_t ns, int64_t thread) {
  json.Object().Text("name", name).Text("ph", phase).Real("ts", double(ns) / 1000).Number("pid", kProcess).Number("tid", thread);
  return json;
}

void ThreadName(Json& json, uint32_t thread) {
  Event(json, "thread_name", "M", 0, thread);
  json.Object("args").Text("name", thread == 0 ? std::string("caller") : "helper " + std::to_string(thread)).End().End();
}

void NodeBar(Json& json, const tw_step_node& n) {
  Event(json, n.op, "X", n.start_ns, n.thread).Text("cat", n.flags & TW_STEP_NODE_COPY ? "copy" : "op");
  json.Real("dur", double(n.busy_ns) / 1000).Object("args");
  json.Text("node", n.name).Text("device", n.device).Text("kernel", n.kernel);
  json.Number("output_bytes", int64_t(n.output_bytes)).Number("allocated_bytes", int64_t(n.allocated_bytes));
  if (n.flags & TW_STEP_NODE_FAILED) json.Bool("failed", true);
  json.End().End();
}

// From when the thread went on until the results were there.
void Tail(Json& json, const tw_step_node& n, size_t id) {
  const int64_t left = n.start_ns + n.busy_ns;
  if (n.end_ns <= left) return;
  Event(json, n.op, "b", left, n.thread).Text("cat", "under way").Number("id", int64_t(id));
  json.Object("args").Text("node", n.name).End().End();
  Event(json, n.op, "e", n.end_ns, n.thread).Text("cat", "under way").Number("id", int64_t(id)).End();
}

}  // namespace

std::string StepStats::Json() const {
  thalweg::Json json;
  json.Object().Text("displayTimeUnit", "ns").Array("traceEvents");
  for (uint32_t t = 0; t < total_.threads; ++t) ThreadName(json, t);
  Event(json, "step", "X", 0, 0).Text("cat", "step").Real("dur", double(total_.total_ns) / 1000).Object("args");
  json.Number("wait_ns", total_.wait_ns).Number("block_bytes", int64_t(total_.block_bytes));
  json.Number("allocated_bytes", int64_t(total_.allocated_bytes)).Bool("failed", total_.flags & TW_STEP_FAILED).End().End();
  Event(json, total_.flags & TW_STEP_PLANNED ? "make plan" : "find plan", "X", 0, 0).Text("cat", "step");
  json.Real("dur", double(total_.plan_ns) / 1000).End();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    NodeBar(json, nodes_[i]);
    Tail(json, nodes_[i], i);
  }
  return json.End().End().text();
}

}  // namespace thalweg
