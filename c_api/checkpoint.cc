#include "thalweg/checkpoint.h"

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_folder.h"
#include "framework/runtime/devices/device.h"

using thalweg::Status;

struct tw_checkpoint {
  std::unique_ptr<thalweg::CheckpointReader> reader;
  std::vector<const thalweg::CheckpointEntry*> entries;
};

// Plain paths need no runtime, so none is created for them.
static thalweg::StatusOr<std::shared_ptr<thalweg::FileSystem>> FilesFor(tw_runtime* runtime, std::string_view path) {
  if (thalweg::SchemeOf(path).empty()) return std::shared_ptr<thalweg::FileSystem>(std::shared_ptr<void>(), &thalweg::LocalFiles());
  ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::Runtime> r, thalweg::RuntimeOf(runtime));
  return std::shared_ptr<thalweg::FileSystem>(r, &r->files());
}

tw_status* tw_checkpoint_write(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n) {
  return tw_checkpoint_write_sharded(prefix, names, tensors, n, 1);
}

tw_status* tw_checkpoint_write_sharded(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n,
                                       uint32_t shards) {
  return tw_checkpoint_write_in(nullptr, prefix, names, tensors, n, shards);
}

tw_status* tw_checkpoint_write_in(tw_runtime* runtime, const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n,
                                  uint32_t shards) {
  NEED(prefix);
  NEED_ARRAY(names, n);
  NEED_ARRAY(tensors, n);
  return thalweg::Enter([&]() -> Status {
    for (uint32_t i = 0; i < n; ++i) {
      if (!names[i]) return thalweg::InvalidArgument("tw_checkpoint_write: names[", i, "] is NULL");
      if (!tensors[i]) return thalweg::InvalidArgument("tw_checkpoint_write: tensors[", i, "], '", names[i], "', is NULL");
      if (!thalweg::LiesOnHost(*tensors[i])) {
        return thalweg::InvalidArgument("tw_checkpoint_write: tensors[", i, "], '", names[i],
                                        "', lies on a device; copy it with tw_tensor_to_host first");
      }
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::FileSystem> files, FilesFor(runtime, prefix));
    if (const std::string path = prefix; path.find('/') != path.npos) RETURN_IF_ERROR(files->MakeFolder(thalweg::FolderOf(path)));
    const int32_t data_files = shards <= INT32_MAX ? int32_t(shards) : 0;  // 0 makes the writer fail
    ASSIGN_OR_RETURN(auto writer, thalweg::CheckpointWriter::Create(prefix, *files, data_files));
    for (uint32_t i = 0; i < n; ++i) RETURN_IF_ERROR(writer->Add(names[i], tensors[i]->view));
    return writer->Commit();
  });
}

tw_status* tw_checkpoint_latest(const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped) {
  return tw_checkpoint_latest_in(nullptr, folder, out_prefix, out_skipped);
}

tw_status* tw_checkpoint_latest_in(tw_runtime* runtime, const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped) {
  if (out_skipped) *out_skipped = nullptr;
  NEED(folder);
  NEED(out_prefix);
  return thalweg::Enter([&]() -> Status {
    std::vector<std::string> notes;
    std::string prefix, skipped;
    ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::FileSystem> files, FilesFor(runtime, folder));
    ASSIGN_OR_RETURN(const std::vector<std::string> candidates, thalweg::FindCheckpoints(folder, "", *files, &notes));
    for (size_t i = 0; i < candidates.size() && prefix.empty(); ++i) {
      const Status s = thalweg::CheckpointReader::Open(candidates[i], *files).status();
      if (s.ok()) prefix = candidates[i];
      if (!s.ok() && !thalweg::IsNoWholeCheckpoint(s)) return s;
      if (!s.ok()) notes.emplace_back(thalweg::Message(s));
    }
    for (const std::string& note : notes) skipped += note + "\n";
    if (candidates.empty()) return thalweg::NotFound("folder '", folder, "' has no checkpoint; ", skipped);
    if (prefix.empty()) return thalweg::DataLoss("folder '", folder, "' has no whole checkpoint:\n", skipped);
    *out_prefix = thalweg::MakeBuffer(prefix);
    if (out_skipped) *out_skipped = thalweg::MakeBuffer(skipped);
    return Status();
  });
}

tw_status* tw_checkpoint_open(const char* prefix, tw_checkpoint** out_checkpoint) {
  return tw_checkpoint_open_in(nullptr, prefix, out_checkpoint);
}

tw_status* tw_checkpoint_open_in(tw_runtime* runtime, const char* prefix, tw_checkpoint** out_checkpoint) {
  NEED(prefix);
  NEED(out_checkpoint);
  return thalweg::Enter([&]() -> Status {
    auto checkpoint = std::make_unique<tw_checkpoint>();
    ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::FileSystem> files, FilesFor(runtime, prefix));
    ASSIGN_OR_RETURN(checkpoint->reader, thalweg::CheckpointReader::Open(prefix, *files));
    checkpoint->entries = checkpoint->reader->entries();
    *out_checkpoint = checkpoint.release();
    return Status();
  });
}

void tw_checkpoint_close(tw_checkpoint* checkpoint) { delete checkpoint; }

uint32_t tw_checkpoint_count(const tw_checkpoint* checkpoint) { return checkpoint ? uint32_t(checkpoint->entries.size()) : 0; }

const char* tw_checkpoint_name(const tw_checkpoint* checkpoint, uint32_t i) {
  return i < tw_checkpoint_count(checkpoint) ? checkpoint->entries[i]->name.c_str() : nullptr;
}

static thalweg::StatusOr<const thalweg::CheckpointEntry*> Find(const tw_checkpoint* checkpoint, const char* name) {
  if (const thalweg::CheckpointEntry* entry = checkpoint->reader->Find(name)) return entry;
  return thalweg::NotFound("the checkpoint has no tensor '", name, "'; it has ", checkpoint->entries.size(), " others");
}

tw_status* tw_checkpoint_describe(const tw_checkpoint* checkpoint, const char* name, uint32_t* out_dtype, tw_shape* out_shape,
                                  uint64_t* out_bytes) {
  NEED(checkpoint);
  NEED(name);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const thalweg::CheckpointEntry* entry, Find(checkpoint, name));
    if (out_dtype) *out_dtype = entry->dtype;
    if (out_shape) *out_shape = entry->shape.c();
    if (out_bytes) *out_bytes = checkpoint->reader->BytesOf(*entry);
    return Status();
  });
}

tw_status* tw_checkpoint_read(tw_checkpoint* checkpoint, const char* name, tw_tensor** out_tensor) {
  NEED(checkpoint);
  NEED(name);
  NEED(out_tensor);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(thalweg::Tensor t, checkpoint->reader->Read(name));
    *out_tensor = t.release();
    return Status();
  });
}

tw_status* tw_checkpoint_verify(tw_checkpoint* checkpoint, const char* name) {
  NEED(checkpoint);
  return thalweg::Enter([&]() -> Status {
    if (!name) return checkpoint->reader->VerifyAll();
    ASSIGN_OR_RETURN(const thalweg::CheckpointEntry* entry, Find(checkpoint, name));
    return checkpoint->reader->Verify(*entry);
  });
}
