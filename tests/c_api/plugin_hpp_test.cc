// The C++ sugar over the plugin API: a plugin linked into this program, and the errors that its
// users get.
#define THALWEG_STATIC sugar
#include <atomic>
#include <map>

#include "gtest/gtest.h"

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/cpp/thalweg.hpp"

namespace {

struct Counter {
  std::atomic<int> calls{0};
};
struct Other {};

// Reads the attribute of its name with the accessor that `call` names.
struct Read {
  explicit Read(const tw::Node& n) {
    const std::string call(n.s("call")), of(n.s("of"));
    const std::map<std::string, void (*)(const tw::Node&, const std::string&)> accessors = {
        {"i", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(a.i(name), 3); }},
        {"f", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(a.f(name), 0.5); }},
        {"b", [](const tw::Node& a, const std::string& name) { EXPECT_TRUE(a.b(name)); }},
        {"s", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(a.s(name), "abc"); }},
        {"type", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(a.type(name), uint32_t(TW_HALF)); }},
        {"shape", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(tw::text(a.shape(name)), "[2, 4]"); }},
        {"tensor", [](const tw::Node& a, const std::string& name) { a.tensor(name); }},
        {"ints", [](const tw::Node& a, const std::string& name) { EXPECT_EQ(a.ints(name).back(), 3); }}};
    accessors.at(call)(n, of);
  }
  void operator()(tw::In<float> x, tw::Out<float> y) const { y[0] = x[0]; }
};

void Count(tw::Self<Counter> self, tw::In<float>, tw::Out<float> y) { y[0] = float(++self->calls); }
void AskForOther(tw::Self<Other>, tw::In<float> x, tw::Out<float> y) { y[0] = x[0]; }
struct CountInClass {
  Counter& counter;
  explicit CountInClass(const tw::Node& n) : counter(n.self<Counter>()) {}
  void operator()(tw::In<float>, tw::Out<float> y) const { y[0] = float(++counter.calls); }
};

void Lift(tw::In<float> x, tw::Out<float> y) { y[0] = x[0]; }
void LiftGradient(const tw::Grad& g) { g.dx(0, g.op("Sum", {g.dy(), g.ints({0})})); }

}  // namespace

TW_CPP_PLUGIN_WITH("org.test.sugar", "1", Counter, p, counter) {
  counter.calls = 10;
  p.op(
      "Read(x: float[]) -> (y: float[]); call: string; of: string; n: int = 3; r: float = 0.5; t: bool = true; w: string = \"abc\"; "
      "T: type = half; d: shape = [2, 4]; l: list(int) = [1, 3]; q: list(float) = [0.5]; no_gradient \"none\"");
  p.kernel<Read>("Read @CPU");
  p.op("Count(x: float[]) -> (y: float[]); stateful; no_gradient \"none\"").kernel<Count>("Count @CPU");
  p.op("CountInClass(x: float[]) -> (y: float[]); stateful; no_gradient \"none\"").kernel<CountInClass>("CountInClass @CPU");
  p.op("AskForOther(x: float[]) -> (y: float[]); stateful; no_gradient \"none\"").kernel<AskForOther>("AskForOther @CPU");
  p.op<LiftGradient>("Lift(x: float[]) -> (y: float[1])").kernel<Lift>("Lift @CPU");
}

namespace {

tw::Runtime WithSugar() {
  const tw_linked_plugin plugins[] = {tw_plugin_query_v0_sugar};
  tw_runtime_config config{};
  config.size = sizeof config;
  config.plugins = plugins;
  config.n_plugins = 1;
  return tw::Runtime(config);
}

// Returns the op's result for 1, or the error.
std::string Answer(const tw::Runtime& runtime, const char* op, const std::string& call = "", const std::string& of = "") {
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output y = s.op(op, {x}, [&](tw_op* o) {
    if (call.empty()) return;
    tw_op_set_string(o, "call", call.data(), call.size());
    tw_op_set_string(o, "of", of.data(), of.size());
  });
  s.finish();
  try {
    tw::Session session(graph);
    return session.run({{x, tw::Tensor(1.0f)}}, {y})[0].text();
  } catch (const tw::StatusError& e) {
    return e.what();
  }
}

TEST(PluginHppTest, AccessorsReadAttributesOfTheirKind) {
  const tw::Runtime runtime = WithSugar();
  const std::pair<const char*, const char*> reads[] = {{"i", "n"},    {"f", "r"},     {"b", "t"},    {"s", "w"},
                                                       {"type", "T"}, {"shape", "d"}, {"ints", "l"}, {"ints", "n"}};
  for (const auto& [call, of] : reads) EXPECT_EQ(Answer(runtime, "Read", call, of), "1") << call << " of " << of;
}

TEST(PluginHppTest, AnAccessorOfAnotherKindIsAnErrorThatSaysWhichOneToCall) {
  const tw::Runtime runtime = WithSugar();
  const struct {
    const char *call, *of, *error;
  } wrong[] = {{"f", "n", R"(op 'Read': attribute 'n' is int, which f("n") does not read; call i("n"))"},
               {"i", "r", R"(op 'Read': attribute 'r' is float, which i("r") does not read; call f("r"))"},
               {"i", "t", R"(op 'Read': attribute 't' is bool, which i("t") does not read; call b("t"))"},
               {"b", "w", R"(op 'Read': attribute 'w' is string, which b("w") does not read; call s("w"))"},
               {"s", "T", R"(op 'Read': attribute 'T' is type, which s("T") does not read; call type("T"))"},
               {"type", "d", R"(op 'Read': attribute 'd' is shape, which type("d") does not read; call shape("d"))"},
               {"shape", "n", R"(op 'Read': attribute 'n' is int, which shape("n") does not read; call i("n"))"},
               {"tensor", "w", R"(op 'Read': attribute 'w' is string, which tensor("w") does not read; call s("w"))"},
               {"i", "l", R"(op 'Read': attribute 'l' is list(int), which i("l") does not read; call ints("l"))"},
               {"f", "q", R"(op 'Read': attribute 'q' is list(float), which f("q") does not read; call at("q"))"},
               {"ints", "r", R"(op 'Read': attribute 'r' is float, which ints("r") does not read; call f("r"))"},
               {"i", "N", "op 'Read': no attribute 'N'; it has 'call', 'of', 'n', 'r', 't', 'w', 'T', 'd', 'l', 'q'"}};
  for (const auto& w : wrong) {
    const std::string said = Answer(runtime, "Read", w.call, w.of);
    EXPECT_NE(said.find(w.error), said.npos) << said;
  }
}

TEST(PluginHppTest, KernelsGetThePluginsInstanceOfTheirRuntime) {
  const tw::Runtime one = WithSugar(), two = WithSugar();
  EXPECT_EQ(Answer(one, "Count"), "11");
  EXPECT_EQ(Answer(one, "CountInClass"), "12");
  EXPECT_EQ(Answer(one, "Count"), "13");
  EXPECT_EQ(Answer(two, "Count"), "11");
}

TEST(PluginHppTest, AKernelThatAsksForAnotherTypeOfInstanceFails) {
  const std::string said = Answer(WithSugar(), "AskForOther");
  EXPECT_NE(said.find("the plugin's instance is of another type than the kernel asks for"), said.npos) << said;
}

TEST(PluginHppTest, AGradientMakesConstantsOfBracedNumbers) {
  const tw::Runtime runtime = WithSugar();
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_gradient dx = s.gradients(s.op("Lift", {x}), {x})[0];
  s.finish();
  tw::Session session(graph);
  EXPECT_EQ(session.run({{x, tw::Tensor(5.0f)}}, {dx.values})[0].text(), "1");
}

}  // namespace
