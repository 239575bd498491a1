// The confined file system over a plugin's file system.
#include <algorithm>
#include <utility>

#include "framework/files/confined_files.h"
#include "framework/files/local_file.h"

namespace thalweg {
namespace {

// Paths are compared as texts here: the plugin decides where they lead.
class BeneathFolder final : public FileSystem {
 public:
  BeneathFolder(std::string folder, FileSystem* files) : folder_(std::move(folder)), files_(*files) {}

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(path));
    return files_.Create(whole);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(path));
    ASSIGN_OR_RETURN(auto file, files_.Open(whole));
    return std::make_unique<Readable>(std::move(file), this);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    ASSIGN_OR_RETURN(const std::string a, Whole(from));
    ASSIGN_OR_RETURN(const std::string b, Whole(to));
    return files_.Rename(a, b);
  }
  Status Remove(const std::string& path) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(path));
    return files_.Remove(whole);
  }
  Status RemoveFolder(const std::string& folder) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(folder));
    return files_.RemoveFolder(whole);
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(folder));
    return files_.List(whole);
  }
  Status MakeFolder(const std::string& folder) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(folder));
    return files_.MakeFolder(whole);
  }
  Status SyncFolderOf(const std::string& path) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(path));
    return files_.SyncFolderOf(whole);
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override {
    ASSIGN_OR_RETURN(const std::string whole, Whole(path));
    return files_.LockFolderOf(whole);
  }

 private:
  class Readable final : public ReadableFile {
   public:
    Readable(std::unique_ptr<ReadableFile> file, const BeneathFolder* files) : file_(std::move(file)), files_(files) {}
    uint64_t size() const override { return file_->size(); }
    Status ReadAt(uint64_t offset, void* to, uint64_t n) const override { return file_->ReadAt(offset, to, n); }
    std::string identity() const override { return file_->identity(); }
    StatusOr<bool> IsAt(const std::string& path) const override {
      ASSIGN_OR_RETURN(const std::string whole, files_->Whole(path));
      return file_->IsAt(whole);
    }

   private:
    const std::unique_ptr<ReadableFile> file_;
    const BeneathFolder* const files_;
  };

  // Returns the path from its scheme on, without empty parts and `.`.
  StatusOr<std::string> Whole(const std::string& path) const {
    RETURN_IF_ERROR(CheckPath(path));
    std::string_view rest = path;
    if (IsAbsolute(path)) {
      const bool beneath = rest.starts_with(folder_) && (rest.size() == folder_.size() || rest[folder_.size()] == '/');
      if (!beneath) return Denied(path, StrCat("does not lie beneath '", folder_, "'"));
      rest.remove_prefix(folder_.size());
    }
    std::string whole = folder_;
    while (!rest.empty()) {
      const size_t slash = std::min(rest.find('/'), rest.size());
      const std::string_view part = rest.substr(0, slash);
      rest.remove_prefix(std::min(slash + 1, rest.size()));
      if (part == "..") return Denied(path, "has '..' in it; name the file without");
      if (!part.empty() && part != ".") whole += StrCat("/", part);
    }
    return whole;
  }

  const std::string folder_;  // without a slash at the end
  FileSystem& files_;
};

}  // namespace

StatusOr<std::unique_ptr<FileSystem>> FilesBeneathScheme(const std::string& folder, FileSystem* files) {
  RETURN_IF_ERROR(CheckPath(folder));
  std::string given = folder;
  while (given.ends_with('/')) given.pop_back();
  if (SchemeOf(given).empty()) return InvalidArgument("'", folder, "' names a scheme and no folder; name one, as in '", folder, "models'");
  if (StrCat(given, "/").find("/../") != given.npos) return InvalidArgument("'", folder, "' has '..' in it; name the folder without");
  return std::make_unique<BeneathFolder>(std::move(given), files);
}

}  // namespace thalweg
