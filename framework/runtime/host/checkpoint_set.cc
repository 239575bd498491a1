#include "framework/runtime/host/checkpoint_set.h"

#include <memory>

#include "framework/base/status.h"
#include "framework/io/checkpoint.h"
#include "framework/runtime/host/host_table.h"

struct tw_checkpoint_writer {
  std::unique_ptr<thalweg::CheckpointWriter> writer;
};
struct tw_checkpoint_reader {
  std::unique_ptr<thalweg::CheckpointReader> reader;
};

namespace thalweg {
namespace {

tw_status* Create(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_writer** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create({prefix, len}, FilesOf(h)));
    *out = new tw_checkpoint_writer{std::move(writer)};
    return Status();
  });
}

tw_status* Add(tw_checkpoint_writer* w, const char* name, uint64_t len, const tw_view* value) {
  return Guard([&] { return w->writer->Add({name, len}, *value); });
}

tw_status* Commit(tw_checkpoint_writer* w) {
  const std::unique_ptr<tw_checkpoint_writer> spent(w);
  return Guard([&] { return w->writer->Commit(); });
}

void Discard(tw_checkpoint_writer* w) { delete w; }

tw_status* Open(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_reader** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open({prefix, len}, FilesOf(h)));
    *out = new tw_checkpoint_reader{std::move(reader)};
    return Status();
  });
}

tw_status* Read(tw_checkpoint_reader* r, const char* name, uint64_t len, tw_tensor** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Tensor t, r->reader->Read({name, len}));
    *out = t.release();
    return Status();
  });
}

void Close(tw_checkpoint_reader* r) { delete r; }

CheckpointPiece Piece(const int64_t* starts, const int64_t* sizes, int32_t rank) {
  return {std::vector<int64_t>(starts, starts + rank), std::vector<int64_t>(sizes, sizes + rank)};
}

tw_status* AddPiece(tw_checkpoint_writer* w, const char* name, uint64_t len, const int64_t* dims, const int64_t* starts,
                    const int64_t* sizes, int32_t rank, const tw_view* value) {
  return Guard([&] { return w->writer->AddPiece({name, len}, Shape(dims, rank), Piece(starts, sizes, rank), *value); });
}

tw_status* ReadPart(tw_checkpoint_reader* r, const char* name, uint64_t len, const int64_t* dims, const int64_t* starts,
                    const int64_t* sizes, int32_t rank, tw_tensor** out) {
  return Guard([&]() -> Status {
    const CheckpointEntry* e = r->reader->Find({name, len});
    if (const Shape whole(dims, rank); e && e->shape != whole) {
      return InvalidArgument("tensor '", e->name, "' has shape ", e->shape.text(), " in the file, not ", whole.text());
    }
    ASSIGN_OR_RETURN(Tensor t, r->reader->ReadPart({name, len}, Piece(starts, sizes, rank)));
    *out = t.release();
    return Status();
  });
}

tw_status* Merge(const tw_host* h, const tw_string* parts, uint64_t n, const char* prefix, uint64_t len, uint32_t remove_folders) {
  return Guard([&] {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < n; ++i) names.emplace_back(parts[i].data, parts[i].size);
    return MergeCheckpoints(names, std::string(prefix, len), remove_folders != 0, FilesOf(h));
  });
}

tw_status* CreateInFolder(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_writer** out) {
  tw_status* failed = Guard([&]() -> Status {
    const std::string path(prefix, len);
    return path.find('/') == path.npos ? Status() : FilesOf(h).MakeFolder(FolderOf(path));
  });
  return failed ? failed : Create(h, prefix, len, out);
}

constexpr tw_checkpoint_api kApi = {
    TW_SIZED(tw_checkpoint_api), Create, Add, Commit, Discard, Open, Read, Close, AddPiece, ReadPart, Merge, CreateInFolder};

}  // namespace

const tw_checkpoint_api* CheckpointSet() { return &kApi; }

}  // namespace thalweg
