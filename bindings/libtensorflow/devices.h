// Lists of devices, which sessions and eager contexts give. Threads: values, no sharing.
#pragma once
#include "core.h"

struct TF_DeviceList {
  thalweg::tf::DevicesRef devices;
};

namespace thalweg::tf {

TF_DeviceList* NewDeviceList();

}  // namespace thalweg::tf
