// Writes steps in the Trace Event Format. Times are microseconds; there is a row per thread and per
// queue of a device. "X" is a bar; bars of a row are disjoint or nested. "b" and "e" are the ends
// of events across rows: steps, asynchronous calls, waits without a thread, loops. "C" is the value
// of a counter.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "framework/json/json.h"
#include "framework/runtime/trace/step_stats.h"

namespace thalweg {
namespace {

constexpr int64_t kFirstQueue = 1000;  // first row for queues; the rows before it are threads
constexpr const char* kWaits[] = {"nothing to do", "waits for device", "waits for lock", "waits at resource", "waits for a thread"};

// Returns "FAKE:0" of "/job:localhost/replica:0/task:0/device:FAKE:0".
std::string_view ShortDevice(std::string_view name) {
  const size_t at = name.rfind("device:");
  return at == name.npos ? name : name.substr(at + 7);
}

int64_t UnixMinusMonotonic() {
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch(), now = std::chrono::steady_clock::now().time_since_epoch();
  return (std::chrono::duration_cast<std::chrono::nanoseconds>(unix_now) - std::chrono::duration_cast<std::chrono::nanoseconds>(now))
      .count();
}

class Writer {
 public:
  explicit Writer(std::span<const StepStats* const> steps) : steps_(steps), process_(getpid()) {
    base_ = INT64_MAX;
    for (const StepStats* s : steps_) base_ = std::min(base_, s->total().began_ns);
    if (steps_.empty()) base_ = 0;
  }

  std::string Text() {
    j_.Object().Text("displayTimeUnit", "ns").Array("traceEvents");
    NameProcess("thalweg");
    for (size_t k = 0; k < steps_.size(); ++k) WriteStep(k);
    for (const auto& [thread, row] : threads_) {
      at_process_ = row.process;
      Name(row.id, row.id == 0 ? "caller" : "helper " + std::to_string(row.id));
    }
    for (const auto& [key, row] : queues_) {
      const auto& [device, queue, lane] = key;
      at_process_ = ProcessOf(device);
      Name(row.id, std::string(ShortDevice(device)) + " " + queue + (lane ? " (" + std::to_string(lane + 1) + ")" : ""));
    }
    for (const auto& [task, process] : processes_) {
      at_process_ = process;
      NameProcess(task);
    }
    j_.End().Object("metadata").Text("product", "thalweg").Number("monotonic_ns", base_);
    return j_.Number("unix_ns", base_ + UnixMinusMonotonic()).Number("left_out", left_out_).End().End().text();
  }

 private:
  struct Row {
    int64_t id = 0, end = INT64_MIN;
  };
  struct ThreadRowOf {
    int64_t id = 0, process = 0;
  };

  void NameProcess(const std::string& name) {
    Event("process_name", "M", 0, 0);
    j_.Object("args").Text("name", name).End().End();
  }
  // Returns the process row of a device: in a step over a cluster each task is a process.
  int64_t ProcessOf(std::string_view device) {
    const size_t end = device.rfind("/device:");
    if (end == device.npos || device.starts_with("/job:localhost/")) return process_;
    return processes_.try_emplace(std::string(device.substr(0, end)), process_ + 1 + int64_t(processes_.size())).first->second;
  }

  void Event(std::string_view name, const char* phase, int64_t ns, int64_t row) {
    j_.Object().Text("name", name).Text("ph", phase).Real("ts", double(ns) / 1000).Number("pid", at_process_).Number("tid", row);
  }
  void Name(int64_t row, const std::string& name) {
    Event("thread_name", "M", 0, row);
    j_.Object("args").Text("name", name).End().End();
    Event("thread_sort_index", "M", 0, row);
    j_.Object("args").Number("sort_index", row).End().End();
  }
  void Bar(std::string_view name, std::string_view category, int64_t start, int64_t end, int64_t row) {
    Event(name, "X", start, row);
    j_.Text("cat", category).Real("dur", double(std::max<int64_t>(end - start, 0)) / 1000).Object("args").Number("step", step_);
  }
  // Writes the begin of an event across rows and leaves its arguments open; Ends must follow.
  void Begins(std::string_view name, std::string_view category, int64_t start, int64_t row) {
    Event(name, "b", start, row);
    j_.Text("cat", category).Number("id", ++ids_).Object("args").Number("step", step_);
  }
  void Ends(std::string_view name, std::string_view category, int64_t end, int64_t row) {
    Event(name, "e", end, row);
    j_.Text("cat", category).Number("id", ids_).End();
  }
  // Returns the row of a thread and makes its process the current one. device: where the thread is
  // first seen; "": this process.
  int64_t ThreadRow(std::thread::id thread, std::string_view device = {}) {
    auto [it, is_new] = threads_.try_emplace(thread, ThreadRowOf{int64_t(threads_.size()), 0});
    if (is_new) it->second.process = ProcessOf(device);
    at_process_ = it->second.process;
    return it->second.id;
  }

  // Returns a row for a bar. Bars that overlap get rows of their own; they come from two devices'
  // queues, or from two streams with one name.
  int64_t QueueRow(const char* device, const std::string& queue, int64_t start, int64_t end) {
    for (int lane = 0;; ++lane) {
      auto [it, is_new] = queues_.try_emplace({device, queue, lane});
      if (is_new) it->second.id = kFirstQueue + int64_t(queues_.size()) - 1;
      if (it->second.end > start) continue;
      it->second.end = end;
      return it->second.id;
    }
  }

  void WriteStep(size_t k) {
    const StepStats& s = *steps_[k];
    const tw_step_total& total = s.total();
    at_ = total.began_ns - base_;
    step_ = int64_t(total.step);
    left_out_ += int64_t(total.left_out);
    first_id_ = node_ids_;
    const int64_t caller = ThreadRow(s.nodes().empty() ? std::thread::id() : s.thread(0));
    Begins("step " + std::to_string(step_), "step", at_, caller);
    j_.Number("wait_ns", total.wait_ns).Number("block_bytes", int64_t(total.block_bytes));
    j_.Number("allocated_bytes", int64_t(total.allocated_bytes)).Number("left_out", int64_t(total.left_out));
    j_.Number("trace", int64_t(s.trace())).Bool("failed", total.flags & TW_STEP_FAILED).End().End();
    Ends("step " + std::to_string(step_), "step", at_ + total.total_ns, caller);
    const char* planning = total.flags & TW_STEP_PLANNED ? "make plan" : "find plan";
    Begins(planning, "plan", at_, caller);
    j_.End().End();
    Ends(planning, "plan", at_ + total.plan_ns, caller);
    if (total.left_out) {
      Event(std::to_string(total.left_out) + " records left out: tw_step_stats_set_limit", "i", at_ + total.total_ns, caller);
      j_.Text("s", "p").Text("cat", "cut").End();
    }
    for (const tw_step_node& n : s.nodes()) WriteNode(s, n);
    for (const StepStats::Call& c : s.calls()) {
      Bar(c.function, "function", at_ + c.start, at_ + c.end, ThreadRow(c.thread));
      j_.Number("call", int64_t(c.call)).End().End();
    }
    for (const tw_step_wait& w : s.waits()) WriteWait(s, w);
    WriteReports(s);
    WriteQueues(s);
    WriteLoops(s);
    for (const tw_step_node& n : s.nodes()) node_ids_ = std::max(node_ids_, first_id_ + int64_t(n.id) + 1);
  }

  void WriteNode(const StepStats& s, const tw_step_node& n) {
    const bool copy = n.flags & TW_STEP_NODE_COPY;
    const int64_t row = ThreadRow(s.thread(n.thread), n.device), left = n.start_ns + n.busy_ns;
    Bar(n.op, copy ? "copy" : "op", at_ + n.start_ns, at_ + left, row);
    j_.Text("node", n.name).Text("device", n.device);
    if (copy) {
      const bool to_device = std::string_view(n.op) == "CopyToDevice";
      j_.Text("from", to_device ? "host" : ShortDevice(n.device))
          .Text("to", std::string_view(n.op) == "CopyToHost" ? "host" : ShortDevice(n.to));
      j_.Number("bytes", int64_t(n.output_bytes));
    } else {
      j_.Text("kernel", n.kernel).Text("shapes", n.shapes).Number("output_bytes", int64_t(n.output_bytes));
    }
    j_.Number("allocated_bytes", int64_t(n.allocated_bytes)).Number("id", first_id_ + n.id).Array("after");
    for (uint32_t k = 0; k < n.n_after; ++k) j_.Number("", first_id_ + n.after[k]);
    j_.End();
    if (*n.function) j_.Text("function", n.function).Number("call", int64_t(n.call));
    if (*n.frame) j_.Text("loop", n.frame).Number("iteration", n.iteration);
    if (n.flags & TW_STEP_NODE_FAILED) j_.Bool("failed", true);
    j_.End().End();
    if (n.end_ns <= left || n.flags & TW_STEP_NODE_QUEUED) return;
    // The time from when the thread went on until the results were there.
    Begins(n.op, "under way", at_ + left, row);
    j_.Text("node", n.name).Number("id", first_id_ + n.id).End().End();
    Ends(n.op, "under way", at_ + n.end_ns, row);
  }

  void WriteWait(const StepStats& s, const tw_step_wait& w) {
    const char* name = kWaits[std::min<size_t>(w.why, std::size(kWaits) - 1)];
    const int64_t row = ThreadRow(s.thread(w.thread == UINT32_MAX ? 0 : w.thread));
    if (w.thread == UINT32_MAX) {
      Begins(name, "wait", at_ + w.start_ns, row);
    } else {
      Bar(name, "wait", at_ + w.start_ns, at_ + w.end_ns, row);
    }
    if (*w.name) j_.Text("node", w.name);
    if (*w.what) j_.Text("what", w.what);
    j_.End().End();
    if (w.thread == UINT32_MAX) Ends(name, "wait", at_ + w.end_ns, row);
  }

  // Writes the spans and counters of kernels. A span on the row of its thread lies inside the bar of
  // its node. The values of one counter are one series.
  void WriteReports(const StepStats& s) {
    for (const StepStats::KernelSpan& span : s.spans()) {
      const int64_t thread = ThreadRow(span.thread, span.device), start = at_ + span.start, end = at_ + span.end;
      if (*span.row) at_process_ = ProcessOf(span.device);
      Bar(span.name, "span", start, end, *span.row ? QueueRow(span.device, span.row, start, end) : thread);
      j_.Text("node", span.node).End().End();
    }
    for (const StepStats::KernelCount& c : s.counts()) {
      const int64_t thread = ThreadRow(c.thread, c.device);
      Event(std::string(c.node) + " " + c.name, "C", at_ + c.at, thread);
      j_.Text("cat", "counter").Object("args").Number(c.name, c.value).End().End();
    }
  }

  // Writes the work of devices. If a device does not report times, its queue is assumed to work
  // sequentially: an item began when it had been enqueued and the previous one had ended.
  void WriteQueues(const StepStats& s) {
    std::vector<const tw_step_node*> queued;
    for (const tw_step_node& n : s.nodes()) {
      if (n.flags & TW_STEP_NODE_QUEUED) queued.push_back(&n);
    }
    auto end = [](const tw_step_node& n) { return *n.queue ? n.device_end_ns : n.end_ns; };
    std::stable_sort(queued.begin(), queued.end(), [&](auto* a, auto* b) { return end(*a) < end(*b); });
    std::map<std::string_view, int64_t> before;
    for (const tw_step_node* n : queued) {
      const bool told = *n->queue;
      int64_t& last = before.try_emplace(n->device, INT64_MIN).first->second;
      const int64_t begin = told ? n->device_start_ns : std::min(std::max(n->start_ns, last), n->end_ns);
      if (!told) last = end(*n);
      at_process_ = ProcessOf(n->device);
      Bar(n->op, n->flags & TW_STEP_NODE_COPY ? "device copy" : "device op", at_ + begin, at_ + end(*n),
          QueueRow(n->device, told ? n->queue : "queue", at_ + begin, at_ + end(*n)));
      j_.Text("node", n->name).Text("shapes", n->shapes).Number("bytes", int64_t(n->output_bytes)).Number("id", first_id_ + n->id);
      j_.Real("enqueued_us", double(at_ + n->start_ns) / 1000).Bool("told_by_device", told).End().End();
    }
  }

  void WriteLoops(const StepStats& s) {
    struct Time {
      int64_t start = INT64_MAX, end = 0;
    };
    std::map<std::tuple<std::string_view, uint64_t, std::string_view, uint64_t, int64_t>, Time> iterations;
    for (const tw_step_node& n : s.nodes()) {
      if (!*n.frame) continue;
      Time& t = iterations[{n.function, n.call, n.frame, n.loop, n.iteration}];
      t.start = std::min(t.start, n.start_ns);
      t.end = std::max(t.end, n.end_ns);
    }
    for (const auto& [key, time] : iterations) {
      const std::string name = "loop '" + std::string(std::get<2>(key)) + "' iteration " + std::to_string(std::get<4>(key));
      Begins(name, "loop", at_ + time.start, 0);
      j_.End().End();
      Ends(name, "loop", at_ + time.end, 0);
    }
  }

  const std::span<const StepStats* const> steps_;
  const int64_t process_;
  int64_t at_process_ = process_;  // process of the events being written
  Json j_;
  int64_t base_ = 0, at_ = 0;  // base_: begin of the first step on the machine's clock; at_: begin of this step after it
  int64_t step_ = 0, ids_ = 0, node_ids_ = 0, first_id_ = 0, left_out_ = 0;
  std::map<std::thread::id, ThreadRowOf> threads_;
  std::map<std::string, int64_t> processes_;  // of tasks
  std::map<std::tuple<std::string, std::string, int>, Row> queues_;
};

}  // namespace

std::string TraceJson(std::span<const StepStats* const> steps) { return Writer(steps).Text(); }

}  // namespace thalweg
