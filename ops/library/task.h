// Building on tasks: where nodes go that work beside a variable, and nodes with controls.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"

namespace thalweg::library {

// The job and task of a device name, "/job:ps/task:0" of "/job:ps/task:0/device:CPU:0"; "" where it names none.
std::string TaskOf(const std::string& device);
// The task that a value is made on, as far as its operation says.
std::string TaskOf(tw_scope* scope, tw_output value);

// As long as it lives, what the scope adds goes there.
class On {
 public:
  On(tw_scope* scope, const std::string& device) : scope_(scope), before_(tw_scope_device(scope)) {
    tw_scope_set_device(scope, device.c_str());
  }
  ~On() { tw_scope_set_device(scope_, before_.c_str()); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  tw_scope* const scope_;
  const std::string before_;
};

using Operations = std::vector<const tw_operation*>;
// An operation that runs after others; dtype: its attribute of that name, 0: it has none.
const tw_operation* After(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const Operations& after,
                          uint32_t dtype = 0);
inline tw_output First(const tw_operation* operation) { return tw_operation_output(operation, 0); }

}  // namespace thalweg::library
