#include "recognise.h"

#include <optional>

#include "wire.h"

namespace thalweg::onnx {
namespace {

bool IsText(std::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < 32 || static_cast<uint8_t>(c) >= 127) return false;
  }
  return true;
}

}  // namespace

// A ModelProto is known by its graph (field 7) and its opsets (field 8) behind an IR version (1) and texts (2, 3, 4, 6). Other messages
// that begin with a small number, such as a SavedModel, have no such fields.
uint32_t Recognise(std::string_view head, bool whole) {
  bool version = false, opsets = false;
  while (!head.empty()) {
    const std::optional<uint64_t> tag = TakeVarint(&head);
    if (!tag) return opsets ? 80 : 0;
    const uint64_t field = *tag >> 3, wire = *tag & 7;
    if (wire == 0 && (field == 1 || field == 5)) {
      const std::optional<uint64_t> v = TakeVarint(&head);
      if (!v || (field == 1 && (*v == 0 || *v > 1000))) return 0;
      version |= field == 1;
      continue;
    }
    const bool text = field == 2 || field == 3 || field == 4 || field == 6;
    if (wire != 2 || !(text || field == 7 || field == 8 || field == 14 || field == 20 || field == 25 || field == 26)) return 0;
    const std::optional<uint64_t> size = TakeVarint(&head);
    if (!size) return opsets || field == 7 ? 80 : 0;
    if (*size > head.size()) {
      if (whole && field != 7) return 0;
      return field == 7 ? (version ? 95 : 60) : opsets ? 80 : 0;
    }
    const std::string_view inside = head.substr(0, *size);
    head.remove_prefix(*size);
    if ((field == 2 || field == 3 || field == 4) && !IsText(inside)) return 0;
    if (field == 8) {
      // OperatorSetIdProto: domain (1) and version (2).
      if (!inside.empty() && inside[0] != '\x0a' && inside[0] != '\x10') return 0;
      opsets = true;
    }
    if (field == 7) return version || opsets ? 95 : 60;
  }
  return opsets && version ? 70 : 0;
}

}  // namespace thalweg::onnx
