// Makes attributes of every kind from bytes and gives them to every op in turn, through tw_op_set_*
// and as a NodeDef's AttrValue. An accepted attribute can be read, has a text, and is accepted
// again after an export.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/proto/graph.pb.h"
#include "tests/fuzz/broken.h"
#include "thalweg/thalweg.h"

namespace {

using thalweg::fuzz::Broken;
using thalweg::fuzz::Must;
using thalweg::fuzz::Take;

constexpr size_t kMostBytes = 16 << 10;

struct Shared {
  tw_runtime* runtime = nullptr;
  tw_ops* ops = nullptr;
};
// Never released, so that it cannot appear as a leak.
const Shared& Runtime() {
  static const Shared shared = [] {
    Shared s;
    const char* options[] = {"threads=1", "disabled_plugins=org.thalweg.opencl"};
    Must(tw_runtime_create(options, 2, &s.runtime), "making a runtime");
    Must(tw_ops_create(s.runtime, &s.ops), "listing the ops");
    return s;
  }();
  return shared;
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool over() const { return at_ >= size_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  int64_t Number() {
    static constexpr int64_t kEdges[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, int64_t{1} << 32, int64_t{1} << 40, -1, -2};
    const uint8_t b = Byte();
    return b >= 0xf8 ? kEdges[b - 0xf8] : b;
  }
  double Real() {
    static constexpr double kEdges[] = {0, -0.0, 1e300, -1e300, 1e-310, __builtin_inf(), __builtin_nan("")};
    const uint8_t b = Byte();
    return b >= 0xf9 ? kEdges[b - 0xf9] : b / 8.0;
  }
  std::string Text() {
    std::string text;
    for (size_t n = Byte() % 24; n > 0; --n) text += char(Byte() & 0x7f);  // protobuf reports invalid UTF-8 on standard error
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// One attribute for both a builder and a NodeDef.
struct Attr {
  std::string name;
  uint8_t kind = 0;
  std::vector<int64_t> numbers;
  std::vector<double> reals;
  std::vector<std::string> texts;
};

Attr Draw(Input& in) {
  // Common attribute names of ops; other names come from the input.
  static constexpr const char* kNames[] = {"T",         "dtype",    "N",       "axis",       "shape",    "value",
                                           "keep_dims", "strides",  "ksize",   "padding",    "out_type", "transpose_a",
                                           "DstT",      "Tindices", "epsilon", "begin_mask", "seed",     "Tshape"};
  Attr a;
  const uint8_t which = in.Byte();
  a.name = which < std::size(kNames) ? kNames[which] : in.Text();
  if (a.name.find('\0') != a.name.npos) a.name = "N";  // C strings end there
  a.kind = in.Byte() % 14;
  for (int n = in.Byte() % 6; n > 0; --n) {
    a.numbers.push_back(in.Number());
    a.reals.push_back(in.Real());
    a.texts.push_back(in.Text());
  }
  return a;
}

int64_t First(const Attr& a) { return a.numbers.empty() ? 0 : a.numbers[0]; }

// Sizes that both ways treat alike: -1 is unknown, and no size is less.
tw_shape ShapeOf(const Attr& a) { return {a.numbers.data(), int32_t(a.numbers.size()), 0}; }

void Set(tw_op* op, const Attr& a) {
  const char* name = a.name.c_str();
  const uint32_t n = uint32_t(a.numbers.size());
  std::vector<tw_string> texts;
  std::vector<uint32_t> types;
  std::vector<uint8_t> bools;
  for (const std::string& t : a.texts) texts.push_back({t.data(), t.size()});
  for (int64_t v : a.numbers) types.push_back(uint32_t(v) & 0xff);
  for (int64_t v : a.numbers) bools.push_back(v != 0);
  const tw_shape shape = ShapeOf(a);
  const std::string text = a.texts.empty() ? "" : a.texts[0];
  switch (a.kind) {
    case 0: tw_op_set_int(op, name, First(a)); break;
    case 1: tw_op_set_float(op, name, a.reals.empty() ? 0 : a.reals[0]); break;
    case 2: tw_op_set_bool(op, name, First(a) != 0); break;
    case 3: tw_op_set_string(op, name, text.data(), text.size()); break;
    case 4: tw_op_set_type(op, name, types.empty() ? 0 : types[0]); break;
    case 5: tw_op_set_shape(op, name, shape.dims, shape.rank); break;
    case 6: tw_op_set_ints(op, name, a.numbers.data(), n); break;
    case 7: tw_op_set_floats(op, name, a.reals.data(), n); break;
    case 8: tw_op_set_bools(op, name, bools.data(), n); break;
    case 9: tw_op_set_strings(op, name, texts.data(), n); break;
    case 10: tw_op_set_types(op, name, types.data(), n); break;
    case 11: tw_op_set_shapes(op, name, &shape, 1); break;
    case 12: tw_op_set_func(op, name, text.c_str()); break;
    default: tw_op_set_funcs(op, name, texts.data(), n); break;
  }
}

void SetProto(thalweg::proto::AttrValue* v, const Attr& a) {
  auto* list = a.kind >= 6 && a.kind != 12 ? v->mutable_list() : nullptr;
  const auto put_shape = [&](thalweg::proto::TensorShapeProto* s) {
    for (int64_t d : a.numbers) s->add_dim()->set_size(d);
  };
  const std::string text = a.texts.empty() ? "" : a.texts[0];
  const auto type = [](int64_t n) { return thalweg::proto::DataType(uint32_t(n) & 0xff); };
  switch (a.kind) {
    case 0: v->set_i(First(a)); break;
    case 1: v->set_f(a.reals.empty() ? 0 : float(a.reals[0])); break;
    case 2: v->set_b(First(a) != 0); break;
    case 3: v->set_s(text); break;
    case 4: v->set_type(a.numbers.empty() ? type(0) : type(a.numbers[0])); break;
    case 5: put_shape(v->mutable_shape()); break;
    case 11: put_shape(list->add_shape()); break;
    case 12: v->mutable_func()->set_name(text); break;
    default:
      for (size_t i = 0; i < a.numbers.size(); ++i) {
        if (a.kind == 6) list->add_i(a.numbers[i]);
        if (a.kind == 7) list->add_f(float(a.reals[i]));
        if (a.kind == 8) list->add_b(a.numbers[i] != 0);
        if (a.kind == 9) list->add_s(a.texts[i]);
        if (a.kind == 10) list->add_type(type(a.numbers[i]));
        if (a.kind == 13) list->add_func()->set_name(a.texts[i]);
      }
  }
}

// Checks that every attribute can be read, and that its text can be made.
void ReadBack(const tw_operation* operation) {
  for (uint32_t i = 0; i < tw_operation_attr_count(operation); ++i) {
    const char* name = tw_operation_attr_name(operation, i);
    const void* values = nullptr;
    uint32_t kind = 0, is_list = 0, count = 0;
    Must(tw_operation_attr(operation, name, &kind, &is_list, &count, &values), "reading an attribute");
    if (!is_list && count != 1) Broken(std::string("attribute ") + name + " is no list but has " + std::to_string(count) + " values");
    tw_buffer* text = nullptr;
    Must(tw_operation_attr_text(operation, name, &text), "an attribute's text");
    tw_buffer_release(text);
  }
}

void BothWays(const char* type, const std::vector<Attr>& attrs) {
  tw_graph *built = nullptr, *imported = nullptr;
  Must(tw_graph_create(Runtime().runtime, &built), "making a graph");
  Must(tw_graph_create(Runtime().runtime, &imported), "making a graph");
  tw_op* op = tw_op_create(built, type, "n");
  thalweg::proto::GraphDef g;
  auto* n = g.add_node();
  n->set_op(type);
  n->set_name("n");
  for (const Attr& a : attrs) {
    Set(op, a);
    thalweg::proto::AttrValue v;
    SetProto(&v, a);
    (*n->mutable_attr())[a.name] = v;
  }
  const tw_operation* made = nullptr;
  Take(tw_op_finish(op, &made));
  const std::string bytes = g.SerializeAsString();
  Take(tw_graph_import(imported, bytes.data(), bytes.size(), nullptr));
  if (made) ReadBack(made);
  if (tw_graph_count(imported) > 0) ReadBack(tw_graph_operation(imported, 0));
  if (made) {
    tw_buffer* out = nullptr;
    Must(tw_graph_export(built, &out), "exporting what was built");
    tw_graph* again = nullptr;
    Must(tw_graph_create(Runtime().runtime, &again), "making a graph");
    Must(tw_graph_import(again, tw_buffer_data(out), tw_buffer_bytes(out), nullptr), "importing what was built");
    tw_graph_destroy(again);
    tw_buffer_release(out);
  }
  tw_graph_destroy(built);
  tw_graph_destroy(imported);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return -1;
  Input in(data, size);
  const char* type = tw_ops_name(Runtime().ops, in.Byte() % tw_ops_count(Runtime().ops));
  std::vector<Attr> attrs;
  while (!in.over() && attrs.size() < 6) attrs.push_back(Draw(in));
  BothWays(type, attrs);
  return 0;
}
