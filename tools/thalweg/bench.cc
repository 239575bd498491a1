// thalweg bench: measures how fast a graph runs.
#include <charconv>
#include <cstdio>
#include <memory>

#include "bench_model.h"
#include "command.h"
#include "handles.h"
#include "json.h"
#include "model.h"
#include "random_feed.h"
#include "timing.h"

namespace thalweg::cli {
namespace {

// A session for one number of threads. Each setup has its own runtime and shares nothing with the
// others.
struct Setup {
  Setup(const Args& args, int64_t n)
      : threads(n), runtime(MakeRuntime(WithThreads(args, n))), graph(LoadGraph(runtime, args.positional()[0])) {
    signature = ReadSignature(args, runtime, graph);
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const std::string& text : args.all("--feed-shape")) shapes.insert(ParseFeedShape(text));
    AddRandomFeeds(runtime, graph, shapes, uint64_t(args.integer("--seed", 1, 0)), &signature);
    session = std::make_unique<tw::Session>(OpenSession(WithThreads(args, n), graph));
    callable = std::make_unique<Callable>(*session, signature);
    first = Step();
  }
  static Args WithThreads(const Args& args, int64_t n) { return n > 0 ? args.with("--threads", std::to_string(n)) : args; }

  double Step() {
    const double begin = Now();
    callable->Run(signature);
    return Now() - begin;
  }

  int64_t threads;  // 0: the runtime's default
  tw::Runtime runtime;
  tw::Graph graph;
  Signature signature;
  std::unique_ptr<tw::Session> session;
  std::unique_ptr<Callable> callable;
  double first;  // the step that makes the plan
  std::vector<double> seconds;
};

std::vector<int64_t> ThreadCounts(const Args& args) {
  if (!args.has("--compare-threads")) return {args.integer("--threads", 0, 1)};
  if (args.has("--threads")) throw UsageError{"give either --threads or --compare-threads"};
  const std::string text = args.get("--compare-threads");
  std::vector<int64_t> counts;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc() || n < 1 || (next != end && *next != ',')) {
      throw UsageError{"--compare-threads takes numbers such as 1,2,4, not '" + text + "'"};
    }
    counts.push_back(n);
    if (next == end) return counts;
    at = next + 1;
  }
}

// Runs rounds of a few steps, one round per setup in turn, so that a slowdown of the machine
// affects all setups alike. Without --repeat, a round of slow steps ends early, to keep to the
// given time.
void Measure(const Args& args, std::vector<std::unique_ptr<Setup>>* setups) {
  constexpr size_t kRound = 10;
  constexpr double kRoundSeconds = 0.05;
  const int64_t warmup = args.integer("--warmup", 3, 0);
  const auto repeat = size_t(args.integer("--repeat", 0, 1));
  const double budget = args.number("--seconds", 2, 1e-9);
  for (auto& setup : *setups) {
    for (int64_t i = 0; i < warmup; ++i) setup->Step();
  }
  const double begin = Now();
  for (bool more = true; more;) {
    for (auto& setup : *setups) {
      const size_t want = repeat ? std::min(kRound, repeat - setup->seconds.size()) : kRound;
      const double round = Now();
      for (size_t i = 0; i < want && (repeat || i == 0 || Now() - round < kRoundSeconds); ++i) setup->seconds.push_back(setup->Step());
    }
    more = repeat ? setups->back()->seconds.size() < repeat : Now() - begin < budget * double(setups->size());
  }
}

std::string ThreadsText(const Setup& setup) { return setup.threads ? std::to_string(setup.threads) : "default"; }

void PrintTable(const std::vector<std::unique_ptr<Setup>>& setups) {
  std::vector<std::vector<std::string>> rows = {{"threads", "steps", "first", "min", "median", "mean", "p99", "max", "steps/s"}};
  if (setups.size() > 1) rows[0].push_back("speed");
  double base = 0;
  for (const auto& setup : setups) {
    const Timing t = Summarize(setup->seconds);
    if (base == 0) base = t.median;
    rows.push_back({ThreadsText(*setup), std::to_string(t.steps), SecondsText(setup->first), SecondsText(t.min),
                    Coloured(kBold, SecondsText(t.median)), SecondsText(t.mean), SecondsText(t.p99), SecondsText(t.max),
                    CountText(t.PerSecond())});
    if (setups.size() > 1) rows.back().push_back(CountText(base / t.median) + "x");
  }
  std::fputs(Table(rows).c_str(), stdout);
}

void PrintJson(const std::vector<std::unique_ptr<Setup>>& setups) {
  Json json;
  json.Array();
  for (const auto& setup : setups) {
    const Timing t = Summarize(setup->seconds);
    json.Object().Number("threads", setup->threads).Number("steps", int64_t(t.steps)).Real("first_seconds", setup->first);
    json.Real("min_seconds", t.min).Real("median_seconds", t.median).Real("mean_seconds", t.mean).Real("p99_seconds", t.p99);
    json.Real("max_seconds", t.max).Real("steps_per_second", t.PerSecond()).End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

// Options of `thalweg bench model` that a graph does not have.
const std::vector<Option>& ModelBenchOptions() {
  static const std::vector<Option> options = {
      {"--batch", "N", "with `model`: examples of a step; 1"},
      {"--forward", nullptr, "with `model`: the forward pass as in inference; without it a step trains"},
      {"--set", "NAME=VALUE", "with `model`: a parameter of the network, such as side=128; may be repeated"}};
  return options;
}

int Run(const Args& args) {
  const std::vector<std::string>& words = args.words();
  if (args.positional()[0] == "model") {
    if (words[0] != "model" || args.positional().size() < 2) {
      throw UsageError{"a network is timed by `thalweg bench model NAME [options]`; a graph whose file is called `model` is ./model"};
    }
    BenchModel({words.begin() + 1, words.end()});
  }
  if (args.positional().size() > 1) throw UsageError{"unexpected argument '" + args.positional()[1] + "'"};
  for (const Option& o : ModelBenchOptions()) {
    if (args.has(o.name)) throw UsageError{std::string(o.name) + " is for a network: thalweg bench model NAME"};
  }
  std::vector<std::unique_ptr<Setup>> setups;
  for (const int64_t n : ThreadCounts(args)) setups.push_back(std::make_unique<Setup>(args, n));
  Measure(args, &setups);
  args.has("--json") ? PrintJson(setups) : PrintTable(setups);
  return kGood;
}

std::vector<Option> Options() {
  std::vector<Option> options = SignatureOptions("NAME", "compute this value (`node` or `node:1`); may be repeated");
  for (const Option& o : std::vector<Option>{
           {"--feed-shape", "NAME=SIZES", "feed a random tensor of this shape, such as x=32,64; may be repeated"},
           {"--seed", "N", "of the random feeds; 1"},
           {"--warmup", "N", "steps before those that are measured; 3"},
           {"--repeat", "N", "measure N steps"},
           {"--seconds", "SECONDS", "measure steps for this time, where --repeat is not given; 2"},
           {"--compare-threads", "N,N,...", "measure each of these numbers of threads, taking turns, and compare with the first"},
           kJsonOption}) {
    options.push_back(o);
  }
  for (const Option& o : ModelOptions()) options.push_back(o);
  for (const Option& o : ModelBenchOptions()) options.push_back(o);
  return options;
}

}  // namespace

const Command& BenchCommand() {
  static const Command command = {
      "bench",
      "GRAPH|model NAME",
      "Measures how long a step of a graph, or of a network of the Python examples, takes.",
      "Placeholders that are needed and not fed get random values: from 0 to 1, whole numbers 0 or 1; sizes that the graph\n"
      "leaves open are 1 unless --feed-shape says otherwise. `first` is the step that makes the plan; `p99` is what 99 of 100\n"
      "steps stay below; `speed` is how many times as fast as the first row, by medians.\n"
      "Example: thalweg bench graph.pb --fetch prediction --checkpoint model --feed-shape image=32,64 --compare-threads 1,2\n"
      "`thalweg bench model NAME` takes a step of a network by its name, such as alexnet or resnet50: it trains with the\n"
      "network's own optimizer on random inputs of the usual sizes. It takes --batch, --forward, --set, --threads, --device,\n"
      "--warmup, --repeat, --seconds and --json. It runs python3, or the Python that THALWEG_PYTHON names, which needs NumPy.\n"
      "A graph whose file is called `model` is ./model.\n"
      "Example: thalweg bench model resnet50 --batch 8 --threads 2 --forward\n",
      Options(),
      1,
      2,
      Run};
  return command;
}

}  // namespace thalweg::cli
