#include "recognise.h"

#include <algorithm>

namespace thalweg::savedmodel {
namespace {

// Reads the fields of a message as far as its first bytes reach.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  // Takes a number in protobuf's variable form.
  bool Number(uint64_t* n) {
    *n = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto b = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *n |= uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return true;
    }
    return false;
  }
  // Takes the head of a field of this number that has a length.
  bool Length(uint32_t field, uint64_t* n) {
    uint64_t tag = 0;
    return Number(&tag) && tag == (field << 3 | 2) && Number(n);
  }
  // The same, and its bytes, all of which must be there.
  bool Bytes(uint32_t field, std::string_view* bytes) {
    uint64_t n = 0;
    if (!Length(field, &n) || n > rest_.size()) return false;
    *bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool IsOpName(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '>' || c == '.'; });
}

// version 1, then the first meta graph, whose first field is the MetaInfoDef or the GraphDef.
bool IsSavedModel(std::string_view head, uint64_t bytes) {
  Fields model(head);
  uint64_t tag = 0, version = 0, meta = 0, inner = 0;
  if (!model.Number(&tag) || tag != (1 << 3) || !model.Number(&version) || version != 1 || !model.Length(2, &meta)) return false;
  if (meta > bytes - (head.size() - model.rest().size())) return false;
  if (meta == 0) return true;
  Fields first(model.rest());
  return (first.Number(&tag) && (tag == (1 << 3 | 2) || tag == (2 << 3 | 2))) && first.Number(&inner) && inner <= meta;
}

// The first node: its name, then its op.
bool IsGraphDef(std::string_view head, uint64_t bytes) {
  Fields graph(head);
  uint64_t node = 0;
  if (!graph.Length(1, &node) || node > bytes) return false;
  Fields fields(graph.rest().substr(0, std::min<uint64_t>(node, graph.rest().size())));
  std::string_view name, op;
  return fields.Bytes(1, &name) && fields.Bytes(2, &op) && !name.empty() && IsOpName(op);
}

}  // namespace

Kind KindOf(std::string_view head, uint64_t bytes) {
  if (IsSavedModel(head, bytes)) return Kind::kSavedModel;
  if (IsGraphDef(head, bytes)) return Kind::kGraphDef;
  return Kind::kOther;
}

}  // namespace thalweg::savedmodel
