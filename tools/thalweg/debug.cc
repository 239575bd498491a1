// thalweg debug bisect: finds the pass of planning that changes the results of a graph.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "command.h"
#include "handles.h"
#include "model.h"
#include "random_feed.h"
#include "thalweg/option.h"
#include "thalweg/session.h"
#include "words.h"

namespace thalweg::cli {
namespace {

// Returns the passes that a session can leave out, in the order in which planning runs them.
std::vector<std::string> OptionalPasses() {
  std::vector<std::string> passes;
  for (uint32_t i = 0; const tw_option* o = tw_session_option(i); ++i) {
    if (std::strcmp(o->name, "disable_pass") != 0) continue;
    for (uint32_t k = 0; k < o->n_choices; ++k) passes.push_back(o->choices[k]);
  }
  return passes;
}

bool IsReal(uint32_t dtype) { return dtype != TW_STRING && dtype != TW_COMPLEX64 && dtype != TW_COMPLEX128; }

// Returns the largest difference of two elements over the largest magnitude in `wanted`; infinity if
// the values cannot be compared so and differ: by shape, as text, or by NaN or infinity.
double Difference(const tw::Runtime& runtime, const tw::Tensor& wanted, const tw::Tensor& found) {
  constexpr double kApart = std::numeric_limits<double>::infinity();
  if (wanted.dtype() != found.dtype() || wanted.dims() != found.dims()) return kApart;
  if (!IsReal(wanted.dtype())) return ElementTexts(wanted) == ElementTexts(found) ? 0 : kApart;
  const tw::Tensor a = Cast(runtime, wanted, TW_DOUBLE), b = Cast(runtime, found, TW_DOUBLE);
  const double *x = a.data<double>(), *y = b.data<double>();
  double largest = 0, apart = 0;
  for (uint64_t i = 0; i < a.count(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same && !(std::isfinite(x[i]) && std::isfinite(y[i]))) return kApart;
    if (std::isfinite(x[i])) largest = std::max(largest, std::fabs(x[i]));
    if (!same) apart = std::max(apart, std::fabs(x[i] - y[i]));
  }
  return apart == 0 ? 0 : largest == 0 ? kApart : apart / largest;
}

std::string DifferenceText(double difference) {
  if (std::isinf(difference)) return "not comparable";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", difference);
  return difference == 0 ? "none" : text;
}

// Runs one step with some of the passes. Every run has a container of its own, so that no run sees
// the variables of another.
class Trials {
 public:
  Trials(const Args& args, const tw::Runtime& runtime)
      : args_(args), runtime_(runtime), graph_(LoadGraph(runtime, args.positional()[1])), passes_(OptionalPasses()) {
    signature_ = ReadSignature(args, runtime, graph_);
    if (signature_.fetches.empty()) throw UsageError{"there is nothing to compare: give --fetch NAME"};
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const std::string& text : args.all("--feed-shape")) shapes.insert(ParseFeedShape(text));
    AddRandomFeeds(runtime, graph_, shapes, uint64_t(args.integer("--seed", 1, 0)), &signature_);
    wanted_ = Run(std::vector<bool>(passes_.size(), false));
  }
  const std::vector<std::string>& passes() const { return passes_; }
  // Returns the difference that these passes make, and the fetch that has it.
  std::pair<double, std::string> With(const std::vector<bool>& on) {
    const std::vector<tw::Tensor> found = Run(on);
    std::pair<double, std::string> most = {0, signature_.fetches[0].name};
    for (size_t i = 0; i < found.size(); ++i) {
      const double d = Difference(runtime_, wanted_[i], found[i]);
      if (d > most.first) most = {d, signature_.fetches[i].name};
    }
    return most;
  }

 private:
  std::vector<tw::Tensor> Run(const std::vector<bool>& on) {
    Args args = args_.with("--session-option", "container=bisect-" + std::to_string(++runs_));
    for (size_t k = 0; k < passes_.size(); ++k) {
      if (!on[k]) args = args.with("--session-option", "disable_pass=" + passes_[k]);
    }
    const tw::Session session = OpenSession(args, graph_);
    return Callable(session, signature_).Run(signature_);
  }

  const Args& args_;
  const tw::Runtime& runtime_;
  const tw::Graph graph_;
  const std::vector<std::string> passes_;
  Signature signature_;
  std::vector<tw::Tensor> wanted_;
  int runs_ = 0;
};

// Halves the passes until one is left. The first passes up to `good` change nothing beyond the
// tolerance, those up to `bad` do.
int Bisect(const Args& args) {
  const double tolerance = args.number("--tolerance", 1e-5, 0);
  const tw::Runtime runtime = MakeRuntime(args);
  Trials trials(args, runtime);
  const size_t n = trials.passes().size();
  const auto first = [&](size_t count) {
    std::vector<bool> on(n, false);
    std::fill(on.begin(), on.begin() + int64_t(count), true);
    return on;
  };
  const auto [all, fetch] = trials.With(first(n));
  std::printf("all %zu passes against none: largest difference %s in '%s', tolerance %g\n", n, DifferenceText(all).c_str(), fetch.c_str(),
              tolerance);
  if (all <= tolerance) {
    std::printf("no pass changes the results beyond the tolerance\n");
    return kGood;
  }
  size_t good = 0, bad = n;
  std::vector<std::vector<std::string>> rows = {{"passes", "the last of them", "difference", "in"}};
  double at_bad = all;
  while (bad - good > 1) {
    const size_t middle = (good + bad) / 2;
    const auto [difference, where] = trials.With(first(middle));
    rows.push_back({std::to_string(middle), trials.passes()[middle - 1], DifferenceText(difference), where});
    if (difference > tolerance) {
      bad = middle;
      at_bad = difference;
    } else {
      good = middle;
    }
  }
  std::vector<bool> others(n, true);
  others[bad - 1] = false;
  const double without = trials.With(others).first;
  const std::string& pass = trials.passes()[bad - 1];
  std::printf("%s", Table(rows).c_str());
  std::printf(
      "pass '%s' changes the results: with the passes before it the difference is within the tolerance, with it %s; with all but it "
      "%s\nleave it out with --session-option disable_pass=%s\n",
      pass.c_str(), DifferenceText(at_bad).c_str(), DifferenceText(without).c_str(), pass.c_str());
  return kFailed;
}

int Run(const Args& args) {
  const std::string& what = args.positional()[0];
  if (what == "bisect") return Bisect(args);
  throw UsageError{"'" + what + "' is not bisect"};
}

std::vector<Option> Options() {
  std::vector<Option> options = SignatureOptions("NAME", "compare this value (`node` or `node:1`); may be repeated");
  for (const Option& o :
       std::vector<Option>{{"--tolerance", "NUMBER", "largest difference of two elements, over the largest magnitude of the value; 1e-5"},
                           {"--feed-shape", "NAME=SIZES", "feed a random tensor of this shape, such as x=32,64; may be repeated"},
                           {"--seed", "N", "of the random feeds; 1"}}) {
    options.push_back(o);
  }
  for (const Option& o : ModelOptions()) options.push_back(o);
  return options;
}

}  // namespace

const Command& DebugCommand() {
  static const Command command = {
      "debug",
      "bisect GRAPH",
      "Finds the pass of planning that changes the results of a graph.",
      "bisect runs a step without the passes that can be left out, then with more and more of them, and names the first one\n"
      "with which a fetched value differs beyond the tolerance; the exit status is then 1. Placeholders that are not fed get\n"
      "random values. Ops that draw random numbers need a seed.\n"
      "Example: thalweg debug bisect graph.pb --fetch loss --checkpoint model --feed-shape image=32,64 --tolerance 1e-4\n",
      Options(),
      2,
      2,
      Run};
  return command;
}

}  // namespace thalweg::cli
