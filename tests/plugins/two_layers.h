// A net of two layers that learns a fixed function by gradient descent, for tests of devices.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "framework/autodiff/autodiff.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {

inline Tensor Scalar(float value) { return FloatsOf(Shape(std::vector<int64_t>()), value); }

class TwoLayers {
 public:
  // first, second: the devices of the layers and their state; "": any device.
  explicit TwoLayers(TestGraph* g, const std::string& first = "", const std::string& second = "") : g_(*g) {
    x_ = g_.Input(Shape({kRows, kIn}), "x");
    target_ = g_.Input(Shape({kRows, 1}), "target");
    const std::string where[] = {first, second};
    const std::vector<int64_t> shapes[] = {{kIn, kHidden}, {kHidden}, {kHidden, 1}};
    for (size_t v = 0; v < 3; ++v) AddVariable(shapes[v], where[v / 2]);
    Edge hidden = Op("Relu", {Op("BiasAdd", {Op("MatMul", {x_, read_[0]}, first), read_[1]}, first)}, first);
    Edge loss = Op("Sum",
                   {Op("Square", {Op("Sub", {Op("MatMul", {hidden, read_[2]}, second), target_}, second)}, second),
                    g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {0, 1}))},
                   second);
    std::vector<Gradient> gradients;
    Status s = AddGradients(&g_.graph(), {loss}, {}, handle_, &gradients);
    EXPECT_TRUE(s.ok()) << s;
    for (size_t v = 0; v < 3; ++v) {
      Edge rate = g_.Const(Scalar(0.002f));
      train_.push_back(g_.Op("ResourceApplyGradientDescent", {handle_[v], rate, gradients[v].values}).node);
    }
  }

  void Initialize(Session* session) { Run(session, {{}, {}, init_}, {}); }
  void Train(Session* session, int step) {
    Tensor x = FloatsOf(Shape({kRows, kIn})), target = FloatsOf(Shape({kRows, 1}));
    for (uint64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = std::sin(float(i + 7 * uint64_t(step)));
    for (uint64_t i = 0; i < target.count(); ++i) target.as<float>()[i] = x.as<float>()[i * kIn] * 2 - x.as<float>()[i * kIn + 1];
    Run(session, {{x_, target_}, {}, train_}, {x, target});
  }
  // Returns all variables, concatenated.
  std::vector<float> Weights(Session* session) {
    std::vector<float> all;
    auto out = Step(*session, {{}, read_, {}});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return all;
    for (const Tensor& t : *out) {
      for (float v : Values(t)) all.push_back(v);
    }
    return all;
  }
  CallableSpec training() const { return {{x_, target_}, {}, train_}; }
  std::vector<Tensor> feeds() const { return {FloatsOf(Shape({kRows, kIn}), -0.5f), FloatsOf(Shape({kRows, 1}))}; }
  CallableSpec initializing() const { return {{}, {}, init_}; }
  CallableSpec reading() const { return {{}, read_, {}}; }

 private:
  static constexpr int64_t kRows = 16, kIn = 4, kHidden = 8;

  Edge Op(const std::string& op, std::vector<Edge> in, const std::string& device) { return g_.Op(op, std::move(in), {.device = device}); }

  void AddVariable(const std::vector<int64_t>& dims, const std::string& device) {
    const Shape shape(dims);
    const AttrValue type = AttrValue::Type(TW_FLOAT);
    handle_.push_back(g_.Op("VarHandleOp", {}, {.device = device, .attrs = {{"dtype", type}, {"shape", AttrValue::OfShape(shape)}}}));
    Tensor start = FloatsOf(shape);
    for (uint64_t i = 0; i < start.count(); ++i) start.as<float>()[i] = std::cos(3 * float(i)) / 2;
    init_.push_back(g_.Op("AssignVariableOp", {handle_.back(), g_.Const(start)}, {.attrs = {{"dtype", type}}}).node);
    read_.push_back(g_.Op("ReadVariableOp", {handle_.back()}, {.attrs = {{"dtype", type}}}));
  }

  void Run(Session* session, const CallableSpec& spec, const std::vector<Tensor>& feeds) {
    auto out = Step(*session, spec, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
  }

  TestGraph& g_;
  Edge x_, target_;
  std::vector<Edge> handle_, read_;
  std::vector<const Node*> init_, train_;
};

}  // namespace thalweg::testing_support
