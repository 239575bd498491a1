#include "framework/model/model_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/mman.h>

#include "framework/base/shown.h"
#include "framework/files/confined_files.h"
#include "framework/files/read_only_files.h"

namespace thalweg {
namespace {

constexpr uint64_t kHeadBytes = 4096;

// Mapped or read bytes of a file.
struct FileBytes {
  tw_model_bytes c{};  // must be first
  std::atomic<int32_t> refs{1};
  void* mapped = nullptr;
  std::unique_ptr<char[]> read;

  static FileBytes* Of(tw_model_bytes* b) { return reinterpret_cast<FileBytes*>(b); }
  ~FileBytes() {
    if (mapped) ::munmap(mapped, size_t(c.bytes));
  }
};

void RetainBytes(tw_model_bytes* b) { FileBytes::Of(b)->refs.fetch_add(1, std::memory_order_relaxed); }
void ReleaseBytes(tw_model_bytes* b) {
  if (b && FileBytes::Of(b)->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete FileBytes::Of(b);
}

StatusOr<tw_model_bytes*> BytesOf(const ReadableFile& file) {
  auto made = std::make_unique<FileBytes>();
  made->c = {TW_SIZED(tw_model_bytes), nullptr, file.size(), RetainBytes, ReleaseBytes};
  made->mapped = const_cast<void*>(file.Map());
  made->c.data = made->mapped;
  if (!made->mapped && file.size() > 0) {
    made->read = std::make_unique_for_overwrite<char[]>(size_t(file.size()));
    RETURN_IF_ERROR(file.ReadAt(0, made->read.get(), file.size()));
    made->c.data = made->read.get();
  }
  return &made.release()->c;
}

const ModelSource& Of(const tw_model_source* s) { return *static_cast<const ModelSource*>(s->self); }

tw_status* OpenEntry(const tw_model_source* s, const char* name, uint64_t len, tw_model_bytes** out_bytes) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(*out_bytes, Of(s).Read(std::string(name ? name : "", name ? len : 0)));
    return Status();
  });
}

tw_status* ListEntry(const tw_model_source* s, const char* folder, uint64_t len, tw_sink* to) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(std::vector<std::string> names, Of(s).files()->List(len > 0 ? std::string(folder, len) : std::string(".")));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) RETURN_IF_ERROR(FromC(to->put(to, name.c_str(), name.size() + 1)));
    return Status();
  });
}

std::string Absolute(const std::string& folder) {
  std::error_code error;
  std::string text = std::filesystem::absolute(folder, error).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return error ? folder : text;
}

}  // namespace

StatusOr<std::unique_ptr<ModelSource>> ModelSource::Open(const std::string& path, FileSystem* files, uint64_t most_bytes) {
  std::unique_ptr<ModelSource> s(new ModelSource(path, most_bytes));
  auto file = files->Open(path);
  if (file.ok()) {
    s->file_ = *std::move(file);
    s->folder_ = FolderOf(path);
    s->head_.resize(size_t(std::min(kHeadBytes, s->file_->size())));
    RETURN_IF_ERROR(s->file_->ReadAt(0, s->head_.data(), s->head_.size()));
  } else {
    // A folder cannot be opened as a file; a missing file cannot be listed, either.
    const auto names = files->List(path);
    if (!names.ok() || (names->empty() && absl::IsNotFound(file.status()))) return file.status();
    s->folder_ = path;
  }
  RETURN_IF_ERROR(s->OpenFolder(files));
  tw_model_source& c = s->c_;
  c.size = sizeof c;
  c.path = s->path_.c_str();
  c.path_len = s->path_.size();
  c.head = s->is_folder() ? nullptr : s->head_.data();
  c.head_bytes = s->head_.size();
  c.bytes = s->is_folder() ? 0 : s->file_->size();
  c.is_folder = s->is_folder();
  c.self = s.get();
  c.open = OpenEntry;
  c.list = ListEntry;
  return s;
}

Status ModelSource::OpenFolder(FileSystem* files) {
  const bool scheme = !SchemeOf(folder_).empty();
  if (!scheme) folder_ = Absolute(folder_);
  auto beneath = scheme ? FilesBeneathScheme(folder_, files) : OpenFilesBeneath(folder_);
  if (!beneath.ok()) return Prefix(beneath.status(), "the model's folder:");
  files_ = ReadOnlyFiles(*std::move(beneath));
  return Status();
}

Status ModelSource::Charge(const std::string& name, uint64_t bytes) const {
  uint64_t before = read_.load();
  do {
    if (bytes <= most_bytes_ && before <= most_bytes_ - bytes) continue;
    return ResourceExhausted("'", Shown(name.empty() ? path_ : name), "' has ", bytes, " bytes; files of a model may have ", most_bytes_,
                             " in all, and ", before, " were opened before; raise max_file_bytes");
  } while (!read_.compare_exchange_weak(before, before + bytes));
  return Status();
}

StatusOr<tw_model_bytes*> ModelSource::Read(const std::string& name) const {
  if (name.empty()) {
    if (is_folder()) return InvalidArgument("'", Shown(path_), "' is a folder; name a file in it");
    RETURN_IF_ERROR(Charge(name, file_->size()));
    return BytesOf(*file_);
  }
  if (IsAbsolute(name)) return Error(absl::StatusCode::kPermissionDenied, "'", Shown(name), "' is no name beneath the model's folder");
  ASSIGN_OR_RETURN(const auto file, files_->Open(name));
  RETURN_IF_ERROR(Charge(name, file->size()));
  return BytesOf(*file);
}

}  // namespace thalweg
