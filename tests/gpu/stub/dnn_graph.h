// A graph of operations on tensors, as cuDNN's objects describe it, and its computation element by
// element in double. Threads: one object by one thread at a time.
#pragma once
#include <cudnn.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct DnnStubTensor {
  int64_t name = 0, type = 0, aligned = 0, is_virtual = 0, is_number = 0;
  std::vector<int64_t> dims, steps;

  int64_t count() const;
  int64_t reach() const;  // elements of memory that it spans
  size_t element() const;
  double Get(const void* memory, int64_t at) const;
  void Put(void* memory, int64_t at, double value) const;
};

// One operation: its kind and mode as the library's numbers, its other attributes, and its tensors
// by the attribute that names them.
struct DnnStubOperation {
  int64_t type = 0, mode = 0, axis = 0;  // axis: of generated indices
  std::vector<int64_t> window;           // six pairs: size, stride, dilation, before, after, and rounding
  std::map<int64_t, int64_t> tensors;
};

class DnnStubGraph {
 public:
  std::map<int64_t, DnnStubTensor> tensors;
  std::vector<DnnStubOperation> operations;

  // Describes a violation of the manual; "": none.
  std::string Wrong() const;
  std::string Text() const;
  static DnnStubGraph OfText(const std::string& text);
  // Returns true if an operation makes the tensor.
  bool Makes(int64_t name) const;
  // memory: of every tensor that is not virtual.
  void Run(const std::map<int64_t, void*>& memory) const;
};
