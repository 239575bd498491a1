// What processes say to each other is a format: these bytes are for ever.
#include "distributed/messages.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "distributed/piece.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (unsigned char c : bytes) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

template <class M>
std::string Bytes(const M& m) {
  WireWriter w;
  m.Put(&w);
  return w.Take();
}

TEST(Messages, StandAsTheyAlwaysDid) {
  EXPECT_EQ(Hex(PutRequest(Method::kRun, 0x1122334455667788, WireWriter())), "01058877665544332211");
  EXPECT_EQ(Hex(PutAnswer(WireWriter())), "0000");
  EXPECT_EQ(Hex(PutFailure({InvalidArgument("no"), true})), "0301020000006e6f");
  Hello hello;
  hello.job = "ps";
  hello.index = 3;
  hello.incarnation = 7;
  hello.version = "0.1";
  hello.steps = 2;
  hello.sessions = 1;
  EXPECT_EQ(Hex(Bytes(hello)), "02000000707303000000070000000000000003000000302e3102000000000000000100000000000000");
  EXPECT_EQ(Hex(Bytes(OpenRequest{5, {"a=b"}})), "05000000000000000100000003000000613d62");
  EXPECT_EQ(Hex(Bytes(SessionRequest{6})), "0600000000000000");
  EXPECT_EQ(Hex(Bytes(HandleMessage{1, 2})), "01000000000000000200000000000000");
  EXPECT_EQ(Hex(Bytes(RunRequest{1, 2, 3, 4, 5})),
            "0100000000000000020000000000000003000000000000000400000000000000"
            "0500000000000000");
  EXPECT_EQ(Hex(Bytes(ReceiveRequest{1, 2, "k"})), "01000000000000000200000000000000010000006b");
  EXPECT_EQ(Hex(Bytes(AbortRequest{1, 2, InvalidArgument("x")})),
            "0100000000000000020000000000000003"
            "0100000078");
}

TEST(Messages, ReadBackTheSame) {
  const std::string bytes = PutRequest(Method::kReceive, 9, WireWriter());
  auto head = GetRequest(bytes);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->method, Method::kReceive);
  EXPECT_EQ(head->incarnation, 9u);
  std::string_view fields;
  auto failed = GetAnswer(PutFailure({NotFound("gone"), false}), &fields);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(failed->status), "gone");
  EXPECT_FALSE(failed->consequence);
  auto receive = ReceiveRequest::Get(Bytes(ReceiveRequest{1, 2, "key"}));
  ASSERT_TRUE(receive.ok());
  EXPECT_EQ(receive->key, "key");
  auto abort = AbortRequest::Get(Bytes(AbortRequest{1, 2, InvalidArgument("x")}));
  ASSERT_TRUE(abort.ok());
  EXPECT_EQ(abort->why, InvalidArgument("x"));
}

TEST(Messages, RefuseOtherVersionsAndMethods) {
  std::string bytes = PutRequest(Method::kHello, 0, WireWriter());
  bytes[0] = 2;
  EXPECT_THAT(std::string(Message(GetRequest(bytes).status())), HasSubstr("protocol version 2, but this runtime speaks 1"));
  bytes[0] = 1;
  bytes[1] = 99;
  EXPECT_THAT(std::string(Message(GetRequest(bytes).status())), HasSubstr("method 99"));
}

PieceMessage SomePiece() {
  PieceMessage m;
  m.library = "lib";
  m.nodes.push_back({"n", "Op", "CPU:0", "a.py:1", {"x", "y:1"}, {"c"}, {"z"}, {{"T", "1"}}, {{"_e", "2"}}});
  m.loops.push_back({"m", "n", 1});
  m.extended.emplace_back("a", "b");
  m.feeds = {"x"};
  m.fetches = {"n", "n:1"};
  m.targets = {"t"};
  m.sources.push_back({"k", "addr", "task", 8});
  return m;
}

TEST(Messages, PiecesReadBackTheSame) {
  const std::string bytes = SomePiece().Put();
  auto m = PieceMessage::Get(bytes);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ(m->Put(), bytes);
  EXPECT_EQ(m->nodes[0].inputs, (std::vector<std::string>{"x", "y:1"}));
  EXPECT_EQ(m->sources[0].incarnation, 8u);
}

// Whatever comes, reading it ends, and makes nothing that is larger than what came.
TEST(Messages, DamagedBytesAreAnErrorEverywhere) {
  std::mt19937 random(1);
  const std::string piece = SomePiece().Put();
  for (size_t n = 0; n < piece.size(); ++n) EXPECT_FALSE(PieceMessage::Get(piece.substr(0, n)).ok());
  EXPECT_FALSE(PieceMessage::Get(piece + "x").ok());
  const float values[] = {1, 2, 3};
  const int64_t dims = 3;
  auto t = Tensor::Make(TW_FLOAT, &dims, 1);
  ASSERT_TRUE(t.ok());
  std::copy(values, values + 3, t->as<float>());
  WireWriter w;
  ASSERT_TRUE(PutTensors(&*t, 1, &w).ok());
  const std::string tensors = w.Take();
  ASSERT_TRUE(GetTensors(tensors).ok());
  for (const std::string& good : {piece, tensors}) {
    for (int round = 0; round < 20000; ++round) {
      std::string bytes = good;
      for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = char(random());
      (void)PieceMessage::Get(bytes);
      (void)GetTensors(bytes);
      (void)GetRequest(bytes);
      (void)Hello::Get(bytes);
      (void)OpenRequest::Get(bytes);
      std::string_view fields;
      (void)GetAnswer(bytes, &fields);
    }
  }
}

TEST(Messages, TensorsOfAllKindsTravel) {
  const int64_t dims[] = {2, 1};
  auto strings = Tensor::Make(TW_STRING, dims, 2);
  ASSERT_TRUE(strings.ok());
  ASSERT_TRUE(strings->SetString(0, "").ok());
  ASSERT_TRUE(strings->SetString(1, std::string("a\0b", 3)).ok());
  auto none = Tensor::Make(TW_DOUBLE, std::initializer_list<int64_t>{0, 5}.begin(), 2);
  ASSERT_TRUE(none.ok());
  const Tensor all[] = {*strings, *none};
  WireWriter w;
  ASSERT_TRUE(PutTensors(all, 2, &w).ok());
  auto back = GetTensors(w.bytes());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)[0].str(1), std::string_view("a\0b", 3));
  EXPECT_EQ((*back)[0].dim(0), 2);
  EXPECT_EQ((*back)[1].shape().text(), "[0, 5]");
}

TEST(Messages, ATensorThatLiesAboutItsSizeMakesNoMemory) {
  TensorHead head;
  head.dtype = TW_FLOAT;
  head.dims = {int64_t{1} << 40};
  EXPECT_THAT(std::string(Message(TensorFrom(head, "abcd").status())), HasSubstr("has 4 bytes and not 4398046511104"));
  head.dims = {int64_t{1} << 62, int64_t{1} << 62};
  EXPECT_FALSE(TensorFrom(head, "abcd").ok());
  head.dtype = TW_STRING;
  head.dims = {1000};
  EXPECT_FALSE(TensorFrom(head, "abcd").ok());
  head.dtype = TW_RESOURCE;
  EXPECT_FALSE(TensorFrom(head, "abcd").ok());
}

}  // namespace
}  // namespace thalweg::distributed
