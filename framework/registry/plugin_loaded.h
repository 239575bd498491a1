// Declarations shared by the two sources of PluginLoader: plugin_examine.cc examines files,
// plugin_loader.cc loads them. Threads: as PluginLoader.
#pragma once
#include <dlfcn.h>

#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/registry/plugin_loader.h"
#include "framework/registry/plugin_record.h"

namespace thalweg {

// A loaded plugin: its library, its host table and the instance that init made. Its last owner
// destroys it: the loader, or memory of one of its devices.
struct PluginLoader::Loaded {
  FileStamp stamp;
  std::shared_ptr<PluginRecord> record;
  void* library = nullptr;  // NULL: linked into the program
  std::string float_state;  // what the thread's became when the library was opened, until it was put back; empty: nothing
  std::unique_ptr<tw_host, void (*)(tw_host*)> host{nullptr, [](tw_host*) {}};
  void* instance = nullptr;
  void (*shutdown)(const tw_host* h, void* instance) = nullptr;  // set once init has succeeded
  // Held by graphs that have its ops, plans that use its kernels and devices, and resources of its
  // types.
  std::shared_ptr<const void> in_graphs = std::make_shared<char>(), in_plans = std::make_shared<char>();
  std::shared_ptr<const void> in_resources = std::make_shared<char>();

  Loaded() = default;
  Loaded(const Loaded&) = delete;
  ~Loaded() {
    // A plugin in C++ may throw across C although it must not; nobody is left to report it to.
    try {
      if (shutdown) shutdown(host.get(), instance);
    } catch (...) {
    }
    host.reset();
    if (library) dlclose(library);
  }
};

void ForgetContents(PluginRecord* record);

// Marks a file with the same id as `first` as shadowed; `first` stays.
Status SameId(PluginRecord* record, const PluginRecord& first);

}  // namespace thalweg
