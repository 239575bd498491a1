#include "plan_view.h"

#include <algorithm>
#include <cstdio>

#include "handles.h"
#include "json_value.h"
#include "model.h"
#include "random_feed.h"
#include "timing.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

// Returns the plan as JSON. Without --feed-shape, the plan is for the shapes that the graph
// declares.
std::string PlanOf(const Args& args, const tw::Graph& graph) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : args.all("--feed-shape")) shapes.insert(ParseFeedShape(text));
  Signature signature = ReadTargets(args, graph);
  std::vector<std::vector<int64_t>> dims;
  for (MissingFeed& feed : FindMissingFeeds(graph, shapes, signature)) {
    if (!shapes.empty()) dims.push_back(ChooseDims(feed));
    signature.feeds.push_back({feed.name, feed.output, {}});
  }
  const tw::Session session = OpenSession(args, graph);
  const Callable callable(session, signature);
  std::vector<tw_shape> fed;
  for (const std::vector<int64_t>& d : dims) fed.push_back({d.data(), int32_t(d.size()), 0});
  tw_buffer* json = nullptr;
  tw::raise(tw_callable_plan_json(callable.c(), shapes.empty() ? nullptr : fed.data(), &json));
  return tw::take_text(json);
}

// Shortens "/job:localhost/replica:0/task:0/device:CPU:0" to "CPU:0".
std::string ShortDevice(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == device.npos ? device : device.substr(at + 7);
}

std::string ShapeOf(const JsonValue& value) {
  if (value["shape"].null()) return value["dtype"].text() + " unknown";
  std::string text;
  for (const JsonValue& dim : value["shape"].items()) {
    text += (text.empty() ? "" : ", ") + (dim.number() < 0 ? "?" : std::to_string(int64_t(dim.number())));
  }
  return value["dtype"].text() + " [" + text + "]";
}

// Describes an output: "float [2, 3] at 64, 24 B", "float [] held", ...
std::string Made(const JsonValue& value, const std::map<int64_t, std::string>& names) {
  std::string text = ShapeOf(value);
  if (value["kind"].text() != "block") return text + " " + value["kind"].text();
  if (!value["offset"].null()) text += " at " + std::to_string(int64_t(value["offset"].number()));
  if (!value["bytes"].null()) text += ", " + BytesText(uint64_t(value["bytes"].number()));
  if (value["in_place_of"].null()) return text;
  const auto name = names.find(int64_t(value["in_place_of"].number()));
  return text + ", in place of " + (name == names.end() ? "another" : OneLine(name->second));
}

std::string Orders(const JsonValue& list) {
  std::string text;
  for (const JsonValue& item : list.items()) text += (text.empty() ? "" : ", ") + std::to_string(int64_t(item.number()));
  return text;
}

// Prints one line: the number of entries and their names.
void PrintList(const char* title, const JsonValue& list) {
  if (list.items().empty()) return;
  std::string text;
  for (const JsonValue& item : list.items()) {
    const bool pair = !item["node"].null();
    text += (text.empty() ? "" : ", ") + OneLine(pair ? item["node"].text() + " into " + item["into"].text() : item.text());
  }
  std::printf("%s (%zu): %s\n", title, list.items().size(), text.c_str());
}

// Prints what was done to fit memory_budget, or for gradients that recompute, and what it costs.
void PrintSaving(const JsonValue& memory) {
  const auto bytes = [&](const char* key) { return BytesText(uint64_t(memory[key].number())); };
  if (memory["budget"].number() > 0) std::printf("memory_budget %s: ", bytes("budget").c_str());
  const size_t recomputed = memory["recomputed"].items().size(), swapped = memory["swapped"].items().size();
  const bool ordered = memory["ordered"].number() != 0;
  if (!recomputed && !swapped) {
    std::printf("%s\n", ordered ? "nodes run one after the other, in an order that needs less at once" : "nothing had to change");
    return;
  }
  const double step = std::max(memory["step_ns"].number(), 1.0);
  const auto share = [&](const char* key) { return std::to_string(int64_t(memory[key].number() * 100 / step + 0.5)) + " % more work"; };
  std::printf("the values take %s", bytes("after").c_str());
  if (memory["before"].number() > 0) std::printf(" instead of %s", bytes("before").c_str());
  if (recomputed) std::printf("; %zu nodes run twice (an estimated %s)", recomputed, share("recompute_ns").c_str());
  if (swapped) std::printf("; %zu values wait in host memory (copies of an estimated %s)", swapped, share("swap_ns").c_str());
  std::printf("\n");
  PrintList("run twice", memory["recomputed"]);
  for (const JsonValue& v : memory["swapped"].items()) {
    std::printf("  in host memory: %s, %s\n", OneLine(v["value"].text()).c_str(), BytesText(uint64_t(v["bytes"].number())).c_str());
  }
}

void PrintHead(const JsonValue& plan) {
  const auto copies = static_cast<long long>(plan["copies"].number());
  std::printf("%zu nodes, engine %s, order %s, %lld copies between memories", plan["nodes"].items().size(), plan["engine"].text().c_str(),
              plan["order"].text().c_str(), copies);
  if (copies) {
    std::printf(" (%s, and %s saved by sharing them)", BytesText(uint64_t(plan["copied_bytes"].number())).c_str(),
                BytesText(uint64_t(plan["saved_bytes"].number())).c_str());
  }
  std::printf("\n");
  std::string blocks;
  for (const JsonValue& block : plan["block_bytes"].items()) {
    blocks += (blocks.empty() ? "" : ", ") + ShortDevice(block["device"].text()) + " " + BytesText(uint64_t(block["bytes"].number()));
  }
  std::printf("memory: %s; %s at the peak; %s if none was used twice\n", blocks.empty() ? "no block" : ("a block on " + blocks).c_str(),
              BytesText(uint64_t(plan["peak_bytes"].number())).c_str(), BytesText(uint64_t(plan["unplanned_bytes"].number())).c_str());
  if (plan.has("memory")) PrintSaving(plan["memory"]);
  PrintList("folded", plan["folded"]);
  PrintList("merged", plan["merged"]);
  PrintList("removed", plan["removed"]);
  for (const JsonValue& l : plan["layouts"].items()) {
    PrintList(("run in " + l["order"].text()).c_str(), l["nodes"]);
    std::printf("  for which %lld values are transposed (%s)\n", static_cast<long long>(l["transposes"].number()),
                BytesText(uint64_t(l["bytes"].number())).c_str());
  }
  for (const JsonValue& r : plan["rewrites"].items()) {
    std::string nodes, ops;
    for (const JsonValue& node : r["nodes"].items()) nodes += (nodes.empty() ? "" : ", ") + OneLine(node.text());
    for (const JsonValue& op : r["added"].items()) ops += (ops.empty() ? "" : ", ") + OneLine(op.text());
    const std::string refused = r["refused"].text();
    std::printf("%s replaces %s by %s (%s)%s\n", OneLine(r["rewriter"].text()).c_str(), nodes.c_str(),
                ops.empty() ? "nothing" : ops.c_str(), OneLine(r["rule"].text()).c_str(),
                refused.empty() ? "" : (": refused because " + OneLine(refused)).c_str());
  }
  for (const JsonValue& k : plan["kept"].items()) {
    std::printf("%s keeps %s: %s\n", OneLine(k["rewriter"].text()).c_str(), OneLine(k["node"].text()).c_str(),
                OneLine(k["why"].text()).c_str());
  }
  for (const JsonValue& c : plan["claims"].items()) {
    std::string nodes;
    for (const JsonValue& node : c["nodes"].items()) nodes += (nodes.empty() ? "" : ", ") + OneLine(node.text());
    const std::string refused = c["refused"].text();
    std::printf("%s takes %s%s\n", OneLine(c["compiler"].text()).c_str(), nodes.c_str(),
                refused.empty() ? (c["loaded"].number() != 0 ? " (loaded)" : "") : (": refused because " + OneLine(refused)).c_str());
  }
  for (const JsonValue& l : plan["left"].items()) {
    std::printf("%s leaves %s: %s\n", OneLine(l["compiler"].text()).c_str(), OneLine(l["node"].text()).c_str(),
                OneLine(l["why"].text()).c_str());
  }
  for (const JsonValue& f : plan["fallbacks"].items()) {
    std::printf("%s: placed on %s because %s\n", OneLine(f["node"].text()).c_str(), ShortDevice(f["device"].text()).c_str(),
                OneLine(f["why"].text()).c_str());
  }
}

// Draws the bytes in use over the nodes of a step, with the lower bound as a line. A column stands
// for several nodes if there are many, and shows the most of them.
void PrintChart(const JsonValue& plan) {
  constexpr size_t kWidth = 64, kHeight = 12;
  const std::vector<JsonValue>& live = plan["live_bytes"].items();
  const size_t columns = std::min(live.size(), kWidth);
  std::vector<double> most(columns, 0);
  for (size_t i = 0; i < live.size(); ++i) most[i * columns / live.size()] = std::max(most[i * columns / live.size()], live[i].number());
  const double peak = columns ? *std::max_element(most.begin(), most.end()) : 0, bound = plan["lower_bound_bytes"].number();
  if (peak <= 0) return;
  std::printf("\nbytes in use over the %zu nodes of a step; lower bound (---): %s\n", live.size(), BytesText(uint64_t(bound)).c_str());
  for (size_t row = kHeight; row-- > 0;) {
    const double low = peak * double(row) / kHeight, high = peak * double(row + 1) / kHeight;
    const bool is_bound = bound > low && bound <= high;
    std::string line;
    for (double bytes : most) line += bytes > (low + high) / 2 || (row == 0 && bytes > 0) ? '#' : is_bound ? '-' : ' ';
    std::printf("%10s |%s\n", row + 1 == kHeight || row == 0 || is_bound ? BytesText(uint64_t(is_bound ? bound : high)).c_str() : "",
                line.c_str());
  }
  std::printf("%10s +%s\n", "", std::string(columns, '-').c_str());
}

void PrintNodes(const JsonValue& plan) {
  std::map<int64_t, std::string> names;
  for (const JsonValue& node : plan["nodes"].items()) {
    for (const char* side : {"inputs", "outputs"}) {
      for (const JsonValue& value : node[side].items()) names[int64_t(value["id"].number())] = value["name"].text();
    }
  }
  std::vector<std::vector<std::string>> rows = {{"order", "node", "op", "device", "after", "makes"}};
  for (const JsonValue& node : plan["nodes"].items()) {
    std::string made;
    for (const JsonValue& value : node["outputs"].items()) made += (made.empty() ? "" : "; ") + Made(value, names);
    if (node["scratch"].number() > 0) made += (made.empty() ? "" : "; ") + BytesText(uint64_t(node["scratch"].number())) + " of scratch";
    rows.push_back({std::to_string(int64_t(node["order"].number())), Coloured(kBold, OneLine(node["name"].text())), node["op"].text(),
                    ShortDevice(node["device"].text()), Orders(node["after"]), made});
  }
  std::printf("\n%s", Table(rows).c_str());
}

std::string Why(const JsonValue& place, const std::map<std::string, std::string>& fallbacks) {
  const std::string& why = place["why"].text();
  if (why == "asked") return "its device, or the session's, admits no other";
  if (why == "shared") return "it shares a device with " + OneLine(place["with"].text()) + ", which leaves no choice";
  if (why == "only_there") return "no other device has kernels for it";
  if (why == "first") return "the first device that has kernels for it, in the order of the session option 'prefer'";
  if (why == "follows") return "it follows " + OneLine(place["with"].text()) + ", which saves a copy";
  if (why == "learned") return "it was the fastest in runs that were measured";
  if (why == "fallback") {
    const auto told = fallbacks.find(place["node"].text());
    return "instead of what was asked: " + (told == fallbacks.end() ? "" : OneLine(told->second));
  }
  const auto time = [&](const char* key) { return SecondsText(place[key].number() * 1e-9); };
  std::string text = "by cost: its group takes " + time("cost_ns");
  if (place.has("other_ns")) text += ", and " + time("other_ns") + " on the best other device";
  return text;
}

void PrintPlaces(const JsonValue& plan) {
  std::map<std::string, std::string> fallbacks;
  for (const JsonValue& f : plan["fallbacks"].items()) fallbacks[f["node"].text()] = f["why"].text();
  std::vector<std::vector<std::string>> rows = {{"node", "op", "device", "why there"}};
  for (const JsonValue& place : plan["places"].items()) {
    rows.push_back(
        {Coloured(kBold, OneLine(place["node"].text())), place["op"].text(), ShortDevice(place["device"].text()), Why(place, fallbacks)});
  }
  std::fputs(Table(rows).c_str(), stdout);
}

}  // namespace

std::vector<Option> PlanOptions() {
  return {{"--plan", nullptr, "what a session plans for a run: order, devices, memory, nodes folded, merged and removed"},
          {"--placement", nullptr, "of what a session plans for a run: where each node runs, and why there"},
          {"--fetch", "NAME", "of that run: a value that it computes; may be repeated"},
          {"--target", "NAME", "of that run: an operation; may be repeated"},
          {"--feed-shape", "NAME=SIZES",
           "of that run: a value that is fed, such as x=32,64; the sizes of other placeholders that\n"
           "are open are then 1; may be repeated"},
          kThreadsOption,
          kDeviceOption,
          kSessionOption};
}

void PrintPlan(const Args& args, const tw::Graph& graph) {
  const std::string json = PlanOf(args, graph);
  if (args.has("--json")) {
    std::fputs((json + (json.ends_with('\n') ? "" : "\n")).c_str(), stdout);
    return;
  }
  const JsonValue plan = JsonValue::Parse(json);
  if (args.has("--placement")) return PrintPlaces(plan);
  PrintHead(plan);
  PrintChart(plan);
  PrintNodes(plan);
}

}  // namespace thalweg::cli
