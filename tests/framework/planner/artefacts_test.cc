// Compiled artefacts in a folder, for other processes: loaded only if unchanged, and only from
// files that the same user wrote.
#include "framework/planner/compilers/artefacts.h"

#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/stat.h>

#include "tests/framework/io/fake_files.h"
#include "tests/framework/planner/test_compiler.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::Fail;
using testing_support::Floats;
using testing_support::Step;
using testing_support::Take;
using testing_support::TestCompiler;
using testing_support::TestGraph;
using testing_support::Values;

class ArtefactTest : public testing::Test {
 protected:
  std::shared_ptr<Runtime> Cached() {
    RuntimeOptions options;
    options.threads = 1;
    options.load_plugins = false;
    options.compile_cache = folder_ / "cache";
    options.static_plugins = {{"test ops", testing_support::QueryTestOps}};
    return *Runtime::Create(options);
  }
  // Runs with a new runtime, graph and compiler, as another process does.
  std::vector<float> RunAnew(TestCompiler* c, float factor = 1) {
    TestGraph g(Cached());
    c->claim = Take({"Neg", "Mul"});
    c->Register(&g, "kept", true, true);
    Edge x = g.Input(Shape({2}), "x"), y = g.Op("Mul", {g.Op("Neg", {x}, {.name = "n"}), g.Const({factor, 2})}, {.name = "y"});
    auto session = g.NewSession();
    auto result = Step(*session, {{x}, {y}, {}}, {Floats({1, 2})});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Values((*result)[0]) : std::vector<float>();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> all;
    for (auto& e : std::filesystem::directory_iterator(folder_ / "cache/parts")) all.push_back(e.path().string());
    return all;
  }
  test::TempFolder folder_;
};

TEST_F(ArtefactTest, WhatWasCompiledIsLoadedByOthers) {
  TestCompiler first, second, other;
  EXPECT_THAT(RunAnew(&first), ElementsAre(-1, -4));
  EXPECT_EQ(first.compiled, 1);
  ASSERT_EQ(Files().size(), 1u);
  struct stat st;
  ASSERT_EQ(stat(Files()[0].c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_THAT(RunAnew(&second), ElementsAre(-1, -4));
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.loaded, 1);
  EXPECT_EQ(second.destroyed, 1);
  EXPECT_THAT(RunAnew(&other, 3), ElementsAre(-3, -4));  // another constant makes another part
  EXPECT_EQ(other.compiled, 1);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(ArtefactTest, AnotherTagIsUsedOnlyIfTheCompilerSaysSo) {
  TestCompiler first, second, third;
  RunAnew(&first);
  second.tag = third.tag = "2";
  third.other_tag = "1";
  RunAnew(&second);
  EXPECT_EQ(second.compiled, 1);
  EXPECT_EQ(Files().size(), 2u);
  std::filesystem::remove_all(folder_ / "cache");
  RunAnew(&first);
  RunAnew(&third);
  EXPECT_EQ(third.compiled, 0);
  EXPECT_EQ(third.loaded, 1);
}

TEST_F(ArtefactTest, ATornForeignOrRefusedFileIsWrittenAnew) {
  TestCompiler first;
  RunAnew(&first);
  const std::string file = Files()[0], whole = test::Slurp(file);
  std::vector<std::string> bad = {"", "x", whole.substr(0, whole.size() - 1), whole.substr(0, 10), whole + "x"};
  for (size_t at = 0; at < whole.size(); at += 13) {
    bad.push_back(whole);
    bad.back()[at] = char(bad.back()[at] ^ 0x10);
  }
  for (const std::string& bytes : bad) {
    test::Spill(file, bytes);
    TestCompiler c;
    EXPECT_THAT(RunAnew(&c), ElementsAre(-1, -4));
    EXPECT_EQ(c.compiled, 1);
    EXPECT_EQ(test::Slurp(file), whole);
  }
  TestCompiler refuses;
  refuses.on_load = [] { return Fail(TW_DATA_LOSS, "no"); };
  RunAnew(&refuses);
  EXPECT_EQ(refuses.compiled, 1);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);  // makes the file writable by others
  TestCompiler wary;
  RunAnew(&wary);
  EXPECT_EQ(wary.compiled, 1);
  struct stat st;
  ASSERT_EQ(stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  std::filesystem::rename(file, folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", file);
  TestCompiler through;
  RunAnew(&through);
  EXPECT_EQ(through.compiled, 1);
  EXPECT_FALSE(std::filesystem::is_symlink(file));
}

TEST_F(ArtefactTest, NoByteOfAFileMayBeAnother) {
  auto cache = *ArtefactCache::Open(folder_ / "cache");
  const ArtefactKey key{"org.test/c", "a part", "1"};
  auto read = [&] { return cache->Read(key, [](std::string_view) { return true; }); };
  ASSERT_TRUE(cache->Write(key, "the program").ok());
  EXPECT_EQ(*read(), "the program");
  EXPECT_TRUE(absl::IsNotFound(cache->Read({"org.test/c", "another part", "1"}, [](std::string_view) { return true; }).status()));
  const std::string file = Files()[0], whole = test::Slurp(file);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = char(bytes[at] ^ 1);
    test::Spill(file, bytes);
    EXPECT_TRUE(absl::IsNotFound(read().status())) << "byte " << at;
  }
  test::Spill(file, whole);
  EXPECT_TRUE(read().ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsNotFound(read().status()));
}

TEST_F(ArtefactTest, AFolderThatOthersMayWriteToIsNotUsed) {
  std::filesystem::create_directory(folder_ / "cache");
  ASSERT_EQ(chmod((folder_ / "cache").c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ArtefactCache::Open(folder_ / "cache").status()));
  TestCompiler c;
  EXPECT_THAT(RunAnew(&c), ElementsAre(-1, -4));
  EXPECT_EQ(c.compiled, 1);
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace thalweg
