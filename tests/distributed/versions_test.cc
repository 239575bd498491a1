// Processes of different versions in one cluster. Messages of version 0.1, recorded at that time,
// are understood and answered in a way that 0.1 understands; so are messages of a later version
// that keeps to the protocol. If a task cannot do something, the error names both versions. The
// packets are those of the socket transport.
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/by_hand.h"
#include "tests/distributed/servers.h"
#include "thalweg/version.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string OwnVersion() {
  return std::to_string(TW_VERSION_MAJOR) + "." + std::to_string(TW_VERSION_MINOR) + "." + std::to_string(TW_VERSION_PATCH);
}

// "/job:worker/task:0" with incarnation 7, of version "0.0.9"; 2 steps, 1 session.
const char* const kHelloAnswer =
    "000006000000776f726b657200000000070000000000000005000000302e302e390200000000000000"
    "0100000000000000";
// The same of version "9.1.0", which has every feature bit set.
const char* const kNewerHelloAnswer =
    "000006000000776f726b657200000000070000000000000005000000392e312e300200000000000000"
    "0100000000000000ffffffff";
const std::string kGood = "0000";
const char* const kHandle = "000001000000000000000900000000000000";  // session 1's handle 9; nobody reads the first number
// One tensor: float, [2], -1.5 and 2.
const char* const kTensors = "010000000100000001000000020000000000000008000000000000000000c0bf00000040";
// NOT_FOUND, "op 'Neg' is not known".
const char* const kUnknownOp = "0500150000006f7020274e656727206973206e6f74206b6e6f776e";

// INVALID_ARGUMENT, "Neg 'y': attribute 'a' is not there".
const char* const kUnknownAttr =
    "0300230000004e6567202779273a206174747269627574652027612720697320"
    "6e6f74207468657265";

// A task of another version: answers every request except watches.
class OtherTask {
 public:
  OtherTask(const std::string& address, const std::string& hello, const std::string& answer_to_register)
      : task_(address, [=](const Heard& h) {
          const int method = h.method();
          if (method == kWatch) return;
          const std::string& head = method == kHello ? hello : method == kRegister ? answer_to_register : kGood;
          h.Answer(OfHex(head), method == kHello ? "{\"worker\": [\"" + address + "\"]}" : method == kRun ? OfHex(kTensors) : "");
        }) {}

 private:
  const TaskByHand task_;
};

struct Client {
  explicit Client(const std::string& address) : target("target=" + address) {
    tw::Scope s(graph);
    x = s.placeholder("x", TW_FLOAT, {-1});
    y = s.op("Neg", {x});
    s.finish();
  }
  tw::Runtime runtime = NewRuntime();
  tw::Graph graph{runtime};
  const std::string target;
  tw_output x, y;
};

class OtherVersion : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  const std::string address_ = NewAddress("v" + std::to_string(getpid()) + "-" + GetParam().second);
};

TEST_P(OtherVersion, OfATaskServesASessionOfToday) {
  const OtherTask task(address_, GetParam().first, kHandle);
  const Client client(address_);
  tw::Session session(client.graph, {client.target.c_str()});
  for (int round = 0; round < 2; ++round) {
    const auto out = session.run({{client.x, tw::Tensor({2}, std::vector<float>{1.5, -2})}}, {client.y});
    EXPECT_THAT(out[0].values<float>(), ElementsAre(-1.5f, 2.f));
  }
}

TEST_P(OtherVersion, OfATaskIsToldWithOursWhereItHasNotAnOpOrItsAttribute) {
  for (const auto& [answer, code, text] : {std::tuple(kUnknownOp, TW_NOT_FOUND, "op 'Neg' is not known"),
                                           std::tuple(kUnknownAttr, TW_INVALID_ARGUMENT, "Neg 'y': attribute 'a' is not there")}) {
    const OtherTask task(address_, GetParam().first, answer);
    const Client client(address_);
    tw::Session session(client.graph, {client.target.c_str()});
    const Failure f = FailureOf([&] { session.run({{client.x, tw::Tensor({1}, std::vector<float>{1})}}, {client.y}); });
    EXPECT_EQ(f.code, uint32_t(code));
    EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:0 at " + address_ + ": " + text));
    EXPECT_THAT(f.text, HasSubstr(std::string("the task runs version ") + GetParam().second + ", this program " + OwnVersion()));
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, OtherVersion,
                         ::testing::Values(std::pair(kHelloAnswer, "0.0.9"), std::pair(kNewerHelloAnswer, "9.1.0")));

// The bytes that a client of that version sends and receives, except for numbers that a task
// chooses.
TEST(Versions, AClientOfAnOlderOneIsServedByATaskOfToday) {
  Servers servers(1);
  ClientByHand client(servers.address(0));
  const auto ask = [&](const std::string& head, const std::string& body, std::string* out_body) {
    return client.Ask(head, body, out_body);
  };
  const std::string nobody(8, '\0'), session = OfHex("0500000000000000");
  std::string body;
  const std::string hello = ask(OfHex("0101") + nobody, "", &body);
  EXPECT_THAT(body, HasSubstr(servers.address(0).substr(5)));
  // The fields are job, number, incarnation, version, steps and sessions, and nothing that 0.1
  // would not know.
  ASSERT_GT(hello.size(), 2u + 4 + 6 + 4 + 8 + 4);
  EXPECT_EQ(hello.substr(0, 16), OfHex("000006000000776f726b657200000000"));
  const std::string version = hello.substr(24);
  uint32_t length = 0;
  std::memcpy(&length, version.data(), sizeof length);
  EXPECT_EQ(version.size(), sizeof length + length + 16);
  EXPECT_EQ(version.substr(4, length), OwnVersion());
  // A later version asks for the task's features and sends its own; an unknown method is refused,
  // which has no other effect.
  EXPECT_EQ(ask(OfHex("0101") + nobody + OfHex("ffffffff"), "", &body), hello + OfHex("01000000"));
  EXPECT_THAT(ask(OfHex("01ff") + nobody, "", &body), HasSubstr("method 255, which there is not"));
  EXPECT_THAT(ask(OfHex("0201") + nobody, "", &body), HasSubstr("protocol version 2, but this runtime speaks 1"));
  const std::string task = hello.substr(16, 8);
  // Options: optimize=true. The client reads only whether the answer is OK.
  EXPECT_EQ(ask(OfHex("0102") + task + session + OfHex("010000000d0000006f7074696d697a653d74727565"), "", &body).substr(0, 2),
            OfHex(kGood));
  client.Begin(OfHex("0103") + task + session);
  // x: Placeholder, dtype float; y: Neg of x. x is fed and y is fetched.
  const std::string piece = OfHex(
      "000000000200000001000000780b000000506c616365686f6c6465720000000000000000000000000000000000000000010000000500000064747970650200000030"
      "01"
      "000000000100000079030000004e65670000000000000000010000000100000078000000000000000001000000010000005402000000300100000000000000000000"
      "00"
      "000100000001000000780100000001000000790000000000000000");
  const std::string handle = ask(OfHex("0104") + task + session, piece, &body);
  ASSERT_EQ(handle.size(), 18u) << handle;
  EXPECT_EQ(handle.substr(0, 10), OfHex(kGood) + session);
  // Step 1, which is the oldest, without a deadline. 1.5 and -2 are fed.
  const std::string step = OfHex("0100000000000000") + OfHex("0100000000000000") + nobody;
  const std::string run = OfHex("0105") + task + session + handle.substr(10) + step;
  const std::string feeds = OfHex("010000000100000001000000020000000000000008000000000000000000c03f000000c0");
  EXPECT_EQ(ask(run, feeds, &body), OfHex(kGood));
  EXPECT_EQ(body, OfHex(kTensors));
  // A repeated message has no effect.
  EXPECT_THAT(ask(run, feeds, &body), HasSubstr("step 1 was begun already"));
  EXPECT_EQ(ask(OfHex("0108") + task + session + handle.substr(10), "", &body), OfHex(kGood));
  // Status: the client reads only the body; the fields may grow.
  EXPECT_EQ(ask(OfHex("0109") + task + session, "", &body).substr(0, 2), OfHex(kGood));
}

}  // namespace
}  // namespace thalweg::testing
