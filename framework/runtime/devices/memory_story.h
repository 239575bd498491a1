// Lists the holders of a device's memory, for messages about exhausted memory. Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg {

class Device;
class Runtime;

struct LiveTensor {
  std::string what;  // "MatMul 'a': float[2,3]"
  uint64_t bytes = 0;
};

// Adds the container's variables that are on the device.
void AddVariables(Runtime& runtime, const std::string& container, const Device* device, std::vector<LiveTensor>* to);
// Formats "; the largest there are x (8 bytes), y (4 bytes), and 7 more of 20 bytes"; "" if the
// list is empty.
std::string LargestText(std::vector<LiveTensor> all);

}  // namespace thalweg
