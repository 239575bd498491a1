// The plugin's registration: the device kind FAKE with its sets, and its kernels.
#include <memory>
#include <vector>

#include "kernels/register.h"
#include "stream.h"

namespace thalweg::fake {
namespace {

// The plugin's state; one per runtime.
struct Instance {
  Settings settings;
  Faults faults;
  std::vector<std::unique_ptr<Device>> devices;
};

tw_status* Enumerate(const tw_host* host, void* user, tw_device_list* to) {
  return tw::guard(host, [&] {
    Instance& all = *static_cast<Instance*>(user);
    while (all.devices.size() < all.settings.devices)
      all.devices.push_back(std::make_unique<Device>(host, all.settings, all.faults, all.devices.size()));
    for (const auto& d : all.devices) {
      tw_device_info info{};
      info.size = sizeof info;
      info.flags = all.settings.pools_itself ? uint32_t{TW_DEVICE_POOLS_ITSELF} : 0;
      info.uid = d->uid().data();
      info.uid_len = d->uid().size();
      info.description = "an accelerator in software";
      info.description_len = std::string_view(info.description).size();
      info.self = d.get();
      info.memory = all.settings.memory;
      tw::check(to->add(to, &info));
    }
  });
}

tw_status* Allocate(const tw_host* host, void* self, const tw_allocation* a, void** out_memory) {
  return tw::guard(host, [&] { *out_memory = static_cast<Device*>(self)->Allocate(a->bytes); });
}
void Release(const tw_host*, void* self, void* memory, uint64_t) { static_cast<Device*>(self)->Release(memory); }
tw_status* Copy(const tw_host* host, void* self, const tw_copy* c) {
  return tw::guard(host, [&] {
    Device& d = *static_cast<Device*>(self);
    Submit(d, c->stream, d.Copy(*c, d));
  });
}

tw_device_def Definition(Instance& self) {
  const Settings& s = self.settings;
  tw_device_def d{TW_SIZED(tw_device_def), TW_S("FAKE"), &self, Enumerate, Allocate, Release, Copy, nullptr};
  if (s.has("streams")) d.streams = s.has("wait") ? &kStreams : &kStreamsWithoutWait;
  if (s.has("pinned")) d.pinned = &kPinned;
  if (s.has("peer")) d.peer = &kPeer;
  if (s.has("events")) d.events = &kEvents;
  if (s.has("statistics")) d.statistics = &kStatistics;
  if (s.has("capture")) d.capture = s.has("updates") ? &kCapture : &kCaptureWithoutUpdates;
  if (s.has("profile")) d.profile = &kProfile;
  if (s.has("dlpack")) d.dlpack = &kDlpack;
  return d;
}

}  // namespace

TW_CPP_PLUGIN_WITH("org.thalweg.fake", "0.1.0", Instance, p, self) {
  self.settings = ReadSettings(p.h);
  p.device(Definition(self));
  register_elementwise(p);
  register_matmul(p);
  register_sum(p);
  register_variable(p);
  register_views(p);
}

}  // namespace thalweg::fake
