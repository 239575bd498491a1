// What the two sources of PluginLoader share: plugin_examine.cc, which looks into files, and plugin_loader.cc, which loads what they hold.
// Threads: as PluginLoader.
#pragma once
#include <dlfcn.h>

#include <memory>

#include "framework/base/status.h"
#include "framework/registry/plugin_loader.h"
#include "framework/registry/plugin_record.h"

namespace thalweg {

// A plugin that is in: its library, its host table and what init made. Ends with the last who holds it: the loader, or memory of one of
// its devices.
struct PluginLoader::Loaded {
  FileStamp stamp;
  std::shared_ptr<PluginRecord> record;
  void* library = nullptr;  // NULL: linked into the program
  std::unique_ptr<tw_host, void (*)(tw_host*)> host{nullptr, [](tw_host*) {}};
  void* instance = nullptr;
  void (*shutdown)(const tw_host* h, void* instance) = nullptr;  // set once init is over and well
  // Held by the graphs that have its ops, the plans that use its kernels and devices, and the resources of its types.
  std::shared_ptr<const void> in_graphs = std::make_shared<char>(), in_plans = std::make_shared<char>();
  std::shared_ptr<const void> in_resources = std::make_shared<char>();

  Loaded() = default;
  Loaded(const Loaded&) = delete;
  ~Loaded() {
    // Nothing may be thrown across C, but a plugin in C++ can do it all the same; here is nobody left to tell.
    try {
      if (shutdown) shutdown(host.get(), instance);
    } catch (...) {
    }
    host.reset();
    if (library) dlclose(library);
  }
};

void ForgetContents(PluginRecord* record);

// Of two files with one id the first stays.
Status SameId(PluginRecord* record, const PluginRecord& first);

}  // namespace thalweg
