// Tensors that plugins make through the host table: of new memory, and of memory of their own.
#include <array>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/host/host_table.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::TakeText;

class HostTensorsTest : public testing::Test {
 protected:
  // A tensor of two rows of three floats, in memory whose release is counted.
  tw_tensor_config Lent() {
    return {TW_SIZED(tw_tensor_config),
            dims_.data(),
            2,
            TW_FLOAT,
            memory_.data(),
            sizeof memory_,
            [](void* n) { ++*static_cast<int*>(n); },
            &released_};
  }
  std::string Make(const tw_tensor_config& c) {
    tw_tensor* t = nullptr;
    std::string why = TakeText(host_->tensor->make(host_.get(), &c, &t));
    EXPECT_EQ(why.empty(), t != nullptr);
    host_->tensor->release(t);
    return why;
  }
  std::shared_ptr<int> plugin_ = std::make_shared<int>();
  std::unique_ptr<tw_host, void (*)(tw_host*)> host_ = MakeHostTable(nullptr, "test", "", 0, plugin_);
  std::array<int64_t, 2> dims_ = {2, 3};
  std::array<float, 6> memory_ = {1, 2, 3, 4, 5, 6};
  int released_ = 0;
};

TEST_F(HostTensorsTest, MakesTensorsOfNewMemory) {
  tw_tensor* t = nullptr;
  ASSERT_EQ(TakeText(tw_make_tensor(host_.get(), TW_INT64, dims_.data(), 2, &t)), "");
  const tw_view* v = host_->tensor->view(t);
  EXPECT_EQ(v->dtype, uint32_t{TW_INT64});
  EXPECT_EQ(v->count, 6u);
  static_cast<int64_t*>(v->data)[5] = 7;
  host_->tensor->release(t);
}

TEST_F(HostTensorsTest, MemoryOfThePluginIsReleasedOnceWithItsLastTensor) {
  const tw_tensor_config c = Lent();
  tw_tensor *t = nullptr, *flat = nullptr;
  ASSERT_EQ(TakeText(host_->tensor->make(host_.get(), &c, &t)), "");
  EXPECT_EQ(host_->tensor->view(t)->data, memory_.data());  // no copy
  const int64_t six = 6;
  ASSERT_EQ(TakeText(host_->tensor->reshape(host_.get(), t, &six, 1, &flat)), "");
  host_->tensor->release(t);
  EXPECT_EQ(released_, 0);
  EXPECT_EQ(plugin_.use_count(), 2) << "the plugin's code must stay until then";
  host_->tensor->release(flat);
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(plugin_.use_count(), 1);
}

TEST_F(HostTensorsTest, RefusesMemoryThatDoesNotFitAndLeavesItToItsOwner) {
  tw_tensor_config c = Lent();
  c.bytes -= 4;
  EXPECT_EQ(Make(c), "a tensor of float and shape [2, 3] needs 24 bytes, not 20");
  c = Lent();
  c.dtype = TW_STRING;
  EXPECT_EQ(Make(c), "memory cannot hold elements of type string");
  c = Lent();
  c.data = reinterpret_cast<char*>(memory_.data()) + 2;
  EXPECT_EQ(Make(c), "the memory of a tensor of float must be aligned to 4 bytes");
  c = Lent();
  c.data = nullptr;
  EXPECT_EQ(Make(c), "bytes or release are given, but no data");
  c = Lent();
  c.rank = 1000;
  EXPECT_THAT(Make(c), HasSubstr("rank 1000 is more than"));
  c = Lent();
  c.flags = 1;
  EXPECT_EQ(Make(c), "tw_tensor_config: flags 1 are unknown to this runtime");
  const int64_t negative[] = {2, -3};
  c = Lent();
  c.dims = negative;
  EXPECT_NE(Make(c), "");
  EXPECT_EQ(released_, 0);
  EXPECT_EQ(plugin_.use_count(), 1);
}

TEST_F(HostTensorsTest, SaysWhichElementTypesItKnows) {
  const auto type = [&](std::string_view word) { return host_->tensor->type_of(host_.get(), word.data(), word.size()); };
  EXPECT_EQ(type("float"), uint32_t{TW_FLOAT});
  EXPECT_EQ(type("bfloat16"), uint32_t{TW_BFLOAT16});
  EXPECT_EQ(type("float6"), 0u);
  EXPECT_EQ(type(""), 0u);
}

}  // namespace
}  // namespace thalweg
