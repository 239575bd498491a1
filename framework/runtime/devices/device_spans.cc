#include "framework/runtime/devices/device_spans.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

// A device that is profiled. `list` comes first because the plugin receives its address.
struct Source {
  Source() : list{TW_SIZED(tw_span_list), &Add} {}
  static void Add(tw_span_list* list, const tw_span* given) {
    auto* self = reinterpret_cast<Source*>(list);
    tw_span span{};
    std::copy_n(reinterpret_cast<const char*>(given), std::min<size_t>(given->size, sizeof span), reinterpret_cast<char*>(&span));
    std::lock_guard lock(self->mu);
    for (SpanListener* l : self->listeners) l->Ran(span);
  }
  tw_span_list list;
  std::mutex mu;
  std::vector<SpanListener*> listeners;
};

struct Sources {
  std::mutex mu;  // acquired before a source's mutex
  std::map<Device*, std::unique_ptr<Source>> all;
};
Sources& AllSources() {
  static auto* sources = new Sources;
  return *sources;
}

}  // namespace

bool ListenToSpans(Device* device, SpanListener* listener) {
  const DeviceKind& kind = device->def();
  if (!kind.profile) return false;
  Sources& sources = AllSources();
  std::lock_guard lock(sources.mu);
  std::unique_ptr<Source>& source = sources.all[device];
  const bool first = !source;
  if (first) source = std::make_unique<Source>();
  {
    std::lock_guard inner(source->mu);
    source->listeners.push_back(listener);
  }
  if (!first) return true;
  if (FromC(kind.profile->start(kind.host, device->self(), &source->list)).ok()) return true;
  sources.all.erase(device);
  return false;
}

void StopListening(Device* device, SpanListener* listener) {
  const DeviceKind& kind = device->def();
  Sources& sources = AllSources();
  std::lock_guard lock(sources.mu);
  auto it = sources.all.find(device);
  Source& source = *it->second;
  {
    std::lock_guard inner(source.mu);
    source.listeners.erase(std::find(source.listeners.begin(), source.listeners.end(), listener));
    if (!source.listeners.empty()) return;
  }
  kind.profile->stop(kind.host, device->self());
  sources.all.erase(it);
}

}  // namespace thalweg
