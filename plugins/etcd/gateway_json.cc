#include "gateway_json.h"

#include <cstdlib>

#include "http.h"
#include "thalweg/plugin/abi.h"

namespace thalweg::etcd {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

JsonValue ParseAnswer(std::string_view text) {
  try {
    return JsonValue::Parse(text);
  } catch (const common::JsonError& e) {
    throw Failed(TW_UNAVAILABLE, std::string("what answers is no etcd: it speaks no JSON (") + e.what() + ")");
  }
}

uint64_t NumberIn(const JsonValue& value) {
  if (!value.is(JsonValue::Kind::kNumber)) return std::strtoull(value.text().c_str(), nullptr, 10);
  return value.number() >= 0 && value.number() < 0x1p64 ? uint64_t(value.number()) : 0;
}

std::string BytesIn(const JsonValue& value) {
  std::string out;
  uint32_t bits = 0, n = 0;
  for (char c : value.text()) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    bits = bits << 6 | uint32_t(digit);
    if ((n += 6) < 8) continue;
    n -= 8;
    out += char(bits >> n & 255);
  }
  return out;
}

std::string Base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace thalweg::etcd
