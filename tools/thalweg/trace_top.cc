#include "trace_top.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "handles.h"
#include "json.h"
#include "timing.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

bool OfHost(const TraceBar& b) { return !b.across && (b.category == "op" || b.category == "copy"); }
bool OfDevice(const TraceBar& b) { return !b.across && (b.category == "device op" || b.category == "device copy"); }

// Returns, per bar, the time covered by the bars directly inside it in its row.
std::vector<double> TimeInside(const Trace& trace) {
  std::vector<double> inside(trace.bars.size(), 0);
  std::map<TraceRow, std::vector<size_t>> open;
  for (size_t i = 0; i < trace.bars.size(); ++i) {
    const TraceBar& b = trace.bars[i];
    if (b.across) continue;
    std::vector<size_t>& stack = open[b.row];
    while (!stack.empty() && trace.bars[stack.back()].end <= b.start) stack.pop_back();
    if (!stack.empty()) inside[stack.back()] += b.end - b.start;
    stack.push_back(i);
  }
  return inside;
}

// Returns the bars that do work themselves. An op that calls a function is left out: its function's
// nodes stand for it.
std::vector<size_t> Activities(const Trace& trace, int64_t step) {
  const std::vector<double> inside = TimeInside(trace);
  std::vector<size_t> all;
  for (size_t i = 0; i < trace.bars.size(); ++i) {
    const TraceBar& b = trace.bars[i];
    if (b.step == step && (OfDevice(b) || (OfHost(b) && inside[i] * 2 <= b.end - b.start))) all.push_back(i);
  }
  return all;
}

// Collects intervals of a row; Add drops the part that an earlier interval of the same kind covers.
struct Spans {
  std::vector<std::pair<double, double>> all;
  void Add(double start, double end) {
    if (!all.empty() && start < all.back().second) start = all.back().second;
    if (end > start) all.emplace_back(start, end);
  }
  double Sum() const {
    double sum = 0;
    for (const auto& [start, end] : all) sum += end - start;
    return sum;
  }
};

// Attributes a queue's idle time between two bars: the time before the host enqueued the next bar,
// and the time after.
void AddQueueIdle(double from, double until, const TraceBar* next, RowUse* row) {
  if (until <= from) return;
  const double came = next ? std::clamp(next->enqueued, from, until) : until;
  if (came > from) row->idle["nothing was enqueued"] += came - from;
  if (until > came) row->idle["waited for another queue or its driver"] += until - came;
}

}  // namespace

std::map<int64_t, std::pair<double, double>> StepsOf(const Trace& trace) {
  std::map<int64_t, std::pair<double, double>> steps;
  for (const TraceBar& b : trace.bars) {
    if (b.across && b.category == "step") steps[b.step] = {b.start, b.end};
  }
  return steps;
}

std::vector<OpCost> CostliestOps(const Trace& trace) {
  const std::vector<double> inside = TimeInside(trace);
  std::set<std::pair<int64_t, int64_t>> on_devices;  // nodes whose time a device queue reports
  for (const TraceBar& b : trace.bars) {
    if (OfDevice(b)) on_devices.insert({b.row.first, b.id});
  }
  std::map<std::pair<std::string, std::string>, OpCost> ops;
  for (size_t i = 0; i < trace.bars.size(); ++i) {
    const TraceBar& b = trace.bars[i];
    if (!OfDevice(b) && (!OfHost(b) || on_devices.count({b.row.first, b.id}))) continue;
    const auto row = trace.rows.find(b.row);
    const std::string where = OfDevice(b) ? (row == trace.rows.end() ? "" : row->second) : "host";
    OpCost& op = ops[{b.name, where}];
    op.op = b.name;
    op.where = where;
    ++op.count;
    const double self = std::max(0.0, b.end - b.start - inside[i]);
    op.self += self;
    op.longest = std::max(op.longest, self);
  }
  std::vector<OpCost> all;
  for (auto& [key, op] : ops) all.push_back(std::move(op));
  std::stable_sort(all.begin(), all.end(), [](const OpCost& a, const OpCost& b) { return a.self > b.self; });
  return all;
}

std::vector<PathPart> CriticalPath(const Trace& trace, int64_t step) {
  const std::vector<size_t> all = Activities(trace, step);
  std::map<int64_t, std::vector<size_t>> by_id;
  std::map<TraceRow, std::vector<size_t>> by_row;  // by start
  for (size_t i : all) {
    by_id[trace.bars[i].id].push_back(i);
    by_row[trace.bars[i].row].push_back(i);
  }
  std::vector<PathPart> path;
  if (all.empty()) return path;
  size_t at = *std::max_element(all.begin(), all.end(), [&](size_t a, size_t b) { return trace.bars[a].end < trace.bars[b].end; });
  std::set<size_t> seen;
  double until = trace.bars[at].end;
  for (double gap = 0; seen.insert(at).second;) {
    const TraceBar& b = trace.bars[at];
    path.push_back({&b, std::max(0.0, std::min(b.end, until) - b.start), gap});
    // The predecessor is the last to end among the bar's inputs, the previous bar in its row and,
    // for a device, the host bar that enqueued it.
    std::vector<size_t> before;
    for (size_t other : by_id[b.id]) {
      if (OfDevice(b) && OfHost(trace.bars[other])) before.push_back(other);
      if (!OfDevice(b) || !OfHost(trace.bars[other])) continue;
      for (int64_t id : trace.bars[other].after) before.insert(before.end(), by_id[id].begin(), by_id[id].end());
    }
    for (int64_t id : b.after) before.insert(before.end(), by_id[id].begin(), by_id[id].end());
    const std::vector<size_t>& row = by_row[b.row];
    const auto here = std::lower_bound(row.begin(), row.end(), at);
    if (here != row.begin()) before.push_back(*(here - 1));
    const auto reached = [&](size_t i) { return std::min(trace.bars[i].end, b.start); };
    std::erase_if(before, [&](size_t i) { return trace.bars[i].start > b.start || seen.count(i); });
    if (before.empty()) break;
    const size_t last = *std::max_element(before.begin(), before.end(), [&](size_t x, size_t y) { return reached(x) < reached(y); });
    gap = b.start - reached(last);
    until = b.start;
    at = last;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<RowUse> UseOfRows(const Trace& trace) {
  Spans steps;
  std::vector<std::pair<double, double>> sorted;
  for (const auto& [step, times] : StepsOf(trace)) sorted.push_back(times);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [start, end] : sorted) steps.Add(start, end);
  std::vector<RowUse> uses;
  for (const auto& [row, name] : trace.rows) {
    RowUse use{name, steps.Sum(), 0, {}};
    Spans busy, waits;
    double before = 0;
    std::vector<const TraceBar*> device;
    for (const TraceBar& b : trace.bars) {
      if (b.across || b.row != row) continue;
      if (OfHost(b) || OfDevice(b)) busy.Add(b.start, b.end);
      if (OfDevice(b)) device.push_back(&b);
      if (b.category != "wait" || (!busy.all.empty() && b.start < busy.all.back().second)) continue;
      waits.Add(b.start, b.end);
      use.idle[b.name + (b.what.empty() ? "" : " " + b.what)] += waits.Sum() - before;
      before = waits.Sum();
    }
    use.busy = busy.Sum();
    if (device.empty()) {
      const double rest = use.total - use.busy - waits.Sum();
      if (rest > 0)
        use.idle[use.busy + waits.Sum() > 0 ? "no node of these steps: planning, handing over, or not needed" : "not needed"] = rest;
    }
    for (const auto& [start, end] : steps.all) {
      double at = start;
      for (const TraceBar* b : device) {
        if (b->end <= start || b->start >= end) continue;
        AddQueueIdle(at, std::min(b->start, end), b, &use);
        at = std::max(at, b->end);
      }
      if (!device.empty()) AddQueueIdle(at, end, nullptr, &use);
    }
    if (use.busy > 0 || !use.idle.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

namespace {

std::string Time(double us) { return SecondsText(us * 1e-6); }
std::string Percent(double part, double whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

void PrintOps(const std::vector<OpCost>& ops, size_t most) {
  double all = 0;
  for (const OpCost& op : ops) all += op.self;
  std::vector<std::vector<std::string>> rows = {{"op", "where", "count", "time", "share", "mean", "longest"}};
  for (size_t i = 0; i < ops.size() && i < most; ++i) {
    const OpCost& op = ops[i];
    rows.push_back({Coloured(kBold, OneLine(op.op)), OneLine(op.where), std::to_string(op.count), Time(op.self), Percent(op.self, all),
                    Time(op.self / double(op.count)), Time(op.longest)});
  }
  std::printf("Ops\n%s", Table(rows).c_str());
}

void PrintPath(const Trace& trace, const std::vector<PathPart>& path, int64_t step, double total, size_t most) {
  double time = 0, gaps = 0;
  for (const PathPart& p : path) {
    time += p.time;
    gaps += p.gap;
  }
  std::printf("\nCritical path of step %lld: %zu parts, %s at work and %s between them, of %s\n", static_cast<long long>(step), path.size(),
              Time(time).c_str(), Time(gaps).c_str(), Time(total).c_str());
  std::vector<const PathPart*> longest;
  for (const PathPart& p : path) longest.push_back(&p);
  std::stable_sort(longest.begin(), longest.end(), [](auto* a, auto* b) { return a->time > b->time; });
  longest.resize(std::min(longest.size(), most));
  std::sort(longest.begin(), longest.end());
  std::vector<std::vector<std::string>> rows = {{"time", "then nothing", "op", "node", "row", "shapes"}};
  for (const PathPart* p : longest) {
    const auto row = trace.rows.find(p->bar->row);
    rows.push_back({Time(p->time), Time(p->gap), Coloured(kBold, OneLine(p->bar->name)), OneLine(p->bar->node),
                    row == trace.rows.end() ? "" : OneLine(row->second), OneLine(p->bar->shapes)});
  }
  std::fputs(Table(rows).c_str(), stdout);
}

void PrintRows(const std::vector<RowUse>& uses) {
  std::vector<std::vector<std::string>> rows = {{"row", "busy", "idle", "why"}};
  for (const RowUse& use : uses) {
    std::vector<std::pair<double, std::string>> why;
    for (const auto& [reason, time] : use.idle) why.emplace_back(-time, reason);
    std::sort(why.begin(), why.end());
    std::string text;
    for (const auto& [time, reason] : why) text += (text.empty() ? "" : "; ") + OneLine(reason) + " " + Time(-time);
    rows.push_back({Coloured(kBold, OneLine(use.name)), Percent(use.busy, use.total), Percent(use.total - use.busy, use.total), text});
  }
  std::printf("\nThreads and queues\n%s", Table(rows).c_str());
}

void PrintJson(const Trace& trace, const std::vector<PathPart>& path, int64_t step) {
  Json json;
  json.Object().Number("left_out", int64_t(trace.left_out)).Number("steps", int64_t(StepsOf(trace).size())).Array("ops");
  for (const OpCost& op : CostliestOps(trace)) {
    json.Object()
        .Text("op", op.op)
        .Text("where", op.where)
        .Number("count", op.count)
        .Real("us", op.self)
        .Real("longest_us", op.longest)
        .End();
  }
  json.End().Number("path_step", step).Array("path");
  for (const PathPart& p : path) {
    json.Object().Text("op", p.bar->name).Text("node", p.bar->node).Real("us", p.time).Real("gap_us", p.gap).End();
  }
  json.End().Array("rows");
  for (const RowUse& use : UseOfRows(trace)) {
    json.Object().Text("row", use.name).Real("us", use.total).Real("busy_us", use.busy).Object("idle_us");
    for (const auto& [reason, time] : use.idle) json.Real(reason, time);
    json.End().End();
  }
  std::fputs(json.End().End().text().c_str(), stdout);
}

}  // namespace

int TraceTop(const Args& args) {
  if (args.positional().size() != 2) throw UsageError{"top takes one file"};
  const Trace trace = ReadTrace(args.positional()[1]);
  const auto steps = StepsOf(trace);
  if (steps.empty()) throw std::runtime_error("'" + args.positional()[1] + "' has no steps");
  const int64_t step = args.integer("--step", steps.rbegin()->first, 0);
  if (!steps.count(step)) throw UsageError{"--step: the trace has no step " + std::to_string(step)};
  const std::vector<PathPart> path = CriticalPath(trace, step);
  if (args.has("--json")) {
    PrintJson(trace, path, step);
    return kGood;
  }
  const auto most = size_t(args.integer("--most", 15, 1));
  if (trace.left_out) std::printf("The trace is cut: %llu records are missing.\n", static_cast<unsigned long long>(trace.left_out));
  PrintOps(CostliestOps(trace), most);
  PrintPath(trace, path, step, steps.at(step).second - steps.at(step).first, most);
  PrintRows(UseOfRows(trace));
  return kGood;
}

}  // namespace thalweg::cli
