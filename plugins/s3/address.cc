#include "address.h"

#include <arpa/inet.h>

#include "fail.h"
#include "sign.h"

namespace thalweg::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kLongestKey = 1024;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsBucket(std::string_view name) {
  if (name.size() < 3 || name.size() > 63 || !IsLowerOrDigit(name.front()) || !IsLowerOrDigit(name.back())) return false;
  for (char c : name) {
    if (!IsLowerOrDigit(c) && c != '-' && c != '.') return false;
  }
  return name.find("..") == name.npos;
}

// Returns the key with single slashes. Throws for parts that are no names.
std::string Cleaned(std::string_view rest, std::string_view path) {
  std::string key;
  while (!rest.empty()) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    const bool more = slash < rest.size();
    rest.remove_prefix(slash + size_t(more));
    if (part == "." || part == "..") {
      Fail(TW_INVALID_ARGUMENT, "'" + std::string(path) + "' has '" + std::string(part) + "' in it; name the object without");
    }
    if (!part.empty()) (key += part) += more ? "/" : "";
  }
  if (key.size() > kLongestKey) {
    Fail(TW_INVALID_ARGUMENT,
         "the key of '" + std::string(path.substr(0, 100)) + "...' has " + std::to_string(key.size()) + " bytes; S3 allows 1024");
  }
  return key;
}

// The host without its port and brackets.
std::string Bare(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

Address ParseAddress(std::string_view path) {
  std::string_view rest = path;
  if (!rest.starts_with(kScheme)) Fail(TW_INVALID_ARGUMENT, "'" + std::string(path) + "' does not begin with s3://");
  rest.remove_prefix(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  Address a;
  a.bucket = rest.substr(0, slash);
  if (!IsBucket(a.bucket)) {
    Fail(TW_INVALID_ARGUMENT, "'" + std::string(path) + "' names the bucket '" + a.bucket +
                                  "'; a bucket has 3 to 63 lower-case letters, digits, '-' and '.', as in s3://bucket/key");
  }
  a.key = Cleaned(rest.substr(slash), path);
  return a;
}

Address ParseFile(std::string_view path) {
  Address a = ParseAddress(path);
  if (a.key.empty() || a.key.back() == '/') {
    Fail(TW_INVALID_ARGUMENT, "'" + std::string(path) + "' names no object; give one as in s3://bucket/key");
  }
  return a;
}

Address ParseFolder(std::string_view path) {
  Address a = ParseAddress(path);
  if (!a.key.empty() && a.key.back() != '/') a.key += '/';
  return a;
}

bool Endpoint::loopback() const {
  const std::string bare = Bare(host);
  in_addr four = {};
  if (inet_pton(AF_INET, bare.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  return bare == "localhost" || bare == "::1";  // libcurl itself resolves "localhost" to the loopback interface
}

bool Endpoint::numeric() const {
  const std::string bare = Bare(host);
  in6_addr any = {};
  return inet_pton(AF_INET, bare.c_str(), &any) == 1 || inet_pton(AF_INET6, bare.c_str(), &any) == 1;
}

Endpoint ParseEndpoint(std::string_view text, std::string_view setting) {
  const auto refuse = [&](const std::string& why) { Fail(TW_INVALID_ARGUMENT, std::string(setting) + " " + why); };
  if (text.find('@') != text.npos) refuse("holds a user name; give keys by the environment or a file of credentials");
  const std::string said = "is '" + std::string(text) + "'; ";
  const std::string form = "give https://host, https://host:port or http://host:port";
  Endpoint e;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    e.tls = false;
    rest.remove_prefix(7);
  } else {
    refuse(said + form);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  e.host = rest.substr(0, slash);
  e.path = rest.substr(slash);
  while (e.path.ends_with('/')) e.path.pop_back();
  constexpr std::string_view kHost = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]";
  if (e.host.empty() || e.host.find_first_not_of(kHost) != e.host.npos || e.host.front() == ':') refuse(said + form);
  if (e.host.front() == '[' && e.host.find(']') == e.host.npos) refuse(said + form);
  // The port of the scheme is no part of the Host header, which is signed.
  const std::string_view usual = e.tls ? ":443" : ":80";
  if (e.host.ends_with(usual) && e.host.find_last_of(']') + 1 + usual.size() <= e.host.size()) e.host.erase(e.host.size() - usual.size());
  if (UriEncode(e.path, true) != e.path) refuse(said + "the path may have letters, digits, '-', '.', '_', '~' and '/'");
  return e;
}

Target TargetOf(const Endpoint& endpoint, const Address& address, bool virtual_hosted) {
  const std::string key = UriEncode(address.key, true);
  if (virtual_hosted) return {address.bucket + "." + endpoint.host, endpoint.path + "/" + key};
  return {endpoint.host, endpoint.path + "/" + address.bucket + "/" + key};
}

}  // namespace thalweg::s3
