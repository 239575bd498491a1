#include "wire.h"

namespace thalweg::onnx {
namespace {

constexpr uint64_t kSmall = 4096;  // bytes of elements that are copied
constexpr uint32_t kGraph = 7, kInitializer = 5, kRawData = 9, kMappedOffset = 90001, kMappedBytes = 90002;

// Copies a message; `each` copies a field in its own way and returns true, or returns false. False if the message is damaged.
template <class Each>
bool CopyFields(std::string_view message, std::string* to, Each each) {
  while (!message.empty()) {
    const std::optional<WireField> f = TakeField(&message);
    if (!f) return false;
    if (!each(*f)) to->append(f->whole);
  }
  return true;
}

}  // namespace

std::optional<uint64_t> TakeVarint(std::string_view* rest) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && !rest->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest->front());
    rest->remove_prefix(1);
    v |= static_cast<uint64_t>(byte & 127) << shift;
    if (!(byte & 128)) return v;
  }
  return std::nullopt;
}

std::optional<WireField> TakeField(std::string_view* rest) {
  const std::string_view start = *rest;
  const std::optional<uint64_t> tag = TakeVarint(rest);
  if (!tag || *tag >> 3 == 0 || *tag >> 32) return std::nullopt;
  WireField f;
  f.number = static_cast<uint32_t>(*tag >> 3);
  f.wire = static_cast<uint32_t>(*tag & 7);
  uint64_t size = 0;
  if (f.wire == 0) {
    const std::optional<uint64_t> v = TakeVarint(rest);
    if (!v) return std::nullopt;
    f.varint = *v;
  } else if (f.wire == 1 || f.wire == 5) {
    size = f.wire == 1 ? 8 : 4;
  } else if (f.wire == 2) {
    const std::optional<uint64_t> v = TakeVarint(rest);
    if (!v) return std::nullopt;
    size = *v;
  } else {
    return std::nullopt;
  }
  if (size > rest->size()) return std::nullopt;
  f.bytes = rest->substr(0, size);
  rest->remove_prefix(size);
  f.whole = start.substr(0, start.size() - rest->size());
  return f;
}

void PutVarint(std::string* to, uint64_t v) {
  for (; v >= 128; v >>= 7) to->push_back(static_cast<char>(v | 128));
  to->push_back(static_cast<char>(v));
}

void PutBytes(std::string* to, uint32_t number, std::string_view bytes) {
  PutVarint(to, uint64_t{number} << 3 | 2);
  PutVarint(to, bytes.size());
  to->append(bytes);
}

void PutNumber(std::string* to, uint32_t number, uint64_t v) {
  PutVarint(to, uint64_t{number} << 3);
  PutVarint(to, v);
}

std::string WithoutWeights(std::string_view file) {
  std::string model;
  const bool whole = CopyFields(file, &model, [&](const WireField& f) {
    if (f.number != kGraph || f.wire != 2) return false;
    std::string graph;
    const bool fine = CopyFields(f.bytes, &graph, [&](const WireField& g) {
      if (g.number != kInitializer || g.wire != 2 || g.bytes.size() < kSmall) return false;
      std::string tensor;
      const bool read = CopyFields(g.bytes, &tensor, [&](const WireField& t) {
        if (t.number != kRawData || t.wire != 2 || t.bytes.size() < kSmall) return false;
        PutNumber(&tensor, kMappedOffset, static_cast<uint64_t>(t.bytes.data() - file.data()));
        PutNumber(&tensor, kMappedBytes, t.bytes.size());
        return true;
      });
      if (!read) return false;
      PutBytes(&graph, kInitializer, tensor);
      return true;
    });
    if (!fine) return false;
    PutBytes(&model, kGraph, graph);
    return true;
  });
  return whole ? model : std::string(file);
}

}  // namespace thalweg::onnx
