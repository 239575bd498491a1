#include "framework/runtime/runtime.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Text;

// ---- Plugins and devices ----

std::string settings_seen;

tw_status* Collect(tw_sink* s, const void* bytes, uint64_t len) {
  static_cast<std::string*>(s->user)->assign(static_cast<const char*>(bytes), len);
  return nullptr;
}

// Two devices with host memory; the kind NONE has no device, the kind BROKEN no driver.
tw_status* EnumerateTwo(const tw_host*, void*, tw_device_list* to) {
  static int selves[2];
  for (int& self : selves) {
    tw_device_info d{};
    d.size = sizeof d;
    d.flags = TW_DEVICE_HOST_MEMORY;
    d.uid = "u";
    d.uid_len = 1;
    d.self = &self;
    TW_TRY(to->add(to, &d));
  }
  return nullptr;
}
tw_status* EnumerateNone(const tw_host*, void*, tw_device_list*) { return nullptr; }
tw_status* EnumerateBroken(const tw_host* h, void*, tw_device_list*) { return tw_fail(h, TW_UNAVAILABLE, TW_S("no driver")); }
tw_status* EnumerateOdd(const tw_host*, void*, tw_device_list* to) {
  tw_device_info d{};
  d.size = sizeof d;
  d.flags = 1u << 20;
  tw_status* ignored = to->add(to, &d);
  (void)FromC(ignored);
  return nullptr;
}
tw_status* Allocate(const tw_host*, void*, const tw_allocation* a, void** out) {
  *out = std::aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  return nullptr;
}
void Release(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }
tw_status* Copy(const tw_host*, void*, const tw_copy*) { return nullptr; }

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  struct Kind {
    const char* name;
    tw_status* (*enumerate)(const tw_host*, void*, tw_device_list*);
  };
  for (Kind k : {Kind{"BROKEN", EnumerateBroken}, Kind{"NONE", EnumerateNone}, Kind{"ODD", EnumerateOdd}, Kind{"TWO", EnumerateTwo}}) {
    tw_device_def d = {TW_SIZED(tw_device_def), k.name, strlen(k.name), nullptr, k.enumerate, Allocate, Release, Copy, nullptr};
    TW_TRY(tw_add_device(r, &d));
  }
  tw_sink sink = {TW_SIZED(tw_sink), &settings_seen, Collect};
  return h->setting(h, TW_S("speed"), &sink);
}
const tw_plugin* Query(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,        0,    0,      TW_MINOR, TW_S("org.test.two"), TW_S("1"),
                                   TW_S("x"),           TW_S("cpu=any"), Init, nullptr};
  return &plugin;
}

RuntimeOptions Options() {
  RuntimeOptions o;
  o.threads = 1;
  o.load_plugins = false;
  o.static_plugins = {{"two", Query}};
  o.plugin_settings["plugin.org.test.two.speed"] = "fast";
  return o;
}

TEST(RuntimeTest, EnumeratesTheDevicesOfItsPlugins) {
  auto r = Runtime::Create(Options());
  ASSERT_TRUE(r.ok()) << r.status();
  auto devices = (*r)->devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1]->name(), "/job:localhost/replica:0/task:0/device:TWO:1");
  EXPECT_EQ(*(*r)->host_device(), devices[0]);
  EXPECT_EQ((*r)->pool().threads(), 1u);
}

TEST(RuntimeTest, RemarksKindsThatDoNotStart) {
  auto r = Runtime::Create(Options());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ((*r)->plugins()[0].reason, "");  // kinds enumerate their devices at the first use
  EXPECT_EQ((*r)->devices().size(), 2u);
  ASSERT_EQ((*r)->plugins().size(), 1u);
  EXPECT_EQ((*r)->plugins()[0].state, PluginRecord::kLoaded);
  EXPECT_EQ((*r)->plugins()[0].reason,
            "device kind 'BROKEN': no driver; device kind 'NONE': no device found; device kind 'ODD': a device has flags 1048576, unknown "
            "to this "
            "runtime");
}

TEST(RuntimeTest, HandsSettingsToPlugins) {
  auto r = Runtime::Create(Options());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(settings_seen, "fast");
  EXPECT_EQ(*(*r)->Setting("org.test.two", "speed"), "fast");
  EXPECT_EQ((*r)->Setting("org.test.two", "colour").status().code(), absl::StatusCode::kNotFound);
}

TEST(RuntimeTest, FailsWhenALinkedInPluginDoes) {
  RuntimeOptions o = Options();
  o.plugin_settings.clear();
  Status s = Runtime::Create(o).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(s), HasSubstr("its init failed: the runtime option 'plugin.org.test.two.speed' is not set"));
}

TEST(RuntimeTest, SaysThatThereIsNoHostDevice) {
  RuntimeOptions o;
  o.threads = 1;
  o.load_plugins = false;
  auto r = Runtime::Create(o);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ((*r)->host_device().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*r)->LoadPlugin("/nowhere.so").code(), absl::StatusCode::kNotFound);
}

TEST(RuntimeTest, LivesTwiceInOneProcess) {
  auto a = Runtime::Create(Options()), b = Runtime::Create(Options());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE((*a)->devices()[0], (*b)->devices()[0]);
  *a = nullptr;
  EXPECT_EQ((*b)->devices().size(), 2u);
}

TEST(RuntimeTest, TensorsOutliveIt) {
  auto r = Runtime::Create(Options());
  ASSERT_TRUE(r.ok());
  Tensor t = *Tensor::Make(TW_FLOAT, Shape({4}), (*r)->devices()[0]->pool());
  *r = nullptr;
  t.as<float>()[3] = 1;
}

TEST(RuntimeTest, UnloadsAPluginOnceItsDevicesHoldNothing) {
  const char* where = std::getenv("THALWEG_TEST_PLUGINS");
  ASSERT_NE(where, nullptr);
  RuntimeOptions o;
  o.threads = 1;
  o.load_plugins = false;
  auto r = Runtime::Create(o);
  ASSERT_TRUE(r.ok());
  for (const char* name : {"good", "kernels"}) {
    Status s = (*r)->LoadPlugin(StrCat(where, "/", name, ".so"));
    ASSERT_TRUE(s.ok()) << Text(s);
  }
  ASSERT_EQ((*r)->devices().size(), 1u);
  Tensor t = *Tensor::Make(TW_FLOAT, Shape({100}), (*r)->devices()[0]->pool());
  Status s = (*r)->UnloadPlugin("org.test.kernels");
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(s), HasSubstr("tensors hold "));
  EXPECT_THAT(Text(s), HasSubstr(" bytes on TEST2:0; release them first"));
  EXPECT_EQ((*r)->devices().size(), 1u);
  t.reset();
  EXPECT_TRUE((*r)->UnloadPlugin("org.test.kernels").ok());
  EXPECT_TRUE((*r)->devices().empty());
  EXPECT_TRUE((*r)->LoadPlugin(StrCat(where, "/kernels.so")).ok());
  EXPECT_EQ((*r)->devices().size(), 1u);
}

TEST(RuntimeTest, LogsWhatTheLevelLetsThrough) {
  auto r = Runtime::Create(Options());
  ASSERT_TRUE(r.ok());
  std::vector<std::string> lines;
  auto sink = [](void* arg, uint32_t level, const char* text, uint64_t len) {
    static_cast<std::vector<std::string>*>(arg)->push_back(StrCat(level, " ", std::string_view(text, len)));
  };
  (*r)->SetLog(sink, &lines, 2);
  (*r)->Log(1, "quiet");
  (*r)->Log(2, "loud");
  (*r)->SetLog(nullptr, nullptr, 0);
  (*r)->Log(3, "nobody");
  EXPECT_THAT(lines, ElementsAre("2 loud"));
}

}  // namespace
}  // namespace thalweg
