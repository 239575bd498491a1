#include "framework/registry/plugin_writers.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "framework/registry/own_file.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostText = 1 << 16;  // limit for one entry of the user and group databases

// Debian gives each user a group of their own, and some users set a umask that lets the group
// write.
bool IsOwnGroup(gid_t gid) {
  std::vector<char> user_text(kMostText), group_text(kMostText);
  passwd user{}, *found_user = nullptr;
  group g{}, *found_group = nullptr;
  if (getpwuid_r(geteuid(), &user, user_text.data(), user_text.size(), &found_user) != 0 || !found_user) return false;
  if (gid != user.pw_gid || getgrgid_r(gid, &g, group_text.data(), group_text.size(), &found_group) != 0 || !found_group) return false;
  const std::string_view name = user.pw_name;
  if (name != g.gr_name) return false;  // a group like "users", which is the primary one of others too
  for (char** member = g.gr_mem; *member; ++member) {
    if (name != *member) return false;
  }
  return true;
}

// With an access list, the group bits cover everybody in the list.
bool HasAccessList(const std::string& path) { return getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0; }

bool LeadsToUs(const std::string& folder) {
  static const auto* us = new std::string(OwnFile());
  return us->size() > folder.size() && us->compare(0, folder.size(), folder) == 0 && (folder == "/" || (*us)[folder.size()] == '/');
}

struct Fault {
  std::string what, fix;  // empty: no fault
};

// Returns what is wrong with a file or folder on the path. holds: it is the folder that contains
// the plugin.
Fault FindFault(const std::string& path, const struct stat& st, bool holds) {
  const std::string chmod = StrCat("run: chmod go-w '", path, "'");
  if (st.st_uid != 0 && st.st_uid != geteuid()) {
    return {StrCat("belongs to user ", st.st_uid, ", neither root nor user ", geteuid(), " of this process"),
            "copy it to a folder of yours"};
  }
  // In a sticky folder only owners rename and remove, but anybody adds files, for instance a
  // library that the plugin needs.
  if (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX)) {
    if (!holds || !(st.st_mode & (S_IWOTH | S_IWGRP))) return {};
    return {"is a folder to which others may add files", "move the plugin to a folder of its own"};
  }
  if (st.st_mode & S_IWOTH) return {"is writable by everybody", chmod};
  if (!(st.st_mode & S_IWGRP) || (IsOwnGroup(st.st_gid) && !HasAccessList(path))) return {};
  return {StrCat("is writable by group ", st.st_gid), chmod};
}

}  // namespace

Status CheckPluginWriters(const std::string& path, std::string* real, std::string* fix) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) return FailedPrecondition("cannot examine '", path, "': ", error.message());
  *real = file.string();
  for (fs::path at = file;; at = at.parent_path()) {
    const std::string name = at.string();
    struct stat st;
    if (stat(name.c_str(), &st) != 0) return FailedPrecondition("cannot examine '", name, "'");
    const bool holds = at == file.parent_path();
    // Users who may only add to a folder, as to /tmp, cannot change the library further down.
    if (at != file && LeadsToUs(name) && !(holds && (st.st_mode & S_ISVTX))) return Status();
    const Fault fault = FindFault(name, st, holds);
    if (!fault.what.empty()) {
      *fix = StrCat(fault.fix, ", or set the runtime option trust_plugin_folders=true if whoever may write there may run code here");
      return Error(absl::StatusCode::kPermissionDenied, "others could change it: '", name, "' ", fault.what);
    }
    if (at == at.root_path()) return Status();
  }
}

}  // namespace thalweg
