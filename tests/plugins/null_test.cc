// The device that accepts every op: whole training steps run on it, nothing is copied, and nothing
// is placed there without a request.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"
#include "tests/plugins/two_layers.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::TwoLayers;

class NullTest : public testing::Test {
 protected:
  NullTest() {
    Status s = g_.runtime().LoadPlugin(NULL_PLUGIN);
    EXPECT_TRUE(s.ok()) << s;
  }
  std::string Plan(const std::map<std::string, std::string>& options, const CallableSpec& spec, const std::vector<Shape>& shapes) {
    auto session = g_.NewSession(options);
    auto callable = session->MakeCallable(spec);
    EXPECT_TRUE(callable.ok()) << callable.status();
    auto text = (*callable)->PlanText(&shapes);
    return text.ok() ? testing_support::Dense(*text) : Text(text.status());
  }
  TestGraph g_{FakeRuntime()};
};

TEST_F(NullTest, ATrainingStepRunsOnIt) {
  TwoLayers net(&g_);
  auto session = g_.NewSession({{"device", "NULL"}});
  for (const CallableSpec& spec : {net.initializing(), net.training(), net.reading()}) {
    auto out = Step(*session, spec, spec.feeds.empty() ? std::vector<Tensor>() : net.feeds());
    ASSERT_TRUE(out.ok()) << out.status();
  }
  const std::string plan = Plan({{"device", "NULL:0"}}, net.training(), {Shape({16, 4}), Shape({16, 1})});
  EXPECT_THAT(plan, AllOf(HasSubstr("\"device\":\"/job:localhost/replica:0/task:0/device:NULL:0\",\"kernel\":\"* @NULL; cheap\""),
                          Not(HasSubstr("device:CPU:0\",\"kernel\":\"MatMul")), HasSubstr("\"copies\":0"), HasSubstr("\"fallbacks\":[]")));
}

TEST_F(NullTest, OutputsOfUnknownShapeAreEmpty) {
  Edge x = g_.Input(Shape({-1}), "x");
  Edge y = g_.Op("Where", {x}, {.device = "NULL", .attrs = {{"T", AttrValue::Type(TW_FLOAT)}}});
  auto out = Step(*g_.NewSession(), {{x}, {y}, {}}, {Floats({1, 2})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({0, 1}));  // the number of columns is known
}

TEST_F(NullTest, NothingGoesThereUnasked) {
  Edge x = g_.Input(Shape({2}), "x"), y = g_.Op("Exp", {x}, {.device = "FAKE:0"}), z = g_.Op("Neg", {x}, {.device = "/job:localhost"});
  EXPECT_THAT(Plan({{"fallback", "allow"}}, {{x}, {y, z}, {}}, {Shape({2})}), Not(HasSubstr("NULL")));
  EXPECT_THAT(Plan({}, {{x}, {y}, {}}, {Shape({2})}), HasSubstr("no kernel for (float) on device '/device:FAKE:0'"));
  EXPECT_EQ((*g_.runtime().host_device())->kind(), "CPU");
  // Nor is an op placed there that no other device can run.
  Edge whole = g_.Op("Cast", {x}, {.attrs = {{"DstT", AttrValue::Type(TW_INT32)}}}), r = g_.Op("Reciprocal", {whole}, {.name = "r"});
  EXPECT_THAT(Plan({{"fallback", "allow"}}, {{x}, {r}, {}}, {Shape({2})}),
              HasSubstr("Reciprocal 'r': no kernel for (int32) on device 'any'"));
}

TEST_F(NullTest, OpsOfPluginsThatComeLaterRunOnItToo) {
  const Registry& r = g_.runtime().registry();
  ASSERT_NE(r.FindOp("MatMul"), nullptr);
  EXPECT_EQ(r.FindOp("Twice"), nullptr);
  ASSERT_TRUE(g_.runtime().LoadPlugin(TWICE).ok());
  Edge x = g_.Input(Shape({2}), "x"), y = g_.Op("Twice", {x}, {.device = "NULL:0"});
  EXPECT_THAT(Plan({}, {{x}, {y}, {}}, {Shape({2})}), HasSubstr("* @NULL"));
}

}  // namespace
}  // namespace thalweg
