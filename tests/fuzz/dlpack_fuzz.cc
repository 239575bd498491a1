// Makes a DLPack structure with hostile numbers over real memory, and reads the tensor to its last
// element. The structure keeps the guarantees of the specification: one dim and one stride per
// axis, and all elements inside the memory.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "tests/c_api/dlpack_structs.h"
#include "tests/fuzz/broken.h"
#include "thalweg/thalweg.h"

namespace {

using thalweg::fuzz::Broken;

constexpr int32_t kMostAxes = 300;
constexpr int64_t kMemory = 4096;

// Reads numbers from the input; 0 at its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  // Mostly small numbers, and the limits of every type.
  int64_t Number() {
    static constexpr int64_t kEdges[] = {INT64_MIN,        INT64_MAX,        INT32_MIN,        INT32_MAX,
                                         int64_t{1} << 32, int64_t{1} << 40, int64_t{1} << 62, -1};
    const uint8_t b = Byte();
    if (b >= 0xf8) return kEdges[b - 0xf8];
    return b >= 0xe0 ? -int64_t(b - 0xe0) : b;
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// Returns true if the lowest and the highest element that the strides reach are in the memory. If
// the number of elements is absurd, the call must detect that before it reads any.
bool Inside(const DLTensor& t, int64_t start) {
  const __int128 size = t.bits / 8 * std::max<int>(t.lanes, 1);
  __int128 least = start, most = start + size, dense = 1, count = 1;
  // Clamps to values that are still far outside, so that the product fits.
  const auto cut = [](__int128 n) { return std::clamp(n, -(__int128{1} << 40), __int128{1} << 40); };
  for (int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] <= 0) return true;  // refused, or no elements
    const __int128 reach = cut(__int128(t.shape[i]) - 1) * cut(t.strides ? __int128(t.strides[i]) : dense) * size;
    (reach < 0 ? least : most) += reach;
    if (count < (__int128{1} << 64)) count *= cut(t.shape[i]);
    if (dense < (__int128{1} << 64)) dense *= cut(t.shape[i]);
    if (least < -(__int128{1} << 100) || most > (__int128{1} << 100)) break;
  }
  if (count * size > INT64_MAX) return true;
  return least >= 0 && most <= kMemory && count <= kMemory;
}

void Fill(Input& in, DLTensor* t, int64_t* shape, int64_t* strides, char* memory) {
  static constexpr uint8_t kBits[] = {0, 1, 4, 8, 16, 32, 64, 128, 255};
  const uint8_t what = in.Byte();
  t->ndim = what & 1 ? int32_t(in.Byte() % 6) : int32_t(std::clamp<int64_t>(in.Number(), INT32_MIN, kMostAxes));
  t->code = in.Byte() % 20;
  t->bits = kBits[in.Byte() % std::size(kBits)];
  t->lanes = uint16_t(what & 2 ? 1 : in.Number());
  t->device_type = what & 4 ? 1 : int32_t(in.Number());
  t->device_id = int32_t(in.Byte());
  for (int32_t i = 0; i < t->ndim; ++i) shape[i] = in.Number();
  for (int32_t i = 0; i < t->ndim; ++i) strides[i] = in.Number();
  t->shape = what & 8 ? nullptr : shape;
  t->strides = what & 16 ? nullptr : strides;
  t->byte_offset = in.Byte();
  // The memory ends at an unaligned address, so that a read of one byte too many is detected.
  t->data = what & 32 ? nullptr : memory + in.Byte();
}

void Look(tw_status* status, tw_tensor* t, bool given) {
  if ((status == nullptr) != (t != nullptr)) Broken("an import and its tensor disagree about its success");
  if (status && !*tw_status_message(status)) Broken("a failure says nothing");
  tw_status_release(status);
  unsigned sum = 0;
  const auto* bytes = static_cast<const unsigned char*>(tw_tensor_data(t));
  for (uint64_t i = 0; i < tw_tensor_bytes(t); ++i) sum += bytes[i];
  tw_buffer* text = nullptr;
  if (t) tw_status_release(tw_tensor_text(t, sum % 8, &text));
  tw_buffer_release(text);
  if (given && t && tw_tensor_mutable_data(t) && deleted == 0) Broken("the producer's memory may be written to");
  tw_tensor_release(t);
  if (given && deleted != 1) Broken("the deleter ran not once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  auto* memory = static_cast<char*>(std::calloc(1, size_t(kMemory)));
  int64_t shape[kMostAxes], strides[kMostAxes];
  const bool versioned = in.Byte() & 1;
  DLManagedTensor plain{};
  DLManagedTensorVersioned v{};
  v.major = uint32_t(in.Byte() % 3);
  v.minor = in.Byte();
  v.flags = uint64_t(in.Number());
  DLTensor& t = versioned ? v.tensor : plain.tensor;
  Fill(in, &t, shape, strides, memory);
  const bool no_deleter = in.Byte() == 7;
  const int64_t start = t.data ? static_cast<char*>(t.data) - memory + int64_t(t.byte_offset) : 0;
  deleted = 0;
  if (t.ndim <= 0 || !t.shape || !t.data || Inside(t, start)) {
    tw_tensor* made = nullptr;
    tw_status* status = nullptr;
    if (versioned) {
      v.deleter = no_deleter ? nullptr : count_deleted_versioned;
      status = tw_tensor_from_dlpack_versioned(&v, &made);
    } else {
      plain.deleter = no_deleter ? nullptr : count_deleted;
      status = tw_tensor_from_dlpack(&plain, &made);
    }
    Look(status, made, !no_deleter);
  }
  std::free(memory);
  return 0;
}
