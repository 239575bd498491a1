// Tests the set "files" of the host table: whole files for kernels and readers of plugins.
#include "framework/runtime/host/file_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/status.h"
#include "framework/files/confined_files.h"
#include "framework/runtime/host/host_table.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/recorded_files.h"

namespace thalweg {
namespace {

struct Names {
  tw_sink c{TW_SIZED(tw_sink), nullptr, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
              reinterpret_cast<Names*>(s)->all.append(static_cast<const char*>(bytes), n);
              return nullptr;
            }};
  std::string all;
};

const tw_files_api& Api(const tw_host* h) { return *static_cast<const tw_files_api*>(h->query(h, TW_S(TW_FILES_SET), 1)); }

TEST(FileSetTest, WritesReadsListsAndRemovesThroughTheTable) {
  const auto host = MakeHostTable(nullptr, "test", "", 0);
  const tw_files_api& api = Api(host.get());
  ASSERT_EQ(&api, FileSet());
  EXPECT_EQ(host->query(host.get(), TW_S(TW_FILES_SET), 2), nullptr);
  test::TempFolder folder;
  const std::string sub = folder / "sub", path = sub + "/x";
  EXPECT_TRUE(absl::IsNotFound(FromC(api.write(host.get(), path.data(), path.size(), "a", 1))));
  for (int twice = 0; twice < 2; ++twice) EXPECT_TRUE(FromC(api.make_folder(host.get(), sub.data(), sub.size())).ok());
  EXPECT_TRUE(FromC(api.write(host.get(), path.data(), path.size(), "old", 3)).ok());
  EXPECT_TRUE(FromC(api.write(host.get(), path.data(), path.size(), "newer", 5)).ok());
  Names names;
  EXPECT_TRUE(FromC(api.list(host.get(), sub.data(), sub.size(), &names.c)).ok());
  EXPECT_EQ(names.all, std::string("x\0", 2));
  tw_file* f = nullptr;
  ASSERT_TRUE(FromC(api.open(host.get(), path.data(), path.size(), &f)).ok());
  EXPECT_EQ(api.bytes(f), 5u);
  char to[4];
  EXPECT_TRUE(FromC(api.read(f, 1, to, 4)).ok());
  EXPECT_EQ(std::string(to, 4), "ewer");
  EXPECT_TRUE(absl::IsOutOfRange(FromC(api.read(f, 2, to, 4))));
  EXPECT_TRUE(absl::IsOutOfRange(FromC(api.read(f, UINT64_MAX, to, 4))));
  api.close(f);
  api.close(nullptr);
  EXPECT_TRUE(FromC(api.remove(host.get(), path.data(), path.size())).ok());
  EXPECT_TRUE(absl::IsNotFound(FromC(api.open(host.get(), path.data(), path.size(), &f))));
}

TEST(FileSetTest, AConfinedHostReachesNoOtherFiles) {
  const auto host = MakeHostTable(nullptr, "test", "", 0);
  test::TempFolder folder;
  auto files = *OpenFilesBeneath(folder.path());
  const auto confined = ConfinedHost(host.get(), files.get());
  const tw_files_api& api = Api(confined.get());
  EXPECT_TRUE(FromC(api.write(confined.get(), TW_S("x"), "1", 1)).ok());
  EXPECT_EQ(test::Slurp(folder / "x"), "1");
  for (std::string_view path : {"../x", "/etc/hostname", "mem://x"}) {
    tw_file* f = nullptr;
    EXPECT_TRUE(absl::IsPermissionDenied(FromC(api.open(confined.get(), path.data(), path.size(), &f)))) << path;
  }
}

}  // namespace
}  // namespace thalweg
