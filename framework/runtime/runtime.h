// Runtime: the registries, plugins, devices, threads and state that the sessions of one program
// share. A process may have several. Threads: any.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph_host.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/registry.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/options.h"
#include "framework/runtime/run_gate.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {

class FileSystem;
class PluginLoader;

// A plugin's description of a device. Texts are copied because they are valid only during the call.
struct FoundDevice {
  tw_device_info info;
  std::string uid, description;
};

class Runtime final : public GraphHost, public std::enable_shared_from_this<Runtime> {
 public:
  static StatusOr<std::shared_ptr<Runtime>> Create(const RuntimeOptions& options);
  ~Runtime() override;

  Registry& registry() { return registry_; }
  ResourceStore& resources() { return resources_; }
  ThreadPool& pool() { return pool_; }
  RunGate& gate() { return gate_; }
  // Resolves paths: `scheme://...` to a plugin's file system, others to the machine's.
  FileSystem& files() { return *files_; }
  const RuntimeOptions& options() const { return options_; }
  // Returns all devices. Enumerates kinds that were not enumerated yet, which may take a driver's
  // start-up time.
  std::vector<Device*> devices() const;
  // Returns the devices enumerated so far.
  std::vector<Device*> ready_devices() const;
  // Returns a device with host memory, for constants and values that planning needs.
  // FAILED_PRECONDITION if no plugin provides one.
  StatusOr<Device*> host_device() const;
  // Loads a plugin file and adds its devices.
  Status LoadPlugin(const std::string& path);
  // FAILED_PRECONDITION names what of the plugin is in use, or says that it cannot be unloaded at
  // all; NOT_FOUND if no plugin of that id is loaded. REQUIRES: no other thread uses anything of
  // the plugin meanwhile.
  Status UnloadPlugin(std::string_view id);
  std::vector<PluginRecord> plugins() const;
  // Returns the one T that all users of this runtime share; the first call makes it. For layers
  // above the runtime.
  template <class T>
  std::shared_ptr<T> Common() {
    static char key;  // its address is the key
    std::lock_guard lock(common_mu_);
    std::shared_ptr<void>& at = common_[&key];
    if (!at) at = std::make_shared<T>();
    return std::static_pointer_cast<T>(at);
  }
  StatusOr<std::string> Setting(std::string_view plugin, std::string_view key) const;

  // Level 0 is debug, 1 info, 2 warning, 3 error. Nothing is logged unless a sink is set.
  using LogSink = void (*)(void* arg, uint32_t level, const char* text, uint64_t len);
  void SetLog(LogSink sink, void* arg, uint32_t min_level);
  void Log(uint32_t level, std::string_view text) const override;

  // These implement GraphHost.
  const OpSchema* FindOp(std::string_view name) const override { return registry_.FindOp(name); }
  std::string MeantOp(std::string_view name) const override { return registry_.MeantOp(name); }
  StatusOr<const OpSchema*> FindRole(std::string_view role) const override { return registry_.FindRole(role); }
  StatusOr<std::vector<Tensor>> Evaluate(const Node& node, std::span<const tw_shape> shapes, std::span<const Tensor> values,
                                         MemoryBudget* budget) override;
  std::string NewContainer() override;
  void EndContainer(const std::string& container) noexcept override;

 private:
  explicit Runtime(const RuntimeOptions& options);
  // Enumerates a device kind once. A failure is recorded in the plugin's record and the log.
  Status AddDevices(const std::string& kind) const;
  Status AddDevicesOf(const DeviceKind* kind) const;  // REQUIRES: enumerate_mu_ is held
  void KeepVisible(const DeviceKind& kind, std::vector<FoundDevice>* found) const;
  Status CheckUnused(std::string_view plugin) const;

  // Destroyed from the bottom up: resources and devices call plugins, and plugins call everything
  // above them.
  mutable std::mutex log_mu_;
  LogSink log_ = nullptr;
  void* log_arg_ = nullptr;
  uint32_t log_level_ = 0;
  const RuntimeOptions options_;
  std::mutex common_mu_;
  std::map<const void*, std::shared_ptr<void>> common_;
  Registry registry_;
  ThreadPool pool_;
  RunGate gate_;
  std::unique_ptr<PluginLoader> loader_;
  const std::unique_ptr<FileSystem> files_;
  mutable std::mutex enumerate_mu_;  // guards enumerated_; acquired before mu_
  mutable std::set<const DeviceKind*> enumerated_;
  mutable std::mutex mu_;  // guards devices_
  mutable std::vector<std::unique_ptr<Device>> devices_;
  ResourceStore resources_;
};

// Returns the device with a name such as "FAKE:1". INVALID_ARGUMENT if it is not a device name;
// NOT_FOUND lists the devices.
StatusOr<Device*> FindDevice(const Runtime& runtime, std::string_view name);

}  // namespace thalweg
