// Pieces of a graph, added to another one.
#include "distributed/piece.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

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
