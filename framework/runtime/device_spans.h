// What devices tell of when their work ran (tw_profile_set), for whoever listens. A device is only asked while somebody does.
// Threads: any.
#pragma once
#include "thalweg/plugin/device.h"

namespace thalweg {

class Device;

class SpanListener {
 public:
  // On whatever thread the device tells it; must not block, throws nothing.
  virtual void Ran(const tw_span& span) = 0;

 protected:
  ~SpanListener() = default;
};

// False: the device does not tell, or not now.
bool ListenToSpans(Device* device, SpanListener* listener);
// Nothing is told to the listener any more when this returns. REQUIRES: it listens.
void StopListening(Device* device, SpanListener* listener);

}  // namespace thalweg
