#include "framework/runtime/devices/device.h"

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/tensor/host_use.h"

namespace thalweg {
namespace {

// Alignment of every address of a device: a cache line, and a whole vector of 512 bits.
constexpr uint64_t kAlign = 64;

// Marks a pool whose memory belonged to a device that no longer exists.
char device_that_was;

// A device's memory for its pool. Tensors may outlive the device and its runtime, so this keeps
// everything that freeing needs, including the plugin.
class DeviceMemory final : public RawMemory {
 public:
  DeviceMemory(const DeviceKind& kind, const tw_device_info& info)
      : def_(kind.def), host_(kind.host), self_(info.self), largest_(info.largest), pin_(kind.pin) {}

  StatusOr<void*> Allocate(uint64_t bytes) override {
    void* memory = nullptr;
    const tw_allocation wanted = {TW_SIZED(tw_allocation), bytes, kAlign};
    RETURN_IF_ERROR(FromC(def_.allocate(host_, self_, &wanted, &memory)));
    if (!memory) return Internal("the device's plugin answered no memory and no error");
    return memory;
  }
  void Free(void* memory, uint64_t bytes) override { def_.release(host_, self_, memory, bytes); }
  uint64_t largest() const override { return largest_; }

 private:
  const tw_device_def def_;  // a copy; its texts must not be used here
  const tw_host* const host_;
  void* const self_;
  const uint64_t largest_;
  const std::shared_ptr<const void> pin_;
};

// Host memory that a device copies from and to directly. Tensors in it may outlive the device, as
// above.
class StagingMemory final : public RawMemory {
 public:
  StagingMemory(const DeviceKind& kind, const tw_device_info& info)
      : set_(*kind.pinned), host_(kind.host), self_(info.self), pin_(kind.pin) {}

  StatusOr<void*> Allocate(uint64_t bytes) override {
    void* memory = nullptr;
    const tw_allocation wanted = {TW_SIZED(tw_allocation), bytes, kAlign};
    RETURN_IF_ERROR(FromC(set_.allocate(host_, self_, &wanted, &memory)));
    if (!memory) return Internal("the device's plugin answered no memory and no error");
    return memory;
  }
  void Free(void* memory, uint64_t bytes) override { set_.release(host_, self_, memory, bytes); }

 private:
  const tw_pinned_set set_;
  const tw_host* const host_;
  void* const self_;
  const std::shared_ptr<const void> pin_;
};

// Copies a text that the plugin may have left out.
std::string CopyText(const char* text, uint64_t len) { return text ? std::string(text, len) : std::string(); }

DeviceSpec FullSpec(const std::string& kind, int32_t index) {
  DeviceSpec spec;
  spec.job = "localhost";
  spec.kind = kind;
  spec.replica = spec.task = 0;
  spec.index = index;
  return spec;
}

}  // namespace

Device* HoldingDevice(const tw_tensor& t) {
  const MemoryPool* home = t.buffer ? t.buffer->home() : nullptr;
  void* place = home ? home->place() : nullptr;
  if (!place || place == &device_that_was) return nullptr;
  auto* device = static_cast<Device*>(place);
  return !device->host_memory() && home == device->pool() ? device : nullptr;
}

bool LiesOnHost(const tw_tensor& t) {
  const MemoryPool* home = t.buffer ? t.buffer->home() : nullptr;
  return !HoldingDevice(t) && !(home && home->place() == &device_that_was);
}

// ---- Stream ----

StatusOr<std::unique_ptr<Stream>> Stream::Create(Device* device) {
  if (!device->has_streams()) return Unimplemented(device->name(), " has no streams");
  std::unique_ptr<Stream> s(new Stream(device, new tw_timeline));
  const DeviceKind& kind = device->def();
  const tw_stream_config config = {TW_SIZED(tw_stream_config), s->line_};
  Status made = FromC(kind.streams.create(kind.host, device->self(), &config, &s->stream_));
  if (made.ok() && !s->stream_) made = Internal("the plugin answered no stream and no error");
  if (!made.ok()) return Prefix(made, StrCat(device->name(), ": cannot make a stream:"));
  return s;
}

Stream::~Stream() {
  Destroy();
  line_->Release();
}

void Stream::Destroy() {
  if (stream_) device_->def().streams.destroy(device_->def().host, stream_);
  stream_ = nullptr;
}

StatusOr<uint64_t> Stream::Mark() {
  std::lock_guard lock(mu_);
  if (!stream_) return line_->failure();
  Status s = FromC(device_->def().streams.signal(device_->def().host, stream_, last_ + 1));
  if (s.ok()) return ++last_;
  // Without the signal, only destroying the stream shows when its work has ended.
  Destroy();
  line_->Fail(s);
  return s;
}

Status Stream::WaitFor(Stream* other) {
  ASSIGN_OR_RETURN(const uint64_t value, other->Mark());
  return WaitFor(other->line_, value);
}

Status Stream::WaitFor(tw_timeline* line, uint64_t value) {
  const DeviceKind& kind = device_->def();
  if (!kind.streams.wait) return line->Wait(value);
  std::lock_guard lock(mu_);
  if (!stream_) return line_->failure();
  return FromC(kind.streams.wait(kind.host, stream_, line, value));
}

Status Stream::Drain() {
  ASSIGN_OR_RETURN(uint64_t value, Mark());
  return line_->Wait(value);
}

// ---- Device ----

Device::Device(const DeviceKind* kind, int32_t index, const tw_device_info& info, uint64_t memory_limit)
    : kind_(kind),
      index_(index),
      uid_(CopyText(info.uid, info.uid_len)),
      description_(CopyText(info.description, info.description_len)),
      self_(info.self),
      memory_(info.memory),
      host_memory_((info.flags & TW_DEVICE_HOST_MEMORY) != 0),
      on_request_((info.flags & TW_DEVICE_ON_REQUEST) != 0),
      spec_(FullSpec(kind->kind, index)) {
  name_ = spec_.text();
  pool_ = MemoryPool::Create(std::make_unique<DeviceMemory>(*kind, info), StrCat(kind->kind, ":", index), memory_limit,
                             (info.flags & TW_DEVICE_POOLS_ITSELF) == 0);
  pool_->SetPlace(this);
  if (host_memory_) pool_->CountAsHostMemory();
  if (kind->pinned && !host_memory_) {
    staging_ = MemoryPool::Create(std::make_unique<StagingMemory>(*kind, info), StrCat("staging for ", kind->kind, ":", index));
  }
}

// Returns unused memory now. Tensors in use keep the pool alive, and the pool keeps the plugin.
Device::~Device() {
  for (MemoryPool* pool : {pool_, staging_}) {
    if (!pool) continue;
    pool->SetPlace(pool == pool_ && !host_memory_ ? &device_that_was : nullptr);
    pool->Trim();
    pool->Close();
  }
}

MemoryPool::Stats Device::MemoryUse() const {
  MemoryPool::Stats stats = pool_->stats();
  if (!host_memory_) return stats;
  const HostUse::Bytes all = HostUse::Read();
  stats.in_use = all.now;
  stats.peak = all.peak;
  return stats;
}

void Device::GiveMemoryBack() const {
  pool_->Trim();
  if (staging_) staging_->Trim();
}

std::string Device::Capabilities() const {
  const std::pair<const char*, bool> all[] = {{"host memory", host_memory_},           {"on request", on_request_},
                                              {"streams", kind_->has_streams},         {"wait", kind_->has_streams && kind_->streams.wait},
                                              {"pinned", kind_->pinned.has_value()},   {"peer", kind_->peer.has_value()},
                                              {"events", kind_->events.has_value()},   {"statistics", kind_->statistics.has_value()},
                                              {"capture", kind_->capture.has_value()}, {"profile", kind_->profile.has_value()},
                                              {"dlpack", kind_->dlpack.has_value()}};
  std::string text;
  for (const auto& [name, has] : all) {
    if (has) text += StrCat(text.empty() ? "" : ", ", name);
  }
  return text;
}

tw_copy CopyOf(const tw_view& from, const tw_view& to) {
  tw_copy c{};
  c.size = sizeof c;
  c.from = from.data;
  c.from_offset = from.offset;
  c.to = to.data;
  c.to_offset = to.offset;
  c.bytes = from.bytes;
  return c;
}

Status Device::CopyIn(const void* from, void* to, uint64_t to_offset, uint64_t bytes, Stream* stream) {
  tw_copy c{};
  c.size = sizeof c;
  c.from = const_cast<void*>(from);  // the record serves both directions; this side is only read
  c.to = to;
  c.to_offset = to_offset;
  c.bytes = bytes;
  c.from_host = 1;
  c.to_host = host_memory_;
  return Copy(&c, stream);
}

Status Device::CopyOut(void* from, uint64_t from_offset, void* to, uint64_t bytes, Stream* stream) {
  tw_copy c{};
  c.size = sizeof c;
  c.from = from;
  c.from_offset = from_offset;
  c.to = to;
  c.bytes = bytes;
  c.from_host = host_memory_;
  c.to_host = 1;
  return Copy(&c, stream);
}

template <class Call>
Status Device::OnStream(tw_copy* c, Stream* stream, Call&& copy) const {
  if (c->bytes == 0) return Status();
  std::unique_lock<std::mutex> lock;
  if (stream) {
    lock = std::unique_lock(stream->mutex());
    if (!stream->c()) return stream->timeline()->failure();
    c->stream = stream->c();
  }
  return Prefix(FromC(copy()), StrCat(name_, ": copying ", c->bytes, " bytes:"));
}

Status Device::Copy(tw_copy* c, Stream* stream) {
  return OnStream(c, stream, [&] { return kind_->def.copy(kind_->host, self_, c); });
}

bool Device::Reaches(const Device& other) const {
  return kind_ == other.kind_ && kind_->peer && kind_->peer->reaches(kind_->host, self_, other.self_);
}

Status Device::CopyToPeer(const tw_view& from, const Device& other, const tw_view& to, Stream* stream) const {
  tw_copy c = CopyOf(from, to);
  return OnStream(&c, stream, [&] { return kind_->peer->copy(kind_->host, self_, other.self_, &c); });
}

Status Device::CheckCopyable(const Tensor& t) const {
  const DTypeInfo* info = FindDType(t.dtype());
  if (info && info->plain) return Status();
  return InvalidArgument("a tensor of ", DTypeName(t.dtype()), " holds references and stays in host memory; it cannot go to or from ",
                         name_);
}

StatusOr<Tensor> Device::ToHost(const Tensor& t) {
  if (host_memory_) return t;
  RETURN_IF_ERROR(CheckCopyable(t));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(t.dtype(), t.view().dims, t.rank()));
  RETURN_IF_ERROR(CopyOut(t.view().data, t.view().offset, out.data(), t.bytes(), nullptr));
  return out;
}

StatusOr<Tensor> Device::Clone(const Tensor& t, MemoryBudget* budget) {
  RETURN_IF_ERROR(CheckCopyable(t));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(t.dtype(), t.view().dims, t.rank(), pool_, budget));
  tw_copy c = CopyOf(t.view(), out.view());
  c.from_host = c.to_host = host_memory_;
  RETURN_IF_ERROR(Copy(&c, nullptr));
  return out;
}

namespace {

struct NumberList {
  tw_number_list c{TW_SIZED(tw_number_list), &Add};
  std::vector<std::pair<std::string, int64_t>> numbers;

  static tw_status* Add(tw_number_list* l, const char* name, uint64_t len, int64_t value) {
    return Guard([&]() -> Status {
      if (!name || len == 0) return InvalidArgument("a number of a device has no name");
      reinterpret_cast<NumberList*>(l)->numbers.emplace_back(std::string(name, len), value);
      return Status();
    });
  }
};

}  // namespace

StatusOr<std::vector<std::pair<std::string, int64_t>>> Device::Statistics() const {
  if (!kind_->statistics) return Unimplemented(name_, " tells no statistics");
  NumberList list;
  RETURN_IF_ERROR(Prefix(FromC(kind_->statistics->read(kind_->host, self_, &list.c)), StrCat(name_, ": statistics:")));
  return std::move(list.numbers);
}

StatusOr<Tensor> Device::FromHost(const Tensor& t) {
  if (host_memory_) return t;
  RETURN_IF_ERROR(CheckCopyable(t));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(t.dtype(), t.view().dims, t.rank(), pool_));
  RETURN_IF_ERROR(CopyIn(t.data(), out.view().data, out.view().offset, t.bytes(), nullptr));
  return out;
}

}  // namespace thalweg
