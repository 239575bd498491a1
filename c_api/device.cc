#include "thalweg/device.h"

#include <set>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/json/json.h"
#include "framework/runtime/devices/device.h"

struct tw_devices {
  std::shared_ptr<thalweg::Runtime> runtime;  // owns the devices
  std::vector<thalweg::Device*> devices;
  std::vector<std::string> capabilities;
  std::set<std::shared_ptr<const void>> plugins;  // keeps them loaded
};

static const thalweg::Device* At(const tw_devices* devices, uint32_t i) {
  return i < tw_devices_count(devices) ? devices->devices[i] : nullptr;
}

tw_status* tw_devices_create(tw_runtime* runtime, tw_devices** out_devices) {
  NEED(out_devices);
  return thalweg::Enter([&]() -> thalweg::Status {
    auto list = std::make_unique<tw_devices>();
    ASSIGN_OR_RETURN(list->runtime, thalweg::RuntimeOf(runtime));
    list->devices = list->runtime->devices();
    for (const thalweg::Device* device : list->devices) {
      list->plugins.insert(device->def().in_plans.lock());
      list->capabilities.push_back(device->Capabilities());
    }
    *out_devices = list.release();
    return thalweg::Status();
  });
}

void tw_devices_destroy(tw_devices* devices) { delete devices; }

uint32_t tw_devices_count(const tw_devices* devices) { return devices ? uint32_t(devices->devices.size()) : 0; }

const char* tw_devices_name(const tw_devices* devices, uint32_t i) { return At(devices, i) ? At(devices, i)->name().c_str() : nullptr; }

const char* tw_devices_kind(const tw_devices* devices, uint32_t i) { return At(devices, i) ? At(devices, i)->kind().c_str() : nullptr; }

const char* tw_devices_uid(const tw_devices* devices, uint32_t i) { return At(devices, i) ? At(devices, i)->uid().c_str() : nullptr; }

const char* tw_devices_description(const tw_devices* devices, uint32_t i) {
  return At(devices, i) ? At(devices, i)->description().c_str() : nullptr;
}

const char* tw_devices_plugin(const tw_devices* devices, uint32_t i) { return At(devices, i) ? At(devices, i)->plugin().c_str() : nullptr; }

uint64_t tw_devices_memory(const tw_devices* devices, uint32_t i) { return At(devices, i) ? At(devices, i)->memory() : 0; }

tw_status* tw_devices_memory_use(const tw_devices* devices, uint32_t i, uint64_t* out_now, uint64_t* out_peak, uint64_t* out_limit) {
  NEED(devices);
  return thalweg::Enter([&]() -> thalweg::Status {
    const thalweg::Device* device = At(devices, i);
    if (!device) return thalweg::Error(absl::StatusCode::kOutOfRange, "device ", i, " of a list of ", tw_devices_count(devices));
    const thalweg::MemoryPool::Stats stats = device->MemoryUse();
    if (out_now) *out_now = stats.in_use;
    if (out_peak) *out_peak = stats.peak;
    if (out_limit) *out_limit = stats.limit;
    return thalweg::Status();
  });
}

void tw_devices_give_back(const tw_devices* devices, uint32_t i) {
  if (const thalweg::Device* device = At(devices, i)) device->GiveMemoryBack();
}

const char* tw_devices_capabilities(const tw_devices* devices, uint32_t i) {
  return At(devices, i) ? devices->capabilities[i].c_str() : nullptr;
}

tw_status* tw_devices_statistics_json(const tw_devices* devices, uint32_t i, tw_buffer** out_json) {
  NEED(devices);
  NEED(out_json);
  *out_json = nullptr;
  return thalweg::Enter([&]() -> thalweg::Status {
    const thalweg::Device* device = At(devices, i);
    if (!device) return thalweg::Error(absl::StatusCode::kOutOfRange, "device ", i, " of a list of ", tw_devices_count(devices));
    ASSIGN_OR_RETURN(const auto numbers, device->Statistics());
    thalweg::Json json;
    json.Object();
    for (const auto& [name, value] : numbers) json.Number(name, value);
    *out_json = thalweg::MakeBuffer(json.End().text());
    return thalweg::Status();
  });
}
