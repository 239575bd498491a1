#include "sign.h"

#include <algorithm>

#include "digest.h"

namespace thalweg::s3 {
namespace {

std::string Formatted(time_t at, const char* format) {
  tm parts = {};
  gmtime_r(&at, &parts);
  char text[32];
  return std::string(text, strftime(text, sizeof text, format, &parts));
}

bool IsPlain(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string UriEncode(std::string_view text, bool keep_slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    if (IsPlain(c) || (keep_slash && c == '/')) {
      out += c;
    } else {
      out += {'%', kDigits[uint8_t(c) >> 4], kDigits[uint8_t(c) & 15]};
    }
  }
  return out;
}

std::string CanonicalQuery(const Pairs& query) {
  Pairs encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(UriEncode(name, false), UriEncode(value, false));
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += '&';
    out += name + "=" + value;
  }
  return out;
}

Pairs Sign(const Unsigned& request, const Key& key, std::string_view region, time_t now) {
  const std::string time = Formatted(now, "%Y%m%dT%H%M%SZ"), day = time.substr(0, 8);
  Pairs headers = request.headers;
  headers.emplace_back("host", request.host);
  headers.emplace_back("x-amz-content-sha256", request.payload);
  headers.emplace_back("x-amz-date", time);
  if (!key.token.empty()) headers.emplace_back("x-amz-security-token", key.token);
  std::sort(headers.begin(), headers.end());

  std::string lines, names;
  for (const auto& [name, value] : headers) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      request.method + "\n" + request.path + "\n" + request.query + "\n" + lines + "\n" + names + "\n" + request.payload;
  const std::string scope = day + "/" + std::string(region) + "/s3/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + Hex(Sha256(canonical));
  std::string signing = HmacSha256("AWS4" + key.secret, day);
  for (std::string_view part : {region, std::string_view("s3"), std::string_view("aws4_request")}) signing = HmacSha256(signing, part);
  headers.emplace_back("authorization", "AWS4-HMAC-SHA256 Credential=" + key.id + "/" + scope + ", SignedHeaders=" + names +
                                            ", Signature=" + Hex(HmacSha256(signing, to_sign)));
  return headers;
}

}  // namespace thalweg::s3
