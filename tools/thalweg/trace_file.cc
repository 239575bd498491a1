#include "trace_file.h"

#include <algorithm>
#include <stdexcept>

#include "handles.h"
#include "json_value.h"

namespace thalweg::cli {
namespace {

TraceBar BarOf(const JsonValue& e) {
  TraceBar bar;
  const JsonValue& args = e["args"];
  bar.name = e["name"].text();
  bar.category = e["cat"].text();
  bar.row = {int64_t(e["pid"].number()), int64_t(e["tid"].number())};
  bar.start = e["ts"].number();
  bar.end = bar.start + e["dur"].number();
  bar.node = args["node"].text();
  bar.shapes = args["shapes"].text();
  bar.what = args["what"].text();
  bar.device = args["device"].text();
  bar.enqueued = args["enqueued_us"].number();
  bar.step = int64_t(args["step"].number());
  if (args.has("id")) bar.id = int64_t(args["id"].number());
  for (const JsonValue& id : args["after"].items()) bar.after.push_back(int64_t(id.number()));
  bar.bytes = args.has("bytes") ? args["bytes"].number() : args["output_bytes"].number();
  return bar;
}

Trace TraceOf(const JsonValue& file) {
  Trace trace;
  std::map<std::pair<std::string, int64_t>, size_t> open;  // by category and id
  for (const JsonValue& e : file["traceEvents"].items()) {
    const std::string& phase = e["ph"].text();
    if (phase == "M" && e["name"].text() == "thread_name") {
      trace.rows[{int64_t(e["pid"].number()), int64_t(e["tid"].number())}] = e["args"]["name"].text();
    } else if (phase == "X" || phase == "b") {
      trace.bars.push_back(BarOf(e));
      if (phase == "X") continue;
      trace.bars.back().across = true;
      open[{e["cat"].text(), int64_t(e["id"].number())}] = trace.bars.size() - 1;
    } else if (phase == "e") {
      const auto it = open.find({e["cat"].text(), int64_t(e["id"].number())});
      if (it != open.end()) trace.bars[it->second].end = e["ts"].number();
    }
  }
  trace.left_out = uint64_t(file["metadata"]["left_out"].number());
  std::stable_sort(trace.bars.begin(), trace.bars.end(),
                   [](const TraceBar& a, const TraceBar& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
  return trace;
}

}  // namespace

Trace ReadTrace(const std::string& path) {
  const std::string text = ReadFile(path);
  try {
    const JsonValue file = JsonValue::Parse(text);
    if (!file.has("traceEvents")) throw std::runtime_error("it has no traceEvents");
    return TraceOf(file);
  } catch (const std::exception& e) {
    throw std::runtime_error("'" + path + "' is no trace of a run: " + e.what());
  }
}

}  // namespace thalweg::cli
