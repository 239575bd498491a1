#include "tools/conformance/place.h"

#include <cstring>

namespace thalweg::conformance {
namespace {

constexpr uint64_t kZone = 64;  // bytes of red zone on either side

}  // namespace

StatusOr<Place> Place::Make(const Device& device, bool host, uint64_t bytes) {
  Place p;
  p.bytes_ = bytes;
  p.want_ = Pattern(bytes + 2 * kZone, 42);
  if (host && !device.host_memory()) {
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
  if (!block_) {
    host_ = want_;
    return Status();
  }
  return block_.Write(kZone, data, bytes_);
}

void Place::Show(tw_view* v) {
  const bool address = !block_ || block_.device().host_memory();
  char* base = block_ ? static_cast<char*>(block_.memory()) : reinterpret_cast<char*>(host_.data());
  v->data = address ? base + kZone : base;
  v->offset = address ? 0 : kZone;
  v->bytes = bytes_;
}

StatusOr<Bytes> Place::Get() const {
  if (block_) return block_.Get();
  return host_;
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

}  // namespace thalweg::conformance
