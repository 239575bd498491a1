#include "tools/conformance/place.h"

#include <unistd.h>

#include <cstring>

#include <sys/mman.h>

namespace thalweg::conformance {
namespace {

constexpr uint64_t kZone = 64;   // bytes of the red zone on either side
constexpr uint64_t kAlign = 64;  // alignment of values, in bytes

}  // namespace

void UnmapPages::operator()(char* map) const { munmap(map, bytes); }

char* Place::base() const { return edge_ ? edge_ : reinterpret_cast<char*>(const_cast<unsigned char*>(host_.data())); }

StatusOr<Place> Place::Make(const Device& device, bool host, uint64_t bytes, const Around& around) {
  Place p;
  p.bytes_ = bytes;
  const bool own = host && !device.host_memory();  // host memory that the device does not allocate
  const bool at_edge = around.at_edge && (own || device.kind() == "CPU");
  const uint64_t up = (bytes + kAlign - 1) / kAlign * kAlign;
  p.want_ = Pattern(kZone + (at_edge ? up : bytes + kZone), 42);
  for (uint64_t i = 0; i < p.want_.size(); ++i) {
    const bool value = i >= kZone && i < kZone + bytes;
    if (value && around.inverted) p.want_[i] = static_cast<unsigned char>(~p.want_[i]);
    if (!value && around.zones) p.want_[i] = *around.zones;
  }
  if (at_edge) {
    const auto page = uint64_t(sysconf(_SC_PAGESIZE));
    const uint64_t pages = (p.want_.size() + page - 1) / page * page;
    void* map = mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return ResourceExhausted("no memory for a value of ", bytes, " bytes");
    p.map_ = {static_cast<char*>(map), UnmapPages{pages + page}};
    if (mprotect(p.map_.get() + pages, page, PROT_NONE) != 0) return Internal("a page cannot be protected");
    p.edge_ = p.map_.get() + pages - p.want_.size();
    std::memcpy(p.edge_, p.want_.data(), p.want_.size());
  } else if (own) {
    p.host_ = p.want_;
  } else {
    ASSIGN_OR_RETURN(p.block_, DeviceBlock::Make(device, p.want_.size()));
    RETURN_IF_ERROR(p.block_.Put(p.want_));
  }
  return p;
}

Status Place::Fill(const void* data) {
  if (bytes_ == 0) return Status();
  std::memcpy(want_.data() + kZone, data, bytes_);
  if (block_) return block_.Write(kZone, data, bytes_);
  std::memcpy(base() + kZone, data, bytes_);
  return Status();
}

Status Place::Forget() {
  const Bytes other(bytes_, 0x5B);
  return Fill(other.data());
}

void Place::Show(tw_view* v) {
  const bool address = !block_ || block_.device().host_memory();
  char* at = block_ ? static_cast<char*>(block_.memory()) : base();
  v->data = address ? at + kZone : at;
  v->offset = address ? 0 : kZone;
  v->bytes = bytes_;
}

StatusOr<Bytes> Place::Get() const {
  if (block_) return block_.Get();
  return Bytes(base(), base() + want_.size());
}

const unsigned char* Place::ValueIn(const Bytes& all) { return all.data() + kZone; }

std::string Place::Changed(const Bytes& now, bool input) const {
  for (uint64_t i = 0; i < now.size(); ++i) {
    const bool zone = i < kZone || i >= kZone + bytes_;
    if ((zone || input) && now[i] != want_[i]) {
      return zone ? StrCat("byte ", int64_t(i) - int64_t(kZone), " of a value of ", bytes_, " bytes")
                  : StrCat("byte ", i - kZone, " of an input");
    }
  }
  return "";
}

std::vector<bool> Place::Untouched(const Bytes& now, uint64_t element) const {
  std::vector<bool> out(element ? bytes_ / element : 0);
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = std::memcmp(&now[kZone + i * element], &want_[kZone + i * element], element) == 0;
  return out;
}

namespace {

struct PlaceBuffer {
  Buffer buffer;
  std::shared_ptr<Place> place;
};

}  // namespace

StatusOr<Tensor> TensorIn(const std::shared_ptr<Place>& place, uint32_t dtype, const int64_t* dims, int32_t rank) {
  auto* b = new PlaceBuffer;
  b->place = place;
  tw_view v{};
  place->Show(&v);
  b->buffer.data = v.data;
  b->buffer.bytes = v.offset + v.bytes;
  b->buffer.user = b;
  b->buffer.release = [](Buffer* buffer) { delete static_cast<PlaceBuffer*>(buffer->user); };
  return Tensor::Wrap(&b->buffer, v.offset, dtype, dims, rank);
}

}  // namespace thalweg::conformance
