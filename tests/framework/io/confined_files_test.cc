#include "framework/files/confined_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "framework/io/checkpoint.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;
using test::Slurp;
using test::Spill;
using test::TempFolder;
using testing::HasSubstr;

std::string Text(const Status& s) { return std::string(Message(s)); }

// A folder "root" that confines access and is full of ways out, and files beside it that must not
// change.
class World {
 public:
  World() {
    for (const char* name : {"root", "root/sub", "root/sub/deep", "rootx", "outside", "outside/sub"}) fs::create_directory(at(name));
    for (const char* name : {"outside/secret", "outside/sub/x", "rootx/secret"}) Spill(at(name), "SECRET");
    for (const char* name : {"root/in", "root/sub/deep/file"}) Spill(at(name), "fine");
    Link("../outside/secret", "leaf");
    Link(at("outside/secret"), "absolute_leaf");
    Link("../outside/new", "dangling");
    Link("../outside", "folder");
    Link("../..", "sub/up");
    Link("loop", "loop");
    Link("in", "link_to_in");
    Link("sub", "link_to_sub");
    outside_ = open(at("outside").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    Link("/proc/self/fd/" + std::to_string(outside_), "magic");
    fs::create_hard_link(at("outside/secret"), at("root/hard"));
    fs::create_hard_link(at("outside/sub/x"), at("root/sub/hard"));
    EXPECT_EQ(mkfifo(at("root/fifo").c_str(), 0600), 0);
    MakeSocket();
    // Only root can make devices; other users test with a link.
    if (mknod(at("root/device").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) Link("/dev/null", "device");
    before_ = Outside();
  }
  ~World() { close(outside_); }

  std::string at(std::string_view name) const { return folder_ / name; }
  bool untouched() const { return Outside() == before_; }

 private:
  void Link(const std::string& to, std::string_view name) { fs::create_symlink(to, at("root/" + std::string(name))); }
  void MakeSocket() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = at("root/socket");
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::copy(path.begin(), path.end(), address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    close(fd);
  }
  // Returns the name and contents of every file outside.
  std::map<std::string, std::string> Outside() const {
    std::map<std::string, std::string> all;
    for (const char* part : {"outside", "rootx"}) {
      for (const auto& e : fs::recursive_directory_iterator(at(part))) all[e.path()] = e.is_regular_file() ? Slurp(e.path()) : "";
    }
    for (const std::string& name : folder_.names()) all[name] = "";
    return all;
  }

  TempFolder folder_;
  int outside_;
  std::map<std::string, std::string> before_;
};

// Paths that lead outside, or to anything but a plain file with one name. None may be read.
std::vector<std::string> HostilePaths(const World& w) {
  const std::string root = w.at("root");
  std::string upper = root;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "a/";
  return {"../outside/secret",
          "./../outside/secret",
          "sub/../../outside/secret",
          "sub/deep/../../../outside/secret",
          "sub/../in",
          "..",
          "../root/in",
          "../rootx/secret",
          root + "/../outside/secret",
          root + "x/secret",
          w.at("outside/secret"),
          "/etc/passwd",
          "//etc//passwd",
          "/",
          "/proc/self/root/etc/passwd",
          "/dev/zero",
          "leaf",
          "absolute_leaf",
          "dangling",
          "folder/secret",
          "folder/sub/x",
          "folder/",
          root + "/folder/secret",
          "sub/up/outside/secret",
          "loop",
          "loop/x",
          "link_to_in",
          "link_to_sub/deep/file",
          "magic/secret",
          "magic",
          "hard",
          "sub/hard",
          "fifo",
          "socket",
          "device",
          std::string("in\0/../../outside/secret", 24),
          std::string("../outside/secret\0", 18),
          std::string(4096, 'a'),
          std::string(256, 'a'),
          deep + "x",
          "",
          ".",
          "sub",
          "in/x",
          "IN",
          upper + "/in",
          "SUB/deep/file",
          "%2e%2e/outside/secret",
          "..\\outside\\secret",
          "~/x"};
}

class ConfinedFilesTest : public testing::TestWithParam<PathWalk> {
 protected:
  ConfinedFilesTest() {
    auto files = OpenFilesBeneath(world_.at("root"), GetParam());
    EXPECT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }
  std::string Read(const std::string& path) {
    auto file = files_->Open(path);
    if (!file.ok()) return "!" + Text(file.status());
    std::string bytes((*file)->size(), 0);
    EXPECT_TRUE((*file)->ReadAt(0, bytes.data(), bytes.size()).ok());
    return bytes;
  }
  Status Write(const std::string& path) {
    ASSIGN_OR_RETURN(auto file, files_->Create(path));
    RETURN_IF_ERROR(file->Append("new", 3));
    return file->Close();
  }

  World world_;
  std::unique_ptr<FileSystem> files_;
};

INSTANTIATE_TEST_SUITE_P(, ConfinedFilesTest, testing::Values(PathWalk::kBest, PathWalk::kByParts),
                         [](const auto& test) { return test.param == PathWalk::kBest ? "Best" : "ByParts"; });

TEST_P(ConfinedFilesTest, NoHostilePathIsRead) {
  for (const std::string& path : HostilePaths(world_)) {
    EXPECT_FALSE(files_->Open(path).ok()) << path.substr(0, 60);
    auto names = files_->List(path);
    EXPECT_TRUE(!names.ok() || path == "." || path == "sub") << path.substr(0, 60);
  }
}

TEST_P(ConfinedFilesTest, NoHostilePathIsWritten) {
  const std::vector<std::string> paths = HostilePaths(world_);
  ASSERT_GE(paths.size(), 30u);
  for (const std::string& path : paths) {
    // "IN" and similar paths are new names in the folder; all others are refused.
    EXPECT_TRUE(!Write(path).ok() || Slurp(world_.at("root/" + path)) == "new") << path.substr(0, 60);
    EXPECT_TRUE(world_.untouched()) << path.substr(0, 60);
  }
}

TEST_P(ConfinedFilesTest, NoHostilePathIsRenamedRemovedOrMade) {
  for (const std::string& path : HostilePaths(world_)) {
    Spill(world_.at("root/mine"), "mine");
    files_->Rename("mine", path).IgnoreError();
    files_->MakeFolder(path).IgnoreError();
    EXPECT_TRUE(world_.untouched()) << path.substr(0, 60);
  }
  for (const std::string& path : HostilePaths(world_)) {
    files_->Rename(path, "stolen").IgnoreError();
    EXPECT_THAT(Read("stolen"), testing::Not(HasSubstr("SECRET"))) << path.substr(0, 60);
    files_->Remove(path).IgnoreError();
    files_->RemoveFolder(path).IgnoreError();
    files_->SyncFolderOf(path).IgnoreError();
    files_->LockFolderOf(path).IgnoreError();
    EXPECT_TRUE(world_.untouched()) << path.substr(0, 60);
  }
}

// Tests the files of a checkpoint under a hostile prefix, and hostile files under a good prefix.
TEST_P(ConfinedFilesTest, NoCheckpointLeadsOut) {
  const auto value = Tensor::Vector<float>(TW_FLOAT, {1, 2, 3});
  ASSERT_TRUE(value.ok());
  auto save = [&](const std::string& prefix, FileSystem& files) -> Status {
    ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(prefix, files));
    RETURN_IF_ERROR(writer->Add("v", value->view()));
    return writer->Commit();
  };
  ASSERT_TRUE(save(world_.at("outside/model"), LocalFiles()).ok());
  const std::string index = Slurp(world_.at("outside/model.index")), data = Slurp(world_.at("outside/model.data-00000-of-00001"));
  auto intact = [&] {
    return Slurp(world_.at("outside/model.index")) == index && Slurp(world_.at("outside/model.data-00000-of-00001")) == data &&
           std::distance(fs::directory_iterator(world_.at("outside")), fs::directory_iterator()) == 4;
  };
  for (const char* prefix : {"../outside/model", "folder/model", "magic/model", "sub/up/outside/model", "sub/../../outside/model"}) {
    EXPECT_FALSE(CheckpointReader::Open(prefix, *files_).ok()) << prefix;
    EXPECT_FALSE(save(prefix, *files_).ok()) << prefix;
    EXPECT_TRUE(intact()) << prefix;
  }
  EXPECT_FALSE(CheckpointReader::Open(world_.at("outside/model"), *files_).ok());
  EXPECT_FALSE(save(world_.at("outside/model"), *files_).ok());

  const std::string suffixes[] = {".index", ".data-00000-of-00001"};
  for (const std::string& hostile : suffixes) {  // one file leads outside, the other is a good copy
    for (const bool hard : {false, true}) {
      for (const std::string& suffix : suffixes) {
        const std::string from = world_.at("outside/model" + suffix), to = world_.at("root/ck" + suffix);
        fs::remove(to);
        if (suffix != hostile)
          fs::copy_file(from, to);
        else if (hard)
          fs::create_hard_link(from, to);
        else
          fs::create_symlink(from, to);
      }
      const Status s = CheckpointReader::Open("ck", *files_).status();
      EXPECT_TRUE(absl::IsPermissionDenied(s)) << s;
      save("ck", *files_).IgnoreError();  // may replace the names, but not their targets
      EXPECT_TRUE(intact()) << hostile << hard;
    }
  }
}

TEST_P(ConfinedFilesTest, WhatLiesBeneathCanBeUsed) {
  EXPECT_EQ(Read("in"), "fine");
  EXPECT_EQ(Read("./sub//deep/file"), "fine");
  EXPECT_EQ(Read(world_.at("root/sub/deep/file")), "fine");
  EXPECT_TRUE(Write("sub/new").ok());
  EXPECT_EQ(Read("sub/new"), "new");
  EXPECT_TRUE(files_->MakeFolder("made").ok());
  EXPECT_TRUE(files_->MakeFolder("made").ok());
  fs::create_symlink("made", world_.at("root/link"));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->MakeFolder("link")));
  EXPECT_TRUE(files_->Rename("sub/new", "made/moved").ok());
  EXPECT_TRUE(files_->SyncFolderOf("made/moved").ok());
  EXPECT_TRUE(files_->LockFolderOf("made/moved").ok());
  auto names = files_->List("made");
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, testing::ElementsAre("moved"));
  auto file = files_->Open("made/moved");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->IsAt("made/moved").value());
  EXPECT_FALSE((*file)->IsAt("in").value());
  EXPECT_FALSE((*file)->IsAt("none").value());
  EXPECT_TRUE(files_->Remove("made/moved").ok());
  EXPECT_TRUE(files_->RemoveFolder("made").ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Open("made/moved").status()));
}

TEST_P(ConfinedFilesTest, TellsWhyAPathIsRefused) {
  EXPECT_EQ(Read("../outside/secret"), "!'../outside/secret' has '..' in it; name the file without");
  EXPECT_EQ(Read("/etc/passwd"), "!'/etc/passwd' does not lie beneath '" + world_.at("root") + "'");
  EXPECT_THAT(Read("leaf"), HasSubstr("'leaf' is a symbolic link"));
  EXPECT_THAT(Read("folder/secret"), HasSubstr("'folder/secret' leads through a symbolic link"));
  EXPECT_THAT(Read("hard"), HasSubstr("has 2 names (hard links)"));
  EXPECT_THAT(Read("fifo"), HasSubstr("is not a regular file"));
}

// Another thread repeatedly replaces a folder by a link to the outside while files are read.
TEST_P(ConfinedFilesTest, ARaceIsNotWon) {
  Spill(world_.at("root/sub/secret"), "fine");
  fs::create_symlink("../outside", world_.at("root/other"));
  std::atomic<bool> over{false};
  std::thread exchanger([&] {
    while (!over) {
      renameat2(AT_FDCWD, world_.at("root/sub").c_str(), AT_FDCWD, world_.at("root/other").c_str(), RENAME_EXCHANGE);
    }
  });
  int read = 0, refused = 0;
  for (int i = 0; i < 1'000'000 && (i < 20'000 || read < 10 || refused < 10); ++i) {
    const std::string text = Read("sub/secret");
    read += text == "fine";
    refused += text[0] == '!';
    ASSERT_TRUE(text == "fine" || text[0] == '!') << text;
  }
  over = true;
  exchanger.join();
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(OpenFilesBeneathTest, TheFolderMayBeNamedThroughALink) {
  World w;
  fs::create_symlink("root", w.at("alias"));
  auto files = OpenFilesBeneath(w.at("alias/"));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE((*files)->Open(w.at("alias/in")).ok());
  EXPECT_TRUE((*files)->Open(w.at("root/in")).ok());
  fs::rename(w.at("root"), w.at("moved"));  // access is bound to the folder, not to its name
  EXPECT_TRUE((*files)->Open("in").ok());
}

TEST(OpenFilesBeneathTest, NeedsAFolder) {
  World w;
  EXPECT_TRUE(absl::IsNotFound(OpenFilesBeneath(w.at("none")).status()));
  EXPECT_FALSE(OpenFilesBeneath(w.at("root/in")).ok());
  EXPECT_FALSE(OpenFilesBeneath("").ok());
}

}  // namespace
}  // namespace thalweg
