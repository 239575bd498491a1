// Place: a value's memory between red zones, on a device or in host memory; shows which bytes a
// kernel writes.
// Threads: one at a time.
#pragma once
#include <string>

#include "tools/conformance/device_block.h"

namespace thalweg::conformance {

class Place {
 public:
  // host: in host memory, whatever the device has.
  static StatusOr<Place> Make(const Device& device, bool host, uint64_t bytes);
  // Sets the bytes before the call; an input must still hold them afterwards.
  Status Fill(const void* data);
  void Show(tw_view* v);
  // Returns the whole memory with the red zones.
  StatusOr<Bytes> Get() const;
  // The value within what Get answered.
  static const unsigned char* ValueIn(const Bytes& all);
  // Describes forbidden changes; input: the value must be unchanged too. Empty: none.
  std::string Changed(const Bytes& now, bool input) const;
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  DeviceBlock block_;
  Bytes host_, want_;
};

}  // namespace thalweg::conformance
