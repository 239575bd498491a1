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
  static tw_status* AddRole(tw_registrar* r, const tw_role* d);
  static uint32_t Offers(tw_registrar* r, const char* role, uint64_t len, uint32_t major, uint32_t minor);
  // Checks the role and its version, then passes the definition to the function of its role.
  Status Add(const tw_role* d);
  // Leaves a definition out because of an element type that is unknown here.
  Status LeaveOut(std::string_view what, std::string_view name, const Status& why);
  Status AddOp(const void* d);
  Status AddKernel(const void* d);
  Status KeepKernel(tw_kernel_def def, std::string_view text);  // the spec is parsed later
  Status AddResource(const void* d);
  Status AddDevice(const void* d);
  template <class Def>
  Status AddSealed(const void* d);

  uint32_t minor_ = 0;  // of the role of the definition that is being added: the definition's, or this host's if that is older
  C c_;
  const tw_host* host_;
  std::string plugin_;
  Registration* out_;
};

}  // namespace thalweg
