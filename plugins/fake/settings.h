// What the plugin can be told, by runtime options `plugin.org.thalweg.fake.KEY`; README.md lists them.
#ifndef THALWEG_PLUGINS_FAKE_SETTINGS_H_
#define THALWEG_PLUGINS_FAKE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::fake {

struct Settings {
  uint64_t devices = 2;
  uint64_t memory = 256u << 20;  // of each
  uint64_t delay_us = 0;         // the most that a command waits before it starts
  uint64_t simulate_ns = 0;      // that a kernel takes for every thousand elements of its largest array; 0: as long as it does
  uint64_t copy_ns = 0;          // that a copy to or from the host takes for every thousand bytes; 0: as long as it does
  std::vector<uint64_t> speed;   // percent, of each device; those that are not said: 100
  bool pools_itself = false;
  bool queue_threads = false;  // each queue has a thread of its own
  bool peers = true;           // copies between the devices leave the host out
  std::string without;         // optional sets that the devices do not have: "streams,wait,pinned,..."
  // Which of all such calls fails, counted from 1; 0: none.
  uint64_t fail_allocate = 0, fail_enqueue = 0, fail_copy = 0, fail_transfer = 0, fail_kernel = 0, fail_record = 0, lose_after = 0;
  uint64_t fail_times = 1;  // how many calls in a row

  bool has(const std::string& set) const { return ("," + without + ",").find("," + set + ",") == std::string::npos; }
};

// Throws tw::Error for a value that is none.
Settings ReadSettings(const tw_host* host);

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_SETTINGS_H_
