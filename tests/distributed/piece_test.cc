// Pieces of a graph, added to another one.
#include "distributed/piece.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/runtime/rendezvous.h"
#include "framework/session/callable.h"
#include "framework/session/session.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

// Everything that is received is zeros of this shape.
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
  // A node that receives, and one that reads it. shape: what is said of it; empty: nothing.
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

// What is known of a value in part is believed, too, by whoever plans for it.
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
