#include "framework/io/checkpoint_set.h"

#include <memory>

#include "framework/base/status.h"
#include "framework/io/checkpoint.h"

struct tw_checkpoint_writer {
  std::unique_ptr<thalweg::CheckpointWriter> writer;
};
struct tw_checkpoint_reader {
  std::unique_ptr<thalweg::CheckpointReader> reader;
};

namespace thalweg {
namespace {

tw_status* Create(const tw_host*, const char* prefix, uint64_t len, tw_checkpoint_writer** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create({prefix, len}));
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

tw_status* Open(const tw_host*, const char* prefix, uint64_t len, tw_checkpoint_reader** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open({prefix, len}));
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

constexpr tw_checkpoint_api kApi = {TW_SIZED(tw_checkpoint_api), Create, Add, Commit, Discard, Open, Read, Close};

}  // namespace

const tw_checkpoint_api* CheckpointSet() { return &kApi; }

}  // namespace thalweg
