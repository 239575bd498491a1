#include "framework/runtime/host/file_set.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/files/list_folder.h"
#include "framework/files/whole_file.h"
#include "framework/runtime/host/host_table.h"
#include "framework/tensor/payer.h"

struct tw_file {
  std::unique_ptr<thalweg::ReadableFile> file;
};

namespace thalweg {
namespace {

tw_status* Open(const tw_host* h, const char* path, uint64_t len, tw_file** out_file) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto file, FilesOf(h).Open(std::string(path, len)));
    *out_file = new tw_file{std::move(file)};
    return Status();
  });
}

uint64_t Bytes(const tw_file* f) { return f->file->size(); }

tw_status* Read(tw_file* f, uint64_t offset, void* to, uint64_t n) {
  return Guard([&]() -> Status {
    const uint64_t size = f->file->size();
    if (offset <= size && n <= size - offset) return f->file->ReadAt(offset, to, n);
    return Error(absl::StatusCode::kOutOfRange, "the file has ", size, " bytes, not ", offset, " + ", n);
  });
}

void Close(tw_file* f) { delete f; }

tw_status* Write(const tw_host* h, const char* path, uint64_t len, const void* bytes, uint64_t n) {
  return Guard([&] {
    const std::string name(path, len);
    return ReplaceFile(name, TemporaryName(name, "file"), {static_cast<const char*>(bytes), n}, FilesOf(h));
  });
}

tw_status* List(const tw_host* h, const char* folder, uint64_t len, tw_sink* to) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(std::vector<std::string> names, FilesOf(h).List(std::string(folder, len)));
    PaidBytes paid;
    uint64_t bytes = 0;
    for (const std::string& name : names) bytes += BytesOfName(name);
    if (Status s = paid.Take(bytes); !s.ok()) return Prefix(s, StrCat("list folder '", std::string_view(folder, len), "':"));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) RETURN_IF_ERROR(FromC(to->put(to, name.c_str(), name.size() + 1)));
    return Status();
  });
}

tw_status* Remove(const tw_host* h, const char* path, uint64_t len) {
  return Guard([&] { return FilesOf(h).Remove(std::string(path, len)); });
}

tw_status* MakeFolder(const tw_host* h, const char* folder, uint64_t len) {
  return Guard([&] { return FilesOf(h).MakeFolder(std::string(folder, len)); });
}

constexpr tw_files_api kApi = {TW_SIZED(tw_files_api), Open, Bytes, Read, Close, Write, List, Remove, MakeFolder};

}  // namespace

const tw_files_api* FileSet() { return &kApi; }

}  // namespace thalweg
