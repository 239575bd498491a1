// The placement of nodes, and the copies that follow from it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/planner/placement/device_map.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::FakeCopies;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

class PlacePassTest : public testing::Test {
 protected:
  // Returns "KIND:index" for each fetch, or the error.
  std::vector<std::string> Devices(const std::vector<Edge>& fetches, const PlanOptions& options = {}) {
    Planning p(g_.graph(), {{x_}, fetches, {}}, {Shape({2})}, options);
    p.Through("place");
    std::vector<std::string> all;
    if (!p.status.ok()) return {Text(p.status)};
    for (Edge e : fetches) {
      const auto* n = p.Find(e);
      all.push_back(n && n->device ? StrCat(n->device->kind(), ":", n->device->index()) : "none");
    }
    return all;
  }
  absl::StatusCode Code(Edge fetch, const PlanOptions& options = {}) {
    Planning p(g_.graph(), {{x_}, {fetch}, {}}, {Shape({2})}, options);
    return p.Through("place").status.code();
  }
  Edge On(const std::string& device, const std::string& op = "Neg") { return g_.Op(op, {x_}, {.device = device}); }
  TestGraph g_;
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(PlacePassTest, ObeysExplicitDevices) {
  EXPECT_THAT(Devices({On("FAKE:1"), On("/device:FAKE:0"), On("fake"), On("/job:localhost/task:0/device:FAKE:1"), On("CPU:0")}),
              ElementsAre("FAKE:1", "FAKE:0", "FAKE:0", "FAKE:1", "CPU:0"));
}

TEST_F(PlacePassTest, PrefersTheHostsMemory) {
  EXPECT_THAT(Devices({On(""), On("/job:localhost"), On("", "OnCpu")}), ElementsAre("CPU:0", "CPU:0", "CPU:0"));
}

TEST_F(PlacePassTest, AcceleratorsComeFirstIfAskedOrForLargeGraphs) {
  PlanOptions o;
  o.prefer = "accelerator";
  EXPECT_THAT(Devices({On(""), On("CPU:0"), On("", "OnCpu")}, o), ElementsAre("FAKE:0", "CPU:0", "CPU:0"));
  const Edge small = On("");
  EXPECT_THAT(Devices({small}), ElementsAre("CPU:0"));
  o.prefer = "auto";
  EXPECT_THAT(Devices({small}, o), ElementsAre("CPU:0"));
  g_.Const(FloatsOf(Shape({1 << 18}), 1));  // a mebibyte, in another part of the graph
  EXPECT_THAT(Devices({small}, o), ElementsAre("FAKE:0"));
  o.prefer = "host";
  EXPECT_THAT(Devices({small}, o), ElementsAre("CPU:0"));
}

TEST_F(PlacePassTest, NodesAboutShapesFollowTheirInputAndSourcesTheirReader) {
  PlanOptions o;
  o.prefer = "accelerator";
  const Edge made = On("", "OnCpu"), same = g_.Op("Same", {made});
  EXPECT_THAT(Devices({same, g_.Op("OnFake", {same})}, o), ElementsAre("FAKE:0", "FAKE:0"));  // the host has no kernel of Same
  const Edge count = g_.Op("CountOf", {g_.Op("Neg", {x_})});
  EXPECT_THAT(Devices({count}, o), ElementsAre("none"));  // its value is known when the plan is made
}

TEST_F(PlacePassTest, DevicesOfAStoredGraphAreMapped) {
  const Edge y = g_.Op("Neg", {x_}, {.name = "y", .device = "/job:ps/task:3/device:GPU:1"});
  EXPECT_EQ(Code(y), absl::StatusCode::kNotFound);
  PlanOptions o;
  o.device_map = {*ParseDeviceRule("/job:ps/task:2=CPU:0"), *ParseDeviceRule("/job:ps=FAKE:1"), *ParseDeviceRule("GPU=CPU:0")};
  EXPECT_THAT(Devices({y, On("FAKE:0"), On("GPU:0")}, o), ElementsAre("FAKE:1", "FAKE:0", "CPU:0"));
  o.device_map = {*ParseDeviceRule("/job:ps=")};
  EXPECT_THAT(Devices({y}, o), ElementsAre("CPU:0"));
  for (const char* wrong : {"", "CPU:0", "=CPU:0", "/job:ps=CPU:x"}) EXPECT_FALSE(ParseDeviceRule(wrong).ok()) << wrong;
}

TEST_F(PlacePassTest, GoesWhereTheOnlyKernelIs) {
  EXPECT_THAT(Devices({On("", "OnFake"), On("/device:*:1", "OnFake")}), ElementsAre("FAKE:0", "FAKE:1"));
}

TEST_F(PlacePassTest, SaysWhatADeviceLacks) {
  Edge y = g_.Op("OnCpu", {x_}, {.name = "y", .device = "FAKE:0"});
  EXPECT_EQ(Code(y), absl::StatusCode::kNotFound);
  EXPECT_THAT(Devices({y}), ElementsAre(AllOf(HasSubstr("OnCpu 'y': no kernel for (float) on device '/device:FAKE:0'"),
                                              HasSubstr("; there is one on CPU (plugin '"), HasSubstr("fallback=warn"))));
  EXPECT_THAT(Devices({g_.Op("Nowhere", {x_}, {.name = "z"})}), ElementsAre(HasSubstr("Nowhere 'z': no kernel for (float) on device 'any'; "
                                                                                      "kernels of Nowhere: none")));
}

TEST_F(PlacePassTest, AsksTheNextKernelWhenOneDeclines) {
  const auto priority = [&](Edge fetch, int64_t rows, const PlanOptions& options = {}) {
    Planning p(g_.graph(), {{x_}, {fetch}, {}}, {Shape({rows})}, options);
    p.Through("place");
    if (!p.status.ok()) return Text(p.status);
    return StrCat(p.Find(fetch)->device->kind(), " ", p.Find(fetch)->kernel->spec.priority);
  };
  const Edge one = g_.Const(FloatsOf(Shape(std::vector<int64_t>()), 1)), y = g_.Op("Fussy", {x_, one}, {.name = "y", .device = "FAKE:0"});
  EXPECT_EQ(priority(y, 2), "FAKE 5");
  EXPECT_EQ(priority(y, 5), "FAKE 0");
  EXPECT_THAT(priority(y, 8),
              AllOf(HasSubstr("Fussy 'y': no kernel for it on device '/device:FAKE:0': kernel '"),
                    HasSubstr("declines: it takes 3 rows; kernel '"), HasSubstr("declines: it takes 6 rows"), HasSubstr("fallback=warn")));
  PlanOptions soft;
  soft.fallback = "allow";
  EXPECT_EQ(priority(y, 8, soft), "CPU 0");
  EXPECT_EQ(priority(g_.Op("Fussy", {x_, one}), 8), "CPU 0");  // a node that asks for no device
  const Edge minus = g_.Const(FloatsOf(Shape(std::vector<int64_t>()), -1));
  EXPECT_THAT(priority(g_.Op("Fussy", {x_, minus}, {.device = "FAKE:0"}), 2), HasSubstr("declines: the scale is negative"));
}

TEST_F(PlacePassTest, AKernelMayRefuseANode) {
  const Edge one = g_.Const(FloatsOf(Shape(std::vector<int64_t>()), 1));
  const Edge y = g_.Op("Fussy", {x_, one}, {.name = "y", .device = "FAKE:0", .attrs = {{"mode", AttrValue::Int(-1)}}});
  PlanOptions soft;
  soft.fallback = "allow";
  EXPECT_EQ(Code(y, soft), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Devices({y}, soft), ElementsAre("Fussy 'y': mode is -1"));
}

TEST_F(PlacePassTest, SaysWhatDevicesThereAre) {
  Edge y = g_.Op("Neg", {x_}, {.name = "y", .device = "TPU:0"});
  EXPECT_EQ(Code(y), absl::StatusCode::kNotFound);
  EXPECT_THAT(Devices({y}), ElementsAre(HasSubstr("Neg 'y': device '/device:TPU:0' not found; registered: CPU:0, FAKE:0, FAKE:1")));
  EXPECT_THAT(Devices({On("FAKE:2")}), ElementsAre(HasSubstr("device '/device:FAKE:2' not found")));
  EXPECT_EQ(Code(On("not a device")), absl::StatusCode::kInvalidArgument);
}

TEST_F(PlacePassTest, SoftPlacementMovesWhatHasNoKernel) {
  std::string log;
  g_.runtime().SetLog([](void* to, uint32_t, const char* text, uint64_t n) { static_cast<std::string*>(to)->assign(text, n); }, &log, 2);
  PlanOptions soft;
  soft.fallback = "warn";
  Edge y = g_.Op("OnCpu", {x_}, {.name = "y", .device = "FAKE:0"});
  EXPECT_THAT(Devices({y, On("FAKE:0")}, soft), ElementsAre("CPU:0", "FAKE:0"));
  EXPECT_EQ(log, "OnCpu 'y': placed on CPU:0 because FAKE:0 has no kernel for (float)");
  g_.runtime().SetLog(nullptr, nullptr, 0);
  EXPECT_EQ(Code(g_.Op("Nowhere", {x_}), soft), absl::StatusCode::kNotFound);
}

TEST_F(PlacePassTest, ColocatedNodesShareADevice) {
  Edge a = g_.Op("Neg", {x_}, {.name = "a", .device = "FAKE:1"}), b = g_.Op("Neg", {a}, {.name = "b", .colocate_with = {"a"}});
  Edge c = g_.Op("Add", {b, x_}, {.colocate_with = {"b"}}), alone = g_.Op("Next", {c});
  EXPECT_THAT(Devices({a, b, c, alone}), ElementsAre("FAKE:1", "FAKE:1", "FAKE:1", "CPU:0"));
  // A member of the group that has only one kernel decides for the others.
  Edge d = g_.Op("Neg", {x_}, {.name = "d"}), e = g_.Op("OnFake", {d}, {.colocate_with = {"d"}});
  EXPECT_THAT(Devices({d, e}), ElementsAre("FAKE:0", "FAKE:0"));
}

TEST_F(PlacePassTest, ColocationWithWhatDoesNotRunKeepsItsDevice) {
  g_.Const({1}, {.name = "constant", .device = "FAKE:1"});
  g_.Op("Neg", {x_}, {.name = "unused", .device = "FAKE:1"});
  g_.Op("Neg", {x_}, {.name = "between", .colocate_with = {"unused"}});
  EXPECT_THAT(Devices({g_.Op("Neg", {x_}, {.colocate_with = {"constant"}}), g_.Op("Add", {x_, x_}, {.colocate_with = {"unused"}}),
                       g_.Op("Mul", {x_, x_}, {.colocate_with = {"between"}})}),
              ElementsAre("FAKE:1", "FAKE:1", "FAKE:1"));
}

TEST_F(PlacePassTest, ConflictingColocationNamesBothNodes) {
  Edge a = g_.Op("Neg", {x_}, {.name = "a", .device = "FAKE:1"});
  Edge b = g_.Op("Neg", {a}, {.name = "b", .device = "CPU:0", .colocate_with = {"a"}});
  EXPECT_EQ(Code(b), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Devices({b}),
              ElementsAre(AllOf(HasSubstr("Neg 'b'"), HasSubstr("Neg 'a'"), HasSubstr("'/device:CPU:0'"), HasSubstr("'/device:FAKE:1'"))));
  PlanOptions soft;
  soft.fallback = "warn";
  EXPECT_EQ(Code(b, soft), absl::StatusCode::kInvalidArgument);
}

TEST_F(PlacePassTest, ColocatedNodesWithoutACommonKernelAreRefused) {
  Edge a = g_.Op("OnCpu", {x_}, {.name = "a"}), b = g_.Op("OnFake", {a}, {.name = "b", .colocate_with = {"a"}});
  EXPECT_EQ(Code(b), absl::StatusCode::kNotFound);
  EXPECT_THAT(Devices({b}),
              ElementsAre(AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("kernels for all the nodes that must share it"))));
}

// ---- The cost of placement ----

TEST_F(PlacePassTest, ValuesAreCopiedOncePerDestination) {
  Edge there = g_.Op("Neg", {x_}, {.device = "FAKE:0"}), one = g_.Op("OnFake", {there}),
       two = g_.Op("Add", {there, x_}, {.device = "FAKE:0"});
  Edge back = g_.Op("Add", {g_.Op("Next", {one}), g_.Op("OnCpu", {one})}), sum = g_.Op("Add", {back, g_.Op("Next", {two})});
  for (const char* engine : {"fixed", "counted"}) {
    auto session = g_.NewSession({{"engine", engine}});
    int before = FakeCopies();
    auto out = Step(*session, {{x_}, {sum, one}, {}}, {Floats({1, 2})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(FakeCopies() - before, 3);  // x to the device; one and two back
    EXPECT_THAT(Values((*out)[0]), ElementsAre(-3 + 1 - 6 + 0 + 1, -6 + 1 - 12 + 0 + 1));
    EXPECT_THAT(Values((*out)[1]), ElementsAre(-3, -6));
  }
}

TEST_F(PlacePassTest, DevicesExchangeValuesByWayOfTheHost) {
  Edge a = g_.Op("Neg", {x_}, {.device = "FAKE:0"}), b = g_.Op("OnFake", {a}, {.device = "FAKE:1"});
  auto session = g_.NewSession();
  int before = FakeCopies();
  auto out = Step(*session, {{x_}, {b}, {}}, {Floats({1, 2})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-3, -6));
  EXPECT_EQ(FakeCopies() - before, 4);
}

TEST_F(PlacePassTest, ConstantsAreCopiedOncePerPlan) {
  Edge y = g_.Op("Add", {x_, g_.Const({1, 2})}, {.device = "FAKE:0"});
  auto session = g_.NewSession();
  ASSERT_TRUE(Step(*session, {{x_}, {y}, {}}, {Floats({1, 2})}).ok());
  int before = FakeCopies();
  EXPECT_THAT(Values((*Step(*session, {{x_}, {y}, {}}, {Floats({1, 2})}))[0]), ElementsAre(2, 4));
  EXPECT_EQ(FakeCopies() - before, 2);  // x to the device, y back
}

TEST_F(PlacePassTest, EmptyValuesCrossWithoutACopy) {
  Edge y = g_.Op("OnFake", {x_});
  auto session = g_.NewSession();
  int before = FakeCopies();
  auto out = Step(*session, {{x_}, {y}, {}}, {Floats({})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].count(), 0u);
  EXPECT_EQ(FakeCopies(), before);
}

}  // namespace
}  // namespace thalweg
