// Memory that two processes share, in slots: who can open it, and which files are refused.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "segment.h"

namespace thalweg::grpc_transport {
namespace {

TEST(Segment, AnotherProcessReadsWhatWasWritten) {
  const auto mine = Segment::Make();
  ASSERT_NE(mine, nullptr);
  for (uint32_t i = 0; i < kSlots; ++i) std::memset(mine->slot(i), int('a' + i), kSlotBytes);
  const pid_t child = fork();
  if (child == 0) {
    const auto theirs = Segment::Open(mine->name());
    bool good = theirs != nullptr;
    for (uint32_t i = 0; good && i < kSlots; ++i)
      good = theirs->slot(i)[0] == char('a' + i) && theirs->slot(i)[kSlotBytes - 1] == char('a' + i);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Segment, OnesThatAreGoneOrHaveAnotherSecretAreRefused) {
  auto mine = Segment::Make();
  ASSERT_NE(mine, nullptr);
  const MemoryName good = mine->name();
  EXPECT_NE(Segment::Open(good), nullptr);
  MemoryName wrong = good;
  wrong.secret[1] ^= 1;
  EXPECT_EQ(Segment::Open(wrong), nullptr);
  wrong = good;
  wrong.descriptor += 1000;
  EXPECT_EQ(Segment::Open(wrong), nullptr);
  wrong = good;
  wrong.process = 1 << 30;
  EXPECT_EQ(Segment::Open(wrong), nullptr);
  EXPECT_EQ(SharedMemory::Open(good, kSlots * kSlotBytes - 4096, true), nullptr);  // another size
  mine.reset();
  EXPECT_EQ(Segment::Open(good), nullptr);
}

TEST(SharedMemory, WhatIsHiddenIsFoundNoMore) {
  const auto mine = SharedMemory::Make(100);
  ASSERT_NE(mine, nullptr);
  const auto theirs = SharedMemory::Open(mine->name(), 100, true);
  ASSERT_NE(theirs, nullptr);
  mine->Hide();
  EXPECT_EQ(SharedMemory::Open(mine->name(), 100, true), nullptr);
  theirs->data()[99] = 'x';  // a process that has mapped it keeps it
  EXPECT_EQ(mine->data()[99], 'x');
}

// A process in another container may have the number of this one. A process that opens a file and
// closes it loses all its locks on the file.
TEST(Segment, AFileOfOursIsNotTouched) {
  char path[] = "/tmp/thalweg_segment_XXXXXX";
  const int file = mkstemp(path);  // of mode 0600
  ASSERT_GE(file, 0);
  for (const bool has_name : {true, false}) {
    if (!has_name) unlink(path);
    ASSERT_EQ(ftruncate(file, 4096 + kSlots * kSlotBytes), 0);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(file, F_SETLK, &lock), 0);
    MemoryName name;
    name.process = getpid();
    name.descriptor = file;
    EXPECT_EQ(Segment::Open(name), nullptr);
    const pid_t child = fork();
    if (child == 0) _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "the lock is gone, the file has " << (has_name ? "a" : "no") << " name";
  }
  close(file);
}

// In the child, other memory is at the same address.
TEST(SharedMemory, AChildDoesNotUnmapWhatItDoesNotHave) {
  auto mine = SharedMemory::Make(4096);
  ASSERT_NE(mine, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    char* page =
        static_cast<char*>(mmap(mine->data(), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    if (page != mine->data()) _exit(1);
    page[0] = 'x';
    mine.reset();
    _exit(page[0] == 'x' ? 0 : 2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Segment, WhatIsNoSegmentIsRefused) {
  const auto mine = Segment::Make();
  ASSERT_NE(mine, nullptr);
  MemoryName name = mine->name();
  constexpr off_t kBytes = 4096 + kSlots * kSlotBytes;
  const auto refused = [&](int descriptor) {
    name.descriptor = descriptor;
    const bool none = Segment::Open(name) == nullptr;
    close(descriptor);
    return none;
  };
  const auto memory = [&](unsigned flags, off_t bytes, mode_t mode, int seals) {
    const int descriptor = memfd_create("test", flags);
    EXPECT_EQ(ftruncate(descriptor, bytes), 0);
    EXPECT_EQ(fchmod(descriptor, mode), 0);
    EXPECT_EQ(pwrite(descriptor, name.secret, sizeof name.secret, 0), ssize_t(sizeof name.secret));
    if (seals) {
      EXPECT_EQ(fcntl(descriptor, F_ADD_SEALS, seals), 0);
    }
    return descriptor;
  };
  EXPECT_FALSE(refused(memory(MFD_ALLOW_SEALING, kBytes, 0600, F_SEAL_SHRINK)));  // the following cases each differ from this one
  EXPECT_TRUE(refused(memory(MFD_ALLOW_SEALING, kBytes, 0600, 0)));               // it could be shortened, which would crash its readers
  EXPECT_TRUE(refused(memory(0, kBytes, 0600, 0)));
  EXPECT_TRUE(refused(memory(MFD_ALLOW_SEALING, kBytes, 0644, F_SEAL_SHRINK)));
  EXPECT_TRUE(refused(memory(MFD_ALLOW_SEALING, kBytes - 4096, 0600, F_SEAL_SHRINK)));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(refused(ends[0]));
  close(ends[1]);
}

}  // namespace
}  // namespace thalweg::grpc_transport
