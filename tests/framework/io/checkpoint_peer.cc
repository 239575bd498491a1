// The program that checkpoint_peer_test.py runs.
//   checkpoint_peer copy FROM TO       reads every tensor of one checkpoint and saves it as another
//   checkpoint_peer shards FROM TO     the same in three data files
//   checkpoint_peer pieces FROM TO     the same with each tensor split along its first axis, the halves merged from two checkpoints
//   checkpoint_peer folder FROM TO     saves it into a folder four times and keeps two
//   checkpoint_peer latest FOLDER TO   copies the latest checkpoint of a folder
#include <cstdio>
#include <string>
#include <string_view>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_folder.h"
#include "framework/io/checkpoint_pieces.h"

namespace thalweg {
namespace {

StatusOr<NamedTensors> ReadAll(const std::string& from) {
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(from));
  RETURN_IF_ERROR(reader->VerifyAll());
  NamedTensors all;
  for (const CheckpointEntry* e : reader->entries()) {
    ASSIGN_OR_RETURN(Tensor t, reader->Read(e->name));
    all.emplace_back(e->name, std::move(t));
  }
  return all;
}

Status Write(const std::string& to, const NamedTensors& all, int32_t shards) {
  ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(to, LocalFiles(), shards));
  for (auto& [name, t] : all) RETURN_IF_ERROR(writer->Add(name, t.view()));
  return writer->Commit();
}

// Writes half h of every tensor; a tensor that cannot be split is in the first half.
Status WriteHalf(const std::string& to, const std::string& from, int h) {
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(from));
  ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(to));
  for (const CheckpointEntry* e : reader->entries()) {
    const bool cut = e->shape.rank() > 0 && e->shape.dim(0) > 1;
    if (!cut && h == 1) continue;
    CheckpointPiece piece = WholePiece(e->shape.rank());
    if (cut) {
      const int64_t middle = e->shape.dim(0) / 2;
      piece.starts[0] = h ? middle : 0;
      piece.sizes[0] = h ? e->shape.dim(0) - middle : middle;
    }
    ASSIGN_OR_RETURN(const Tensor t, reader->ReadPart(e->name, piece));
    RETURN_IF_ERROR(writer->AddPiece(e->name, e->shape, piece, t.view()));
  }
  return writer->Commit();
}

Status Run(std::string_view what, const std::string& from, const std::string& to) {
  if (what == "latest") {
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const auto found, FindCheckpoints(from, "", LocalFiles(), &notes));
    return found.empty() ? NotFound("no checkpoint in '", from, "'") : Run("copy", found[0], to);
  }
  if (what == "pieces") {
    for (int h : {0, 1}) RETURN_IF_ERROR(WriteHalf(StrCat(to, "_half", h), from, h));
    return MergeCheckpoints({StrCat(to, "_half", 0), StrCat(to, "_half", 1)}, to, true);
  }
  ASSIGN_OR_RETURN(const NamedTensors all, ReadAll(from));
  if (what == "copy" || what == "shards") return Write(to, all, what == "copy" ? 1 : 3);
  if (what != "folder") return InvalidArgument("no command '", what, "'");
  CheckpointKeep keep;
  keep.last = 2;
  ASSIGN_OR_RETURN(auto folder, CheckpointFolder::Open(to, "model.ckpt", keep));
  for (int step = 1; step <= 4; ++step) {
    auto saved = folder->Save(10 * step, 0.5 * step, 1e9 + step, all, step % 2 + 1);
    RETURN_IF_ERROR(saved.status());
  }
  return Status();
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: checkpoint_peer copy|shards|pieces|folder|latest FROM TO\n");
    return 2;
  }
  const thalweg::Status s = thalweg::Run(argv[1], argv[2], argv[3]);
  if (!s.ok()) std::fprintf(stderr, "checkpoint_peer: %s\n", std::string(thalweg::Message(s)).c_str());
  return s.ok() ? 0 : 1;
}
