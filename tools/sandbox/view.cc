#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "confine.h"

namespace thalweg::sandbox {
namespace {

bool Write(int folder, const char* name, const std::string& text) {
  const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size());
  if (fd >= 0) close(fd);
  return good;
}

bool Beneath(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

// Returns a detached read-only copy of the mount at `path` and of the mounts beneath it.
int CopyOf(const std::string& path) {
  const int tree = int(syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (tree < 0) return -1;
  mount_attr attr = {};
  attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) == 0) return tree;
  close(tree);
  return -1;
}

bool MakePlace(const std::string& path, bool folder) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1)) mkdir(path.substr(0, at).c_str(), 0755);
  if (folder) return mkdir(path.c_str(), 0755) == 0 || access(path.c_str(), F_OK) == 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// Makes an own root: an empty file system in memory with copies of the mounts. The copies are made
// first, because the new file system hides the place where it is mounted.
bool MakeView(std::vector<std::string> read) {
  constexpr char kRoot[] = "/tmp";  // the root is visible nowhere else
  if (mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  std::sort(read.begin(), read.end());
  struct Copy {
    std::string path;
    int tree;
    bool folder;
  };
  std::vector<Copy> copies;
  for (const std::string& path : read) {
    struct stat st;
    const bool covered = std::any_of(copies.begin(), copies.end(), [&](const Copy& c) { return Beneath(path, c.path); });
    if (covered || stat(path.c_str(), &st) != 0) continue;
    copies.push_back({path, CopyOf(path), S_ISDIR(st.st_mode)});
    if (copies.back().tree < 0) return false;
  }
  if (mount("thalweg-sandbox", kRoot, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=1m,nr_inodes=10000,mode=755") != 0) return false;
  for (const Copy& c : copies) {
    const std::string to = kRoot + c.path;
    const bool good = MakePlace(to, c.folder) && syscall(SYS_move_mount, c.tree, "", AT_FDCWD, to.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
    close(c.tree);
    if (!good) return false;
  }
  if (chdir(kRoot) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0) return false;
  return chdir("/") == 0 && mount("", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

}  // namespace

bool SeparateUsers(int proc) {
  const std::string uid = std::to_string(getuid()), gid = std::to_string(getgid());
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // otherwise the files below belong to root
  if (unshare(CLONE_NEWUSER) != 0) return false;
  Write(proc, "setgroups", "deny");  // if the file does not exist, there is nothing to deny
  return Write(proc, "uid_map", uid + " " + uid + " 1") && Write(proc, "gid_map", gid + " " + gid + " 1");
}

Separated Separate(const std::vector<std::string>& read, int proc) {
  Separated s;
  // Without root's rights, a user namespace comes first: it gives the rights that the other
  // namespaces need.
  s.users = geteuid() != 0 && SeparateUsers(proc);
  const bool may = geteuid() == 0 || s.users;
  s.network = may && unshare(CLONE_NEWNET) == 0;
  if (may) (void)unshare(CLONE_NEWIPC | CLONE_NEWUTS);  // the filter forbids both in any case
  s.view = may && unshare(CLONE_NEWNS) == 0 && MakeView(read);
  return s;
}

}  // namespace thalweg::sandbox
