// SaveV2, RestoreV2 and MergeV2Checkpoints, through the host's checkpoint set, and the names of
// data files. A slice text selects a slice of a tensor to save or restore: "10 20 0,5:-" is rows 0
// to 4 and all columns of a [10, 20] tensor.
#include <charconv>
#include <cstdio>
#include <optional>

#include "kernels/common/copy.h"
#include "kernels/register.h"
#include "thalweg/cpp/memory.hpp"
#include "thalweg/cpp/trace.hpp"

namespace thalweg::cpu {
namespace {

const tw_checkpoint_api& Checkpoints(const tw_host* h) {
  auto* api = static_cast<const tw_checkpoint_api*>(h->query(h, TW_S(TW_CHECKPOINT_SET), 1));
  if (!api || !TW_HAS(api, create_in_folder)) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no checkpoint files, or an older set"};
  return *api;
}

std::string Text(const tw_string& s) { return {s.data, s.size}; }
std::string_view View(const tw_string& s) { return {s.data, s.size}; }

void CheckNames(const tw::In<tw_string>& prefix, const tw::In<tw_string>& names, const tw::In<tw_string>& slices, uint32_t tensors) {
  if (prefix.size() != 1 || names.size() != tensors || slices.size() != tensors)
    throw tw::Error{TW_INTERNAL, std::to_string(prefix.size()) + " prefixes, " + std::to_string(names.size()) + " names and " +
                                     std::to_string(slices.size()) + " slices for " + std::to_string(tensors) + " tensors"};
}

// A slice text: the sizes of the whole tensor, then begin and length along each axis; length -1
// means the whole axis.
struct SliceText {
  Ints whole, begin, length;

  explicit SliceText(std::string_view text) {
    size_t cut = text.rfind(' ');
    if (cut == text.npos) Refuse(text);
    for (std::string_view rest = text.substr(0, cut); !rest.empty();) whole.push(Number(text, Next(&rest, ' ')));
    for (std::string_view rest = text.substr(cut + 1); !rest.empty();) Axis(text, Next(&rest, ':'));
    if (begin.n != whole.n) Refuse(text);
  }

 private:
  [[noreturn]] static void Refuse(std::string_view text) {
    Invalid("'" + std::string(text) + "' is no slice; write sizes, then begin,length or - per axis, as in '10 20 0,5:-'");
  }
  static std::string_view Next(std::string_view* rest, char separator) {
    size_t end = rest->find(separator);
    std::string_view part = rest->substr(0, end);
    rest->remove_prefix(end == rest->npos ? rest->size() : end + 1);
    return part;
  }
  static int64_t Number(std::string_view text, std::string_view part) {
    int64_t v = -1;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), v);
    if (error != std::errc() || end != part.data() + part.size() || v < 0) Refuse(text);
    return v;
  }
  void Axis(std::string_view text, std::string_view part) {
    if (begin.n == whole.n) Refuse(text);
    const int64_t size = whole[begin.n];
    if (part == "-") {
      begin.push(0);
      length.push(-1);
      return;
    }
    const int64_t b = Number(text, Next(&part, ',')), n = Number(text, part);
    if (b > size || n > size - b) Invalid("the slice '" + std::string(text) + "' leaves the tensor");
    begin.push(b);
    length.push(n);
  }
};

// A writer that is discarded unless it is committed.
class Writer {
 public:
  Writer(const tw_host* h, const tw_string& prefix) : api_(Checkpoints(h)) {
    tw::check(api_.create_in_folder(h, prefix.data, prefix.size, &w_));
  }
  ~Writer() { api_.discard(w_); }
  void Add(const tw_string& name, const tw_view* value) { tw::check(api_.add(w_, name.data, name.size, value)); }
  void Add(const tw_string& name, const SliceText& s, const tw_view* value) {
    tw::check(api_.add_piece(w_, name.data, name.size, s.whole.at, s.begin.at, s.length.at, s.whole.n, value));
  }
  void Commit() {
    tw_checkpoint_writer* w = w_;
    w_ = nullptr;  // consumed in both cases
    tw::check(api_.commit(w));
  }

 private:
  const tw_checkpoint_api& api_;
  tw_checkpoint_writer* w_ = nullptr;
};

void Save(tw::Frame f, tw::In<tw_string> prefix, tw::In<tw_string> tensor_names, tw::In<tw_string> shape_and_slices,
          tw::Many<tw::Any> tensors) {
  CheckNames(prefix, tensor_names, shape_and_slices, tensors.size());
  const tw::PaysHere pays(f);
  Writer w(f.f->host, prefix[0]);
  {
    const tw::Span writing(f, "write tensors");
    int64_t bytes = 0;
    for (uint32_t i = 0; i < tensors.size(); ++i) {
      if (shape_and_slices[i].size == 0)
        w.Add(tensor_names[i], tensors[i].v);
      else
        w.Add(tensor_names[i], SliceText(View(shape_and_slices[i])), tensors[i].v);
      bytes += int64_t(tensors[i].v->bytes);
      tw::count(f, "bytes", bytes);
    }
  }
  const tw::Span publishing(f, "sync and publish files");
  w.Commit();
}

class Reader {
 public:
  Reader(const tw_host* h, const tw_string& prefix) : api_(Checkpoints(h)) { tw::check(api_.open(h, prefix.data, prefix.size, &r_)); }
  ~Reader() { api_.close(r_); }
  tw_tensor* Read(const tw_string& name, const tw_string& slice) {
    tw_tensor* t = nullptr;
    if (slice.size == 0) {
      tw::check(api_.read(r_, name.data, name.size, &t));
    } else {
      const SliceText s(View(slice));
      tw::check(api_.read_part(r_, name.data, name.size, s.whole.at, s.begin.at, s.length.at, s.whole.n, &t));
    }
    return t;
  }

 private:
  const tw_checkpoint_api& api_;
  tw_checkpoint_reader* r_ = nullptr;
};

void Restore(tw::Frame f, tw::In<tw_string> prefix, tw::In<tw_string> tensor_names, tw::In<tw_string> shape_and_slices,
             tw::ManyOut<tw::Any> tensors) {
  CheckNames(prefix, tensor_names, shape_and_slices, tensors.size());
  const tw_tensor_api* api = f.f->host->tensor;
  const tw::PaysHere pays(f);
  std::optional<tw::Span> part(std::in_place, f, "open files");
  Reader r(f.f->host, prefix[0]);
  part.emplace(f, "read tensors");
  int64_t bytes = 0;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    struct Held {
      const tw_tensor_api* api;
      tw_tensor* t;
      ~Held() { api->release(t); }
    } held{api, r.Read(tensor_names[i], shape_and_slices[i])};
    const tw_view* v = api->view(held.t);
    if (v->dtype != tensors[i].v()->dtype) {
      Invalid("tensor '" + Text(tensor_names[i]) + "' in '" + Text(prefix[0]) + "' is " + TypeText(v->dtype) + ", not " +
              TypeText(tensors[i].v()->dtype) + " as 'dtypes' says");
    }
    tw::check(api->give(f.f, tensors[i].o, held.t));
    tw::count(f, "bytes", bytes += int64_t(v->bytes));
  }
}

class Merge {
 public:
  explicit Merge(const tw::Node& n) : remove_folders_(n.b("delete_old_dirs")) {
    if (n.b("allow_missing_files")) throw tw::Error{TW_UNIMPLEMENTED, "'allow_missing_files' is not offered; merge what is there"};
  }
  void operator()(tw::Frame f, tw::In<tw_string> checkpoint_prefixes, tw::In<tw_string> destination_prefix) const {
    const tw_host* h = f.f->host;
    const tw_string& to = destination_prefix[0];
    const tw::PaysHere pays(f);
    tw::check(Checkpoints(h).merge(h, checkpoint_prefixes.data(), checkpoint_prefixes.size(), to.data, to.size, remove_folders_));
  }

 private:
  bool remove_folders_;
};

void Filename(tw::In<tw_string> basename, tw::In<int32_t> shard, tw::In<int32_t> num_shards, tw::Out<tw_string> filename) {
  char tail[40];
  std::snprintf(tail, sizeof(tail), "-%05d-of-%05d", int(shard[0]), int(num_shards[0]));
  filename.set(0, Text(basename[0]) + tail);
}

void Filespec(tw::In<tw_string> basename, tw::In<int32_t> num_shards, tw::Out<tw_string> filename) {
  char tail[40];
  std::snprintf(tail, sizeof(tail), "-?\?\?\?\?-of-%05d", int(num_shards[0]));
  filename.set(0, Text(basename[0]) + tail);
}

}  // namespace

void register_checkpoint(tw::Plugin& p) {
  p.kernel<Save>("SaveV2 @CPU; may_block");
  p.kernel<Restore>("RestoreV2 @CPU; may_block");
  p.kernel<Merge>("MergeV2Checkpoints @CPU; may_block");
  p.kernel<Filename>("ShardedFilename @CPU");
  p.kernel<Filespec>("ShardedFilespec @CPU");
}

}  // namespace thalweg::cpu
