// thalweg run: loads a graph, restores its variables, feeds it, and shows what it computes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "command.h"
#include "draw.h"
#include "feed.h"
#include "handles.h"
#include "json.h"
#include "npy.h"

namespace thalweg::cli {
namespace {

// "name=value" in two; without `=` the value is empty.
std::pair<std::string, std::string> SplitAtEquals(const std::string& text) {
  const size_t equals = text.find('=');
  return {text.substr(0, equals), equals == text.npos ? "" : text.substr(equals + 1)};
}

// Sets the variables that the checkpoint has. Warns about the others: a fetch that needs one fails with its name.
void Restore(const tw::Graph& graph, const tw::Session& session, const std::string& prefix) {
  const Checkpoint checkpoint(prefix);
  std::set<std::string> names;
  for (uint32_t i = 0; i < tw_checkpoint_count(checkpoint.c()); ++i) names.insert(tw_checkpoint_name(checkpoint.c(), i));
  const Variables variables(graph);
  std::vector<tw_output> found;
  std::string missing;
  for (uint32_t i = 0; i < tw_variables_count(variables.c()); ++i) {
    const std::string name = tw_variables_name(variables.c(), i);
    if (names.count(name))
      found.push_back(tw_variables_handle(variables.c(), i));
    else
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (found.empty()) throw std::runtime_error("checkpoint '" + prefix + "' has none of the graph's variables");
  if (!missing.empty()) std::fprintf(stderr, "thalweg run: the checkpoint does not have these variables: %s\n", missing.c_str());
  tw_saver* saver = nullptr;
  tw::raise(tw_saver_create(graph.c(), found.data(), uint32_t(found.size()), &saver));
  tw_status* status = tw_saver_restore(saver, session.c(), prefix.c_str());
  tw_saver_destroy(saver);
  tw::raise(status);
}

struct Named {
  std::string name, file;  // file: where a fetch is to be written; "" to print it
  tw_output output = 0;
  tw::Tensor value;
};

struct Plan {
  std::vector<Named> feeds, fetches;
  std::vector<const tw_operation*> targets;
};

Plan MakePlan(const Args& args, const tw::Runtime& runtime, const tw::Graph& graph) {
  Plan plan;
  for (const std::string& text : args.all("--feed")) {
    const auto [name, value] = SplitAtEquals(text);
    if (name.size() == text.size()) throw UsageError{"--feed '" + text + "' is not of the form NAME=VALUE"};
    Named feed{name, "", graph.output(name), {}};
    uint32_t dtype = 0;
    tw::raise(tw_graph_describe(graph.c(), feed.output, &dtype, nullptr));
    try {
      feed.value = ReadFeed(runtime, value, dtype);
    } catch (const std::exception& e) {
      throw std::runtime_error("feed '" + name + "': " + e.what());
    }
    plan.feeds.push_back(std::move(feed));
  }
  for (const std::string& text : args.all("--fetch")) {
    const auto [name, file] = SplitAtEquals(text);
    plan.fetches.push_back({name, file, graph.output(name), {}});
  }
  for (const std::string& name : args.all("--target")) plan.targets.push_back(graph.find(name));
  if (plan.fetches.empty() && plan.targets.empty()) throw UsageError{"nothing to do: give --fetch NAME or --target NAME"};
  return plan;
}

void RunPlan(Plan* plan, const Args& args, tw::Session* session) {
  tw::Feeds feeds;
  std::vector<tw_output> fetches;
  for (const Named& feed : plan->feeds) feeds.push_back({feed.output, feed.value});
  for (const Named& fetch : plan->fetches) fetches.push_back(fetch.output);
  tw_run_options options = {};
  options.size = sizeof(options);
  if (args.has("--timeout")) {
    char* end = nullptr;
    const std::string text = args.get("--timeout");
    const double seconds = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(seconds > 0 && seconds < 1e9)) {
      throw UsageError{"--timeout takes a number of seconds, not '" + text + "'"};
    }
    options.timeout_ns = int64_t(seconds * 1e9);
  }
  std::vector<tw::Tensor> results = session->run(feeds, fetches, plan->targets, &options);
  for (size_t i = 0; i < results.size(); ++i) plan->fetches[i].value = std::move(results[i]);
}

// Elements as JSON, nested by axis.
std::string ElementsJson(const tw::Runtime& runtime, const tw::Tensor& t) {
  const bool strings = t.dtype() == TW_STRING, real = !strings;
  const std::vector<int64_t> dims = t.dims();
  const std::vector<double> values = real ? Cast(runtime, t, TW_DOUBLE).values<double>() : std::vector<double>();
  Json json;
  uint64_t next = 0;
  const auto add = [&](const auto& self, size_t axis) -> void {
    if (axis == dims.size()) {
      if (strings)
        json.Text("", t.string(next++));
      else
        json.Real("", values[next++]);
      return;
    }
    json.Array();
    for (int64_t i = 0; i < dims[axis]; ++i) self(self, axis + 1);
    json.End();
  };
  add(add, 0);
  std::string text = json.text();
  text.pop_back();  // the end of line
  return text;
}

void PrintJson(const tw::Runtime& runtime, const Plan& plan) {
  Json json;
  json.Object();
  for (const Named& fetch : plan.fetches) {
    json.Object(fetch.name).Text("dtype", DTypeText(fetch.value.dtype())).Array("shape");
    for (const int64_t dim : fetch.value.dims()) json.Number("", dim);
    json.End().Raw("value", ElementsJson(runtime, fetch.value)).End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

// What a fetch or feed says about example i: the number itself or, for a vector, its largest entries.
std::string Caption(const tw::Runtime& runtime, const Named& value, int64_t i) {
  const std::vector<int64_t> dims = value.value.dims();
  if (value.value.dtype() == TW_STRING) return dims.size() == 1 ? value.value.string(uint64_t(i)) : "";
  const std::vector<double> all = Cast(runtime, value.value, TW_DOUBLE).values<double>();
  char text[64];
  if (dims.size() == 1) {
    std::snprintf(text, sizeof(text), "%g", all[size_t(i)]);
    return text;
  }
  if (dims.size() != 2 || dims[1] == 0) return "";
  std::vector<int64_t> order(static_cast<size_t>(dims[1]));
  for (size_t k = 0; k < order.size(); ++k) order[k] = int64_t(k);
  const double* row = all.data() + i * dims[1];
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
  std::string best;
  for (size_t k = 0; k < std::min<size_t>(order.size(), 2); ++k) {
    std::snprintf(text, sizeof(text), "%s%lld: %.3f", k ? "  " : "", static_cast<long long>(order[k]), row[order[k]]);
    best += text;
  }
  return best;
}

// Each picture of the feed `name`, with what all other feeds and fetches say about it.
void DrawFeed(const tw::Runtime& runtime, const Plan& plan, const std::string& name) {
  const auto drawn = std::find_if(plan.feeds.begin(), plan.feeds.end(), [&](const Named& f) { return f.name == name; });
  if (drawn == plan.feeds.end()) throw UsageError{"--draw '" + name + "': no such feed"};
  const Pictures pictures = ToPictures(runtime, drawn->value);
  std::vector<std::vector<std::string>> captions(static_cast<size_t>(pictures.n));
  size_t width = 0;
  std::vector<const Named*> shown;
  for (const auto* list : {&plan.feeds, &plan.fetches}) {
    for (const Named& value : *list) {
      if (&value == &*drawn || value.value.dims().empty() || value.value.dims()[0] != pictures.n) continue;
      shown.push_back(&value);
      width = std::max(width, value.name.size());
    }
  }
  for (int64_t i = 0; i < pictures.n; ++i) {
    for (const Named* value : shown) {
      captions[size_t(i)].push_back(value->name + std::string(width + 2 - value->name.size(), ' ') + Caption(runtime, *value, i));
    }
  }
  std::fputs(Draw(pictures, captions).c_str(), stdout);
}

int Run(const Args& args) {
  const tw::Runtime runtime = MakeRuntime(args);
  tw::Graph graph(runtime);
  graph.import_graph_def(ReadFile(args.positional()[0]));
  Plan plan = MakePlan(args, runtime, graph);
  std::vector<const char*> options;
  for (const std::string& option : args.all("--session")) options.push_back(option.c_str());
  tw::Session session(graph, options);
  if (args.has("--checkpoint")) Restore(graph, session, args.get("--checkpoint"));
  if (args.has("--init")) session.run({}, {}, {graph.find(args.get("--init"))});
  RunPlan(&plan, args, &session);

  if (args.has("--json")) PrintJson(runtime, plan);
  for (const Named& fetch : plan.fetches) {
    if (!fetch.file.empty())
      WriteNpy(fetch.file, fetch.value);
    else if (!args.has("--json") && !args.has("--draw"))
      std::printf("%s = %s\n", fetch.name.c_str(), fetch.value.text(1000).c_str());
  }
  for (const std::string& name : args.all("--draw")) DrawFeed(runtime, plan, name);
  return kGood;
}

}  // namespace

const Command& RunCommand() {
  static const Command command = {
      "run",
      "GRAPH",
      "Runs a graph file (GraphDef) once and prints what is fetched.",
      "Example: thalweg run graph.pb --checkpoint model --feed 'image=digits.csv[0:5,0:64]' --fetch prediction --draw image\n",
      {{"--feed", "NAME=VALUE",
        "give a value its contents: a literal such as 3 or [[1, 2], [3, 4]], FILE.npy, or FILE.csv[rows,columns]\n"
        "with ranges as in Python; may be repeated"},
       {"--fetch", "NAME[=FILE.npy]", "print this value (`node` or `node:1`), or write it to a file; may be repeated"},
       {"--target", "NAME", "run this operation too; may be repeated"},
       {"--checkpoint", "PREFIX", "restore the variables first"},
       {"--init", "NAME", "run this operation first, such as an initializer"},
       {"--draw", "NAME", "draw the pictures of a feed, [n, h, w] or [n, k * k], with what is fed and fetched beside each"},
       {"--timeout", "SECONDS", "give up after this time"},
       {"--session", "KEY=VALUE", "a session option; thalweg doctor --help lists them; may be repeated"},
       kJsonOption,
       kPluginOption,
       kRuntimeOption},
      1,
      1,
      Run};
  return command;
}

}  // namespace thalweg::cli
