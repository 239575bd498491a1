// The simulated accelerator: an address space that the host cannot access, limited memory, delayed
// work, and every optional function set.
#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"
#include "tests/plugins/fake_runtime.h"

namespace thalweg {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Statistic;
using testing_support::TakeText;
using testing_support::Text;

Tensor Numbers(const std::vector<float>& values) { return *Tensor::Vector<float>(TW_FLOAT, values); }
std::vector<float> Values(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.count()}; }

class FakeTest : public testing::Test {
 protected:
  std::shared_ptr<Runtime> runtime_ = FakeRuntime({{"delay_us", "2000"}});
  Device* d_ = FakeDevice(*runtime_);
  const DeviceKind& kind_ = d_->def();
  const tw_host* h_ = kind_.host;

  // Makes a copy between `host` and the device's tensor, for the stream.
  tw_copy CopyOf(const tw_view& from, bool from_host, const tw_view& to, bool to_host, Stream* stream) {
    tw_copy c{};
    c.size = sizeof c;
    c.from = from.data;
    c.from_offset = from.offset;
    c.to = to.data;
    c.to_offset = to.offset;
    c.bytes = from.bytes;
    c.from_host = from_host;
    c.to_host = to_host;
    c.stream = stream ? stream->c() : nullptr;
    return c;
  }
  Tensor There(const std::vector<float>& values, Device* d = nullptr) {
    auto t = (d ? d : d_)->FromHost(Numbers(values));
    EXPECT_TRUE(t.ok()) << t.status();
    return *t;
  }
  std::vector<float> Back(const Tensor& t, Device* d = nullptr) {
    auto host = (d ? d : d_)->ToHost(t);
    EXPECT_TRUE(host.ok()) << host.status();
    return Values(*host);
  }
};

TEST_F(FakeTest, TheHostCannotReadItsMemory) {
  Tensor t = There({1, 2});
  EXPECT_THAT(Back(t), ElementsAre(1, 2));
  volatile float* p = static_cast<float*>(t.view().data) + t.view().offset / sizeof(float);
  EXPECT_DEATH((void)(*p + 1), "");
  EXPECT_DEATH(*p = 5, "");
  EXPECT_THAT(Back(t), ElementsAre(1, 2));
}

TEST_F(FakeTest, ItsCommandsRefuseWhatIsNotItsMemory) {
  Tensor mine = There({1, 2}), other = There({3, 4}, FakeDevice(*runtime_, 1)), host = Numbers({5, 6});
  for (const Tensor& wrong : {other, host}) {
    tw_copy c = CopyOf(wrong.view(), false, mine.view(), false, nullptr);
    EXPECT_THAT(TakeText(kind_.def.copy(h_, d_->self(), &c)), HasSubstr("are not memory of fake-0; a host address, another device's"));
  }
  tw_copy beyond = CopyOf(mine.view(), false, mine.view(), false, nullptr);
  beyond.bytes = 4096;
  EXPECT_THAT(TakeText(kind_.def.copy(h_, d_->self(), &beyond)), HasSubstr("4096 bytes at"));
}

TEST_F(FakeTest, ItsKernelsRefuseAHostPointer) {
  const OpSchema* op = runtime_->registry().FindOp("Neg");
  const KernelDef* neg = runtime_->registry().FindKernel(*op, "FAKE", {TW_FLOAT, TW_FLOAT}, {0, 1}, {0, 1}, {AttrValue::Type(TW_FLOAT)});
  ASSERT_NE(neg, nullptr);
  tw_node node{};
  node.size = sizeof node;
  node.host = h_;
  node.name = "y";
  node.name_len = 1;
  node.op = "Neg";
  node.op_len = 3;
  node.device = d_->self();
  void* state = nullptr;
  ASSERT_EQ(TakeText(neg->def.create(&node, &state)), "");
  Tensor host = Numbers({1, 2}), there = There({0, 0});
  const tw_view *in[] = {&host.view()}, *out[] = {&there.view()};
  const uint32_t at[] = {0, 1};
  tw_frame f{};
  f.size = sizeof f;
  f.host = h_;
  f.state = state;
  f.in = in;
  f.out = out;
  f.in_at = f.out_at = at;
  f.n_in = f.n_out = 1;
  EXPECT_THAT(TakeText(neg->def.execute(&f)), HasSubstr("Neg 'y' on fake-0: 8 bytes at"));
  neg->def.destroy(h_, state);
}

TEST_F(FakeTest, FreshMemoryIsNotANumber) {
  auto t = Tensor::Make(TW_FLOAT, Shape({3}), d_->pool());
  ASSERT_TRUE(t.ok());
  for (float v : Back(*t)) EXPECT_TRUE(std::isnan(v));
}

TEST_F(FakeTest, ItsMemoryCanBeFilled) {
  auto runtime = FakeRuntime({{"memory", "64K"}});
  Device* d = FakeDevice(*runtime);
  std::vector<Tensor> held;
  for (int k = 0; k < 100; ++k) {
    auto t = Tensor::Make(TW_UINT8, Shape({8192}), d->pool());
    if (!t.ok()) {
      EXPECT_EQ(t.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(Text(t.status()), HasSubstr("fake-0 is full: 65536 of 65536 bytes are in use, and 8192 more do not fit"));
      break;
    }
    held.push_back(*t);
  }
  EXPECT_EQ(held.size(), 8u);
  EXPECT_EQ(Statistic(*d, "memory_used"), 65536);
  EXPECT_EQ(Statistic(*d, "memory_largest_free"), 0);
  held.clear();
  EXPECT_TRUE(Tensor::Make(TW_UINT8, Shape({8192 * 7}), d->pool()).ok());  // the pool returned its cached memory, which is contiguous again
  EXPECT_EQ(Statistic(*d, "memory_peak"), 65536);
}

TEST_F(FakeTest, ADeviceThatPoolsItselfGetsItsMemoryBackAtOnce) {
  for (bool itself : {false, true}) {
    auto runtime = FakeRuntime({{"pools_itself", itself ? "1" : "0"}});
    Device* d = FakeDevice(*runtime);
    {
      ASSERT_TRUE(Tensor::Make(TW_UINT8, Shape({1000}), d->pool()).ok());
    }
    EXPECT_EQ(Statistic(*d, "memory_used"), itself ? 0 : 1024);
    EXPECT_EQ(d->pool()->stats().held, itself ? 0u : 1024u);
    EXPECT_EQ(d->pool()->stats().in_use, 0u);
  }
}

TEST_F(FakeTest, WorkIsLateAndInOrder) {
  auto stream = Stream::Create(d_);
  ASSERT_TRUE(stream.ok());
  Tensor host = Numbers({0}), there = There({7});
  for (float v = 1; v <= 20; ++v) {
    host.as<float>()[0] = v;
    ASSERT_TRUE(d_->CopyIn(host.data(), there.view().data, there.view().offset, 4, stream->get()).ok());
  }
  EXPECT_LT(Statistic(*d_, "copies_in"), 20);  // no operation waited
  EXPECT_TRUE((*stream)->Drain().ok());
  EXPECT_EQ(Statistic(*d_, "copies_in"), 21);
  EXPECT_THAT(Back(there), ElementsAre(20));  // the copy read the host's memory late
  EXPECT_EQ(Statistic(*d_, "streams"), 1);
  stream->reset();
  EXPECT_EQ(Statistic(*d_, "streams"), 0);
}

TEST_F(FakeTest, AStreamWaitsForAnother) {
  for (const char* without : {"", "wait"}) {  // if the device cannot wait, the host waits
    auto runtime = FakeRuntime({{"delay_us", "20000"}, {"without", without}});
    Device *a = FakeDevice(*runtime), *b = FakeDevice(*runtime, 1);
    auto first = *Stream::Create(a), second = *Stream::Create(b);
    Tensor one = Numbers({1}), there = There({0}, a), next = There({0}, b);
    ASSERT_TRUE(a->CopyIn(one.data(), there.view().data, there.view().offset, 4, first.get()).ok());
    ASSERT_TRUE(second->WaitFor(first.get()).ok());
    Tensor back = Numbers({0});
    ASSERT_TRUE(a->Reaches(*b));
    tw_copy c = CopyOf(there.view(), false, next.view(), false, nullptr);
    c.stream = second->c();  // enqueued on the second queue, so only the wait orders it after the first queue's work
    ASSERT_EQ(TakeText(a->def().peer->copy(a->def().host, a->self(), b->self(), &c)), "");
    ASSERT_TRUE(second->Drain().ok());
    EXPECT_THAT(Back(next, b), ElementsAre(1)) << without;
  }
}

TEST_F(FakeTest, PeersCopyWithoutTheHost) {
  Device* other = FakeDevice(*runtime_, 1);
  Tensor here = There({1, 2, 3}), there = There({0, 0, 0}, other);
  ASSERT_TRUE(d_->Reaches(*other));
  EXPECT_FALSE(d_->Reaches(*d_));
  ASSERT_TRUE(d_->CopyToPeer(here.view(), *other, there.view(), nullptr).ok());
  EXPECT_THAT(Back(there, other), ElementsAre(1, 2, 3));
  EXPECT_EQ(Statistic(*d_, "copies_peer"), 1);
  EXPECT_EQ(Statistic(*d_, "copies_out"), 0);
}

TEST_F(FakeTest, ATensorIsClonedInsideTheDevice) {
  Tensor t = There({4, 5});
  auto copy = d_->Clone(t, nullptr);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_THAT(Back(*copy), ElementsAre(4, 5));
  EXPECT_NE(copy->view().data, t.view().data);
  EXPECT_EQ(Statistic(*d_, "copies_inside"), 1);
}

TEST_F(FakeTest, EventsOrderTwoQueues) {
  auto first = *Stream::Create(d_), second = *Stream::Create(d_);
  Tensor one = Numbers({1}), there = There({0}), back = Numbers({0});
  ASSERT_TRUE(d_->CopyIn(one.data(), there.view().data, there.view().offset, 4, first.get()).ok());
  void* event = nullptr;
  ASSERT_EQ(TakeText(kind_.events->record(h_, first->c(), &event)), "");
  ASSERT_EQ(TakeText(kind_.events->wait(h_, second->c(), event)), "");
  kind_.events->release(h_, d_->self(), event);
  ASSERT_TRUE(d_->CopyOut(there.view().data, there.view().offset, back.data(), 4, second.get()).ok());
  ASSERT_TRUE(second->Drain().ok());
  EXPECT_THAT(Values(back), ElementsAre(1));
  EXPECT_EQ(std::string(kind_.events->kind, kind_.events->kind_len), "fake");
  EXPECT_EQ(kind_.events->queue(h_, first->c()), first->c());
}

TEST_F(FakeTest, WhatIsCapturedRunsOnReplayOnly) {
  auto stream = *Stream::Create(d_);
  Tensor host = Numbers({1}), there = There({0});
  const tw_capture_config config = {TW_SIZED(tw_capture_config), stream->c()};
  ASSERT_EQ(TakeText(kind_.capture->begin(h_, &config)), "");
  ASSERT_TRUE(d_->CopyIn(host.data(), there.view().data, there.view().offset, 4, stream.get()).ok());
  void* recording = nullptr;
  ASSERT_EQ(TakeText(kind_.capture->end(h_, stream->c(), &recording)), "");
  ASSERT_TRUE(stream->Drain().ok());
  EXPECT_THAT(Back(there), ElementsAre(0));
  for (float v : {2.0f, 3.0f}) {
    host.as<float>()[0] = v;
    ASSERT_EQ(TakeText(kind_.capture->replay(h_, stream->c(), recording)), "");
    ASSERT_TRUE(stream->Drain().ok());
    EXPECT_THAT(Back(there), ElementsAre(v));
  }
  kind_.capture->release(h_, d_->self(), recording);
  EXPECT_THAT(TakeText(kind_.capture->end(h_, stream->c(), &recording)), HasSubstr("is not being recorded"));
}

TEST_F(FakeTest, ProfilingTellsWhenWhatRan) {
  struct Spans {
    tw_span_list c;
    std::vector<std::pair<std::string, int64_t>> all;  // {queue, duration}
  } spans{{TW_SIZED(tw_span_list),
           [](tw_span_list* l, const tw_span* s) {
             reinterpret_cast<Spans*>(l)->all.emplace_back(std::string(s->queue, s->queue_len), s->end - s->begin);
           }},
          {}};
  ASSERT_EQ(TakeText(kind_.profile->start(h_, d_->self(), &spans.c)), "");
  (void)Back(There({1}));
  kind_.profile->stop(h_, d_->self());
  (void)There({1});
  ASSERT_EQ(spans.all.size(), 2u);
  EXPECT_EQ(spans.all[0].first, "copy in");
  EXPECT_EQ(spans.all[1].first, "copy out");
  EXPECT_GE(spans.all[0].second, 0);
}

TEST_F(FakeTest, PinnedMemoryIsTheHosts) {
  void* p = nullptr;
  const tw_allocation wanted = {TW_SIZED(tw_allocation), 100, 64};
  ASSERT_EQ(TakeText(kind_.pinned->allocate(h_, d_->self(), &wanted, &p)), "");
  static_cast<char*>(p)[99] = 1;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  EXPECT_EQ(Statistic(*d_, "pinned"), 100);
  kind_.pinned->release(h_, d_->self(), p, 100);
  EXPECT_EQ(Statistic(*d_, "pinned"), 0);
}

TEST_F(FakeTest, SetsCanBeLeftOut) {
  auto runtime = FakeRuntime({{"without", "streams,pinned,peer,events,statistics,capture,profile"}, {"devices", "3"}});
  Device* d = FakeDevice(*runtime, 2);
  const DeviceKind& k = d->def();
  EXPECT_FALSE(k.has_streams || k.pinned || k.peer || k.events || k.statistics || k.capture || k.profile);
  EXPECT_EQ(d->Statistics().status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(d->Reaches(*FakeDevice(*runtime, 1)));
}

TEST_F(FakeTest, WrongSettingsAreRefused) {
  RuntimeOptions options;
  options.load_plugins = false;
  options.static_plugins = {{"ops", tw_plugin_query_v0_ops}};
  options.plugin_settings["plugin.org.thalweg.fake.memory"] = "plenty";
  auto runtime = Runtime::Create(options);
  ASSERT_TRUE(runtime.ok());
  EXPECT_THAT(Text((*runtime)->LoadPlugin(FAKE)), HasSubstr("setting 'memory' cannot be 'plenty'; it takes a number"));
}

}  // namespace
}  // namespace thalweg
