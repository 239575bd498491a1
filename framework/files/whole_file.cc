#include "framework/files/whole_file.h"

#include <random>

namespace thalweg {

std::string TemporaryName(std::string_view prefix, std::string_view what) {
  std::random_device random;
  const uint64_t tag = uint64_t(random()) << 32 | random();
  return StrCat(prefix, ".", what, ".tmp-", Hex(tag, 16));
}

Status ReplaceFile(const std::string& path, const std::string& temporary, std::string_view bytes, FileSystem& files) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(temporary));
  Status s = file->Append(bytes.data(), bytes.size());
  if (s.ok()) s = file->Sync();
  if (s.ok()) s = file->Close();
  if (s.ok()) s = files.Rename(temporary, path);
  if (!s.ok()) {
    files.Remove(temporary).IgnoreError();
    return s;
  }
  return files.SyncFolderOf(path);
}

}  // namespace thalweg
