// The messages between processes are a stable format: these bytes must never change.
#include "distributed/messages.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "distributed/piece.h"
#include "distributed/stats_wire.h"
#include "distributed/task_status.h"
#include "framework/runtime/trace/step_trace.h"

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
  EXPECT_EQ(Hex(PutRequest(Method::kReset, 0, WireWriter())), "010c0000000000000000");
  EXPECT_EQ(Hex(Bytes(ResetRequest{"ab"})), "020000006162");
  EXPECT_EQ(Hex(Bytes(ResetAnswer{3})), "0300000000000000");
  EXPECT_EQ(Hex(Bytes(HandleMessage{1, 2})), "01000000000000000200000000000000");
  EXPECT_EQ(Hex(Bytes(RunRequest{1, 2, 3, 4, 5})),
            "0100000000000000020000000000000003000000000000000400000000000000"
            "0500000000000000");
  EXPECT_EQ(Hex(Bytes(ReceiveRequest{1, 2, "k", "o"})), "01000000000000000200000000000000010000006b010000006f");
  hello.features = kTakesPushes;
  EXPECT_EQ(Hex(Bytes(hello)), "02000000707303000000070000000000000003000000302e310200000000000000010000000000000001000000");
  EXPECT_EQ(Hex(Bytes(PushRequest{1, 2, "o"})), "01000000000000000200000000000000010000006f");
  WireWriter pushed, carried;
  const Tensor value = *Tensor::Vector<int32_t>(TW_INT32, std::vector<int32_t>{7});
  const std::vector<PushedValue> values = {{"k", value}, {"d", Tensor(), PushedValue::kDead}, {"a", Tensor(), PushedValue::kAsk}};
  EXPECT_TRUE(PutPushed(values, &pushed).ok());
  const std::string bytes = "03000000010000006b0103000000010000000100000000000000040000000000000007000000010000006400010000006102";
  EXPECT_EQ(Hex(pushed.bytes()), bytes);
  EXPECT_TRUE(PutCarried({{9, values}}, &carried).ok());
  EXPECT_EQ(Hex(carried.bytes()), "010000000900000000000000" + bytes);
  EXPECT_EQ(Hex(Bytes(AbortRequest{1, 2, InvalidArgument("x")})),
            "0100000000000000020000000000000003"
            "0100000078");
}

// The receiver adds the remaining time to its own clock.
TEST(Messages, TheTimeThatIsLeftToAStepIsBounded) {
  EXPECT_EQ(RunRequest::Get(Bytes(RunRequest{1, 2, 3, 4, -5}))->time_left, 0);
  EXPECT_EQ(RunRequest::Get(Bytes(RunRequest{1, 2, 3, 4, 5}))->time_left, 5);
  EXPECT_EQ(RunRequest::Get(Bytes(RunRequest{1, 2, 3, 4, INT64_MAX}))->time_left, INT64_MAX / 2);
}

TEST(Messages, OfStatusStandAsTheyAlwaysDid) {
  TaskStatus status;
  status.hello.job = "ps";
  status.hello.index = 3;
  status.hello.incarnation = 7;
  status.hello.version = "0.1";
  status.hello.steps = 2;
  status.hello.sessions = 1;
  status.age = 5;
  status.memory = 6;
  status.devices = {{"CPU:0", 7, 8}};
  status.received = {{"clients", 9, 10}};
  status.runs = {{11, 12, 13, 14, 2, {{"k", "task"}}}};
  const std::string bytes = status.Put();
  EXPECT_EQ(Hex(bytes),
            "2900000002000000707303000000070000000000000003000000302e3102000000000000000100000000000000050000"
            "0000000000060000000000000001000000050000004350553a3007000000000000000800000000000000010000000700"
            "0000636c69656e747309000000000000000a00000000000000010000000b000000000000000c000000000000000d0000"
            "00000000000e000000000000000200000001000000010000006b040000007461736b");
  const auto read = TaskStatus::Get(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Put(), bytes);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(TaskStatus::Get(bytes.substr(0, n)).ok());
}

// Statistics of a step: one node, one wait, one call of a function.
TEST(Messages, OfStatisticsStandAsTheyAlwaysDid) {
  StepStats::Part part;
  part.threads = 1;
  part.total.block_bytes = 100;
  const uint32_t after = 0;
  tw_step_node n{};
  n.flags = TW_STEP_NODE_QUEUED;
  n.name = "n", n.op = "Neg", n.device = "d", n.kernel = "k", n.shapes = "s", n.to = n.function = n.frame = "", n.queue = "q";
  n.start_ns = 1, n.end_ns = 9, n.busy_ns = 3, n.iteration = -1, n.device_start_ns = 2, n.device_end_ns = 8;
  n.output_bytes = 40, n.allocated_bytes = 50, n.call = 60, n.loop = 70;
  n.n_after = 1, n.after = &after;
  part.nodes = {n};
  part.waits = {{sizeof(tw_step_wait), 0, TW_STEP_WAIT_LOCK, 0, 4, 5, "n", "w"}};
  part.calls = {{"f", 1, 6, 7, {}}};
  part.call_threads = {0};
  StepStats stats;
  stats.Assemble({&part, 1});
  const std::string bytes = PutStats(stats);
  EXPECT_EQ(Hex(bytes),
            "000000000000000009000000010000006e030000004e65670100000064010000006b0100000073000000000100000071"
            "010000007701000000660000000064000000000000000000000000000000020000000100000004000000000000000100"
            "000002000000030000000400000005000000050000000500000006000000010000000000000009000000000000000300"
            "000000000000ffffffffffffffff02000000000000000800000000000000280000000000000032000000000000003c00"
            "000000000000460000000000000001000000000000000100000000000000010000000200000001000000040000000000"
            "000005000000000000000000000007000000010000000800000001000000000000000600000000000000070000000000"
            "000001000000");
  StatsPart read;
  read.task = "/job:ps/replica:0/task:0";
  const std::string_view rest = std::string_view(bytes).substr(sizeof(int64_t));
  ASSERT_TRUE(GetStats(rest, 1000, &read).ok());
  EXPECT_EQ(read.part.nodes[0].start_ns, 1001);
  EXPECT_STREQ(read.part.nodes[0].op, "Neg");
  for (size_t k = 0; k < rest.size(); ++k) {
    StatsPart cut;
    EXPECT_FALSE(GetStats(rest.substr(0, k), 0, &cut).ok()) << k;
  }
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {  // damaged input must never cause a read out of bounds
    std::string bad(rest);
    bad[random() % bad.size()] = char(random());
    StatsPart ended;
    if (GetStats(bad, 0, &ended).ok()) StepStats().Assemble({&ended.part, 1});
  }
}

// What kernels report follows the rest, and only if there is something.
TEST(Messages, StatisticsHaveTheReportsOfKernels) {
  StepStats::Part part;
  part.threads = 1;
  part.spans = {{"n", "/job:localhost/replica:0/task:0/device:CPU:0", "read", "row", 10, 20, {}}};
  part.counts = {{"n", "d", "bytes", 15, -7, {}}};
  part.span_threads = part.count_threads = {0};
  StepStats stats;
  stats.Assemble({&part, 1});
  const std::string bytes = PutStats(stats);
  StatsPart read;
  read.task = "/job:ps/replica:0/task:0";
  const std::string_view rest = std::string_view(bytes).substr(sizeof(int64_t));
  ASSERT_TRUE(GetStats(rest, 1000, &read).ok());
  EXPECT_EQ(read.part.total.flags, 0u);
  ASSERT_EQ(read.part.spans.size(), 1u);
  EXPECT_STREQ(read.part.spans[0].name, "read");
  EXPECT_STREQ(read.part.spans[0].row, "row");
  EXPECT_STREQ(read.part.spans[0].device, "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(read.part.spans[0].start, 1010);
  EXPECT_EQ(read.part.spans[0].end, 1020);
  ASSERT_EQ(read.part.counts.size(), 1u);
  EXPECT_STREQ(read.part.counts[0].name, "bytes");
  EXPECT_EQ(read.part.counts[0].at, 1015);
  EXPECT_EQ(read.part.counts[0].value, -7);
  for (size_t k = 0; k < rest.size(); ++k) {
    StatsPart cut;
    EXPECT_FALSE(GetStats(rest.substr(0, k), 0, &cut).ok()) << k;
  }
  StepStats few;
  few.set_limit(1);
  StepStats::Part two[] = {read.part, read.part};
  few.Assemble(two);
  EXPECT_EQ(few.spans().size(), 1u);
  EXPECT_EQ(few.counts().size(), 1u);
  EXPECT_EQ(few.total().left_out, 2u);
  StepStats client;
  client.Assemble({&read.part, 1});
  const std::string json = TraceJson(std::vector<const StepStats*>{&client});
  EXPECT_NE(json.find(R"("name": "read", "ph": "X")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("name": "n bytes", "ph": "C")"), std::string::npos) << json;
  // As records of C, in a step that began here. Its trace has no number, since each task has one of its own.
  StepStats begun;
  auto trace = StepTrace::Begin(&begun);
  ASSERT_TRUE(trace.ok());
  EXPECT_GT(begun.trace(), 0u);
  begun.Assemble({&read.part, 1});
  (*trace)->Over(Status());
  trace->reset();
  EXPECT_EQ(begun.trace(), 0u);
  ASSERT_EQ(begun.span_records().size(), 1u);
  EXPECT_STREQ(begun.span_records()[0].name, "read");
  EXPECT_EQ(begun.span_records()[0].start_ns, 1010);
  EXPECT_EQ(begun.span_records()[0].thread, 2u);  // 0 is the client's, 1 the thread that called the task's step
  ASSERT_EQ(begun.count_records().size(), 1u);
  EXPECT_EQ(begun.count_records()[0].value, -7);
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
  auto receive = ReceiveRequest::Get(Bytes(ReceiveRequest{1, 2, "key", "client/ann"}));
  ASSERT_TRUE(receive.ok());
  EXPECT_EQ(receive->key, "key");
  EXPECT_EQ(receive->owner, "client/ann");
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

TEST(Messages, OfPiecesStandAsTheyAlwaysDid) {
  PieceMessage m = SomePiece();
  const std::string bytes = m.Put();
  EXPECT_EQ(Hex(bytes),
            "030000006c696201000000010000006e020000004f70050000004350553a3006000000612e70793a3102000000010000"
            "007803000000793a3101000000010000006301000000010000007a010000000100000054010000003101000000020000"
            "005f65010000003201000000010000006d010000006e0100000001000000010000006101000000620100000001000000"
            "7802000000010000006e030000006e3a3101000000010000007401000000010000006b04000000616464720400000074"
            "61736b0800000000000000");
  // The field is written only if it is not empty.
  m.over = {"o"};
  EXPECT_EQ(Hex(m.Put().substr(bytes.size())), "01000000010000006f");
  EXPECT_EQ(PieceMessage::Get(m.Put())->over, m.over);
  m.over.clear();
  m.sinks = {{"s", "at", "who", 9, true}};
  m.pushed = {"k"};
  const std::string pushes = m.Put().substr(bytes.size());
  EXPECT_EQ(Hex(pushes), "000000000100000001000000730200000061740300000077686f09000000000000000101000000010000006b");
  const auto read = PieceMessage::Get(bytes + pushes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Put(), bytes + pushes);
  EXPECT_TRUE(read->sinks[0].carried);
  for (size_t n = 5; n < pushes.size(); ++n) EXPECT_FALSE(PieceMessage::Get(bytes + pushes.substr(0, n)).ok()) << n;
}

TEST(Messages, PiecesReadBackTheSame) {
  const std::string bytes = SomePiece().Put();
  auto m = PieceMessage::Get(bytes);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ(m->Put(), bytes);
  EXPECT_EQ(m->nodes[0].inputs, (std::vector<std::string>{"x", "y:1"}));
  EXPECT_EQ(m->sources[0].incarnation, 8u);
}

// Parsing damaged bytes ends, and allocates nothing larger than the input.
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
  WireWriter carried;
  ASSERT_TRUE(PutCarried({{9, {{"k", *t}, {"a", Tensor(), PushedValue::kAsk}}}}, &carried).ok());
  ASSERT_TRUE(GetCarried(carried.bytes()).ok());
  for (const std::string& good : {piece, tensors, carried.Take()}) {
    for (int round = 0; round < 20000; ++round) {
      std::string bytes = good;
      for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = char(random());
      (void)PieceMessage::Get(bytes);
      (void)GetTensors(bytes);
      (void)GetRequest(bytes);
      (void)Hello::Get(bytes);
      (void)PushRequest::Get(bytes);
      (void)GetCarried(bytes);
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
