// A random graph over the ops of test_ops.h, and the expected values of its fetches, computed
// without the runtime.
#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {

class RandomGraph {
 public:
  struct Options {
    size_t nodes = 40;
    bool views = true;        // Flat
    bool dynamic = true;      // Positive, and values that depend on it
    bool elsewhere = false;   // Later and GatedAside
    std::string suffix = "";  // of the names of inputs
  };
  // The same seed and options give the same graph, whatever the runtime.
  RandomGraph(TestGraph* g, uint64_t seed, const Options& options) : g_(*g), random_(seed), options_(options) {
    for (int64_t size : {0, 1, 17, 300}) {
      Group group;
      for (const char* kind : {"x", "y"}) AddInput(&group, size, StrCat(kind, size));
      trigger_.push_back(AddInput(&group, size, StrCat("trigger", size)));
      groups_.push_back(std::move(group));
    }
    groups_.emplace_back();  // values whose sizes are known only at run time
    for (size_t i = 0; i < options_.nodes; ++i) AddNode();
    // Adds a node that fails if a trigger is negative, and reads its value.
    for (size_t k = 1; k < trigger_.size(); ++k) {
      Keep(k, Emit("Add", {Emit("Picky", {trigger_[k]}), Pick(groups_[k])}));
    }
    for (const Group& group : groups_) {
      for (Edge e : group.values) {
        if (Chance(4) && e.node->op().role.empty()) spec_.fetches.push_back(e);
      }
    }
  }
  const CallableSpec& spec() const { return spec_; }
  std::vector<Tensor> Feeds(bool bad = false) const {
    std::vector<Tensor> all;
    for (Edge e : spec_.feeds) {
      std::vector<float> v = Fed(e);
      bool trigger = e.node->name().starts_with("trigger");
      if (trigger && bad && !v.empty()) v[0] = -1;
      all.push_back(Floats(v));
    }
    return all;
  }
  std::vector<std::vector<float>> Expected() {
    std::vector<std::vector<float>> all;
    for (Edge e : spec_.fetches) all.push_back(Value(e));
    return all;
  }

 private:
  struct Group {
    std::vector<Edge> inputs, values;
  };
  size_t Below(size_t n) { return size_t(random_() % n); }
  bool Chance(size_t n) { return Below(n) == 0; }
  // Prefers recent values, so that graphs are deep.
  Edge Pick(const Group& g) {
    size_t n = g.values.size();
    return g.values[Chance(3) ? Below(n) : n - 1 - Below(std::min<size_t>(n, 4))];
  }
  Edge AddInput(Group* group, int64_t size, const std::string& name) {
    Edge e = g_.Input(Shape({size}), name + options_.suffix);
    group->inputs.push_back(e);
    group->values.push_back(e);
    spec_.feeds.push_back(e);
    return e;
  }
  Edge Emit(const std::string& op, std::vector<Edge> in) {
    TestGraph::Extras extras;
    if (op == "Traced") extras.attrs["tag"] = AttrValue::Int(0);
    if (!made_.empty() && Chance(8)) extras.controls.push_back(made_[Below(made_.size())]);
    Edge e = g_.Op(op, std::move(in), std::move(extras));
    made_.push_back(e.node);
    return e;
  }
  void Keep(size_t group, Edge e) { groups_[group].values.push_back(e); }

  void AddNode() {
    size_t k = Below(groups_.size() - 1);
    Group& dynamic = groups_.back();
    if (options_.dynamic && Chance(8)) return Keep(groups_.size() - 1, Emit("Positive", {Pick(groups_[k])}));
    if (!dynamic.values.empty() && Chance(5)) k = groups_.size() - 1;
    Group& g = groups_[k];
    const bool same_size = k + 1 < groups_.size();
    std::vector<std::string> ops = {"Neg", "Next", "Two", "Mirror", "Traced", "Clip"};
    if (same_size) ops.insert(ops.end(), {"Add", "Add", "Add", "Sum", "Mul"});
    if (options_.views) ops.insert(ops.end(), {"Flat", "Flat"});
    if (options_.elsewhere) ops.insert(ops.end(), {"LaterAbs", "GatedAside"});
    std::string op = ops[Below(ops.size())];
    if (op == "Add") return Keep(k, Emit(op, {Pick(g), Pick(g)}));
    if (op == "Mul") return Keep(k, Emit(op, {Pick(g), g.inputs[Below(g.inputs.size())]}));  // by at most 1, so nothing overflows
    if (op == "Sum") {
      std::vector<Edge> in;
      for (size_t i = 0; i < 1 + Below(3); ++i) in.push_back(Pick(g));
      return Keep(k, Emit(op, std::move(in)));
    }
    if (op == "Two") {
      Edge e = Emit(op, {Pick(g)});
      Keep(k, e);
      return Keep(k, {e.node, 1});
    }
    if (op == "LaterAbs") {  // of a non-negative value
      if (!same_size) return;
      return Keep(k, Emit("Later", {trigger_[k]}));
    }
    Keep(k, Emit(op, {Pick(g)}));
  }

  static std::vector<float> Fed(Edge e) {
    std::vector<float> v(size_t(e.node->shape(0).dim(0)));
    uint32_t state = uint32_t(e.node->name().size()) * 7919u + uint32_t(e.node->name()[0]);
    for (float& f : v) {
      state = state * 1664525u + 1013904223u;
      f = float(state >> 8) / float(1 << 24) * (e.node->name()[0] == 't' ? 1.0f : 2.0f) - (e.node->name()[0] == 't' ? 0.0f : 1.0f);
    }
    return v;
  }
  const std::vector<float>& Value(Edge e) {
    auto [it, is_new] = values_.try_emplace({e.node->id(), e.port});
    if (!is_new) return it->second;
    const std::string& op = e.node->op().name;
    std::vector<float> y;
    if (op == "Placeholder") {
      y = Fed(e);
    } else {
      y = Value(e.node->inputs()[0]);
      auto each = [&](auto f) { std::transform(y.begin(), y.end(), y.begin(), f); };
      if (op == "Neg") each([](float x) { return -x; });
      if (op == "Next" || op == "Later" || (op == "Two" && e.port == 0)) each([](float x) { return x + 1; });
      if (op == "Two" && e.port == 1) each([](float x) { return 2 * x; });
      if (op == "Clip") each([](float x) { return x < 0 ? 0 : x; });
      if (op == "Mirror") std::reverse(y.begin(), y.end());
      if (op == "Positive") std::erase_if(y, [](float x) { return !(x > 0); });
      if (op == "Sum") each([](float x) { return 0 + x; });
      for (size_t k = 1; k < e.node->inputs().size(); ++k) {
        const std::vector<float>& x = Value(e.node->inputs()[k]);
        for (size_t i = 0; i < y.size(); ++i) y[i] = op == "Mul" ? y[i] * x[i] : y[i] + x[i];
      }
    }
    return values_[{e.node->id(), e.port}] = std::move(y);
  }

  TestGraph& g_;
  std::mt19937_64 random_;
  const Options options_;
  std::vector<Group> groups_;
  std::vector<Edge> trigger_;
  std::vector<const Node*> made_;
  CallableSpec spec_;
  std::map<std::pair<int32_t, int32_t>, std::vector<float>> values_;
};

// Many small independent graphs.
struct RandomForest {
  RandomForest(TestGraph* g, uint64_t seed, RandomGraph::Options options = {}) {
    options.nodes = 12;
    auto append = [](auto* all, const auto& more) { all->insert(all->end(), more.begin(), more.end()); };
    for (uint64_t k = 0; k < 24; ++k) {
      options.suffix = StrCat("_", k);
      RandomGraph tree(g, 1000 * seed + k, options);
      append(&spec.feeds, tree.spec().feeds);
      append(&spec.fetches, tree.spec().fetches);
      append(&feeds, tree.Feeds());
      append(&bad_feeds, tree.Feeds(true));
      append(&expected, tree.Expected());
    }
  }
  CallableSpec spec;
  std::vector<Tensor> feeds, bad_feeds;
  std::vector<std::vector<float>> expected;
};

}  // namespace thalweg::testing_support
