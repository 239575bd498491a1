// Pieces of a graph that are added to another graph.
#include "distributed/piece.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/proto/wire.h"
#include "framework/runtime/rendezvous.h"
#include "framework/session/callable.h"
#include "framework/session/session.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

// Every received tensor is zeros of this shape.
class Sender final : public Rendezvous {
 public:
  explicit Sender(Shape shape) : shape_(std::move(shape)) {}
  Status Send(std::string_view, std::string_view, Tensor) override { return Status(); }
  void Receive(std::string_view, std::string_view, Received done) override {
    auto t = Tensor::Make(TW_FLOAT, shape_);
    done(t.status(), t.ok() ? *std::move(t) : Tensor());
  }
  void StepFailed(const Status&) override {}

 private:
  const Shape shape_;
};

class PieceTest : public testing_support::StandardRuntimeTest {
 protected:
  // A node that receives, and one that reads it. shape: the declared shape; empty: none.
  static PieceMessage Received(const std::string& shape) {
    PieceNode recv, read;
    recv.name = "x";
    recv.op = "_Recv";
    recv.attrs["tensor_type"] = *SerializeAttr(AttrValue::Type(TW_FLOAT));
    for (const char* text : {"tensor_name", "send_device", "recv_device"}) recv.attrs[text] = *SerializeAttr(AttrValue::String("x"));
    recv.attrs["send_device_incarnation"] = *SerializeAttr(AttrValue::Int(0));
    if (!shape.empty()) recv.extra_attrs[kReceivedShape] = shape;
    read.name = "y";
    read.op = "Neg";
    read.inputs = {"x"};
    read.attrs["T"] = *SerializeAttr(AttrValue::Type(TW_FLOAT));
    PieceMessage piece;
    piece.nodes = {recv, read};
    return piece;
  }
};

// 40 bytes that encode 2^26 copies of the number 1.
PieceMessage Splat() {
  std::string dim, shape, tensor, value;
  PutVarintField(1, uint64_t{1} << 26, &dim);
  PutBytesField(2, dim, &shape);
  PutVarintField(1, TW_FLOAT, &tensor);
  PutBytesField(2, shape, &tensor);
  PutBytesField(5, std::string("\0\0\x80\x3f", 4), &tensor);
  PutBytesField(8, tensor, &value);
  PieceNode n;
  n.name = "ones";
  n.op = "Const";
  n.attrs["dtype"] = *SerializeAttr(AttrValue::Type(TW_FLOAT));
  n.attrs["value"] = value;
  PieceMessage piece;
  piece.nodes = {n};
  return piece;
}

TEST_F(PieceTest, AConstantThatUnfoldsIsPaidForBeforeItDoes) {
  const auto added = [&](uint64_t limit, uint64_t* most) {
    MemoryBudget* budget = MemoryBudget::Create(limit, "client 'ann'");
    Status s;
    {
      Meter kept(budget);
      Graph graph(Shared());
      s = AddPiece(Splat(), true, &graph, budget, &kept);
      *most = budget->used();
    }
    EXPECT_EQ(budget->used(), 0u);
    budget->Release();
    return s;
  };
  uint64_t used = 0;
  const uint64_t before = MemoryPool::Host()->stats().peak;
  const Status refused = added(100 << 20, &used);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("Const 'ones': attribute 'value': 268435452 bytes more are too many: client 'ann' holds"));
  EXPECT_LT(used, 1u << 20);
  EXPECT_LT(MemoryPool::Host()->stats().peak, std::max<uint64_t>(before, 1) + (64 << 20));
  EXPECT_TRUE(added(400 << 20, &used).ok());
  EXPECT_GT(used, 256u << 20);
}

TEST_F(PieceTest, WhatIsReceivedHasTheShapeThatItsSenderKnows) {
  Graph graph(Shared());
  ASSERT_TRUE(AddPiece(Received(*SerializeAttr(AttrValue::OfShape(Shape({2, -1})))), true, &graph).ok());
  EXPECT_EQ(graph.Find("x")->shape(0), Shape({2, -1}));
  EXPECT_EQ(graph.Find("y")->shape(0), Shape({2, -1}));
}

TEST_F(PieceTest, WithoutAWordNothingIsKnownOfIt) {
  Graph graph(Shared());
  ASSERT_TRUE(AddPiece(Received(""), true, &graph).ok());
  EXPECT_FALSE(graph.Find("x")->shape(0).has_rank());
}

// The planner relies on a partially known shape, too.
TEST_F(PieceTest, WhatComesInAnotherShapeFailsTheStep) {
  auto graph = std::make_shared<Graph>(Shared());
  ASSERT_TRUE(AddPiece(Received(*SerializeAttr(AttrValue::OfShape(Shape({2, -1})))), true, graph.get()).ok());
  auto session = Session::Create(graph, {});
  ASSERT_TRUE(session.ok()) << session.status();
  CallableSpec spec;
  spec.fetches = {{graph->Find("y"), 0}};
  Callable callable(session->get(), spec);
  const auto run = [&](const Shape& shape) {
    Sender sender(shape);
    RunOptions options;
    options.rendezvous = &sender;
    Tensor fetch;
    return callable.Run(nullptr, options, &fetch);
  };
  EXPECT_TRUE(run({2, 3}).ok()) << run({2, 3});
  for (const Shape& wrong : {Shape({1000, 3}), Shape({2}), Shape({2, 3, 4})}) {
    const Status s = run(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr(StrCat("what came has shape ", wrong.text(), " but must fit [2, ?]")));
  }
}

TEST_F(PieceTest, OnlyWhatReceivesIsOfTheShapeThatItSays) {
  PieceMessage piece = Received("");
  piece.nodes[1].extra_attrs[kReceivedShape] = "what anybody means by that";
  Graph graph(Shared());
  const Status s = AddPiece(piece, true, &graph);
  EXPECT_TRUE(s.ok()) << s;
}

TEST_F(PieceTest, AShapeThatIsNoneIsRefused) {
  for (const std::string& wrong : {*SerializeAttr(AttrValue::Int(3)), std::string("\x0f")}) {
    Graph graph(Shared());
    const Status s = AddPiece(Received(wrong), true, &graph);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("attribute '_shape' is no shape"));
  }
}

}  // namespace
}  // namespace thalweg::distributed
