// Wraps a file system in the plugin interface and returns it as a role for a registry, so that it
// gets the calls that a plugin gets.
#pragma once
#include <memory>
#include <string>

#include "framework/files/file_system.h"
#include "framework/registry/role.h"

namespace thalweg::test {

// files: must outlive the role.
inline std::shared_ptr<FileSystemRole> Bridge(FileSystem* files, std::string scheme = "test") {
  struct Calls {
    static FileSystem& Of(void* user) { return *static_cast<FileSystem*>(user); }
    static WritableFile* Out(void* file) { return static_cast<WritableFile*>(file); }
    static ReadableFile* In(void* file) { return static_cast<ReadableFile*>(file); }
    static tw_status* Create(const tw_host*, void* user, const tw_file_request* r, void** out) {
      auto file = Of(user).Create({r->path, r->path_len});
      if (file.ok()) *out = file->release();
      return ToC(file.status());
    }
    static tw_status* Append(const tw_host*, void* file, const void* bytes, uint64_t n) { return ToC(Out(file)->Append(bytes, n)); }
    static tw_status* Sync(const tw_host*, void* file) { return ToC(Out(file)->Sync()); }
    static tw_status* Close(const tw_host*, void* file) {
      const std::unique_ptr<WritableFile> owned(Out(file));
      return ToC(owned->Close());
    }
    static tw_status* Open(const tw_host*, void* user, const tw_file_request* r, void** out, uint64_t* bytes) {
      auto file = Of(user).Open({r->path, r->path_len});
      if (!file.ok()) return ToC(file.status());
      *bytes = (*file)->size();
      *out = file->release();
      return nullptr;
    }
    static tw_status* Read(const tw_host*, void* file, uint64_t offset, void* to, uint64_t n) {
      return ToC(In(file)->ReadAt(offset, to, n));
    }
    static void Release(const tw_host*, void* file) { delete In(file); }
    static tw_status* Rename(const tw_host*, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
      return ToC(Of(user).Rename({from, from_len}, {to, to_len}));
    }
    static tw_status* Remove(const tw_host*, void* user, const char* path, uint64_t len) { return ToC(Of(user).Remove({path, len})); }
    static tw_status* List(const tw_host*, void* user, const char* folder, uint64_t len, tw_sink* to) {
      auto names = Of(user).List({folder, len});
      if (!names.ok()) return ToC(names.status());
      for (const std::string& name : *names) {
        if (tw_status* s = to->put(to, name.c_str(), name.size() + 1)) return s;
      }
      return nullptr;
    }
    static tw_status* MakeFolder(const tw_host*, void* user, const char* folder, uint64_t len) {
      return ToC(Of(user).MakeFolder({folder, len}));
    }
    static tw_status* RemoveFolder(const tw_host*, void* user, const char* folder, uint64_t len) {
      return ToC(Of(user).RemoveFolder({folder, len}));
    }
    static tw_status* SyncFolderOf(const tw_host*, void* user, const char* path, uint64_t len) {
      return ToC(Of(user).SyncFolderOf({path, len}));
    }
  };
  tw_file_system_def def = {TW_SIZED(tw_file_system_def),
                            scheme.data(),
                            scheme.size(),
                            files,
                            Calls::Create,
                            Calls::Append,
                            Calls::Sync,
                            Calls::Close,
                            Calls::Open,
                            Calls::Read,
                            Calls::Release,
                            Calls::Rename,
                            Calls::Remove,
                            Calls::List,
                            Calls::MakeFolder,
                            Calls::RemoveFolder,
                            Calls::SyncFolderOf,
                            nullptr,
                            nullptr};
  auto sealed = SealRole(&def);
  std::shared_ptr<Role> role = *std::move(sealed);
  role->plugin = "org.test.bridge";
  return std::static_pointer_cast<FileSystemRole>(role);
}

}  // namespace thalweg::test
