// A step over two tasks whose client, sender and receiver each have the previous version, ours, or
// a later one. Ours are real; the others are played by the bytes that they send and receive. Runs
// all of the 27 combinations with at least one of ours. The value is pushed if all three versions
// support it, and requested otherwise.
#include <algorithm>
#include <future>
#include <memory>
#include <ostream>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/by_hand.h"
#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum Version { kOlder, kOurs, kNewer };

const char* const kOwner = "a process of this user";  // the transport's identity of every peer
const char* const kKey = "y/0/worker_0";              // key of the value that crosses, as our client names it
const char* const kElements = "0000c0bf00000040";     // of two floats, -1.5 and 2

std::string FloatsOf2() { return Number(uint32_t{1}) + Number(uint32_t{1}) + Number(int64_t{2}); }  // type, rank, size
std::string WithElements(const char* elements) { return FloatsOf2() + Number(uint64_t{8}) + OfHex(elements); }
std::string Tensors(const char* elements) { return Number(uint32_t{1}) + WithElements(elements); }

// A task's description of itself; asked: the fields of the request.
std::string Who(const std::string& job, uint64_t incarnation, Version version, const std::string& asked) {
  const std::string who = Text(job) + Number(int32_t{0}) + Number(incarnation) + Text(version == kOlder ? "0.0.9" : "9.1.0") +
                          Number(uint64_t{0}) + Number(uint64_t{0});
  return who + (version == kNewer && !asked.empty() ? Number(uint32_t{0xffffffff}) : "");
}

// The two addresses, without their scheme, and the versions of the tasks.
struct Places {
  explicit Places(const std::string& name) : ps(NewAddress(name + "-ps")), worker(NewAddress(name + "-worker")) {}
  std::string cluster() const { return "{\"ps\": [\"" + ps + "\"], \"worker\": [\"" + worker + "\"]}"; }
  static std::string Bare(const std::string& address) { return address.substr(address.find(':') + 1); }
  const std::string ps, worker;
};

// ---- Tasks by hand ----

class Other {
 public:
  Other(const char* job, uint64_t incarnation, Version version, const Places& places)
      : places_(places), job_(job), incarnation_(incarnation), version_(version) {}
  virtual ~Other() = default;

 protected:
  void Serve(const Heard& h) {
    switch (h.method()) {
      case kHello: return h.Answer(Good(Who(job_, incarnation_, version_, h.fields())), places_.cluster());
      case kOpen: return h.Answer(Good(version_ == kOlder ? "" : Text(kOwner)));
      case kWatch: return;
      case kRegister: return piece_ = h.body, h.Answer(Good(Number(NumberAt(h.fields(), 0)) + Number(uint64_t{9})));
      case kRun: return Run(h);
      case kReceive: return Asked(h);
      case kPush: return version_ == kOlder ? h.Answer(Failed(3, "a request for method 11, which there is not")) : Told(h);
      default: return h.Answer(Good());
    }
  }
  virtual void Run(const Heard& h) = 0;
  virtual void Asked(const Heard& h) { h.Answer(Failed(3, "nobody asks for that")); }
  virtual void Told(const Heard& h) { h.Answer(Failed(3, "nobody is told that")); }
  // Returns the answer of the other task of the cluster; sends Hello first.
  static std::string Ask(const std::string& address, int method, const std::string& fields, const std::string& body,
                         std::string* out_body) {
    ClientByHand other(address);
    const std::string who = other.Ask(Request(kHello, 0));
    const uint64_t incarnation = NumberAt(who, 2 + 4 + NumberAt(who, 2) % 256 + 4);
    return other.Ask(Request(method, incarnation, fields), body, out_body);
  }
  const Places places_;
  const std::string job_;
  const uint64_t incarnation_;
  const Version version_;
  std::string piece_;  // the last registered piece
};

// Has y, and sends it to any peer that asks or, if the client requested it, pushes it to the other
// task.
class OtherSender final : public Other {
 public:
  OtherSender(Version version, const Places& places)
      : Other("ps", 21, version, places), task_(places.ps, [this](const Heard& h) { Serve(h); }) {}

 private:
  void Run(const Heard& h) override {
    EXPECT_EQ(h.body, Tensors("0000c03f000000c0"));  // the feed: 1.5 and -2
    if (version_ == kNewer && piece_.find(Text(Places::Bare(places_.worker))) != piece_.npos) {
      const std::string value = Number(uint32_t{1}) + Text(kKey) + Number(uint8_t{1}) + WithElements(kElements);
      std::string none;
      EXPECT_EQ(Ask(places_.worker, kPush, h.fields().substr(0, 8) + h.fields().substr(16, 8) + Text(kOwner), value, &none), Good());
    }
    h.Answer(Good(), Number(uint32_t{0}));
  }
  void Asked(const Heard& h) override {
    EXPECT_EQ(h.fields().substr(16), Text(kKey) + Text(kOwner));
    h.Answer(Good(FloatsOf2()), OfHex(kElements));
  }
  const TaskByHand task_;
};

// Answers a step with the negated value that it receives.
class OtherReceiver final : public Other {
 public:
  OtherReceiver(Version version, const Places& places)
      : Other("worker", 22, version, places), task_(places.worker, [this](const Heard& h) { Serve(h); }) {}

 private:
  void Run(const Heard& h) override {
    const std::string unasked = Number(uint32_t{1}) + Text(kKey);
    const bool waits = version_ == kNewer && piece_.size() > unasked.size() && piece_.substr(piece_.size() - unasked.size()) == unasked;
    if (!waits) {
      const std::string name = h.fields().substr(0, 8) + h.fields().substr(16, 8);
      EXPECT_EQ(Ask(places_.ps, kReceive, name + Text(kKey) + Text(kOwner), "", &value_), Good(FloatsOf2()));
    }
    run_ = h;
    Go();
  }
  void Told(const Heard& h) override {
    EXPECT_EQ(h.fields().substr(16), Text(kOwner));
    EXPECT_EQ(h.body.substr(0, h.body.size() - 8), (Number(uint32_t{1}) + Text(kKey) + Number(uint8_t{1}) + WithElements("")));
    value_ = h.body.substr(h.body.size() - 8);
    h.Answer(Good());
    Go();
  }
  void Go() {
    if (run_.fd < 0 || value_.empty()) return;
    EXPECT_EQ(value_, OfHex(kElements));
    run_.Answer(Good(), Tensors("0000c03f000000c0"));
    run_ = Heard();
    value_.clear();
  }
  Heard run_;          // it waits for the value
  std::string value_;  // elements of the value
  const TaskByHand task_;
};

// ---- Clients ----

// z = Neg(y) on the worker, y = Neg(x) on the server; x is 1.5 and -2.
void RunOurClient(const Places& places) {
  tw::Runtime runtime = NewRuntime();
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {2});
  s.on("/job:ps/task:0");
  const tw_output y = s.op("Neg", {x}, [](tw_op*) {}, "y");
  s.on("/job:worker/task:0");
  const tw_output z = s.op("Neg", {y});
  s.finish();
  const std::string target = "target=" + places.worker;
  tw::Session session(graph, {target.c_str(), "target_timeout_ms=10000"});
  for (int round = 0; round < 2; ++round) {
    const auto out = session.run({{x, tw::Tensor({2}, std::vector<float>{1.5, -2})}}, {z});
    EXPECT_THAT(out[0].values<float>(), ElementsAre(1.5f, -2.f));
  }
}

std::string Entry(const std::string& name, const std::string& value) { return Text(name) + Text(value); }
std::string TypeAttr(const std::string& name) { return Entry(name, OfHex("3001")); }  // float
std::string TextAttr(const std::string& name, const std::string& text) {
  return Entry(name, "\x12" + std::string(1, char(text.size())) + text);
}
std::string List(const std::vector<std::string>& all) {
  std::string out = Number(uint32_t(all.size()));
  for (const std::string& s : all) out += Text(s);
  return out;
}
std::string PieceNode(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& attrs) {
  std::string out = Text(name) + Text(op) + Text("") + Text("") + List(inputs) + List({}) + List({}) + Number(uint32_t(attrs.size()));
  for (const std::string& a : attrs) out += a;
  return out + Number(uint32_t{0});
}
std::vector<std::string> Meeting(const std::string& type) {
  return {TypeAttr(type), TextAttr("tensor_name", kKey), TextAttr("send_device", "/job:ps/task:0"),
          TextAttr("recv_device", "/job:worker/task:0"), Entry("send_device_incarnation", OfHex("1800"))};
}
std::string Piece(const std::vector<std::string>& nodes, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                  const std::vector<std::string>& targets) {
  std::string out = Text("") + Number(uint32_t(nodes.size()));
  for (const std::string& n : nodes) out += n;
  return out + Number(uint32_t{0}) + Number(uint32_t{0}) + List(feeds) + List(fetches) + List(targets);
}

// Sends the messages of a client of the other version.
void RunOtherClient(Version version, const Places& places) {
  ClientByHand ps(places.ps), worker(places.worker);
  const std::string session = Number(uint64_t{5}), asks = version == kNewer ? OfHex("ffffffff") : "";
  uint64_t incarnation[2] = {};
  bool unasked = version == kNewer;
  for (auto [i, to] : {std::pair(0, &ps), std::pair(1, &worker)}) {
    const std::string who = to->Ask(Request(kHello, 0, asks)), job = i ? "worker" : "ps";
    ASSERT_EQ(who.substr(0, 10 + job.size()), Good(Text(job) + Number(int32_t{0})));
    incarnation[i] = NumberAt(who, 10 + job.size());
    const size_t behind = 10 + job.size() + 8;  // offset of the version
    const uint64_t length = NumberAt(who, behind) & 0xffffffff;
    const std::string features = who.substr(std::min(who.size(), behind + 4 + size_t(length) + 16));
    unasked = unasked && !features.empty() && (features[0] & 1);
    ASSERT_EQ(to->Ask(Request(kOpen, incarnation[i], session + List({"optimize=true"}))).substr(0, 2), Good());
    to->Begin(Request(kWatch, incarnation[i], session));
  }
  const std::string key = kKey, send = key + "/_send", receive = key + "/_recv";
  std::string first = Piece({PieceNode("x", "Placeholder", {}, {TypeAttr("dtype")}), PieceNode("y", "Neg", {"x"}, {TypeAttr("T")}),
                             PieceNode(send, "_Send", {"y"}, Meeting("T"))},
                            {"x"}, {}, {send});
  std::string second =
      Piece({PieceNode(receive, "_Recv", {}, Meeting("tensor_type")), PieceNode("z", "Neg", {receive}, {TypeAttr("T")})}, {}, {"z"}, {});
  // The sources of values; and if all versions know pushes, their destinations and the pushed
  // values.
  const auto at = [&](const std::string& address, const char* title, int i) {
    return Text(key) + Text(Places::Bare(address)) + Text(title) + Number(incarnation[i]);
  };
  first += Number(uint32_t{0});
  second += Number(uint32_t{1}) + at(places.ps, "task /job:ps/task:0", 0);
  if (unasked) {
    first += List({}) + Number(uint32_t{1}) + at(places.worker, "task /job:worker/task:0", 1) + Number(uint8_t{0}) + List({});
    second += List({}) + Number(uint32_t{0}) + List({key});
  }
  std::string handle[2];
  for (auto [i, to] : {std::pair(0, &ps), std::pair(1, &worker)}) {
    const std::string answer = to->Ask(Request(kRegister, incarnation[i], session), i ? second : first);
    ASSERT_EQ(answer.size(), 18u) << answer;
    handle[i] = answer.substr(10);
  }
  for (uint64_t step = 1; step < 3; ++step) {
    const auto run = [&](int i) {
      return Request(kRun, incarnation[i], session + handle[i] + Number(step) + Number(step) + Number(uint64_t{0}));
    };
    const uint64_t a = ps.Begin(run(0), Tensors("0000c03f000000c0")), b = worker.Begin(run(1), Number(uint32_t{0}));
    std::string body;
    EXPECT_EQ(ps.Await(a, &body).substr(0, 2), Good());
    EXPECT_EQ(worker.Await(b, &body).substr(0, 2), Good());
    EXPECT_EQ(body, Tensors("0000c03f000000c0"));
  }
}

// ---- All combinations ----

struct Group {
  Version client, sender, receiver;
};
const char* Shown(Version v) { return v == kOlder ? "older" : v == kOurs ? "ours" : "newer"; }
void PrintTo(const Group& g, std::ostream* to) {
  *to << "client " << Shown(g.client) << ", sender " << Shown(g.sender) << ", receiver " << Shown(g.receiver);
}
std::vector<Group> WithOneOfOurs() {
  std::vector<Group> all;
  for (Version c : {kOlder, kOurs, kNewer}) {
    for (Version s : {kOlder, kOurs, kNewer}) {
      for (Version r : {kOlder, kOurs, kNewer}) {
        if (c == kOurs || s == kOurs || r == kOurs) all.push_back({c, s, r});
      }
    }
  }
  return all;
}

class VersionPairs : public ::testing::TestWithParam<Group> {};

TEST_P(VersionPairs, RunAStepTogether) {
  const Group g = GetParam();
  const Places places("p" + std::to_string(getpid()) + "-" + std::to_string(9 * g.client + 3 * g.sender + g.receiver));
  std::unique_ptr<Other> sender, receiver;
  std::unique_ptr<tw::Server> ps, worker;
  if (g.sender == kOurs) {
    ps = std::make_unique<tw::Server>(NewRuntime(), places.cluster(), "ps", 0u);
  } else {
    sender = std::make_unique<OtherSender>(g.sender, places);
  }
  if (g.receiver == kOurs) {
    worker = std::make_unique<tw::Server>(NewRuntime(), places.cluster(), "worker", 0u);
  } else {
    receiver = std::make_unique<OtherReceiver>(g.receiver, places);
  }
  if (g.client == kOurs) {
    RunOurClient(places);
  } else {
    RunOtherClient(g.client, places);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VersionPairs, ::testing::ValuesIn(WithOneOfOurs()));

}  // namespace
}  // namespace thalweg::testing
