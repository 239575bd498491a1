#include "framework/io/scheme_files.h"

#include "framework/base/shown.h"
#include "framework/registry/registry.h"

namespace thalweg {

StatusOr<std::shared_ptr<FileSystem>> SchemeFiles::Of(const std::string& path) {
  const std::string_view scheme = SchemeOf(path);
  if (scheme.empty()) return std::shared_ptr<FileSystem>(std::shared_ptr<void>(), &LocalFiles());  // not owned
  auto roles = registry_->RolesOf<FileSystemRole>(scheme);
  if (!roles.empty()) return std::make_shared<PluginFiles>(std::move(roles[0]), &locks_);
  std::string all;
  for (const auto& role : registry_->RolesOf<FileSystemRole>()) all += StrCat(all.empty() ? "" : ", ", role->name, "://");
  return FailedPrecondition("'", Shown(path), "': no plugin has a file system '", Shown(scheme),
                            "://'; there are: ", all.empty() ? "none" : all, "; load the plugin that provides it, or write './",
                            Shown(path), "' for a file of that name");
}

StatusOr<std::unique_ptr<WritableFile>> SchemeFiles::Create(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, Of(path));
  return files->Create(path);
}
StatusOr<std::unique_ptr<ReadableFile>> SchemeFiles::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, Of(path));
  return files->Open(path);
}
Status SchemeFiles::Rename(const std::string& from, const std::string& to) {
  if (SchemeOf(from) != SchemeOf(to)) {
    return InvalidArgument("cannot rename '", Shown(from), "' to '", Shown(to), "': they are in different file systems; copy the file");
  }
  ASSIGN_OR_RETURN(const auto files, Of(to));
  return files->Rename(from, to);
}
Status SchemeFiles::Remove(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, Of(path));
  return files->Remove(path);
}
StatusOr<std::vector<std::string>> SchemeFiles::List(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto files, Of(folder));
  return files->List(folder);
}
Status SchemeFiles::MakeFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto files, Of(folder));
  return files->MakeFolder(folder);
}
Status SchemeFiles::RemoveFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto files, Of(folder));
  return files->RemoveFolder(folder);
}
Status SchemeFiles::SyncFolderOf(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, Of(path));
  return files->SyncFolderOf(path);
}
StatusOr<std::unique_ptr<FolderLock>> SchemeFiles::LockFolderOf(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, Of(path));
  return files->LockFolderOf(path);
}

}  // namespace thalweg
