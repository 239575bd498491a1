#include "framework/runtime/devices/device.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeDeviceKind;
using testing_support::Text;

DeviceSpec Spec(std::string_view text) {
  auto s = ParseDeviceSpec(text);
  EXPECT_TRUE(s.ok()) << s.status();
  return s.ok() ? *s : DeviceSpec();
}

// ---- Names ----

TEST(DeviceSpecTest, ReadsEveryForm) {
  const char* full = "/job:worker/replica:0/task:2/device:GPU:1";
  EXPECT_EQ(Spec(full).text(), full);
  EXPECT_EQ(Spec("CPU:0").text(), "/device:CPU:0");
  EXPECT_EQ(Spec("/device:CPU:0").text(), "/device:CPU:0");
  EXPECT_EQ(Spec("/cpu:0").text(), "/device:CPU:0");
  EXPECT_EQ(Spec("gpu").text(), "/device:GPU");
  EXPECT_EQ(Spec("/device:gpu").text(), "/device:GPU");
  EXPECT_EQ(Spec("/job:my-job_2").text(), "/job:my-job_2");
  EXPECT_EQ(Spec("/job:worker/task:1/cpu:0").text(), "/job:worker/task:1/device:CPU:0");
  EXPECT_EQ(Spec("").text(), "");
  EXPECT_EQ(Spec("/job:*/replica:*/task:*/device:*:*").text(), "");
  EXPECT_EQ(Spec("/device:*:3").text(), "/device:*:3");
}

TEST(DeviceSpecTest, RefusesWhatIsNoName) {
  for (std::string_view bad : {"/", "CPU:", "CPU:x", "CPU:-1", "CPU:0:1", "CPU 0", "/job:", "/job:a b", "/task:one", "/replica:99999999999",
                               "//cpu:0", "/cpu:0/", "/cpu:0/gpu:0", "/job:a/job:b", "/device:", "/job"}) {
    auto s = ParseDeviceSpec(bad);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(Text(s.status()), HasSubstr(StrCat("device '", bad, "'")));
  }
}

TEST(DeviceSpecTest, AdmitsWhatItLeavesOpen) {
  DeviceSpec full = Spec("/job:localhost/replica:0/task:0/device:CPU:1");
  for (std::string_view yes : {"", "CPU", "cpu:1", "/job:localhost", "/task:0", "/device:*:1"}) EXPECT_TRUE(Spec(yes).Admits(full)) << yes;
  for (std::string_view no : {"GPU", "cpu:0", "/job:worker", "/task:1", "/replica:1"}) EXPECT_FALSE(Spec(no).Admits(full)) << no;
}

TEST(DeviceSpecTest, MergesConstraintsOrSaysWhyNot) {
  EXPECT_EQ(MergeDeviceSpecs(Spec("/job:a/task:1"), Spec("gpu:2"))->text(), "/job:a/task:1/device:GPU:2");
  EXPECT_EQ(MergeDeviceSpecs(Spec("gpu:2"), Spec("gpu"))->text(), "/device:GPU:2");
  auto s = MergeDeviceSpecs(Spec("cpu:0"), Spec("gpu:0"));
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(s.status()), "devices '/device:CPU:0' and '/device:GPU:0' contradict each other: 'CPU' and 'GPU'");
  EXPECT_FALSE(MergeDeviceSpecs(Spec("cpu:0"), Spec("cpu:1")).ok());
  EXPECT_FALSE(MergeDeviceSpecs(Spec("/job:a"), Spec("/job:b")).ok());
  EXPECT_FALSE(MergeDeviceSpecs(Spec("/task:0"), Spec("/task:1")).ok());
  EXPECT_FALSE(MergeDeviceSpecs(Spec("/replica:0"), Spec("/replica:1")).ok());
}

// ---- Memory and copies ----

TEST(DeviceTest, HasAFullName) {
  FakeDeviceKind kind("GPU");
  Device d(&kind.kind, 1, kind.Info(), 0);
  EXPECT_EQ(d.name(), "/job:localhost/replica:0/task:0/device:GPU:1");
  EXPECT_EQ(d.kind(), "GPU");
  EXPECT_EQ(d.plugin(), "org.test.fake");
  EXPECT_EQ(d.uid(), "fake-0");
  EXPECT_EQ(d.description(), "");
  EXPECT_EQ(d.index(), 1);
  EXPECT_TRUE(Spec("gpu:1").Admits(d.spec()));
  EXPECT_FALSE(d.host_memory());
}

TEST(DeviceTest, GivesItsMemoryBackAtItsEnd) {
  FakeDeviceKind kind;
  {
    Device d(&kind.kind, 0, kind.Info(), 0);
    auto t = Tensor::Make(TW_FLOAT, Shape({10}), d.pool());
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(kind.allocated, 1);
    t->reset();
    EXPECT_EQ(kind.released, 0);  // kept for the next allocation
  }
  EXPECT_EQ(kind.released, 1);
}

TEST(DeviceTest, TensorsMayOutliveIt) {
  FakeDeviceKind kind;
  auto pin = std::make_shared<int>(0);
  kind.kind.pin = pin;
  Tensor t;
  {
    Device d(&kind.kind, 0, kind.Info(true), 0);
    t = *Tensor::Make(TW_FLOAT, Shape({10}), d.pool());
  }
  kind.kind.pin = nullptr;
  EXPECT_EQ(pin.use_count(), 2);  // the tensor keeps the plugin alive
  t.as<float>()[9] = 1;
  t.reset();
  EXPECT_EQ(kind.released, 1);
  EXPECT_EQ(pin.use_count(), 1);
}

TEST(DeviceTest, HonoursTheMemoryLimit) {
  FakeDeviceKind kind("GPU");
  Device d(&kind.kind, 2, kind.Info(), 4096);
  auto t = Tensor::Make(TW_UINT8, Shape({1 << 20}), d.pool());
  EXPECT_EQ(t.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(t.status()), HasSubstr("GPU:2 memory"));
}

TEST(DeviceTest, AsksForNoMoreAtOnceThanTheDeviceGives) {
  FakeDeviceKind kind("GPU");
  tw_device_info info = kind.Info(true);
  info.largest = 1000;  // less than the pool's size class of 900 bytes
  Device d(&kind.kind, 0, info, 0);
  auto most = Tensor::Make(TW_UINT8, Shape({1000}), d.pool());
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(d.pool()->stats().held, 1000u);
  auto more = Tensor::Make(TW_UINT8, Shape({1001}), d.pool());
  EXPECT_EQ(more.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(more.status()), HasSubstr("cannot allocate 1001 bytes of GPU:0 memory: it gives at most 1000 bytes at once"));
  most->reset();
  EXPECT_TRUE(Tensor::Make(TW_UINT8, Shape({900}), d.pool()).ok());
  EXPECT_EQ(kind.allocated, 1);  // the same memory again
}

TEST(DeviceTest, NoticesAPluginThatAnswersNothing) {
  FakeDeviceKind kind;
  kind.answer_nothing = true;
  Device d(&kind.kind, 0, kind.Info(), 0);
  EXPECT_THAT(Text(Tensor::Make(TW_FLOAT, Shape({1}), d.pool()).status()), HasSubstr("no memory and no error"));
}

TEST(DeviceTest, CopiesThereAndBack) {
  FakeDeviceKind kind;
  Device d(&kind.kind, 0, kind.Info(), 0);
  Tensor host = *Tensor::Vector<int32_t>(TW_INT32, {1, 2, 3});
  auto there = d.FromHost(host);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(kind.last_copy.size, sizeof(tw_copy));
  EXPECT_EQ(kind.last_copy.from_host, 1u);
  EXPECT_EQ(kind.last_copy.to_host, 0u);
  EXPECT_EQ(kind.last_copy.bytes, 12u);
  EXPECT_EQ(kind.last_copy.stream, nullptr);
  auto back = d.ToHost(*there);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(kind.last_copy.from_host, 0u);
  EXPECT_EQ(kind.last_copy.to_host, 1u);
  EXPECT_EQ(back->as<int32_t>()[2], 3);
  EXPECT_EQ(back->shape(), host.shape());
}

TEST(DeviceTest, SharesTensorsWhereMemoryIsTheHosts) {
  FakeDeviceKind kind;
  Device d(&kind.kind, 0, kind.Info(true), 0);
  Tensor host = *Tensor::Vector<int32_t>(TW_INT32, {1});
  EXPECT_EQ(d.FromHost(host)->get(), host.get());
  EXPECT_EQ(d.ToHost(host)->get(), host.get());
  EXPECT_EQ(kind.copies, 0);
}

TEST(DeviceTest, CopiesNothingForNothing) {
  FakeDeviceKind kind;
  kind.fail_copies = true;
  Device d(&kind.kind, 0, kind.Info(), 0);
  EXPECT_TRUE(d.CopyIn(nullptr, nullptr, 0, 0, nullptr).ok());
  EXPECT_TRUE(d.FromHost(*Tensor::Make(TW_FLOAT, Shape({0, 3}))).ok());
}

TEST(DeviceTest, NamesItselfWhenACopyFails) {
  FakeDeviceKind kind("GPU");
  kind.fail_copies = true;
  Device d(&kind.kind, 0, kind.Info(), 0);
  Status s = d.FromHost(*Tensor::Vector<int32_t>(TW_INT32, {1})).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Text(s), "/job:localhost/replica:0/task:0/device:GPU:0: copying 4 bytes: the cable is out");
}

TEST(DeviceTest, KeepsReferencesInHostMemory) {
  FakeDeviceKind kind("GPU");
  Device d(&kind.kind, 0, kind.Info(), 0);
  EXPECT_THAT(Text(d.FromHost(*Tensor::Make(TW_STRING, Shape({1}))).status()), HasSubstr("a tensor of string holds references"));
}

// ---- Streams ----

// A stream whose work runs on its own thread.
struct FakeStreams {
  static tw_status* Create(const tw_host* h, void* self, const tw_stream_config* c, void** out) {
    if (static_cast<FakeDeviceKind*>(self)->fail_copies) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no queues left"));
    c->line->Retain();
    *out = c->line;
    return nullptr;
  }
  static void Destroy(const tw_host*, void* stream) {
    static_cast<tw_timeline*>(stream)->Release();
    ++destroyed;
  }
  static inline std::atomic<int> destroyed{0};
  static tw_status* Signal(const tw_host*, void* stream, uint64_t value) {
    auto* line = static_cast<tw_timeline*>(stream);
    line->Retain();
    std::thread([line, value] {
      line->Signal(value);
      line->Release();
    }).detach();
    return nullptr;
  }
  static tw_status* Refuse(const tw_host* h, void*, uint64_t) { return tw_fail(h, TW_UNAVAILABLE, TW_S("lost")); }
};

TEST(StreamTest, MarksAndDrains) {
  FakeDeviceKind kind;
  kind.kind.has_streams = true;
  kind.kind.streams = {TW_SIZED(tw_stream_set), FakeStreams::Create, FakeStreams::Destroy, FakeStreams::Signal, nullptr};
  Device d(&kind.kind, 0, kind.Info(), 0);
  auto s = Stream::Create(&d);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(*(*s)->Mark(), 1u);
  EXPECT_EQ(*(*s)->Mark(), 2u);
  EXPECT_TRUE((*s)->Drain().ok());
  EXPECT_EQ((*s)->timeline()->value(), 3u);
  (*s)->timeline()->Fail(Internal("a kernel crashed"));
  EXPECT_EQ(Text((*s)->Drain()), "a kernel crashed");
}

TEST(StreamTest, HandsItsHandleToCopies) {
  FakeDeviceKind kind;
  kind.kind.has_streams = true;
  kind.kind.streams = {TW_SIZED(tw_stream_set), FakeStreams::Create, FakeStreams::Destroy, FakeStreams::Signal, nullptr};
  Device d(&kind.kind, 0, kind.Info(), 0);
  auto s = Stream::Create(&d);
  int32_t from = 7, to = 0;
  ASSERT_TRUE(d.CopyIn(&from, &to, 0, 4, s->get()).ok());
  EXPECT_EQ(kind.last_copy.stream, (*s)->c());
  EXPECT_EQ(to, 7);
}

TEST(StreamTest, ReportsWhatThePluginRefuses) {
  FakeDeviceKind kind("GPU");
  Device plain(&kind.kind, 0, kind.Info(), 0);
  EXPECT_EQ(Stream::Create(&plain).status().code(), absl::StatusCode::kUnimplemented);
  kind.kind.has_streams = true;
  kind.kind.streams = {TW_SIZED(tw_stream_set), FakeStreams::Create, FakeStreams::Destroy, FakeStreams::Refuse, nullptr};
  auto s = Stream::Create(&plain);
  ASSERT_TRUE(s.ok());
  // No signal would report the end of the work, so the stream is destroyed at once, and its
  // timeline stays failed.
  const int before = FakeStreams::destroyed;
  EXPECT_EQ(Text((*s)->Drain()), "lost");
  EXPECT_EQ(FakeStreams::destroyed, before + 1);
  EXPECT_EQ((*s)->c(), nullptr);
  EXPECT_EQ(Text((*s)->timeline()->failure()), "lost");
  EXPECT_EQ(Text((*s)->Mark().status()), "lost");
  s->reset();
  EXPECT_EQ(FakeStreams::destroyed, before + 1);
  kind.fail_copies = true;
  EXPECT_THAT(Text(Stream::Create(&plain).status()), HasSubstr("GPU:0: cannot make a stream: no queues left"));
}

}  // namespace
}  // namespace thalweg
