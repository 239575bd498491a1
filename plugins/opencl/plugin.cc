// Registers the device kind OPENCL and its kernels. The plugin does not touch OpenCL before the
// host asks for devices.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "device.h"
#include "dlpack.h"
#include "drivers.h"
#include "kernels/fuse.h"
#include "kernels/register.h"
#include "profile.h"
#include "program_cache.h"
#include "stream.h"

namespace thalweg::opencl {
namespace {

// One per runtime. Devices are searched for once, because kernels, memory and streams keep their
// addresses.
struct Instance {
  std::mutex mutex;
  bool looked = false;
  std::string why_none;  // reason if there are no devices
  Api cl;
  std::vector<std::unique_ptr<Device>> devices;
};

void Log(const tw_host* host, uint32_t level, const std::string& text) { host->run->log(host, level, text.data(), text.size()); }

// Returns why the plugin cannot use the device, including a device that its driver lists but that
// is not available now. Empty if it can.
std::string WhyUnusable(const Api& cl, cl_device_id device) {
  if (!DeviceValue<cl_bool>(cl, device, CL_DEVICE_AVAILABLE)) return "it is not available now";
  if (!DeviceValue<cl_bool>(cl, device, CL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
  const std::string version = DeviceText(cl, device, CL_DEVICE_VERSION);
  if (version.compare(0, 10, "OpenCL 1.1") > 0) return "";
  return "it is of '" + version + "', and OpenCL 1.2 is needed; install a newer driver";
}

void LeaveOut(const tw_host* host, Instance& all, const std::string& what, uint32_t level = 0) {
  Log(host, level, what);
  all.why_none += (all.why_none.empty() ? "" : "; ") + what;
}

void AddDevices(const tw_host* host, Instance& all, cl_platform_id platform) {
  const Api& cl = all.cl;
  cl_uint n = 0;
  cl_int error = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n);
  if (error == CL_DEVICE_NOT_FOUND || (error == CL_SUCCESS && n == 0)) return;
  Check(error, "clGetDeviceIDs");
  std::vector<cl_device_id> ids(n);
  Check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids.data(), nullptr), "clGetDeviceIDs");
  std::vector<std::string> names;
  for (cl_device_id id : ids) {
    const std::string name = DeviceText(cl, id, CL_DEVICE_NAME);
    const auto index = uint32_t(std::count(names.begin(), names.end(), name));
    names.push_back(name);
    const std::string why_not = WhyUnusable(cl, id);
    if (why_not.empty())
      all.devices.push_back(std::make_unique<Device>(cl, platform, id, index));
    else
      LeaveOut(host, all, "OpenCL device '" + name + "' is left out: " + why_not);
  }
}

// Without a loader or a platform, or with a broken driver, there are fewer devices or none, and the
// reason is logged.
void Look(const tw_host* host, Instance& all) {
  const std::string set = Setting(host, "loader");
  if (const std::string why_not = all.cl.Load(set.empty() ? "libOpenCL.so.1" : set); !why_not.empty())
    return LeaveOut(host, all,
                    set.empty() ? "no OpenCL loader: " + why_not + "; install one (ocl-icd-libopencl1) and a driver"
                                : "no OpenCL loader: " + why_not + "; plugin.org.thalweg.opencl.loader says which",
                    set.empty() ? 0 : 2);
  OpenDriversApart();
  cl_uint n = 0;
  const cl_int error = all.cl.clGetPlatformIDs(0, nullptr, &n);  // fails if there is no platform
  if (error != CL_SUCCESS || n == 0)
    return LeaveOut(host, all, "the OpenCL loader finds no driver; install one (pocl-opencl-icd runs on the CPU)");
  const std::string order = Setting(host, "queues");
  if (!order.empty() && order != "in_order" && order != "out_of_order")
    Log(host, 2, "plugin.org.thalweg.opencl.queues is '" + order + "'; known: in_order, out_of_order");
  std::vector<cl_platform_id> platforms(n);
  Check(all.cl.clGetPlatformIDs(n, platforms.data(), nullptr), "clGetPlatformIDs");
  for (cl_platform_id platform : platforms) {
    try {
      AddDevices(host, all, platform);
    } catch (const tw::Error& e) {
      LeaveOut(host, all, "an OpenCL platform is left out: " + e.text, 2);
    }
  }
  for (size_t i = 0; i < all.devices.size(); ++i) {
    all.devices[i]->SetNumber(int32_t(i));
    if (order == "out_of_order") all.devices[i]->RunOutOfOrder();
  }
}

tw_status* Enumerate(const tw_host* host, void* user, tw_device_list* to) {
  return tw::guard(host, [&] {
    Instance& all = *static_cast<Instance*>(user);
    std::lock_guard lock(all.mutex);
    if (!all.looked) Look(host, all);
    all.looked = true;
    if (all.devices.empty()) throw tw::Error{TW_NOT_FOUND, all.why_none.empty() ? "no OpenCL device" : all.why_none};
    const std::string processors = Setting(host, "processors");
    if (!processors.empty() && processors != "on_request" && processors != "any")
      Log(host, 2, "plugin.org.thalweg.opencl.processors is '" + processors + "'; known: on_request, any");
    for (const auto& d : all.devices) {
      tw_device_info info{};
      info.size = sizeof info;
      // The host's own kernels are faster than OpenCL's on the same processors.
      if (d->blocked() && processors != "any") info.flags = TW_DEVICE_ON_REQUEST;
      info.uid = d->uid().data();
      info.uid_len = d->uid().size();
      info.description = d->description().data();
      info.description_len = d->description().size();
      info.self = d.get();
      info.memory = d->memory();
      info.largest = d->largest();
      tw::check(to->add(to, &info));
    }
  });
}

// Every device meets the requested alignment: memory is a handle, and a buffer is aligned for the
// largest type.
tw_status* Allocate(const tw_host* host, void* self, const tw_allocation* a, void** out_memory) {
  return tw::guard(host, [&] { *out_memory = static_cast<Device*>(self)->Allocate(a->bytes); });
}

void Release(const tw_host* host, void* self, void* memory, uint64_t) {
  const Api& cl = static_cast<Device*>(self)->cl();
  if (cl_int error = cl.clReleaseMemObject(static_cast<cl_mem>(memory)); error != CL_SUCCESS)
    Log(host, 3, "releasing OpenCL memory failed with " + ErrorName(error));
}

tw_status* Copy(const tw_host* host, void* self, const tw_copy* c) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    if (c->bytes == 0) return;
    const bool idle = device.others().none() && (!c->stream || static_cast<Stream*>(c->stream)->idle());
    if (idle && device.CopyNow(*c)) return;
    Submit(device, c->stream, "a copy", [&](cl_command_queue queue, cl_uint n, const cl_event* after, cl_event* event) {
      device.EnqueueCopy(queue, *c, n, after, event);
    });
  });
}

}  // namespace

TW_CPP_PLUGIN_WITH("org.thalweg.opencl", "0.1.0", Instance, p, self) {
  tw_device_def device{TW_SIZED(tw_device_def), TW_S("OPENCL"), &self, Enumerate, Allocate, Release, Copy, &kStreams};
  device.profile = &kProfile;
  device.dlpack = &kDlpack;
  p.device(device);
  register_attention(p);
  register_batch_norm(p);
  register_conv(p);
  register_conv3d(p);
  register_copy(p);
  register_elementwise(p);
  register_fuse(p);
  register_gather(p);
  register_lstm_sequence(p);
  register_matmul(p);
  register_pool(p);
  register_random(p);
  register_recurrent(p);
  register_reduce(p);
  register_resize(p);
  register_scan(p);
  register_segment(p);
  register_softmax(p);
  register_special(p);
  register_sparse_segment(p);
  register_sparse_tensor_dense_matmul(p);
  register_top_k(p);
  register_unique(p);
  register_update(p);
  register_variable(p);
  register_views(p);
}

}  // namespace thalweg::opencl
