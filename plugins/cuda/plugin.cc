// Registers the device kind CUDA and its kernels. The plugin does not touch CUDA before the host
// asks for devices.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "dlpack.h"
#include "kernels/fusing.h"
#include "kernels/patterns.h"
#include "kernels/register_all.h"
#include "peer.h"
#include "recording.h"
#include "stream.h"

namespace thalweg::cuda {
namespace {

// One per runtime. Devices are searched for once, because kernels, memory and streams keep their
// addresses.
struct Instance {
  std::mutex mutex;
  bool looked = false;
  Driver driver;
  Lines lines;
  Vendors vendors;
  BlasLibrary blas;
  std::shared_ptr<DnnLibrary> dnn = MakeDnnLibrary();
  Compiler compiler;
  std::vector<std::unique_ptr<Device>> devices;
};

void Log(const tw_host* host, uint32_t level, const std::string& text) { host->run->log(host, level, text.data(), text.size()); }

// Throws if there is no driver, or no usable device. A broken device is logged and skipped.
void Look(const tw_host* host, Instance& all) {
  const Driver& driver = all.driver;
  all.vendors.ReadSettings(host);
  all.driver.Load(host);
  const CUresult error = driver.cuInit(0);
  int n = 0;
  if (error == CUDA_SUCCESS) Check(driver, driver.cuDeviceGetCount(&n), "cuDeviceGetCount");
  if (error == CUDA_ERROR_NO_DEVICE || (error == CUDA_SUCCESS && n == 0))
    throw tw::Error{TW_NOT_FOUND, "the NVIDIA driver is there, but it finds no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES"};
  Check(driver, error, "cuInit");
  std::string why;
  for (int i = 0; i < n; ++i) {
    try {
      CUdevice id = 0;
      Check(driver, driver.cuDeviceGet(&id, i), "cuDeviceGet");
      all.devices.push_back(std::make_unique<Device>(driver, all.lines, all.vendors, all.blas, all.dnn, all.compiler, id));
    } catch (const tw::Error& e) {
      why = "CUDA device " + std::to_string(i) + " is left out: " + e.text;
      Log(host, 2, why);
    }
  }
  if (all.devices.empty()) throw tw::Error{TW_NOT_FOUND, why};
  all.looked = true;
}

tw_status* Enumerate(const tw_host* host, void* user, tw_device_list* to) {
  return tw::guard(host, [&] {
    Instance& all = *static_cast<Instance*>(user);
    std::lock_guard lock(all.mutex);
    if (!all.looked) Look(host, all);
    for (const auto& d : all.devices) {
      tw_device_info info{};
      info.size = sizeof info;
      info.uid = d->uid().data();
      info.uid_len = d->uid().size();
      info.description = d->description().data();
      info.description_len = d->description().size();
      info.self = d.get();
      info.memory = d->memory();
      tw::check(to->add(to, &info));
    }
  });
}

// The requested alignment is met, because the driver aligns to 256 bytes.
tw_status* Allocate(const tw_host* host, void* self, const tw_allocation* a, void** out_memory) {
  return tw::guard(host, [&] { *out_memory = reinterpret_cast<void*>(static_cast<Device*>(self)->Allocate(a->bytes)); });
}

void Release(const tw_host* host, void* self, void* memory, uint64_t) {
  try {
    static_cast<Device*>(self)->Release(reinterpret_cast<CUdeviceptr>(memory));
  } catch (const tw::Error& e) {
    Log(host, 3, e.text);
  }
}

tw_status* Copy(const tw_host* host, void* self, const tw_copy* c) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    if (c->bytes == 0) return;
    Submit(device, c->stream, "a copy", [&](CUstream queue) { device.EnqueueCopy(queue, *c); });
  });
}

tw_status* AllocatePinned(const tw_host* host, void* self, const tw_allocation* a, void** out_address) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    device.Enter();
    Check(device.driver(), device.driver().cuMemHostAlloc(out_address, std::max<uint64_t>(a->bytes, 1), CU_MEMHOSTALLOC_PORTABLE),
          "allocating pinned memory");
  });
}

void ReleasePinned(const tw_host* host, void* self, void* address, uint64_t) {
  try {
    Device& device = *static_cast<Device*>(self);
    device.Enter();
    Check(device.driver(), device.driver().cuMemFreeHost(address), "releasing pinned memory");
  } catch (const tw::Error& e) {
    Log(host, 3, e.text);
  }
}

tw_status* ReadStatistics(const tw_host* host, void* self, tw_number_list* to) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    device.Enter();
    size_t free = 0, total = 0;
    Check(device.driver(), device.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo");
    tw::check(to->add(to, TW_S("memory_used"), int64_t(total - free)));
  });
}

constexpr tw_pinned_set kPinned = {TW_SIZED(tw_pinned_set), AllocatePinned, ReleasePinned};
constexpr tw_statistics_set kStatistics = {TW_SIZED(tw_statistics_set), ReadStatistics};

}  // namespace

TW_CPP_PLUGIN_WITH("org.thalweg.cuda", "0.1.0", Instance, p, self) {
  tw_device_def device{TW_SIZED(tw_device_def), TW_S("CUDA"), &self, Enumerate, Allocate, Release, Copy, &kStreams};
  device.pinned = &kPinned;
  device.statistics = &kStatistics;
  device.peer = &kPeer;
  device.capture = &kCapture;
  device.profile = &kProfile;
  device.dlpack = &kDlpack;
  p.device(device);
  RegisterKernels(p.h, p.r);
  RegisterFuse(p.h, p.r);
  RegisterPatterns(p.r);
}

}  // namespace thalweg::cuda
