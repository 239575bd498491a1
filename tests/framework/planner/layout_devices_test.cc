// Convolutions are converted to channels last only if a device can transpose the values. The
// devices have kernels that prefer another order, but lack a kernel for the transpose, or for the
// reshape that widens an operand. Tests their plans and results.
#include <cstdlib>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

// ---- Devices in host memory: STIFF cannot transpose; TURNS has a transpose, but no reshape ----

// A convolution with windows of one pixel.
class PointConv2D {
 public:
  explicit PointConv2D(const tw::Node& n) : first_(n.s("data_format") == "NCHW") {}
  void operator()(tw::In<float> x, tw::In<float> w, tw::Out<float> y) const {
    const int64_t in = w.dim(2), out = w.dim(3), images = first_ ? x.dim(0) : int64_t(x.size()) / in;
    const int64_t pixels = first_ ? x.dim(2) * x.dim(3) : 1;
    for (int64_t i = 0; i < images; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t p = 0; p < pixels; ++p) {
          float sum = 0;
          for (int64_t k = 0; k < in; ++k) sum += x[uint64_t((i * in + k) * pixels + p)] * w[uint64_t(k * out + o)];
          y[uint64_t((i * out + o) * pixels + p)] = sum;
        }
      }
    }
  }

 private:
  bool first_;
};

// Reads an operand of up to four axes, with broadcasting.
float At(const tw::In<float>& x, const int64_t* index) {
  int64_t at = 0;
  for (int32_t k = 0; k < x.rank(); ++k) at = at * x.dim(k) + (x.dim(k) == 1 ? 0 : index[4 - x.rank() + k]);
  return x[uint64_t(at)];
}
template <class F>
void ForEach(const tw::Out<float>& y, F&& value) {
  uint64_t at = 0;
  int64_t i[4];
  for (i[0] = 0; i[0] < y.dim(0); ++i[0]) {
    for (i[1] = 0; i[1] < y.dim(1); ++i[1]) {
      for (i[2] = 0; i[2] < y.dim(2); ++i[2]) {
        for (i[3] = 0; i[3] < y.dim(3); ++i[3]) y[at++] = value(i);
      }
    }
  }
}
void AddImages(tw::In<float> a, tw::In<float> b, tw::Out<float> y) {
  ForEach(y, [&](const int64_t* i) { return At(a, i) + At(b, i); });
}
void TransposeImages(tw::In<float> x, tw::In<int32_t> perm, tw::Out<float> y) {
  ForEach(y, [&](const int64_t* i) {
    int64_t from[4];
    for (uint64_t k = 0; k < 4; ++k) from[perm[k]] = i[k];
    return At(x, from);
  });
}

tw_status* Enumerate(const tw_host*, void*, tw_device_list* to) {
  static int self;
  tw_device_info d{};
  d.size = sizeof d;
  d.flags = TW_DEVICE_HOST_MEMORY;
  d.uid = "layout";
  d.uid_len = 6;
  d.self = &self;
  return to->add(to, &d);
}
tw_status* Allocate(const tw_host*, void*, const tw_allocation* a, void** out) {
  *out = std::aligned_alloc(a->align, (a->bytes + a->align) / a->align * a->align);
  return nullptr;
}
void Release(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }
tw_status* Copy(const tw_host*, void*, const tw_copy* c) {
  std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
  return nullptr;
}

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  return tw::guard(h, [&] {
    tw::Plugin p{h, r};
    for (std::string_view kind : {"STIFF", "TURNS"}) {
      p.device({TW_SIZED(tw_device_def), kind.data(), kind.size(), nullptr, Enumerate, Allocate, Release, Copy, nullptr});
      p.kernel<PointConv2D>(StrCat("Conv2D @", kind, "; ?prefers NHWC"));
      p.kernel<AddImages>(StrCat("AddV2 @", kind));
    }
    p.kernel<TransposeImages>("Transpose @TURNS");
  });
}
const tw_plugin* Query(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,     0,    0,      TW_MINOR, TW_S("org.test.layout_devices"), TW_S("1"),
                                   TW_S("x"),           TW_S("test"), Init, nullptr};
  return &plugin;
}

// ---- Nets on them ----

constexpr int64_t kChannels = 128;  // large enough that one convolution pays for both transposes

class LayoutDevicesTest : public testing_support::StandardRuntimeTest {
 protected:
  static void SetUpTestSuite() { Shared() = testing_support::StandardRuntime(2, {{"layout devices", Query}}); }

  // Small integers, so that the order of a sum does not matter.
  static Tensor Whole(const Shape& shape) {
    Tensor t = *Tensor::Make(TW_FLOAT, shape);
    for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = float(i * i % 7) - 3;
    return t;
  }
  Edge On(const std::string& device, const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}) {
    return g_.Op(op, std::move(in), {.device = device, .attrs = std::move(attrs)});
  }
  Edge Conv(const std::string& device, Edge x) {
    return On(
        device, "Conv2D", {x, g_.Const(Whole({1, 1, kChannels, kChannels}))},
        {{"strides", AttrValue::Ints({1, 1, 1, 1})}, {"padding", AttrValue::String("VALID")}, {"data_format", AttrValue::String("NCHW")}});
  }

  struct Made {
    std::vector<std::string> orders;    // of the convolutions
    std::map<std::string, int> counts;  // of the other ops that run
    std::vector<LayoutNote> notes;
  };
  Made Plan(const std::vector<Edge>& feeds, Edge fetch, const std::vector<Shape>& shapes) {
    Planning p(g_.graph(), {feeds, {fetch}, {}}, shapes);
    p.Through("once");
    EXPECT_TRUE(p.status.ok()) << p.status;
    Made made;
    for (const WorkNode& n : p.w.nodes) {
      if (!n.node || n.dead || n.constant) continue;
      EXPECT_NE(n.kernel, nullptr) << n.node->title();
      if (n.node->op().name == "Conv2D") {
        made.orders.push_back(n.node->FindAttr("data_format")->strings()[0]);
      } else {
        ++made.counts[n.node->op().name];
      }
    }
    made.notes = p.w.notes.layouts;
    return made;
  }
  // Compares steps with and without the pass.
  void Compare(const std::vector<Edge>& feeds, Edge fetch, const std::vector<Shape>& shapes) {
    std::vector<Tensor> fed;
    for (const Shape& shape : shapes) fed.push_back(Whole(shape));
    auto found = Step(*g_.NewSession(), {feeds, {fetch}, {}}, fed);
    auto wanted = Step(*g_.NewSession({{"disable_pass", "layout"}}), {feeds, {fetch}, {}}, fed);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_EQ((*found)[0].shape(), (*wanted)[0].shape());
    EXPECT_EQ(Values((*found)[0]), Values((*wanted)[0]));
  }

  TestGraph g_{Shared()};
};

const Shape kImages({4, kChannels, 6, 5});

TEST_F(LayoutDevicesTest, WithoutATransposeTheGraphKeepsItsOrder) {
  const Edge x = g_.Input(kImages, "x"), y = Conv("STIFF:0", Conv("STIFF:0", x));
  const Made made = Plan({x}, y, {kImages});
  EXPECT_THAT(made.orders, ElementsAre("NCHW", "NCHW"));
  EXPECT_THAT(made.notes, IsEmpty());
  Compare({x}, y, {kImages});
}

TEST_F(LayoutDevicesTest, ATransposeIsAllThatImagesNeed) {
  const Edge x = g_.Input(kImages, "x"), y = Conv("TURNS:0", Conv("TURNS:0", x));
  Made made = Plan({x}, y, {kImages});
  EXPECT_THAT(made.orders, ElementsAre("NHWC", "NHWC"));
  EXPECT_EQ(made.counts["Transpose"], 2);
  Compare({x}, y, {kImages});
}

// On other devices, a reshape would convert such values without a copy.
TEST_F(LayoutDevicesTest, WithoutAReshapeWhatLiesTheSameIsTransposed) {
  const Shape pixel({1, kChannels, 1, 1});
  const Edge x = g_.Input(pixel, "x"), y = Conv("TURNS:0", Conv("TURNS:0", x));
  Made made = Plan({x}, y, {pixel});
  EXPECT_THAT(made.orders, ElementsAre("NHWC", "NHWC"));
  EXPECT_EQ(made.counts["Transpose"], 2);
  EXPECT_EQ(made.counts["Reshape"], 0);
  Compare({x}, y, {pixel});
}

TEST_F(LayoutDevicesTest, WithoutAReshapeForAnOperandTheGraphKeepsItsOrder) {
  const Shape channels({kChannels, 1, 1});
  const Edge x = g_.Input(kImages, "x"), bias = g_.Input(channels, "bias");
  const Edge y = Conv("TURNS:0", On("TURNS:0", "AddV2", {Conv("TURNS:0", x), bias}));
  const Made made = Plan({x, bias}, y, {kImages, channels});
  EXPECT_THAT(made.orders, ElementsAre("NCHW", "NCHW"));
  EXPECT_THAT(made.notes, IsEmpty());
  Compare({x, bias}, y, {kImages, channels});
}

// If one device of an edge cannot transpose, the device at the other end does.
TEST_F(LayoutDevicesTest, TheOtherDeviceOfAnEdgeTurns) {
  const Edge x = g_.Input(kImages, "x"), made_there = On("STIFF:0", "AddV2", {x, x}), y = Conv("TURNS:0", made_there);
  const Edge back = On("STIFF:0", "AddV2", {y, x});
  Made made = Plan({x}, back, {kImages});
  EXPECT_THAT(made.orders, ElementsAre("NHWC"));
  EXPECT_EQ(made.counts["Transpose"], 2);
  Compare({x}, back, {kImages});
}

}  // namespace
}  // namespace thalweg
