// World: a runtime with the standard ops, the CPU and the plugin under test, under a play; or, for
// comparison, without the plugin.
// Threads: as Runtime.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/runtime.h"
#include "tools/conformance/library.h"
#include "tools/conformance/played_host.h"

namespace thalweg::conformance {

class World {
 public:
  // library: must outlive the world. Errors: those of the host when it takes the plugin.
  static StatusOr<std::unique_ptr<World>> Make(const Library& library, const Play& play);
  // Makes a world with only the standard ops and the CPU.
  static StatusOr<std::unique_ptr<World>> Oracle();
  const std::shared_ptr<Runtime>& runtime_ptr() const { return runtime_; }
  Runtime& runtime() const { return *runtime_; }
  Registry& registry() const { return runtime_->registry(); }
  const Play& play() const { return play_; }
  const std::string& id() const { return id_; }

  // The ops, kernels, kinds and devices that the plugin registered.
  std::vector<const OpSchema*> Ops() const;
  std::vector<const KernelDef*> Kernels() const;  // by op
  std::vector<const DeviceKind*> Kinds() const;
  std::vector<Device*> Devices() const;
  // The first device of a kind, the plugin's or not; NULL: none.
  Device* DeviceOf(std::string_view kind) const;

 private:
  World() = default;
  std::shared_ptr<Runtime> runtime_;
  Play play_;
  std::string id_;
};

}  // namespace thalweg::conformance
