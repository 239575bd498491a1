// The plugin's settings, from runtime options `plugin.org.thalweg.fake.KEY`; README.md lists them.
#ifndef THALWEG_PLUGINS_FAKE_SETTINGS_H_
#define THALWEG_PLUGINS_FAKE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::fake {

struct Settings {
  uint64_t devices = 2;
  uint64_t memory = 256u << 20;  // bytes of each device
  uint64_t delay_us = 0;         // the longest time that a command waits before it starts
  uint64_t simulate_ns = 0;      // time of a kernel per thousand elements of its largest array; 0: no simulated time
  uint64_t copy_ns = 0;          // time of a copy to or from the host per thousand bytes; 0: no simulated time
  std::vector<uint64_t> speed;   // percent, per device; devices without an entry: 100
  bool pools_itself = false;
  bool queue_threads = false;  // each queue has its own thread
  bool peers = true;           // copies between devices bypass the host
  std::string without;         // optional sets to omit: "streams,wait,pinned,..."
  // The number of the call of each kind that fails, counted from 1; 0: none.
  uint64_t fail_allocate = 0, fail_enqueue = 0, fail_copy = 0, fail_transfer = 0, fail_kernel = 0, fail_record = 0, lose_after = 0;
  uint64_t fail_times = 1;  // how many consecutive calls fail

  bool has(const std::string& set) const { return ("," + without + ",").find("," + set + ",") == std::string::npos; }
};

// Throws tw::Error for an invalid value.
Settings ReadSettings(const tw_host* host);

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_SETTINGS_H_
