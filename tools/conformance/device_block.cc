#include "tools/conformance/device_block.h"

#include <utility>

#include "tools/conformance/guarded.h"
#include "tools/conformance/played_host.h"

namespace thalweg::conformance {
namespace {

Status Copy(const Device& d, tw_copy* c) {
  const DeviceKind& kind = d.def();
  return Prefix(FromC(kind.def.copy(kind.host, d.self(), c)), StrCat("copying ", c->bytes, " bytes:"));
}

}  // namespace

Bytes Pattern(uint64_t n, uint32_t seed) {
  Bytes out(n);
  uint32_t x = seed * 2654435761u + 12345u;
  for (unsigned char& b : out) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<unsigned char>(x >> 24);
  }
  return out;
}

StatusOr<DeviceBlock> DeviceBlock::Make(const Device& device, uint64_t bytes, uint64_t align) {
  const DeviceKind& kind = device.def();
  DeviceBlock b;
  const tw_allocation wanted = {TW_SIZED(tw_allocation), bytes, align};
  void* memory = nullptr;
  RETURN_IF_ERROR(Prefix(FromC(kind.def.allocate(kind.host, device.self(), &wanted, &memory)), StrCat("allocating ", bytes, " bytes:")));
  if (!memory) return Internal("allocating ", bytes, " bytes: neither memory nor an error came back");
  b.device_ = &device;
  b.memory_ = memory;
  b.bytes_ = bytes;
  return b;
}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& o) noexcept {
  std::swap(device_, o.device_);
  std::swap(memory_, o.memory_);
  std::swap(bytes_, o.bytes_);
  return *this;
}

DeviceBlock::~DeviceBlock() {
  if (device_) device_->def().def.release(device_->def().host, device_->self(), memory_, bytes_);
}

Status DeviceBlock::Write(uint64_t offset, const void* from, uint64_t n, void* stream) const {
  Padded<tw_copy> p(RecordSize<tw_copy>());
  tw_copy& c = p.c;
  c.from = const_cast<void*>(from);
  c.to = memory_;
  c.to_offset = offset;
  c.bytes = n;
  c.from_host = 1;
  c.to_host = device_->host_memory();
  c.stream = stream;
  return Copy(*device_, &c);
}

Status DeviceBlock::Read(uint64_t offset, void* to, uint64_t n, void* stream) const {
  Padded<tw_copy> p(RecordSize<tw_copy>());
  tw_copy& c = p.c;
  c.from = memory_;
  c.from_offset = offset;
  c.to = to;
  c.bytes = n;
  c.from_host = device_->host_memory();
  c.to_host = 1;
  c.stream = stream;
  return Copy(*device_, &c);
}

Status DeviceBlock::CopyTo(const DeviceBlock& to, uint64_t from_offset, uint64_t to_offset, uint64_t n, void* stream) const {
  Padded<tw_copy> p(RecordSize<tw_copy>());
  tw_copy& c = p.c;
  c.from = memory_;
  c.from_offset = from_offset;
  c.to = to.memory_;
  c.to_offset = to_offset;
  c.bytes = n;
  c.from_host = c.to_host = device_->host_memory();
  c.stream = stream;
  return Copy(*device_, &c);
}

StatusOr<Bytes> DeviceBlock::Get() const {
  Bytes out(bytes_);
  RETURN_IF_ERROR(Read(0, out.data(), bytes_));
  return out;
}

std::string Difference(const Bytes& got, const Bytes& want) {
  if (got.size() != want.size()) return StrCat(got.size(), " bytes came back instead of ", want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) return StrCat("byte ", i, " of ", got.size(), " is ", int(got[i]), " instead of ", int(want[i]));
  }
  return "";
}

}  // namespace thalweg::conformance
