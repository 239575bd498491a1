// A plugin's own resources: number boxes, which can be saved, and text boxes, which cannot.
// -DBOX_FORMAT is the format of saved number boxes: 1 (decimal text) or 2 (8 bytes, lowest first);
// 2 also reads 1. Number boxes may also be on the device FAKE.
#include <charconv>

#include "thalweg/cpp/plugin.hpp"

namespace {

// ---- Types ----

std::string ReadAll(tw_source* from) {
  std::string bytes;
  char part[3];  // small, so that the read takes several calls
  for (uint64_t n = 1; n > 0; bytes.append(part, n)) tw::check(from->get(from, part, sizeof part, &n));
  return bytes;
}

void DestroyNumber(const tw_host*, void* object) { delete static_cast<int64_t*>(object); }
tw_status* SaveNumber(const tw_host* h, const void* object, tw_sink* to) {
  return tw::guard(h, [&] {
    const int64_t n = *static_cast<const int64_t*>(object);
    std::string bytes = BOX_FORMAT == 1 ? std::to_string(n) : "";
    for (int i = 0; BOX_FORMAT != 1 && i < 8; ++i) bytes += char(uint64_t(n) >> 8 * i);
    for (char c : bytes) tw::check(to->put(to, &c, 1));
  });
}
int64_t FromText(const std::string& bytes) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), n);
  if (error != std::errc() || end != bytes.data() + bytes.size()) throw tw::Error{TW_DATA_LOSS, "'" + bytes + "' is no number"};
  return n;
}
int64_t FromBytes(const std::string& bytes) {
  if (bytes.size() != 8) throw tw::Error{TW_DATA_LOSS, "a number has 8 bytes, not " + std::to_string(bytes.size())};
  uint64_t n = 0;
  for (size_t i = 0; i < 8; ++i) n |= uint64_t(static_cast<unsigned char>(bytes[i])) << 8 * i;
  return int64_t(n);
}
tw_status* RestoreNumber(const tw_host* h, void*, uint64_t format, tw_source* from, void** out_object) {
  return tw::guard(h, [&] {
    const std::string bytes = ReadAll(from);
    *out_object = new int64_t(format == 1 ? FromText(bytes) : FromBytes(bytes));
  });
}
void DestroyText(const tw_host*, void* object) { delete static_cast<std::string*>(object); }

tw_status* MakeNumber(const tw_host* h, void*, void** out) {
  return tw::guard(h, [&] { *out = new int64_t(0); });
}
tw_status* MakeText(const tw_host* h, void*, void** out) {
  return tw::guard(h, [&] { *out = new std::string("text"); });
}

// ---- Kernels ----

template <tw_status* (*make)(const tw_host*, void*, void**)>
class Open {
 public:
  explicit Open(const tw::Node& n) : container_(n.s("container")), name_(n.s("shared_name")), number_(make == MakeNumber) {
    if (name_.empty()) name_ = n.name();
  }
  void operator()(tw::Frame f) const {
    const std::string type = number_ ? "org.example.box.number" : "org.example.box.text";
    const tw_resource_key key = {TW_SIZED(tw_resource_key), type.data(),  type.size(), container_.data(),
                                 container_.size(),         name_.data(), name_.size()};
    tw::check(f.f->host->resource->open(f.f, &key, make, nullptr, 0));
  }

 private:
  std::string container_, name_;
  bool number_;
};

void Add(tw::Var<tw::Any> box, tw::In<int64_t> by) { *static_cast<int64_t*>(box.handle()) += by[0]; }
void Get(tw::Var<tw::Any> box, tw::Out<int64_t> number) { number[0] = *static_cast<int64_t*>(box.handle()); }
void GetText(tw::Var<tw::Any> box, tw::Out<tw_string> text) { text.set(0, *static_cast<std::string*>(box.handle())); }
void SaveOpened(tw::Frame f, tw::Var<tw::Any>, tw::Out<tw_string> saved) { tw::check(f.f->host->resource->save(f.f, 0, saved.o)); }

}  // namespace

TW_CPP_PLUGIN("org.example.boxes", "1.0", p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S("org.example.box.number"), BOX_FORMAT, nullptr, DestroyNumber, SaveNumber, RestoreNumber});
  p.resource({TW_SIZED(tw_resource_def), TW_S("org.example.box.text"), 1, nullptr, DestroyText, nullptr, nullptr});
  p.op(R"(NumberBox() -> (box: resource[]); container: string = ""; shared_name: string = ""; stateful; once;
          resource box org.example.box.number; no_gradient "it has no inputs")");
  p.op(R"(NumberBoxAdd(box: resource[], by: int64[]) -> (); stateful; resource box org.example.box.number; no_gradient "no outputs")");
  p.op(R"(NumberBoxGet(box: resource[]) -> (number: int64[]); stateful; resource box org.example.box.number;
          no_gradient "whole numbers have no derivative")");
  p.op(R"(TextBox() -> (box: resource[]); container: string = ""; shared_name: string = ""; stateful; once;
          resource box org.example.box.text; no_gradient "it has no inputs")");
  p.op(R"(TextBoxGet(box: resource[]) -> (text: string[]); stateful; resource box org.example.box.text; no_gradient "texts")");
  p.op(R"(AnyBoxGet(box: resource[]) -> (number: int64[]); stateful; no_gradient "whole numbers have no derivative")");
  p.op(R"(BoxSaveOpened(box: resource[]) -> (saved: string[3]); stateful; resource box org.example.box.number; no_gradient "texts")");
  p.kernel<Open<MakeNumber>>("NumberBox @CPU");
  p.kernel<Open<MakeText>>("TextBox @CPU");
  p.kernel<Add>("NumberBoxAdd @CPU; update box");
  p.kernel<Get>("NumberBoxGet @CPU; read box");
  p.kernel<Get>("AnyBoxGet @CPU; read box");
  p.kernel<GetText>("TextBoxGet @CPU; read box");
  p.kernel<SaveOpened>("BoxSaveOpened @CPU; read box");
  p.kernel<Open<MakeNumber>>("NumberBox @FAKE");
  p.kernel<Add>("NumberBoxAdd @FAKE; update box; host by");
  p.kernel<Get>("NumberBoxGet @FAKE; read box; host number");
}
