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

// The bytes in and around a value before a call.
struct Around {
  bool inverted = false;               // inverts each byte of the value's pattern, until Fill
  std::optional<unsigned char> zones;  // value of every byte of the red zones; empty: a pattern
  bool at_edge = false;                // in host memory: an inaccessible page begins where the value, rounded up to 64 bytes, ends
};

struct UnmapPages {
  uint64_t bytes = 0;
  void operator()(char* map) const;
};

class Place {
 public:
  // host: uses host memory on any device.
  static StatusOr<Place> Make(const Device& device, bool host, uint64_t bytes, const Around& around = {});
  // Writes the value before the call. If the value is an input, it must be unchanged afterwards.
  Status Fill(const void* data);
  // Overwrites the value, as if its memory were reused.
  Status Forget();
  void Show(tw_view* v);
  // Returns the whole memory with the red zones.
  StatusOr<Bytes> Get() const;
  // Returns the value within the bytes that Get returned.
  static const unsigned char* ValueIn(const Bytes& all);
  // Describes forbidden changes; input: the value must be unchanged too. Empty: none.
  std::string Changed(const Bytes& now, bool input) const;
  // Returns, for each element of `element` bytes, whether the call left it unchanged.
  std::vector<bool> Untouched(const Bytes& now, uint64_t element) const;
  uint64_t bytes() const { return bytes_; }

 private:
  char* base() const;  // start of the red zone before the value, in host memory
  uint64_t bytes_ = 0;
  DeviceBlock block_;
  std::unique_ptr<char, UnmapPages> map_;  // pages of a place with at_edge
  char* edge_ = nullptr;                   // start of the red zone before the value in map_
  Bytes host_, want_;
};

// Returns a tensor in the place. The tensor keeps the place alive and is not shared, so kernels write to
// it in place.
StatusOr<Tensor> TensorIn(const std::shared_ptr<Place>& place, uint32_t dtype, const int64_t* dims, int32_t rank);

}  // namespace thalweg::conformance
