// The C++ sugar over the application API.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "gtest/gtest.h"

#include "thalweg/cpp/plugin.hpp"  // both kinds of sugar in one file
#include "thalweg/cpp/thalweg.hpp"

TEST(CppTest, PluginsComeAndGoByName) {
  const tw::Runtime runtime({"threads=1", "load_plugins=false"});
  EXPECT_THROW(runtime.load_plugin("/no/such/plugin.so"), tw::StatusError);
  EXPECT_THROW(runtime.unload_plugin("org.nobody"), tw::StatusError);
}

TEST(CppTest, PluginsSpellElementTypesAsTheLibraryDoes) {
  for (uint32_t i = 1; i < std::size(tw::dtype_names); ++i) EXPECT_EQ(tw::dtype_names[i], tw_dtype_name(i));
  EXPECT_EQ(tw_dtype_name(uint32_t(std::size(tw::dtype_names))), nullptr);
  EXPECT_EQ(tw::dtype_number("half"), uint32_t(TW_HALF));
}

TEST(CppTest, AProgramIsAFewLines) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output y = s.op("Add", {s.op("Mul", {x, x}), s.scalar(TW_FLOAT, 1)});
  s.finish();
  tw::Session session(graph);
  EXPECT_EQ(session.run({{x, tw::Tensor(3.0f)}}, {y})[0].text(), "10");
  EXPECT_EQ(session.report().steps, 1u);
  EXPECT_EQ(session.report().plans, 1u);
}

TEST(CppTest, ACallableTakesItsFeedsInOrder) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {}), y = s.placeholder("y", TW_FLOAT, {});
  const tw_output difference = s.op("Sub", {x, y});
  s.finish();
  const tw::Session session(graph);
  const tw::Callable subtract(session, {x, y}, {difference});
  EXPECT_EQ(subtract({tw::Tensor(5.0f), tw::Tensor(3.0f)})[0].text(), "2");
  EXPECT_EQ(subtract({tw::Tensor(3.0f), tw::Tensor(5.0f)})[0].text(), "-2");
  try {
    subtract({tw::Tensor(5.0f)});
    FAIL();
  } catch (const tw::StatusError& e) {
    EXPECT_EQ(e.code(), uint32_t(TW_INVALID_ARGUMENT));
    EXPECT_STREQ(e.what(), "the callable takes 2 feeds, not 1");
  }
  EXPECT_THROW(tw::Callable(session, {x, x}, {difference}), tw::StatusError);
}

TEST(CppTest, AttributesAreDescribedInPlace) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output a = s.constant(tw::Tensor({2, 2}, std::vector<float>{1, 2, 3, 4}));
  const tw_output y = s.op("MatMul", {a, a}, [](tw_op* op) { tw_op_set_bool(op, "transpose_a", 1); }, "product");
  s.finish();
  EXPECT_EQ(graph.output("product"), y);
  tw::Session session(graph, {"threads=1"});
  EXPECT_EQ(session.run({}, {y})[0].values<float>(), (std::vector<float>{10, 14, 14, 20}));
}

TEST(CppTest, FailuresAreThrownWithTheirCode) {
  tw::Graph graph;
  EXPECT_FALSE(graph.has("nobody"));
  try {
    graph.find("nobody");
    FAIL();
  } catch (const tw::StatusError& e) {
    EXPECT_EQ(e.code(), uint32_t(TW_NOT_FOUND));
    EXPECT_NE(std::string(e.what()).find("nobody"), std::string::npos);
  }
  tw::Scope s(graph);
  s.op("Nonsense", {});
  EXPECT_THROW(s.finish(), tw::StatusError);
  EXPECT_THROW(tw::Tensor(1.0f).data<int32_t>(), tw::StatusError);
  EXPECT_THROW(tw::Tensor(1.0f).to_device("CPU:77"), tw::StatusError);
  EXPECT_EQ(tw::Tensor(1.0f).to_device("CPU:0").to_host().device(), "");
}

TEST(CppTest, GraphsTravelAsBytes) {
  tw::Graph graph, copy;
  tw::Scope s(graph);
  s.name("y", s.op("Neg", {s.placeholder("x", TW_DOUBLE, {-1})}));
  s.finish();
  copy.import_graph_def(graph.graph_def(), "in");
  EXPECT_NE(copy.find("in/y"), nullptr);
}

TEST(CppTest, TensorsShareAndMove) {
  tw::Tensor a(std::string("text")), b = a, c = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.c(), c.c());
  EXPECT_EQ(c.string(), "text");
  EXPECT_EQ(tw::Tensor({2}, std::vector<int64_t>{1, 2}).dims(), std::vector<int64_t>{2});
}

TEST(CppTest, ARunTellsWhatItDid) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output y = s.op("Neg", {s.placeholder("x", TW_FLOAT, {})});
  s.finish();
  tw::Session session(graph);
  tw::StepStats stats;
  tw_run_options options = {};
  options.size = sizeof(options);
  options.stats = stats.c();
  session.run({{graph.output("x"), tw::Tensor(3.0f)}}, {y}, {}, &options);
  ASSERT_EQ(stats.nodes().size(), 1u);
  EXPECT_STREQ(stats.nodes()[0].name, "Neg");
  EXPECT_EQ(stats.ops()[0].count, 1u);
  EXPECT_EQ(stats.total().nodes, 1u);
  EXPECT_EQ(stats.json().find("{\"displayTimeUnit\""), 0u);
  EXPECT_NE(tw::StepStats::trace({stats.c(), stats.c()}).find("step 1"), std::string::npos);
  EXPECT_LE(stats.waits().size(), 1u);
  stats.set_limit(0);
  session.run({{graph.output("x"), tw::Tensor(3.0f)}}, {y}, {}, &options);
  EXPECT_TRUE(stats.nodes().empty());
  EXPECT_EQ(stats.total().left_out, 1u);
}

TEST(CppTest, FailuresTellTheirPlace) {
  tw::Graph graph;
  tw::Scope s(graph);
  s.at("net.cc:7").op("Nonsense", {});
  try {
    s.finish();
    FAIL();
  } catch (const tw::StatusError& e) {
    EXPECT_EQ(e.place(), "net.cc:7");
  }
}

TEST(CppTest, RuntimesAreMadeOfRecords) {
  tw_thread_pool nobody = {};
  nobody.size = sizeof(nobody);
  tw_runtime_config config = {};
  config.size = sizeof(config);
  config.threads = &nobody;
  tw::Runtime runtime(config);
  tw::Graph graph(runtime);
  config.size = 0;
  EXPECT_THROW(tw::Runtime{config}, tw::StatusError);
}

uint32_t CodeOf(const std::function<void()>& call) {
  try {
    call();
    return TW_OK;
  } catch (const tw::StatusError& e) {
    return e.code();
  }
}

// Makes an external graph with `save`, a file operation, and `filled`, which makes as many numbers
// as `n` says.
std::string GraphOfAnother(const std::string& prefix) {
  tw::Graph graph;
  tw::Scope s(graph);
  const auto text = [&](const std::string& t) { return s.constant(tw::Tensor(t)); };
  const tw_output one = s.ints({1}), names = s.op("Reshape", {text("v"), one}), slices = s.op("Reshape", {text(""), one});
  tw_op* save = tw_scope_begin(s.c(), "SaveV2", "save");
  for (tw_output input : {text(prefix), names, slices, s.scalar(TW_FLOAT, 7)}) tw_op_add_input(save, input);
  tw_scope_end_operation(s.c(), save);
  const tw_output n = s.placeholder("n", TW_INT32, {1});
  tw_output filled = s.op("Fill", {n, s.scalar(TW_FLOAT, 1)});
  for (int i = 0; i < 40; ++i) filled = s.op("Sin", {filled});
  s.name("filled", filled);
  s.finish();
  return graph.graph_def();
}

TEST(CppTest, ASessionLimitsWhatImportedOperationsDo) {
  const auto run = [](const tw::Limits& limits, const char* target, const std::string& prefix = "model") {
    tw::Graph graph;
    graph.import_graph_def(GraphOfAnother(prefix));
    tw::Session session(graph, {"threads=1"}, limits);
    const tw::Tensor n({1}, std::vector<int32_t>{1 << 20});
    return CodeOf([&] { session.run({{graph.output("n"), n}}, {}, {graph.find(target)}); });
  };
  tw::Limits limits;
  EXPECT_EQ(run(limits, "save"), TW_PERMISSION_DENIED);
  EXPECT_EQ(run(limits, "filled"), TW_OK);
  limits.deny_ops = {"Exp", "Sin"};
  EXPECT_EQ(run(limits, "filled"), TW_PERMISSION_DENIED);
  limits = {};
  limits.allow_ops = {"Fill", "Const"};
  EXPECT_EQ(run(limits, "filled"), TW_PERMISSION_DENIED);
  limits = {};
  limits.memory_limit = 1 << 20;
  EXPECT_EQ(run(limits, "filled"), TW_RESOURCE_EXHAUSTED);
  limits = {};
  limits.step_timeout_ms = 1;
  EXPECT_EQ(run(limits, "filled"), TW_DEADLINE_EXCEEDED);
  limits = {};
  std::string folder = testing::TempDir() + "thalweg-hpp-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  limits.allow_files = folder;
  EXPECT_EQ(run(limits, "save"), TW_OK);
  EXPECT_TRUE(std::filesystem::exists(folder + "/model.index"));
  EXPECT_EQ(run(limits, "save", "../elsewhere"), TW_PERMISSION_DENIED);
  limits = {};
  limits.trust_imported = true;
  EXPECT_EQ(run(limits, "save", folder + "/free"), TW_OK);
  EXPECT_TRUE(std::filesystem::exists(folder + "/free.index"));
  std::filesystem::remove_all(folder);
}

TEST(CppTest, SchedulesTakeRecordsOfOptions) {
  tw::Graph graph;
  tw::Scope s(graph);
  tw::Polynomial square;
  square.power = 2;
  square.end = 0;
  tw::CosineRestarts even;
  even.length_factor = 1;
  const tw_output step = s.scalar(TW_INT64, 6),
                  rates[] = {s.polynomial(step, 1, 8, square), s.cosine_restarts(step, 1, 4, even), s.exponential(step, 1, 4, 0.5, true)};
  s.finish();
  tw::Session session(graph);
  EXPECT_EQ(session.run({}, {rates[0]})[0].values<double>(), (std::vector<double>{1.0 / 16}));
  EXPECT_NEAR(session.run({}, {rates[1]})[0].values<double>()[0], 0.5, 1e-12);
  EXPECT_EQ(session.run({}, {rates[2]})[0].values<double>(), (std::vector<double>{0.5}));
}

TEST(CppTest, ATrainingLoopHasScheduleClippingDecayAndAverages) {
  tw::Graph graph;
  tw::Scope s(graph);
  const std::vector<tw_output> w = {s.variable("w", s.constant(tw::Tensor({2}, std::vector<float>{3, 4})))};
  const tw_output value = s.read(w[0]);
  auto gradients = s.gradients(s.op("L2Loss", {value}), w);  // w itself, whose norm is 5
  const tw_output norm = s.clip_by_global_norm(gradients, 2.5);
  tw::Sgd sgd;
  sgd.learning_rate = s.piecewise(s.read(s.global_step()), {0}, {0.5, 0});
  s.decay_weights(w, gradients, sgd.learning_rate, 0.5);
  std::vector<tw_output> averages;
  const tw_operation* train = s.advance_global_step(s.moving_averages(w, s.train(sgd, w, gradients), &averages, 0.5));
  const tw_operation *swap = s.swap_moving_averages(w, averages), *init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_training"});
  session.run({}, {}, {init});
  EXPECT_EQ(session.run({}, {norm})[0].values<double>(), (std::vector<double>{5}));
  session.run({}, {}, {train});  // w - 0.5 * (0.5 w) - 0.5 * (0.5 w) = w / 2
  EXPECT_EQ(session.run({}, {value})[0].values<float>(), (std::vector<float>{1.5, 2}));
  session.run({}, {}, {train});  // at a rate of 0
  EXPECT_EQ(session.run({}, {value})[0].values<float>(), (std::vector<float>{1.5, 2}));
  session.run({}, {}, {swap});  // the averages were 2.25 and 3 after the first step
  EXPECT_EQ(session.run({}, {value})[0].values<float>(), (std::vector<float>{1.875, 2.5}));
}

TEST(CppTest, GradientsAreClippedOneByOneAndDecay) {
  tw::Graph graph;
  tw::Scope s(graph);
  const std::vector<tw_output> w = {s.variable("w", s.constant(tw::Tensor({2}, std::vector<float>{3, 4})))};
  auto gradients = s.gradients(s.op("L2Loss", {s.read(w[0])}), w);  // w itself, whose norm is 5
  s.clip_by_norm(gradients, 2.5);
  s.decay_gradients(w, gradients, 2);
  const tw_operation* init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_clipping"});
  session.run({}, {}, {init});
  EXPECT_EQ(session.run({}, {gradients[0].values})[0].values<float>(), (std::vector<float>{1.5 + 6, 2 + 8}));
}

TEST(CppTest, CellsStepAndUnrollAlike) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw::LstmCell lstm = s.lstm_cell("lstm", TW_FLOAT, 1, 2, 3);
  const tw::GruCell gru = s.gru_cell("gru", 1, 2, 3);
  const tw_output x = s.op("Fill", {s.ints({4, 1}), s.scalar(TW_FLOAT, 0.5)});
  tw::LstmState last;
  tw_output gru_last = 0;
  const std::vector<tw_output> outputs = s.unroll(lstm, {x, x}, &last), gru_outputs = s.unroll(gru, {x, x}, &gru_last);
  const tw::LstmState twice = s.step(lstm, x, s.step(lstm, x));
  const tw_output gru_twice = s.step(gru, x, s.step(gru, x));
  const tw_operation* init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_cells"});
  session.run({}, {}, {init});
  const auto got = session.run({}, {outputs[1], last.h, twice.h, last.c, twice.c, gru_outputs[1], gru_last, gru_twice});
  const auto first = got[0].values<float>(), state = got[3].values<float>(), gated = got[5].values<float>();
  EXPECT_NE(first[0], 0);
  EXPECT_NE(gated[0], 0);
  EXPECT_EQ(first.size(), 8u);
  for (int k : {1, 2}) EXPECT_EQ(got[size_t(k)].values<float>(), first);
  EXPECT_EQ(got[4].values<float>(), state);
  for (int k : {6, 7}) EXPECT_EQ(got[size_t(k)].values<float>(), gated);
}

TEST(CppTest, LossesDrawClasses) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output weights = s.op("Fill", {s.ints({9, 2}), s.scalar(TW_FLOAT, 0)}),
                  biases = s.op("Fill", {s.ints({9}), s.scalar(TW_FLOAT, 0)});
  const tw_output labels = s.op("Fill", {s.ints({3, 1}), s.scalar(TW_INT64, 4)}),
                  inputs = s.op("Fill", {s.ints({3, 2}), s.scalar(TW_FLOAT, 1)});
  tw::SampledLoss options;
  EXPECT_EQ(options.num_sampled, 64);
  options.num_sampled = 9;  // all classes
  options.seed = 1;
  const tw_output losses[] = {s.sampled_softmax(weights, biases, labels, inputs, options), s.nce(weights, biases, labels, inputs, options)};
  s.finish();
  const auto got = tw::Session(graph).run({}, {losses[0], losses[1]});
  EXPECT_NEAR(got[0].values<float>()[2], std::log(9), 0.1);
  EXPECT_GT(got[1].values<float>()[0], 8 * std::log(2));  // at least the loss of the eight others
}

TEST(CppTest, AReplicaTrainsATableInShards) {
  tw::Graph graph;
  tw::Scope s(graph);
  tw::Spread spread("ps", 2, TW_SPREAD_BY_SIZE);
  EXPECT_EQ(spread.next(8), "/job:ps/task:0");
  EXPECT_EQ(spread.next(4), "/job:ps/task:1");
  EXPECT_EQ(spread.bytes(1), 4u);
  const tw_output zeros = s.op("Fill", {s.ints({2, 3}), s.scalar(TW_FLOAT, 0)}), none = s.op("Fill", {s.ints({2}), s.scalar(TW_FLOAT, 0)});
  const std::vector<tw_output> weights = {s.variable("w0", zeros), s.variable("w1", zeros)},
                               offsets = {s.variable("b0", none), s.variable("b1", none)};
  const tw::Sharded table(weights), biases(offsets);
  const tw_output labels = s.op("Fill", {s.ints({5}), s.scalar(TW_INT64, 3)}), x = s.op("Fill", {s.ints({5, 3}), s.scalar(TW_FLOAT, 1)});
  const tw_output losses = s.softmax(table, &biases, labels, x), loss = s.op("Mean", {losses, s.ints({0})});
  const tw_output row = s.lookup(table, s.scalar(TW_INT32, 3));
  tw::SyncOptions options;
  options.name = "hpp";
  const tw_sync_ops ops = s.sync(options, weights, s.gradients(loss, weights), [&](const std::vector<tw_gradient>& means) {
    tw::Sgd sgd;
    sgd.learning_rate = s.scalar(TW_FLOAT, 1);
    return s.train(sgd, weights, means);
  });
  const tw_operation* init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_sync"});
  session.run({}, {}, {init});
  session.run({{ops.ticket, tw::Tensor({2}, std::vector<int64_t>{7, 0})}}, {}, {ops.reset});
  const tw::Tensor ticket = session.run({}, {ops.current})[0];
  const auto first = session.run({{ops.ticket, ticket}}, {loss, ops.next}, {ops.update});
  EXPECT_NEAR(first[0].values<float>()[0], std::log(4), 1e-5);
  EXPECT_EQ(first[1].values<int64_t>()[1], 1);
  EXPECT_NEAR(session.run({}, {row})[0].values<float>()[0], 0.75, 1e-5);
  tw::Saver saver(graph, {}, {}, 1, TW_SAVER_BY_TASK);
  EXPECT_EQ(saver.tasks(), std::vector<std::string>{""});
}

TEST(CppTest, ConditionsAndLoopsAreFunctionsOfTheirScope) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {}), positive = s.op("Greater", {x, s.scalar(TW_FLOAT, 0)});
  const tw::Values y = s.cond(
      positive, [&](tw::Scope& in) { return tw::Values{in.op("Mul", {x, x}), x}; },
      [&](tw::Scope& in) { return tw::Values{in.op("Neg", {x}), x}; });
  const tw::Values z = s.switch_case(
      s.scalar(TW_INT32, 1), {[&](tw::Scope&) { return tw::Values{x}; }, [&](tw::Scope& in) { return tw::Values{in.op("Add", {x, x})}; }});
  tw::While options;
  options.maximum_iterations = s.scalar(TW_INT32, 10);
  const tw::Values last =
      s.while_loop([&](tw::Scope& in, const tw::Values& at) { return in.op("Less", {at[0], in.scalar(TW_FLOAT, 100)}); },
                   [&](tw::Scope& in, const tw::Values& at) { return tw::Values{in.op("Mul", {at[0], x})}; }, {x}, {{}}, options);
  const tw::Values outlined = s.outline("part", {x}, {y[0]});
  const std::vector<tw_gradient> dx = s.gradients(last[0], {x}), again = s.gradients(last[0], {x}, true),
                                 within = s.gradients_within(0, last[0], {x});
  s.finish();
  tw::Session session(graph);
  const auto at = [&](float value, tw_output what) { return *session.run({{x, tw::Tensor(value)}}, {what})[0].data<float>(); };
  EXPECT_EQ(at(3, y[0]), 9);
  EXPECT_EQ(at(-3, y[0]), 3);
  EXPECT_EQ(at(-3, outlined[0]), 3);
  EXPECT_EQ(at(3, z[0]), 6);
  EXPECT_EQ(at(3, last[0]), 243);
  EXPECT_EQ(at(3, dx[0].values), 5 * 81);
  EXPECT_EQ(at(3, again[0].values), 5 * 81);
  EXPECT_EQ(at(3, within[0].values), 5 * 81);
  EXPECT_EQ(at(1, last[0]), 1);
}

TEST(CppTest, FunctionsRunOverSlices) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output x = s.constant(tw::Tensor({3}, std::vector<float>{1, 2, 3})), ten = s.scalar(TW_FLOAT, 10);
  const auto digit = [&](tw::Scope& in, const tw::Values& states, const tw::Values& slices) {
    return tw::Values{in.op("Add", {in.op("Mul", {states[0], ten}), slices[0]})};
  };
  const tw::Values squares = s.map([](tw::Scope& in, const tw::Values& row) { return tw::Values{in.op("Mul", {row[0], row[0]})}; }, {x});
  const tw::Values wanted = {squares[0], s.foldl(digit, {x}, {s.scalar(TW_FLOAT, 0)})[0], s.foldr(digit, {x}, {s.scalar(TW_FLOAT, 0)})[0],
                             s.scan(digit, {x}, {s.scalar(TW_FLOAT, 0)})[0], s.scan(digit, {x}, {s.scalar(TW_FLOAT, 0)}, true)[0]};
  s.finish();
  tw::Session session(graph);
  const char* const texts[] = {"[1, 4, 9]", "123", "321", "[1, 12, 123]", "[321, 32, 3]"};
  const std::vector<tw::Tensor> found = session.run({}, wanted);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(found[i].text(), texts[i]);
}

TEST(CppTest, AFunctionThatThrowsLeavesItsBlock) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output yes = s.scalar(TW_BOOL, 1);
  const auto none = [](tw::Scope&) { return tw::Values{}; };
  EXPECT_THROW(s.cond(yes, none, [](tw::Scope&) -> tw::Values { throw std::runtime_error("mine"); }), std::runtime_error);
  s.cond(yes, none, [](tw::Scope& in) { return tw::Values{in.scalar(TW_FLOAT, 1)}; });
  EXPECT_THROW(s.finish(), tw::StatusError);
}

TEST(CppTest, OptimizersAreRecordsWithDefaults) {
  tw::Graph graph;
  tw::Scope s(graph);
  const std::vector<tw_output> w = {s.variable("w", s.scalar(TW_DOUBLE, 1))};
  const tw_output value = s.read(w[0]);
  const auto gradients = s.gradients(s.op("Square", {value}), w);
  tw::Adam adam;
  EXPECT_EQ(adam.beta1, 0.9);
  adam.learning_rate = s.scalar(TW_DOUBLE, 0.25);
  const tw_operation* steps[] = {s.train(adam, w, gradients),           s.train(tw::Momentum(), w, gradients),
                                 s.train(tw::AdaMax(), w, gradients),   s.train(tw::Adagrad(), w, gradients),
                                 s.train(tw::Adadelta(), w, gradients), s.train(tw::RmsProp(), w, gradients),
                                 s.train(tw::Ftrl(), w, gradients)};
  const tw_operation* init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_optimizers"});
  for (const tw_operation* step : steps) {
    session.run({}, {}, {init});
    session.run({}, {}, {step});
    const double after = session.run({}, {value})[0].values<double>()[0];
    EXPECT_LT(after, 1);
    EXPECT_NEAR(after, step == steps[0] ? 0.75 : after, 1e-5);  // its powers of beta are floats
  }
}

TEST(CppTest, ListsOfDifferentLengthsAreRefused) {
  tw::Graph graph;
  tw::Scope s(graph);
  EXPECT_EQ(s.train(tw::Adam(), {s.variable("w", s.scalar(TW_FLOAT, 1))}, {}), nullptr);
  EXPECT_THROW(s.finish(), tw::StatusError);
}

TEST(CppTest, LbfgsFindsTheMinimum) {
  tw::Graph graph;
  tw::Scope s(graph);
  const std::vector<tw_output> w = {s.variable("w", s.constant(tw::Tensor({2}, std::vector<double>{5, -3})))};
  const tw_output target = s.placeholder("target", TW_DOUBLE, {2}), value = s.read(w[0]);
  const tw_output loss = s.op("L2Loss", {s.op("Sub", {value, target})});
  const tw_operation* init = s.initializer();
  s.finish();
  tw::Session session(graph, {"container=hpp_lbfgs"});
  session.run({}, {}, {init});
  tw::Lbfgs lbfgs(graph, loss, w);
  const tw_lbfgs_report report = lbfgs.run(session, {{target, tw::Tensor({2}, std::vector<double>{1, 2})}});
  EXPECT_EQ(report.why, uint32_t(TW_LBFGS_GRADIENT));
  const auto found = session.run({}, {value})[0].values<double>();
  EXPECT_NEAR(found[0], 1, 1e-6);
  EXPECT_NEAR(found[1], 2, 1e-6);
}

TEST(CppTest, CheckpointersSaveAndGoOn) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("hpp_checkpoints_" + std::to_string(getpid()));
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output w = s.variable("w", s.scalar(TW_FLOAT, 4)), value = s.read(w);
  const tw_operation* init = s.initializer();
  const tw_operation* clear = tw_variable_assign(s.c(), w, s.scalar(TW_FLOAT, 0));
  s.finish();
  tw::Session session(graph, {"container=hpp_checkpoints"});
  session.run({}, {}, {init});
  tw::Saver saver(graph, {}, {{"w", "other/w"}}, 2);
  tw_checkpointer_options options = tw::Checkpointer::defaults();
  options.every_steps = 2;
  {
    tw::Checkpointer c(saver, session, folder.string(), options);
    EXPECT_EQ(c.restore_or(-5), -5);
    EXPECT_THROW(c.restore(), tw::StatusError);
    EXPECT_FALSE(c.step(1));
    EXPECT_TRUE(c.step(2));
    c.save(3);
    c.wait();
    EXPECT_EQ(c.report().saves, 2u);
  }
  session.run({}, {}, {clear});
  tw::Checkpointer again(saver, session, folder.string(), options);
  EXPECT_EQ(again.restore(), 3);
  EXPECT_EQ(session.run({}, {value})[0].values<float>()[0], 4);
  saver.save(session, (folder / "one").string());
  session.run({}, {}, {clear});
  const auto restored = saver.restore_partial(session, (folder / "one").string());
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(restored[0].outcome, uint32_t(TW_RESTORE_DONE));
  EXPECT_EQ(restored[0].name, "other/w");
  EXPECT_EQ(session.run({}, {value})[0].values<float>()[0], 4);
  std::filesystem::remove_all(folder);
}
