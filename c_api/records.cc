// Writing files of records (thalweg/dataset.h).
#include <memory>
#include <string>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/files/file_system.h"
#include "framework/files/whole_file.h"
#include "framework/io/record_file.h"
#include "thalweg/dataset.h"

using thalweg::Status;

struct tw_record_writer {
  std::shared_ptr<thalweg::FileSystem> files;
  std::string path, temporary;
  std::unique_ptr<thalweg::WritableFile> file;  // NULL after close and after a failure
  std::string buffer;

  ~tw_record_writer() {
    if (file) (void)Fail(Status());
  }
  // Ends the file without giving it its name.
  Status Fail(Status s) {
    file.reset();
    (void)files->Remove(temporary);
    return s;
  }
  Status Flush() {
    if (buffer.empty()) return Status();
    RETURN_IF_ERROR(file->Append(buffer.data(), buffer.size()));
    buffer.clear();
    return Status();
  }
};

namespace {

constexpr uint64_t kBuffer = 1 << 20;

Status Closed(const char* function) {
  return thalweg::FailedPrecondition(function, ": the file is closed, or an earlier call has failed; make another writer");
}

}  // namespace

tw_status* tw_record_writer_create(tw_runtime* runtime, const char* path, tw_record_writer** out_writer) {
  NEED(path);
  NEED(out_writer);
  *out_writer = nullptr;
  return thalweg::Enter([&]() -> Status {
    auto writer = std::make_unique<tw_record_writer>();
    if (thalweg::SchemeOf(path).empty()) {
      writer->files = std::shared_ptr<thalweg::FileSystem>(std::shared_ptr<void>(), &thalweg::LocalFiles());
    } else {
      ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::Runtime> r, thalweg::RuntimeOf(runtime));
      writer->files = std::shared_ptr<thalweg::FileSystem>(r, &r->files());
    }
    writer->path = path;
    writer->temporary = thalweg::TemporaryName(path, "records");
    ASSIGN_OR_RETURN(writer->file, writer->files->Create(writer->temporary));
    *out_writer = writer.release();
    return Status();
  });
}

tw_status* tw_record_writer_write(tw_record_writer* writer, const void* data, uint64_t bytes) {
  NEED(writer);
  NEED_ARRAY(data, bytes);
  return thalweg::Enter([&]() -> Status {
    if (!writer->file) return Closed("tw_record_writer_write");
    thalweg::AppendRecord({bytes > 0 ? static_cast<const char*>(data) : "", size_t(bytes)}, &writer->buffer);
    if (writer->buffer.size() < kBuffer) return Status();
    Status s = writer->Flush();
    return s.ok() ? s : writer->Fail(std::move(s));
  });
}

tw_status* tw_record_writer_close(tw_record_writer* writer) {
  NEED(writer);
  return thalweg::Enter([&]() -> Status {
    if (!writer->file) return Closed("tw_record_writer_close");
    Status s = writer->Flush();
    if (s.ok()) s = writer->file->Sync();
    if (s.ok()) s = writer->file->Close();
    if (s.ok()) s = writer->files->Rename(writer->temporary, writer->path);
    if (!s.ok()) return writer->Fail(std::move(s));
    writer->file.reset();
    return writer->files->SyncFolderOf(writer->path);
  });
}

void tw_record_writer_destroy(tw_record_writer* writer) { delete writer; }
