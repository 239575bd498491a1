// Registrar: receives the registrations of a plugin's init. Threads: one at a time.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// The tw_registrar for a plugin's init; writes into `r`. It copies and seals each definition:
// min(sizes) bytes into zeroed memory, required entries checked, absent optional ones replaced.
class Registrar {
 public:
  Registrar(const tw_host* host, std::string plugin, Registration* r);
  tw_registrar* c() { return &c_.base; }

 private:
  struct C {
    tw_registrar base;
    Registrar* self;
  };
  static tw_status* Op(tw_registrar* r, const tw_op_def* d);
  static tw_status* Kernel(tw_registrar* r, const tw_kernel_def* d);
  static tw_status* Resource(tw_registrar* r, const tw_resource_def* d);
  static tw_status* Device(tw_registrar* r, const tw_device_def* d);
  static tw_status* Compiler(tw_registrar* r, const tw_compiler_def* d);
  static tw_status* FileSystem(tw_registrar* r, const tw_file_system_def* d);
  static tw_status* Transport(tw_registrar* r, const tw_transport_def* d);
  static tw_status* Collective(tw_registrar* r, const tw_collective_def* d);
  static tw_status* Membership(tw_registrar* r, const tw_membership_def* d);
  static tw_status* Importer(tw_registrar* r, const tw_importer_def* d);
  // Calls `add` with the definition, converts exceptions, and remembers the first refusal.
  static tw_status* Add(tw_registrar* r, Status (Registrar::*add)(const void*), const void* d);
  Status AddOp(const void* d);
  Status AddKernel(const void* d);
  Status KeepKernel(tw_kernel_def def, std::string_view text);  // the spec is parsed later
  Status AddResource(const void* d);
  Status AddDevice(const void* d);
  template <class Def>
  Status AddRole(const void* d);

  C c_;
  const tw_host* host_;
  std::string plugin_;
  Registration* out_;
};

}  // namespace thalweg
