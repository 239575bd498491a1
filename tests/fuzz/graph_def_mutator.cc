// Mutates a GraphDef into another GraphDef, since random bytes seldom get past the parser. A tenth
// of the mutations still change bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "framework/proto/graph.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) __attribute__((weak));

namespace {

using thalweg::proto::AttrValue;
using thalweg::proto::DataType;
using thalweg::proto::GraphDef;
using thalweg::proto::NodeDef;
using thalweg::proto::TensorProto;
using thalweg::proto::TensorShapeProto;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return n ? random_() % n : 0; }

  void Mutate(GraphDef* g) {
    if (g->node_size() == 0) return;
    NodeDef* n = g->mutable_node(int(Below(uint64_t(g->node_size()))));
    switch (Below(8)) {
      case 0:
        *g->add_node() = *n;
        g->mutable_node(g->node_size() - 1)->set_name(n->name() + "x");
        break;
      case 1: g->mutable_node()->DeleteSubrange(int(Below(uint64_t(g->node_size()))), 1); break;
      case 2: Rewire(*g, n); break;
      case 3: n->set_op(g->node(int(Below(uint64_t(g->node_size())))).op()); break;
      case 4: g->mutable_node()->SwapElements(int(Below(uint64_t(g->node_size()))), int(Below(uint64_t(g->node_size())))); break;
      default: MutateAttr(n);
    }
  }

  // Appends nodes of `other` to `g`; some of them read g's values.
  void Join(GraphDef* g, const GraphDef& other) {
    for (const NodeDef& n : other.node()) {
      NodeDef* added = g->add_node();
      *added = n;
      added->set_name(n.name() + "y");
      for (std::string& input : *added->mutable_input()) input += input.find(':') == input.npos ? "y" : "";
      if (Below(3) == 0) Rewire(*g, added);
    }
  }

 private:
  int64_t Number(int64_t old) {
    static constexpr int64_t kEdges[] = {0, 1, -1, 2, 3, 7, 64, 255, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40};
    switch (Below(4)) {
      case 0: return kEdges[Below(std::size(kEdges))];
      case 1: return int64_t(uint64_t(old) + 1);
      case 2: return int64_t(uint64_t(old) - 1);
      default: return int64_t(Below(9)) - 2;
    }
  }
  float Real() {
    static constexpr float kEdges[] = {
        0, -0.0f, 1, -1, 0.5f, 1e30f, -1e30f, 1e-40f, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")};
    return kEdges[Below(std::size(kEdges))];
  }
  DataType Type() { return DataType(Below(5) ? Below(24) : Below(140)); }

  void Rewire(const GraphDef& g, NodeDef* n) {
    std::string input = g.node(int(Below(uint64_t(g.node_size())))).name();
    if (Below(4) == 0) input += ":" + std::to_string(Below(3));
    if (Below(8) == 0) input = "^" + input;
    if (n->input_size() == 0 || Below(6) == 0) {
      n->add_input(input);
    } else if (Below(6) == 0) {
      n->mutable_input()->RemoveLast();
    } else {
      n->set_input(int(Below(uint64_t(n->input_size()))), input);
    }
  }

  void MutateShape(TensorShapeProto* s) {
    if (s->dim_size() == 0 || Below(4) == 0) {
      s->add_dim()->set_size(Number(1));
    } else if (Below(4) == 0) {
      s->mutable_dim()->RemoveLast();
    } else if (Below(12) == 0) {
      s->set_unknown_rank(!s->unknown_rank());
    } else {
      auto* dim = s->mutable_dim(int(Below(uint64_t(s->dim_size()))));
      dim->set_size(Number(dim->size()));
    }
  }

  template <class Field>
  void MutateNumbers(Field* f) {
    if (f->empty() || Below(5) == 0) {
      f->Add(typename Field::value_type(Number(0)));
    } else {
      auto& v = *f->Mutable(int(Below(uint64_t(f->size()))));
      v = typename Field::value_type(Number(int64_t(v)));
    }
  }

  void MutateTensor(TensorProto* t) {
    switch (Below(6)) {
      case 0: t->set_dtype(Type()); break;
      case 1: MutateShape(t->mutable_tensor_shape()); break;
      case 2: MutateNumbers(t->mutable_int_val()); break;
      case 3: MutateNumbers(t->mutable_int64_val()); break;
      case 4: t->add_float_val(Real()); break;
      default:
        if (t->tensor_content().empty()) {
          t->set_tensor_content(std::string(size_t(Below(64)), '\1'));
        } else {
          (*t->mutable_tensor_content())[size_t(Below(t->tensor_content().size()))] = char(Number(0));
        }
    }
  }

  void MutateAttr(NodeDef* n) {
    if (n->attr().empty()) return;
    auto at = n->mutable_attr()->begin();
    std::advance(at, long(Below(n->attr().size())));
    AttrValue& v = at->second;
    switch (v.value_case()) {
      case AttrValue::kI: v.set_i(Number(v.i())); break;
      case AttrValue::kF: v.set_f(Real()); break;
      case AttrValue::kB: v.set_b(!v.b()); break;
      case AttrValue::kType: v.set_type(Type()); break;
      case AttrValue::kShape: MutateShape(v.mutable_shape()); break;
      case AttrValue::kTensor: MutateTensor(v.mutable_tensor()); break;
      case AttrValue::kS: {
        static constexpr const char* kWords[] = {"SAME", "VALID", "NHWC", "NCHW", "EXPLICIT", "", "max"};
        v.set_s(kWords[Below(std::size(kWords))]);
        break;
      }
      case AttrValue::kList:
        if (v.list().type_size()) {
          v.mutable_list()->add_type(Type());
        } else {
          MutateNumbers(v.mutable_list()->mutable_i());
        }
        break;
      default: n->mutable_attr()->erase(at);
    }
  }

  std::minstd_rand random_;
};

size_t Put(const GraphDef& g, uint8_t* to, size_t max_size) {
  const std::string bytes = g.SerializeAsString();
  if (bytes.size() > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), to);
  return bytes.size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Mutator m(seed);
  GraphDef g;
  if (m.Below(10) == 0 || !g.ParseFromArray(data, int(size))) return LLVMFuzzerMutate(data, size, max_size);
  for (uint64_t i = 0, n = 1 + m.Below(3); i < n; ++i) m.Mutate(&g);
  const size_t written = Put(g, data, max_size);
  return written ? written : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t max_size,
                                            unsigned seed) {
  GraphDef first, second;
  if (!first.ParseFromArray(a, int(a_size)) || !second.ParseFromArray(b, int(b_size))) return 0;
  Mutator(seed).Join(&first, second);
  return Put(first, out, max_size);
}
