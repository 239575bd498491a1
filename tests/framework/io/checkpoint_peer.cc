// The program beside checkpoint_peer_test.py: `checkpoint_peer copy FROM TO` reads every tensor of one checkpoint and saves it as another.
#include <cstdio>
#include <string_view>

#include "framework/io/checkpoint.h"

namespace thalweg {
namespace {

Status Copy(std::string_view from, std::string_view to) {
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(from));
  RETURN_IF_ERROR(reader->VerifyAll());
  ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(to));
  for (const CheckpointEntry* e : reader->entries()) {
    ASSIGN_OR_RETURN(const Tensor t, reader->Read(e->name));
    RETURN_IF_ERROR(writer->Add(e->name, t.view()));
  }
  return writer->Commit();
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
  if (argc != 4 || std::string_view(argv[1]) != "copy") {
    std::fprintf(stderr, "usage: checkpoint_peer copy FROM TO\n");
    return 2;
  }
  const thalweg::Status s = thalweg::Copy(argv[2], argv[3]);
  if (!s.ok()) std::fprintf(stderr, "checkpoint_peer: %s\n", std::string(thalweg::Message(s)).c_str());
  return s.ok() ? 0 : 1;
}
