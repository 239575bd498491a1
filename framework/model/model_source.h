// ModelSource: the file or folder that a model is loaded from, and the files beneath its folder
// that an importer may read. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "thalweg/plugin/importer.h"

namespace thalweg {

class ModelSource {
 public:
  static constexpr uint64_t kMostFileBytes = uint64_t{1} << 40;

  // files: opens the named file or folder; must outlive this object. Nothing else outside the
  // model's folder is opened. Errors: those of opening.
  static StatusOr<std::unique_ptr<ModelSource>> Open(const std::string& path, FileSystem* files, uint64_t most_bytes = kMostFileBytes);
  ModelSource(const ModelSource&) = delete;

  const tw_model_source* c() const { return &c_; }
  const std::string& path() const { return path_; }
  // The model's folder, as an absolute path or `scheme://...`.
  const std::string& folder() const { return folder_; }
  // The files beneath the folder, which cannot be changed.
  FileSystem* files() const { return files_.get(); }
  bool is_folder() const { return file_ == nullptr; }
  // Returns the bytes of a file beneath the folder, or of the named file if `name` is empty.
  StatusOr<tw_model_bytes*> Read(const std::string& name) const;

 private:
  ModelSource(std::string path, uint64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}
  Status OpenFolder(FileSystem* files);
  Status Charge(const std::string& name, uint64_t bytes) const;

  const std::string path_;
  const uint64_t most_bytes_;
  mutable std::atomic<uint64_t> read_{0};
  std::string folder_, head_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<ReadableFile> file_;  // NULL: the program named a folder
  tw_model_source c_{};
};

}  // namespace thalweg
