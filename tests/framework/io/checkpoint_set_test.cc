#include "framework/runtime/host/checkpoint_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/status.h"
#include "framework/runtime/host/host_table.h"
#include "framework/tensor/tensor.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

// Returns a host table without a runtime, which no call here needs.
std::unique_ptr<tw_host, void (*)(tw_host*)> Host() { return MakeHostTable(nullptr, "test", "", 0); }

TEST(CheckpointSetTest, SavesAndReadsThroughTheTable) {
  const auto host = Host();
  const tw_checkpoint_api* api = CheckpointSet();
  EXPECT_EQ(api->size, sizeof(tw_checkpoint_api));
  test::TempFolder folder;
  const std::string prefix = folder / "c";
  tw_checkpoint_writer* w = nullptr;
  ASSERT_TRUE(FromC(api->create(host.get(), prefix.data(), prefix.size(), &w)).ok());
  auto t = Tensor::Vector<int32_t>(TW_INT32, {4, 5, 6});
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(FromC(api->add(w, "a/b", 3, &t->view())).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(FromC(api->add(w, "a/b", 3, &t->view()))));
  EXPECT_TRUE(FromC(api->commit(w)).ok());  // frees w, too

  tw_checkpoint_reader* r = nullptr;
  ASSERT_TRUE(FromC(api->open(host.get(), prefix.data(), prefix.size(), &r)).ok());
  tw_tensor* out = nullptr;
  ASSERT_TRUE(FromC(api->read(r, "a/b", 3, &out)).ok());
  const Tensor back = Tensor::Adopt(out);
  EXPECT_EQ(back.shape(), Shape({3}));
  EXPECT_EQ(back.as<int32_t>()[2], 6);
  EXPECT_TRUE(absl::IsNotFound(FromC(api->read(r, "x", 1, &out))));
  api->close(r);
}

TEST(CheckpointSetTest, DiscardLeavesNothingAndTakesNull) {
  const auto host = Host();
  const tw_checkpoint_api* api = CheckpointSet();
  test::TempFolder folder;
  const std::string prefix = folder / "c";
  tw_checkpoint_writer* w = nullptr;
  ASSERT_TRUE(FromC(api->create(host.get(), prefix.data(), prefix.size(), &w)).ok());
  api->discard(w);
  EXPECT_THAT(folder.names(), testing::IsEmpty());
  api->discard(nullptr);
  api->close(nullptr);
  tw_checkpoint_reader* r = nullptr;
  EXPECT_TRUE(absl::IsNotFound(FromC(api->open(host.get(), prefix.data(), prefix.size(), &r))));
  EXPECT_EQ(r, nullptr);
}

TEST(CheckpointSetTest, PiecesOfTwoCheckpointsBecomeOneTensor) {
  const tw_checkpoint_api* api = CheckpointSet();
  const auto host = Host();
  test::TempFolder folder;
  const int64_t dims[] = {4, 1}, sizes[] = {2, -1};
  std::vector<std::string> parts = {folder / "temp/a", folder / "temp/b"};
  for (int64_t h : {0, 1}) {
    const std::string& prefix = parts[size_t(h)];
    const int64_t starts[] = {2 * h, 0};
    tw_checkpoint_writer* w = nullptr;
    ASSERT_TRUE(FromC(api->create_in_folder(host.get(), prefix.data(), prefix.size(), &w)).ok());
    Tensor t = *Tensor::Make(TW_INT32, Shape({2, 1}));
    t.as<int32_t>()[0] = int32_t(2 * h);
    t.as<int32_t>()[1] = int32_t(2 * h + 1);
    EXPECT_TRUE(FromC(api->add_piece(w, "w", 1, dims, starts, sizes, 2, &t.view())).ok());
    EXPECT_TRUE(FromC(api->commit(w)).ok());
  }
  const std::string whole = folder / "c";
  const tw_string names[] = {{parts[0].data(), parts[0].size()}, {parts[1].data(), parts[1].size()}};
  EXPECT_TRUE(FromC(api->merge(host.get(), names, 2, whole.data(), whole.size(), 1)).ok());
  EXPECT_EQ(folder.names().size(), 3u);  // an index and two data files; the folder of the parts is gone

  tw_checkpoint_reader* r = nullptr;
  ASSERT_TRUE(FromC(api->open(host.get(), whole.data(), whole.size(), &r)).ok());
  const int64_t starts[] = {1, 0}, wrong[] = {5, 1};
  tw_tensor* out = nullptr;
  ASSERT_TRUE(FromC(api->read_part(r, "w", 1, dims, starts, sizes, 2, &out)).ok());
  const Tensor middle = Tensor::Adopt(out);
  EXPECT_EQ(middle.as<int32_t>()[0], 1);
  EXPECT_EQ(middle.as<int32_t>()[1], 2);
  EXPECT_TRUE(absl::IsInvalidArgument(FromC(api->read_part(r, "w", 1, wrong, starts, sizes, 2, &out))));
  api->close(r);
}

}  // namespace
}  // namespace thalweg
