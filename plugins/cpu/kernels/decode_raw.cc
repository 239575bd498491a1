// DecodeRaw: reads the bytes of strings of one length as elements. Any byte but 0 is true.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class DecodeRaw {
 public:
  explicit DecodeRaw(const tw::Node& n) : little_(n.b("little_endian")) {}

  void operator()(tw::In<tw_string> bytes, tw::Out<tw::Any> output) const {
    const uint32_t dtype = output.v()->dtype, width = ElementBytes(dtype);
    const uint64_t length = bytes.size() ? bytes[0].size : 0;
    for (uint64_t i = 0; i < bytes.size(); ++i)
      if (bytes[i].size != length)
        Invalid("'bytes'" + PositionText(bytes.v, i) + " has " + std::to_string(bytes[i].size) + " bytes, the first element " +
                std::to_string(length) + "; all must be of one length");
    if (length % width != 0)
      Invalid("the elements of 'bytes' have " + std::to_string(length) + " bytes, no multiple of " + std::to_string(width) +
              ", the size of " + TypeText(dtype));
    Ints dims;
    for (int32_t axis = 0; axis < bytes.rank(); ++axis) dims.push(bytes.dim(axis));
    dims.push(int64_t(length / width));
    Allocate(output, dims.at, dims.n);
    for (uint64_t i = 0; i < bytes.size() && length > 0; ++i) std::memcpy(output.data() + i * length, bytes[i].data, length);
    if (dtype == TW_BOOL) std::for_each_n(output.data(), output.size(), [](uint8_t& b) { b = b != 0; });
    if (little_ != (std::endian::native == std::endian::little)) TurnAround(output.data(), output.v()->bytes, Word(dtype));
  }

 private:
  // Each part of a complex number has its own byte order.
  static size_t Word(uint32_t dtype) {
    const size_t width = ElementBytes(dtype);
    return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128 ? width / 2 : width;
  }
  static void TurnAround(uint8_t* data, uint64_t bytes, size_t word) {
    for (uint64_t at = 0; at < bytes; at += word) std::reverse(data + at, data + at + word);
  }

  bool little_;
};

}  // namespace

void register_decode_raw(tw::Plugin& p) { p.kernel<DecodeRaw>("DecodeRaw @CPU"); }

}  // namespace thalweg::cpu
