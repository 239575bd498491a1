// SaveV2 and RestoreV2, through the host's checkpoint set. A restored tensor may be a slice of the saved one, as the slice text says:
// "10 20 0,5:-" is rows 0 to 4 and all columns of a [10, 20] tensor.
#include <charconv>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

const tw_checkpoint_api& Checkpoints(const tw_host* h) {
  auto* api = static_cast<const tw_checkpoint_api*>(h->query(h, TW_S(TW_CHECKPOINT_SET), 1));
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no checkpoint files"};
  return *api;
}

std::string Text(const tw_string& s) { return {s.data, s.size}; }

void CheckNames(const tw::In<tw_string>& prefix, const tw::In<tw_string>& names, const tw::In<tw_string>& slices, uint32_t tensors) {
  if (prefix.size() != 1 || names.size() != tensors || slices.size() != tensors) {
    Invalid(std::to_string(prefix.size()) + " prefixes, " + std::to_string(names.size()) + " names and " + std::to_string(slices.size()) +
            " slices for " + std::to_string(tensors) + " tensors");
  }
}

// A writer that is thrown away unless it was committed.
class Writer {
 public:
  Writer(const tw_host* h, const tw_string& prefix) : api_(Checkpoints(h)) { tw::check(api_.create(h, prefix.data, prefix.size, &w_)); }
  ~Writer() { api_.discard(w_); }
  void Add(const tw_string& name, const tw_view* value) { tw::check(api_.add(w_, name.data, name.size, value)); }
  void Commit() {
    tw_checkpoint_writer* w = w_;
    w_ = nullptr;  // spent either way
    tw::check(api_.commit(w));
  }

 private:
  const tw_checkpoint_api& api_;
  tw_checkpoint_writer* w_ = nullptr;
};

void Save(tw::Frame f, tw::In<tw_string> prefix, tw::In<tw_string> tensor_names, tw::In<tw_string> shape_and_slices,
          tw::Many<tw::Any> tensors) {
  CheckNames(prefix, tensor_names, shape_and_slices, tensors.size());
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (shape_and_slices[i].size == 0) continue;
    throw tw::Error{TW_UNIMPLEMENTED, "tensor '" + Text(tensor_names[i]) + "': saving the slice '" + Text(shape_and_slices[i]) +
                                          "' of a larger tensor is not offered; save whole tensors"};
  }
  Writer w(f.f->host, prefix[0]);
  for (uint32_t i = 0; i < tensors.size(); ++i) w.Add(tensor_names[i], tensors[i].v);
  w.Commit();
}

class Reader {
 public:
  Reader(const tw_host* h, const tw_string& prefix) : api_(Checkpoints(h)) { tw::check(api_.open(h, prefix.data, prefix.size, &r_)); }
  ~Reader() { api_.close(r_); }
  tw_tensor* Read(const tw_string& name) {
    tw_tensor* t = nullptr;
    tw::check(api_.read(r_, name.data, name.size, &t));
    return t;
  }

 private:
  const tw_checkpoint_api& api_;
  tw_checkpoint_reader* r_ = nullptr;
};

// A slice text: the sizes of the whole tensor, then begin and length along each axis.
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
      length.push(size);
      return;
    }
    const int64_t b = Number(text, Next(&part, ',')), n = Number(text, part);
    if (b > size || n > size - b) Invalid("the slice '" + std::string(text) + "' leaves the tensor");
    begin.push(b);
    length.push(n);
  }
};

void GiveSlice(const tw_frame* f, std::string_view text, const tw_view* from, const tw::Out<tw::Any>& to) {
  const SliceText s(text);
  if (tw::text(s.whole.at, s.whole.n) != DimsText(from))
    Invalid("the slice '" + std::string(text) + "' is of a tensor of another shape: the file holds " + DimsText(from));
  Allocate(to, s.length.at, s.length.n);
  const Ints a = DenseStrides(from->dims, from->rank), b = DenseStrides(s.length.at, s.length.n);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < s.whole.n; ++i) {
    at += s.begin[i] * a[i];
    box.Add(s.length[i], a[i], b[i]);
  }
  CopyBox(f, box, from, at, to.v(), 0);
}

void Restore(tw::Frame f, tw::In<tw_string> prefix, tw::In<tw_string> tensor_names, tw::In<tw_string> shape_and_slices,
             tw::ManyOut<tw::Any> tensors) {
  CheckNames(prefix, tensor_names, shape_and_slices, tensors.size());
  const tw_tensor_api* api = f.f->host->tensor;
  Reader r(f.f->host, prefix[0]);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    struct Held {
      const tw_tensor_api* api;
      tw_tensor* t;
      ~Held() { api->release(t); }
    } held{api, r.Read(tensor_names[i])};
    const tw_view* v = api->view(held.t);
    if (v->dtype != tensors[i].v()->dtype) {
      Invalid("tensor '" + Text(tensor_names[i]) + "' in '" + Text(prefix[0]) + "' is " + TypeText(v->dtype) + ", not " +
              TypeText(tensors[i].v()->dtype) + " as 'dtypes' says");
    }
    if (shape_and_slices[i].size == 0)
      tw::check(api->give(f.f, tensors[i].o, held.t));
    else
      GiveSlice(f.f, {shape_and_slices[i].data, shape_and_slices[i].size}, v, tensors[i]);
  }
}

}  // namespace

void register_checkpoint(tw::Plugin& p) {
  p.kernel<Save>("SaveV2 @CPU; may_block");
  p.kernel<Restore>("RestoreV2 @CPU; may_block");
}

}  // namespace thalweg::cpu
