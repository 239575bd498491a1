// Tensors as bytes: TensorFlow's TensorProto. Bytes that are read may be hostile. Threads: one at a
// time.
//
//     TensorProto { DataType dtype = 1; TensorShapeProto tensor_shape = 2; bytes tensor_content = 4; and a list for each kind of
//                   elements: float_val = 5, double_val = 6, int_val = 7, string_val = 8, ... }
//     TensorShapeProto { repeated Dim dim = 2; bool unknown_rank = 3; }    Dim { int64 size = 1; }
//
// The elements are the content, as in memory, or a list, whose last entry stands for all elements
// that it lacks.
#ifndef THALWEG_PLUGINS_DATA_TENSOR_BYTES_H_
#define THALWEG_PLUGINS_DATA_TENSOR_BYTES_H_

#include <string>
#include <string_view>
#include <vector>

#include "dataset.h"

namespace thalweg::data {

// A part of a tensor, to be written: `count` elements at `data`, under these dims.
struct TensorPart {
  uint32_t dtype;
  const int64_t* dims;
  int32_t rank;
  const void* data;
  uint64_t count;

  static TensorPart Of(const tw_view& v) { return {v.dtype, v.dims, v.rank, static_cast<const char*>(v.data) + v.offset, v.count}; }
};

// Appends the tensor's bytes. texts_as_content: strings stand in the content, as SerializeSparse
// writes them, and not in a list. Throws UNIMPLEMENTED for resources and variants.
void AppendTensor(const TensorPart& tensor, bool texts_as_content, tw::TempString* out);

// A serialized tensor.
class TensorBytes {
 public:
  // Reads type and shape, and checks the content. what: names the bytes in messages. Throws
  // INVALID_ARGUMENT for bytes that are no tensor. bytes: borrowed.
  TensorBytes(std::string_view bytes, std::string what);
  uint32_t dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t count() const { return count_; }
  // Writes the elements to those of `to`, a tensor of the same type, from number `at` on. Throws
  // INVALID_ARGUMENT for damaged elements.
  void CopyTo(const tw_host* host, const tw_view& to, uint64_t at) const;

 private:
  class Filler;
  [[noreturn]] void Damaged(const std::string& why) const;
  void ReadShape(std::string_view message);
  void CopyContent(Filler* to) const;
  void CopyTexts(Filler* to) const;
  void CopyList(Filler* to) const;

  const std::string_view bytes_;
  const std::string what_;
  uint32_t dtype_ = 0;
  std::vector<int64_t> dims_;
  int64_t count_ = 1;
  bool unknown_rank_ = false;
  std::string_view content_;
};

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_TENSOR_BYTES_H_
