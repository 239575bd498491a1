// Place: a value's memory between red zones, on a device or in host memory; shows which bytes a
// kernel writes.
// Threads: one at a time.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/conformance/device_block.h"

namespace thalweg::conformance {

// What lies in and around a value before a call.
struct Around {
  bool inverted = false;               // each byte of the value, until it is filled, is the inverse of what it is otherwise
  std::optional<unsigned char> zones;  // every byte of the red zones; else a pattern
  bool at_edge = false;                // in host memory: a page that cannot be touched begins where the last 64 bytes of the value end
};

struct UnmapPages {
  uint64_t bytes = 0;
  void operator()(char* map) const;
};

class Place {
 public:
  // host: in host memory, whatever the device has.
  static StatusOr<Place> Make(const Device& device, bool host, uint64_t bytes, const Around& around = {});
  // What lies there before the call, and must lie there afterwards if it is an input.
  Status Fill(const void* data);
  // Other bytes in place of the value, as if its memory were in use for something else.
  Status Forget();
  void Show(tw_view* v);
  // Returns the whole memory with the red zones.
  StatusOr<Bytes> Get() const;
  // The value within what Get answered.
  static const unsigned char* ValueIn(const Bytes& all);
  // Describes forbidden changes; input: the value must be unchanged too. Empty: none.
  std::string Changed(const Bytes& now, bool input) const;
  // Per element of so many bytes: whether it still is as before the call.
  std::vector<bool> Untouched(const Bytes& now, uint64_t element) const;
  uint64_t bytes() const { return bytes_; }

 private:
  char* base() const;  // of the zone before the value, in host memory
  uint64_t bytes_ = 0;
  DeviceBlock block_;
  std::unique_ptr<char, UnmapPages> map_;  // of a place at an edge
  char* edge_ = nullptr;                   // where its zone before the value begins
  Bytes host_, want_;
};

// A tensor in the place, which others may hold longer; the tensor itself is not shared, so kernels write to it where it is.
StatusOr<Tensor> TensorIn(const std::shared_ptr<Place>& place, uint32_t dtype, const int64_t* dims, int32_t rank);

}  // namespace thalweg::conformance
