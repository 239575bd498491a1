// The options of the plugin: settings `plugin.org.thalweg.s3.KEY`, and the environment.
// Threads: values.
#ifndef THALWEG_PLUGINS_S3_OPTIONS_H_
#define THALWEG_PLUGINS_S3_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "address.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::s3 {

// Settings that are read when the plugin is loaded. Times and sizes are limits; the README has a
// line about each.
struct Settings {
  std::string endpoint, region, ca, profile, credentials;
  enum class Style { kAuto, kPath, kVirtual } style = Style::kAuto;
  bool anonymous = false, plain_http = false, conditional = true;
  uint64_t part_bytes = 16 << 20, read_ahead = 8 << 20, memory = 256 << 20;
  uint32_t threads = 8;
  std::chrono::milliseconds patience{120'000}, silence{60'000}, backoff{100}, longest_backoff{20'000};
};

// Throws INVALID_ARGUMENT, naming the setting, its value and what it accepts.
Settings ReadSettings(const tw_host* host);

// Where requests go. Depends on the environment and the profile, so it is found at the first request.
struct Place {
  Endpoint endpoint;
  std::string region;
  bool virtual_hosted = false;
  std::string ca;  // a file of certificates; empty: the machine's
};

// Throws INVALID_ARGUMENT for an endpoint that is no URL; FAILED_PRECONDITION if keys would travel
// without encryption beyond this machine.
Place FindPlace(const Settings& settings);

// A bucket with a dot is never a subdomain under TLS, because certificates do not cover it.
bool IsVirtualHosted(const Place& place, const std::string& bucket);

// Returns a variable of the environment; empty if it is not set.
std::string Environment(const char* name);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_OPTIONS_H_
