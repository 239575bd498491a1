// Makes runtimes with the standard ops, the CPU and the simulated accelerator, and reads the
// counters of its devices.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "framework/runtime/runtime.h"
#include "ops/ops.h"

namespace thalweg::testing_support {

using Settings = std::map<std::string, std::string>;

// FAKE: the plugin's file, defined by the build.
inline std::shared_ptr<Runtime> FakeRuntime(const Settings& settings, RuntimeOptions options) {
  options.static_plugins = {{"ops", tw_plugin_query_v0_ops}};
  options.disabled_plugins = {"*opencl*"};
  for (const auto& [key, value] : settings) options.plugin_settings["plugin.org.thalweg.fake." + key] = value;
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  Status loaded = (*runtime)->LoadPlugin(FAKE);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return *runtime;
}

inline std::shared_ptr<Runtime> FakeRuntime(const Settings& settings = {}, uint32_t threads = 2) {
  RuntimeOptions options;
  options.threads = threads;
  return FakeRuntime(settings, options);
}

inline Device* FakeDevice(Runtime& runtime, int32_t index = 0) {
  for (Device* d : runtime.devices()) {
    if (d->kind() == "FAKE" && d->index() == index) return d;
  }
  ADD_FAILURE() << "no device FAKE:" << index;
  return nullptr;
}

inline int64_t Statistic(const Device& device, const std::string& name) {
  auto all = device.Statistics();
  EXPECT_TRUE(all.ok()) << all.status();
  for (const auto& [n, value] : *all) {
    if (n == name) return value;
  }
  ADD_FAILURE() << "no statistic " << name;
  return -1;
}

// Removes the spaces between the parts of a JSON text, for comparisons.
inline std::string Dense(const std::string& json) {
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const bool between =
        json[i] == ' ' && i > 1 && ((json[i - 1] == ':' && json[i - 2] == '"') || (json[i - 1] == ',' && strchr("\"{[", json[i + 1])));
    if (!between) out += json[i];
  }
  return out;
}

}  // namespace thalweg::testing_support
