// Paths of plugins' file systems: their resolution, the checks of a plugin's replies, and the error
// messages.
#include "framework/io/scheme_files.h"

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/files/confined_files.h"
#include "framework/registry/registry.h"
#include "tests/framework/io/bridged_files.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/recorded_files.h"

namespace thalweg {
namespace {

using test::Bridge;
using test::FaultyFiles;
using test::RecordedFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string Text(const Status& s) { return std::string(Message(s)); }

class SchemeFilesTest : public testing::Test {
 protected:
  SchemeFilesTest() { Add(Bridge(&disk_)); }
  void Add(std::shared_ptr<FileSystemRole> role) {
    Registration r;
    r.roles.push_back(std::move(role));
    EXPECT_TRUE(registry_.Commit(std::move(r)).ok());
  }
  Status Put(FileSystem& files, const std::string& path, std::string_view bytes) {
    ASSIGN_OR_RETURN(auto file, files.Create(path));
    RETURN_IF_ERROR(file->Append(bytes.data(), bytes.size()));
    return file->Close();
  }
  static StatusOr<std::string> Get(FileSystem& files, const std::string& path) {
    ASSIGN_OR_RETURN(auto file, files.Open(path));
    std::string bytes(file->size(), '\0');
    RETURN_IF_ERROR(file->ReadAt(0, bytes.data(), bytes.size()));
    return bytes;
  }

  RecordedFiles disk_;
  Registry registry_;
  SchemeFiles files_{&registry_};
};

TEST_F(SchemeFilesTest, APathWithASchemeGoesToItsPluginAndAnyOtherToTheMachine) {
  test::TempFolder folder;
  ASSERT_TRUE(Put(files_, "test://a/b", "plugin").ok());
  ASSERT_TRUE(Put(files_, folder / "b", "machine").ok());
  EXPECT_EQ(*Get(files_, "test://a/b"), "plugin");
  EXPECT_EQ(*Get(files_, folder / "b"), "machine");
  EXPECT_THAT(disk_.names(), ElementsAre("test://a/b"));
  EXPECT_THAT(*files_.List("test://a"), ElementsAre("b"));
  ASSERT_TRUE(files_.Rename("test://a/b", "test://a/c").ok());
  EXPECT_TRUE(absl::IsNotFound(files_.Open("test://a/b").status()));
  ASSERT_TRUE(files_.Remove("test://a/c").ok());
  EXPECT_TRUE(disk_.names().empty());
}

TEST_F(SchemeFilesTest, OnlyALetterAndWhatMayFollowMakesAScheme) {
  EXPECT_EQ(SchemeOf("mem://x"), "mem");
  EXPECT_EQ(SchemeOf("s3+v.2-x://bucket/x"), "s3+v.2-x");
  for (const char* path : {"", "://x", "a/b://x", "3s://x", "mem:/x", "mem:", "/a://b", "./mem://x", "a b://x"}) {
    EXPECT_EQ(SchemeOf(path), "") << path;
  }
  EXPECT_TRUE(IsAbsolute("mem://x") && IsAbsolute("/x"));
  EXPECT_FALSE(IsAbsolute("x/y"));
  EXPECT_EQ(FolderOf("mem://a/b"), "mem://a");
  EXPECT_EQ(FolderOf("mem://a"), "mem://");
  EXPECT_EQ(FolderOf("/a"), "/");
}

TEST_F(SchemeFilesTest, AnUnknownSchemeSaysWhichThereAreAndWhatToDo) {
  RecordedFiles other;
  Add(Bridge(&other, "far"));
  EXPECT_EQ(Text(files_.Open("near://x").status()),
            "'near://x': no plugin has a file system 'near://'; there are: far://, test://; load the plugin that provides it, or write "
            "'./near://x' for a file of that name");
  Registry none;
  EXPECT_THAT(Text(SchemeFiles(&none).Remove("near://x")), HasSubstr("there are: none; load the plugin"));
  EXPECT_TRUE(absl::IsInvalidArgument(files_.Rename("test://a", "far://a")));
  EXPECT_TRUE(absl::IsInvalidArgument(files_.Open(std::string("test://a\0b", 10)).status()));
}

TEST_F(SchemeFilesTest, AFailureNamesThePathTheFileSystemAndThePlugin) {
  EXPECT_EQ(Text(files_.Open("test://a/none").status()),
            "cannot open 'test://a/none': no file 'test://a/none' (file system 'test' of plugin 'org.test.bridge')");
  ASSERT_TRUE(Put(files_, "test://a/x", "12345").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(files_.Create("test://a/x").status()));
  auto file = files_.Open("test://a/x");
  char to[8];
  EXPECT_EQ(Text((*file)->ReadAt(3, to, 3)), "'test://a/x' has 5 bytes, not 3 + 3");
  EXPECT_TRUE(absl::IsDataLoss((*file)->ReadAt(UINT64_MAX, to, 2)));
}

TEST_F(SchemeFilesTest, AFileIsStillAtItsPathWhileItHasTheSameContents) {
  ASSERT_TRUE(Put(files_, "test://a/x", "old").ok());
  auto file = files_.Open("test://a/x");
  EXPECT_TRUE(*(*file)->IsAt("test://a/x"));
  EXPECT_FALSE(*(*file)->IsAt("test://a/y"));
  ASSERT_TRUE(Put(files_, "test://a/y", "new").ok());
  ASSERT_TRUE(files_.Rename("test://a/y", "test://a/x").ok());
  EXPECT_FALSE(*(*file)->IsAt("test://a/x"));
  ASSERT_TRUE(files_.Remove("test://a/x").ok());
  EXPECT_FALSE(*(*file)->IsAt("test://a/x"));
}

// The file systems of a plugin that identifies files by a number, and counts reads.
TEST_F(SchemeFilesTest, APluginThatIdentifiesFilesIsNotAskedToReadThemAgain) {
  static int reads = 0;
  static std::string identity;
  auto known = Bridge(&disk_, "known");
  known->def.read = [](const tw_host*, void*, uint64_t, void*, uint64_t) -> tw_status* {
    ++reads;
    return nullptr;
  };
  known->def.identify = [](const tw_host*, void*, tw_sink* to) { return to->put(to, identity.data(), identity.size()); };
  Add(known);
  ASSERT_TRUE(Put(files_, "known://a/x", "old").ok());
  ASSERT_TRUE(Put(files_, "known://a/y", "old").ok());
  identity = "1";
  auto file = files_.Open("known://a/x");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->identity(), "known://1");
  EXPECT_TRUE(*(*file)->IsAt("known://a/x"));
  EXPECT_TRUE(*(*file)->IsAt("known://a/y"));  // another name of the same file, says the plugin
  identity = "2";
  EXPECT_FALSE(*(*file)->IsAt("known://a/x"));  // with the same contents
  EXPECT_FALSE(*(*file)->IsAt("known://a/none"));
  EXPECT_EQ(reads, 0);
  identity = "1";
  for (const char* path : {"test://a/x", "/a/x"}) {  // of other file systems: the plugin is not asked
    ASSERT_TRUE(disk_.Create(path).status().ok());
    EXPECT_FALSE(*(*file)->IsAt(path)) << path;
  }
  identity = "";  // this file cannot be identified: contents decide, as without the entry
  auto other = files_.Open("known://a/x");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->identity(), "");
  EXPECT_FALSE(*(*other)->IsAt("known://a/y"));
  EXPECT_TRUE(*(*other)->IsAt("known://a/x"));
  EXPECT_GT(reads, 0);
  identity = std::string(257, 'x');
  EXPECT_THAT(Text(files_.Open("known://a/x").status()),
              HasSubstr("cannot identify 'known://a/x': it writes 257 bytes; an identity has at most 256"));
}

TEST_F(SchemeFilesTest, WhatAPluginThrowsOrMakesUpIsAnError) {
  auto bad = Bridge(&disk_, "bad");
  bad->def.open = [](const tw_host*, void*, const tw_file_request*, void**, uint64_t*) -> tw_status* { throw std::runtime_error("boom"); };
  bad->def.list = [](const tw_host*, void*, const char*, uint64_t, tw_sink* to) { return to->put(to, "a\0../b", 7); };
  bad->def.make_folder = [](const tw_host*, void*, const char*, uint64_t) { return ToC(AlreadyExists("it is there")); };
  Add(bad);
  EXPECT_THAT(Text(files_.Open("bad://x").status()), HasSubstr("cannot open 'bad://x': "));
  EXPECT_THAT(Text(files_.Open("bad://x").status()), HasSubstr("boom"));
  EXPECT_THAT(Text(files_.List("bad://x").status()), HasSubstr("it answers '../b', which is no name in a folder"));
  EXPECT_TRUE(files_.MakeFolder("bad://x").ok());
}

TEST_F(SchemeFilesTest, AFolderOfAPluginWithoutLocksIsLockedWithinTheProcess) {
  auto lock = files_.LockFolderOf("test://a/x");
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(files_.LockFolderOf("test://b/x").ok());
  std::atomic<bool> taken{false};
  std::thread other([&] {
    auto second = files_.LockFolderOf("test://a/y");
    taken = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(taken);
  lock->reset();
  other.join();
  EXPECT_TRUE(taken);
}

TEST_F(SchemeFilesTest, OpenFilesHoldThePlugin) {
  auto pin = std::make_shared<int>(0);
  auto role = Bridge(&disk_, "pinned");
  role->pin = pin;
  const std::weak_ptr<FileSystemRole> seen = role;
  Add(std::move(role));
  ASSERT_TRUE(Put(files_, "pinned://x", "1").ok());
  auto file = files_.Open("pinned://x");
  registry_.Remove("org.test.bridge");
  EXPECT_EQ(pin.use_count(), 2);
  EXPECT_EQ((*file)->size(), 1u);
  file->reset();
  EXPECT_EQ(pin.use_count(), 1);
  EXPECT_TRUE(seen.expired());
}

// ---- Beneath a folder ----

TEST_F(SchemeFilesTest, BeneathAFolderOfAPluginNoPathLeadsOut) {
  auto beneath = *FilesBeneathScheme("test://models/", &files_);
  ASSERT_TRUE(Put(*beneath, "a", "1").ok());
  ASSERT_TRUE(Put(*beneath, "test://models/sub//./b", "2").ok());
  EXPECT_THAT(disk_.names(), UnorderedElementsAre("test://models/a", "test://models/sub/b"));
  EXPECT_EQ(*Get(*beneath, "sub/b"), "2");
  EXPECT_TRUE(*(*beneath->Open("a"))->IsAt("test://models/a"));
  disk_.Create("test://modelsecret/x").IgnoreError();
  for (const char* path : {"test://modelsecret/x", "test://models/../secret", "..", "a/../../x", "/etc/passwd", "/", "far://models/a",
                           "test://", "TEST://models/a", "test:///models/a"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(beneath->Open(path).status())) << path << ": " << beneath->Open(path).status();
    EXPECT_TRUE(absl::IsPermissionDenied(beneath->Create(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(beneath->List(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(beneath->Rename("a", path))) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(beneath->Remove(path))) << path;
  }
  for (const char* folder : {"test://", "test:///", "test://a/../b", "test://a/.."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FilesBeneathScheme(folder, &files_).status())) << folder;
  }
}

TEST_F(SchemeFilesTest, BeneathAFolderOfTheMachineSchemesAreOutside) {
  test::TempFolder folder;
  auto beneath = *OpenFilesBeneath(folder.path());
  EXPECT_EQ(Text(beneath->Open("test://a/x").status()),
            "'test://a/x' is of another file system and does not lie beneath '" + folder.path() + "'");
  EXPECT_TRUE(absl::IsPermissionDenied(beneath->Create("test://x").status()));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace thalweg
