// Constants that are stored without their zeros. The axes of the tensor, and those of its blocks, are walked in the order that the file
// says; each is dense or lists the indices that are there, as a matrix in compressed rows does.
#include <algorithm>
#include <cstring>

#include "import.h"

namespace thalweg::tflite {
namespace {

enum SparsityField { kOrder, kBlockMap, kAxes };
enum AxisField { kFormat, kDenseSize, kSegmentsType, kSegments, kIndicesType, kIndices };

struct Axis {
  bool dense = true;
  int64_t size = 0;
  std::vector<int64_t> segments, indices;
};

std::vector<int64_t> Numbers(const FlatTable& axis, unsigned type, unsigned field) {
  const FlatTable t = axis.table(field);
  switch (axis.number<uint8_t>(type, 0)) {
    case 1: return t.numbers<int32_t>(0);
    case 2: return t.numbers<uint16_t>(0);
    case 3: return t.numbers<uint8_t>(0);
    default: axis.Fail("the indices of a sparse axis are absent or of an unknown type");
  }
}

struct Walk {
  const FlatTable& place;
  const std::vector<Axis>& axes;
  const std::vector<int64_t>& order;    // the axis of each level, those of blocks behind those of the tensor
  const std::vector<int64_t>& strides;  // of elements, for each axis
  const char* from;
  uint64_t count, size;  // stored elements, and the bytes of one
  char* to;
  int64_t total;  // elements of the dense tensor
  uint64_t next = 0;

  // Visits level `level`; `row` counts the places above it.
  void Visit(size_t level, int64_t row, int64_t offset) {
    if (level == axes.size()) {
      if (next >= count) place.Fail("a sparse constant has fewer elements than its indices name");
      if (offset < 0 || offset >= total) place.Fail("an index of a sparse constant lies outside");
      std::memcpy(to + static_cast<uint64_t>(offset) * size, from + next * size, size);
      ++next;
      return;
    }
    const Axis& a = axes[level];
    const int64_t stride = strides[static_cast<size_t>(order[level])];
    if (a.dense) {
      for (int64_t i = 0; i < a.size; ++i) Visit(level + 1, row * a.size + i, offset + i * stride);
      return;
    }
    if (row < 0 || static_cast<uint64_t>(row) + 1 >= a.segments.size()) place.Fail("a sparse axis lacks a segment");
    const int64_t begin = a.segments[static_cast<size_t>(row)], end = a.segments[static_cast<size_t>(row) + 1];
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > a.indices.size()) place.Fail("a segment of a sparse axis lies outside");
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = a.indices[static_cast<size_t>(i)];
      if (index < 0 || index >= a.size) place.Fail("an index of a sparse axis lies outside");
      Visit(level + 1, i, offset + index * stride);
    }
  }
};

}  // namespace

Tensor Dense(Import& import, const TensorInfo& info) {
  const File& file = import.file;
  const FlatTable& s = info.sparsity;
  const std::vector<int64_t> order = s.numbers<int32_t>(kOrder), blocks = s.numbers<int32_t>(kBlockMap);
  const std::vector<FlatTable> tables = s.tables(kAxes, sizeof(FlatTable) + sizeof(Axis));
  const size_t rank = info.dims.size(), levels = rank + blocks.size();
  // Levels are visited by recursion.
  if (blocks.size() > rank) s.Fail("a sparse constant has more blocks than axes");
  if (order.size() != levels || tables.size() != levels) s.Fail("a sparse constant does not say how each of its axes is stored");
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < levels; ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) s.Fail("the order of a sparse constant's axes names one twice");
  }
  const uint64_t size = importer::ElementBytes(info.dtype);
  if (!size || info.dtype == TW_INT4)
    throw Error{TW_UNIMPLEMENTED, std::string("sparse constants of ") + importer::DtypeName(info.dtype) + " are not supported"};
  const int64_t total = importer::CountOf(info.dims);
  if (!total) return Tensor(info.dtype, info.dims);  // the other sizes have no bound
  const std::string_view bytes = file.buffers[info.buffer];
  // Every stored element may stand for a whole row of zeros, but a file that stands for very much more than itself is refused.
  if (static_cast<uint64_t>(total) * size > 64 * bytes.size() + (1 << 20)) {
    throw Error{TW_RESOURCE_EXHAUSTED, "the sparse constant '" + Printable(info.name) + "' of " + std::to_string(bytes.size()) +
                                           " bytes has shape " + importer::Text(info.dims)};
  }
  // The sizes of blocks, by the axes that they divide. Blocks are stored dense.
  std::vector<int64_t> sizes(info.dims.begin(), info.dims.end());
  std::vector<int64_t> strides(levels, 1);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= info.dims[i];
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t level = static_cast<size_t>(std::find(order.begin(), order.end(), static_cast<int64_t>(rank + i)) - order.begin());
    const int64_t block = tables[level].number<int32_t>(kDenseSize, 0);
    if (blocks[i] < 0 || static_cast<size_t>(blocks[i]) >= rank) s.Fail("a block of a sparse constant divides an axis that does not exist");
    const auto axis = static_cast<size_t>(blocks[i]);
    if (block < 1 || sizes[axis] % block) s.Fail("a block of a sparse constant does not divide its axis");
    sizes[axis] /= block;
    sizes.push_back(block);
    strides[rank + i] = strides[axis];
    strides[axis] *= block;
  }
  std::vector<Axis> axes;
  for (size_t level = 0; level < levels; ++level) {
    Axis a;
    a.dense = tables[level].number<int8_t>(kFormat, 0) == 0;
    a.size = sizes[static_cast<size_t>(order[level])];
    if (a.dense && tables[level].number<int32_t>(kDenseSize, 0) != a.size)
      s.Fail("a dense axis of a sparse constant has another size than its tensor");
    if (!a.dense) {
      a.segments = Numbers(tables[level], kSegmentsType, kSegments);
      a.indices = Numbers(tables[level], kIndicesType, kIndices);
      // Segments that overlap would let a short file name very many places.
      if (!std::is_sorted(a.segments.begin(), a.segments.end())) s.Fail("the segments of a sparse axis are not sorted");
    }
    axes.push_back(std::move(a));
  }
  CountBytes(import, static_cast<uint64_t>(total) * size);
  Tensor dense(info.dtype, info.dims);
  Walk walk{s, axes, order, strides, bytes.data(), bytes.size() / size, size, static_cast<char*>(dense.mutable_data()), total};
  walk.Visit(0, 0, 0);
  return dense;
}

}  // namespace thalweg::tflite
