// Timings that devices report of their work (tw_profile_set), for listeners in the runtime. A
// device is profiled only while it has a listener. Threads: any.
#pragma once
#include "thalweg/plugin/device.h"

namespace thalweg {

class Device;

class SpanListener {
 public:
  // Called on any thread of the device; must not block or throw.
  virtual void Ran(const tw_span& span) = 0;

 protected:
  ~SpanListener() = default;
};

// Returns false if the device cannot report timings, or not now.
bool ListenToSpans(Device* device, SpanListener* listener);
// Stops the reports: none arrives after this returns. REQUIRES: the listener was registered.
void StopListening(Device* device, SpanListener* listener);

}  // namespace thalweg
