#include "options.h"

#include <charconv>
#include <cstdlib>

#include "../common/setting.h"
#include "fail.h"
#include "profile.h"

namespace thalweg::s3 {
namespace {

constexpr uint64_t kMiB = 1 << 20;

[[noreturn]] void Refuse(std::string_view key, const std::string& value, const std::string& wanted) {
  Fail(TW_INVALID_ARGUMENT, "setting '" + std::string(key) + "' is '" + value + "'; give " + wanted);
}

template <class T>
void ReadNumber(const tw_host* host, std::string_view key, uint64_t least, uint64_t most, T* to) {
  const std::string text = common::Setting(host, key);
  if (text.empty()) return;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    Refuse(key, text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  *to = T(number);
}

void ReadSwitch(const tw_host* host, std::string_view key, bool* to) {
  const std::string text = common::Setting(host, key);
  if (text.empty()) return;
  if (text != "0" && text != "1") Refuse(key, text, "0 or 1");
  *to = text == "1";
}

std::string FirstOf(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

std::string HostOfRegion(const std::string& region) {
  for (char c : region) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) Refuse("region", region, "one such as eu-central-1");
  }
  return "https://s3." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

}  // namespace

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Settings ReadSettings(const tw_host* host) {
  Settings s;
  s.endpoint = common::Setting(host, "endpoint");
  if (!s.endpoint.empty()) ParseEndpoint(s.endpoint, "setting 'endpoint'");
  s.region = common::Setting(host, "region");
  s.ca = common::Setting(host, "ca");
  s.profile = common::Setting(host, "profile");
  s.credentials = common::Setting(host, "credentials");
  if (const std::string style = common::Setting(host, "style"); style == "path") {
    s.style = Settings::Style::kPath;
  } else if (style == "virtual") {
    s.style = Settings::Style::kVirtual;
  } else if (!style.empty() && style != "auto") {
    Refuse("style", style, "auto, path or virtual");
  }
  ReadSwitch(host, "anonymous", &s.anonymous);
  ReadSwitch(host, "plain_http", &s.plain_http);
  ReadSwitch(host, "conditional", &s.conditional);
  ReadNumber(host, "part_bytes", 5 * kMiB, 1024 * kMiB, &s.part_bytes);
  ReadNumber(host, "read_ahead", 0, 1024 * kMiB, &s.read_ahead);
  ReadNumber(host, "memory", 0, uint64_t{1} << 40, &s.memory);
  ReadNumber(host, "threads", 1, 64, &s.threads);
  ReadNumber(host, "patience_ms", 1, 86'400'000, &s.patience);
  ReadNumber(host, "silence_ms", 1000, 3'600'000, &s.silence);
  ReadNumber(host, "backoff_ms", 1, 60'000, &s.backoff);
  ReadNumber(host, "longest_backoff_ms", 1, 600'000, &s.longest_backoff);
  return s;
}

Place FindPlace(const Settings& s) {
  const Profile profile = ReadConfig(s.profile);
  Place p;
  const std::string endpoint = FirstOf({s.endpoint, Environment("AWS_ENDPOINT_URL_S3"), Environment("AWS_ENDPOINT_URL"), profile.endpoint});
  p.region = FirstOf({s.region, Environment("AWS_REGION"), Environment("AWS_DEFAULT_REGION"), profile.region, "us-east-1"});
  p.endpoint = ParseEndpoint(endpoint.empty() ? HostOfRegion(p.region) : endpoint, "the endpoint of the store");
  p.ca = FirstOf({s.ca, Environment("AWS_CA_BUNDLE")});
  if (!p.endpoint.tls && !p.endpoint.loopback() && !s.plain_http) {
    Fail(TW_FAILED_PRECONDITION, "the endpoint '" + p.endpoint.text() +
                                     "' has no encryption, and is not this machine's; use https://, or allow it with "
                                     "plugin.org.thalweg.s3.plain_http=1");
  }
  const bool has_subdomains = !p.endpoint.numeric() && p.endpoint.path.empty();
  const bool is_amazon = p.endpoint.host.ends_with(".amazonaws.com") || p.endpoint.host.ends_with(".amazonaws.com.cn");
  if (s.style == Settings::Style::kVirtual && !has_subdomains) {
    Fail(TW_INVALID_ARGUMENT, "setting 'style' is 'virtual', but '" + p.endpoint.text() + "' can have no subdomains; give path");
  }
  p.virtual_hosted = s.style == Settings::Style::kVirtual || (s.style == Settings::Style::kAuto && is_amazon && has_subdomains);
  return p;
}

bool IsVirtualHosted(const Place& place, const std::string& bucket) {
  return place.virtual_hosted && (!place.endpoint.tls || bucket.find('.') == bucket.npos);
}

}  // namespace thalweg::s3
