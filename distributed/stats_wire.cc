#include "distributed/stats_wire.h"

#include <algorithm>
#include <unordered_map>

#include "distributed/wire.h"

namespace thalweg::distributed {
namespace {

// Numbers texts, since most of them occur in many records.
class TextTable {
 public:
  uint32_t operator[](std::string_view text) {
    auto [it, is_new] = numbers_.try_emplace(std::string(text), uint32_t(texts_.size()));
    if (is_new) texts_.push_back(it->first);
    return it->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> texts_;
};

// A flag of the message beside TW_STEP_*: what kernels report follows. A reader of an older version
// refuses such a message; the client then shows the step without this task.
constexpr uint32_t kReports = 1u << 31;

void PutNode(const tw_step_node& n, TextTable* texts, WireWriter* to) {
  to->Number(n.flags);
  for (const char* text : {n.name, n.op, n.device, n.kernel, n.shapes, n.to, n.function, n.frame, n.queue}) to->Number((*texts)[text]);
  for (int64_t v : {n.start_ns, n.end_ns, n.busy_ns, n.iteration, n.device_start_ns, n.device_end_ns}) to->Number(v);
  for (uint64_t v : {n.output_bytes, n.allocated_bytes, n.call, n.loop}) to->Number(v);
  to->Number(n.thread);
  to->Number(n.id);
  to->Number(n.n_after);
  for (uint32_t i = 0; i < n.n_after; ++i) to->Number(n.after[i]);
}

class Reader {
 public:
  Reader(std::string_view bytes, int64_t shift, StatsPart* to) : r_(bytes), shift_(shift), to_(*to) {}

  Status Run() {
    ReadTexts();
    StepStats::Part& p = to_.part;
    p.total.size = sizeof p.total;
    p.total.flags = r_.Number<uint32_t>();
    p.total.block_bytes = r_.Number<uint64_t>();
    p.total.left_out = r_.Number<uint64_t>();
    p.threads = r_.Number<uint32_t>();
    if (p.threads > kMostThreads) return InvalidArgument("statistics of a step tell of ", p.threads, " threads");
    const uint32_t n_nodes = r_.Count(100);
    for (uint32_t i = 0; i < n_nodes && r_.ok(); ++i) ReadNode();
    const uint32_t n_waits = r_.Count(20);
    for (uint32_t i = 0; i < n_waits && r_.ok(); ++i) ReadWait();
    const uint32_t n_calls = r_.Count(20);
    for (uint32_t i = 0; i < n_calls && r_.ok(); ++i) ReadCall();
    if (p.total.flags & kReports) ReadReports();
    p.total.flags &= ~kReports;
    RETURN_IF_ERROR(r_.End("the statistics of a step"));
    for (uint32_t id : to_.after) wrong_ = wrong_ || id >= p.nodes.size();
    for (const tw_step_node& n : p.nodes) wrong_ = wrong_ || n.id >= p.nodes.size();
    if (wrong_) return InvalidArgument("statistics of a step name records, threads, texts or times that they have not");
    size_t at = 0;
    for (tw_step_node& n : p.nodes) {
      n.after = to_.after.data() + at;
      at += n.n_after;
    }
    return Status();
  }

 private:
  static constexpr uint32_t kMostThreads = 1 << 14;
  static constexpr int64_t kMostTime = int64_t{1} << 62;  // nanoseconds

  void ReadTexts() {
    std::vector<size_t> starts;
    to_.texts.reserve(64);  // so that moving the string leaves the characters in place
    for (const std::string& text : r_.Texts()) {
      starts.push_back(to_.texts.size());
      const size_t at = text.find("/device:");
      const bool is_device = at != text.npos && text.starts_with("/job:");
      to_.texts += is_device ? to_.task + text.substr(at) : text;
      to_.texts += '\0';
    }
    for (size_t start : starts) texts_.push_back(to_.texts.data() + start);
  }
  const char* Text() {
    const auto i = r_.Number<uint32_t>();
    if (i < texts_.size()) return texts_[i];
    wrong_ = true;
    return "";
  }
  int64_t Time() {
    const auto t = r_.Number<int64_t>();
    if (t >= -kMostTime && t <= kMostTime) return t + shift_;
    wrong_ = true;
    return 0;
  }

  void ReadNode() {
    tw_step_node n{};
    n.size = sizeof n;
    n.flags = r_.Number<uint32_t>();
    for (const char** text : {&n.name, &n.op, &n.device, &n.kernel, &n.shapes, &n.to, &n.function, &n.frame, &n.queue}) *text = Text();
    n.start_ns = Time();
    n.end_ns = Time();
    n.busy_ns = r_.Number<int64_t>();
    n.iteration = r_.Number<int64_t>();
    n.device_start_ns = Time();
    n.device_end_ns = Time();
    if (!*n.queue) n.device_start_ns = n.device_end_ns = 0;
    for (uint64_t* v : {&n.output_bytes, &n.allocated_bytes, &n.call, &n.loop}) *v = r_.Number<uint64_t>();
    n.thread = r_.Number<uint32_t>();
    n.id = r_.Number<uint32_t>();
    n.n_after = r_.Count(sizeof(uint32_t));
    for (uint32_t i = 0; i < n.n_after && r_.ok(); ++i) to_.after.push_back(r_.Number<uint32_t>());
    wrong_ = wrong_ || n.thread >= to_.part.threads;
    to_.part.nodes.push_back(n);
  }

  void ReadWait() {
    tw_step_wait w{};
    w.size = sizeof w;
    w.why = r_.Number<uint32_t>();
    w.thread = r_.Number<uint32_t>();
    w.start_ns = Time();
    w.end_ns = Time();
    w.name = Text();
    w.what = Text();
    wrong_ = wrong_ || (w.thread != UINT32_MAX && w.thread >= to_.part.threads);
    to_.part.waits.push_back(w);
  }

  void ReadCall() {
    StepStats::Call c{};
    c.function = Text();
    c.call = r_.Number<uint64_t>();
    c.start = Time();
    c.end = Time();
    to_.part.call_threads.push_back(r_.Number<uint32_t>());
    to_.part.calls.push_back(c);
  }

  void ReadReports() {
    StepStats::Part& p = to_.part;
    const uint32_t n_spans = r_.Count(36);
    for (uint32_t i = 0; i < n_spans && r_.ok(); ++i) {
      StepStats::KernelSpan s{};
      for (const char** text : {&s.node, &s.device, &s.name, &s.row}) *text = Text();
      s.start = Time();
      s.end = Time();
      p.span_threads.push_back(r_.Number<uint32_t>());
      p.spans.push_back(s);
    }
    const uint32_t n_counts = r_.Count(32);
    for (uint32_t i = 0; i < n_counts && r_.ok(); ++i) {
      StepStats::KernelCount c{};
      for (const char** text : {&c.node, &c.device, &c.name}) *text = Text();
      c.at = Time();
      c.value = r_.Number<int64_t>();
      p.count_threads.push_back(r_.Number<uint32_t>());
      p.counts.push_back(c);
    }
  }

  WireReader r_;
  const int64_t shift_;
  StatsPart& to_;
  std::vector<const char*> texts_;
  bool wrong_ = false;
};

}  // namespace

std::string PutStats(const StepStats& stats) {
  TextTable texts;
  WireWriter w;
  const tw_step_total& total = stats.total();
  const bool reports = !stats.spans().empty() || !stats.counts().empty();
  const auto number_of = [&](std::thread::id id) {  // of a thread; total.threads for one that ran no node
    uint32_t thread = 0;
    while (thread < total.threads && stats.thread(thread) != id) ++thread;
    return thread;
  };
  w.Number(total.flags | (reports ? kReports : 0));
  w.Number(total.block_bytes);
  w.Number(total.left_out);
  w.Number(total.threads);
  w.Number(uint32_t(stats.nodes().size()));
  for (const tw_step_node& n : stats.nodes()) PutNode(n, &texts, &w);
  w.Number(uint32_t(stats.waits().size()));
  for (const tw_step_wait& wait : stats.waits()) {
    w.Number(wait.why);
    w.Number(wait.thread);
    w.Number(wait.start_ns);
    w.Number(wait.end_ns);
    w.Number(texts[wait.name]);
    w.Number(texts[wait.what]);
  }
  w.Number(uint32_t(stats.calls().size()));
  for (const StepStats::Call& c : stats.calls()) {
    w.Number(texts[c.function]);
    w.Number(c.call);
    w.Number(c.start);
    w.Number(c.end);
    w.Number(number_of(c.thread));
  }
  if (reports) {
    w.Number(uint32_t(stats.spans().size()));
    for (const StepStats::KernelSpan& s : stats.spans()) {
      for (const char* text : {s.node, s.device, s.name, s.row}) w.Number(texts[text]);
      w.Number(s.start);
      w.Number(s.end);
      w.Number(number_of(s.thread));
    }
    w.Number(uint32_t(stats.counts().size()));
    for (const StepStats::KernelCount& c : stats.counts()) {
      for (const char* text : {c.node, c.device, c.name}) w.Number(texts[text]);
      w.Number(c.at);
      w.Number(c.value);
      w.Number(number_of(c.thread));
    }
  }
  WireWriter all;
  all.Number(total.total_ns);
  all.Texts(texts.texts());
  all.Raw(w.bytes().data(), w.bytes().size());
  return all.Take();
}

Status GetStats(std::string_view bytes, int64_t shift, StatsPart* to) { return Reader(bytes, shift, to).Run(); }

}  // namespace thalweg::distributed
