#include "settings.h"

#include <algorithm>
#include <charconv>

#include "text.h"

namespace thalweg::fake {
namespace {

// Returns the value of a setting, or an empty text if it is not set.
std::string Text(const tw_host* host, std::string_view key) {
  std::string value;
  tw_sink sink = SinkInto(&value);
  tw_status* s = host->setting(host, key.data(), key.size(), &sink);
  if (!s) return value;
  const uint32_t code = host->status->code(s);
  if (code != TW_NOT_FOUND) throw tw::Raised{s};
  host->status->release(s);
  return {};
}

// Reads a number of bytes; a suffix K, M or G multiplies it.
void Read(const tw_host* host, std::string_view key, uint64_t* to) {
  const std::string text = Text(host, key);
  if (text.empty()) return;
  uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string unit(end, text.data() + text.size());
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  if (error != std::errc() || (!unit.empty() && shift == 0) || n > (uint64_t{1} << 62 >> shift))
    throw tw::Error{TW_INVALID_ARGUMENT,
                    "setting '" + std::string(key) + "' cannot be '" + text + "'; it takes a number, such as 64 or 8M"};
  *to = n << shift;
}

// Reads numbers separated by ','.
void Read(const tw_host* host, std::string_view key, std::vector<uint64_t>* to) {
  const std::string text = Text(host, key);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    uint64_t n = 0;
    auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, n);
    if (error != std::errc() || stop != text.data() + end || n == 0)
      throw tw::Error{TW_INVALID_ARGUMENT,
                      "setting '" + std::string(key) + "' cannot be '" + text + "'; it takes numbers from 1, such as 100,25"};
    to->push_back(n);
    at = end + 1;
  }
}

void Read(const tw_host* host, std::string_view key, bool* to) {
  uint64_t n = *to;
  Read(host, key, &n);
  *to = n != 0;
}

}  // namespace

Settings ReadSettings(const tw_host* host) {
  Settings s;
  Read(host, "devices", &s.devices);
  Read(host, "memory", &s.memory);
  Read(host, "delay_us", &s.delay_us);
  Read(host, "simulate_ns", &s.simulate_ns);
  Read(host, "copy_ns", &s.copy_ns);
  Read(host, "speed", &s.speed);
  Read(host, "pools_itself", &s.pools_itself);
  Read(host, "queue_threads", &s.queue_threads);
  Read(host, "peers", &s.peers);
  Read(host, "fail_allocate", &s.fail_allocate);
  Read(host, "fail_enqueue", &s.fail_enqueue);
  Read(host, "fail_copy", &s.fail_copy);
  Read(host, "fail_transfer", &s.fail_transfer);
  Read(host, "fail_kernel", &s.fail_kernel);
  Read(host, "fail_record", &s.fail_record);
  Read(host, "lose_after", &s.lose_after);
  Read(host, "fail_times", &s.fail_times);
  s.without = Text(host, "without");
  if (s.devices > 64) throw tw::Error{TW_INVALID_ARGUMENT, "setting 'devices' cannot be " + std::to_string(s.devices) + "; the most is 64"};
  return s;
}

}  // namespace thalweg::fake
