// What holds the memory of a device, for messages about memory that is short. Threads: any.
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

// Variables of the container that live on the device.
void AddVariables(Runtime& runtime, const std::string& container, const Device* device, std::vector<LiveTensor>* to);
// "; the largest there are x (8 bytes), y (4 bytes) and 7 more of 20 bytes"; "" where there is none.
std::string LargestText(std::vector<LiveTensor> all);

}  // namespace thalweg
