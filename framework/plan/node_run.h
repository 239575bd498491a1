// NodeRun: what the executor needs to call the kernel of one node. Threads: any, once it is filled.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/tensor/shape.h"
#include "thalweg/plugin/host.h"

namespace thalweg {

class Device;
struct KernelDef;
class Node;

// The facts of a plan's node that do not change from step to step.
struct NodeRun {
  const Node* node = nullptr;
  const KernelDef* kernel = nullptr;
  const tw_host* host = nullptr;  // the kernel's table, or one that confines the kernel; NULL: the kernel's
  void* state = nullptr;          // made by the kernel's create
  Device* device = nullptr;
  const uint32_t* types = nullptr;               // inputs, then outputs
  std::vector<uint8_t> host_in, host_out;        // per flat argument: it is in host memory
  std::vector<uint32_t> open_read, open_update;  // flat inputs whose resource the host opens
  std::vector<uint32_t> open_replace;            // those of open_update whose elements the kernel does not write
  std::vector<Shape> variables;                  // per flat input: the declared shape of the variable behind a handle; may be empty
  std::vector<std::string_view> resources;       // per flat input: the resource type that the op's schema requires; may be empty
  std::vector<uint8_t> anywhere_in;              // per flat input: accepted in any memory; empty: none is
  std::vector<uint8_t> anywhere_out;             // per flat output: may be given in any memory; empty: none may
  std::vector<Device*> lands;                    // per such output: device of the plan's memory for it, NULL: host; empty: all on the host
  bool async = false;                            // execute may return before the work is done
  bool opens() const { return !open_read.empty() || !open_update.empty(); }
};

}  // namespace thalweg
