// Place: memory of a value between red zones, on a device or in host memory, to see what a kernel writes to.
// Threads: one at a time.
#pragma once
#include <string>

#include "tools/conformance/device_block.h"

namespace thalweg::conformance {

class Place {
 public:
  // host: in host memory, whatever the device has.
  static StatusOr<Place> Make(const Device& device, bool host, uint64_t bytes);
  // What lies there before the call, and must lie there afterwards if it is an input.
  Status Fill(const void* data);
  void Show(tw_view* v);
  // All of it, with the zones.
  StatusOr<Bytes> Get() const;
  // The value within what Get answered.
  static const unsigned char* ValueIn(const Bytes& all);
  // What was changed that should not have been; input: the value too. Empty: nothing.
  std::string Changed(const Bytes& now, bool input) const;
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  DeviceBlock block_;
  Bytes host_, want_;
};

}  // namespace thalweg::conformance
