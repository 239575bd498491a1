// Builds on tasks: places nodes beside a variable, and adds nodes with control inputs.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"

namespace thalweg::library {

// Returns the job and task of a device name, "/job:ps/task:0" of "/job:ps/task:0/device:CPU:0"; ""
// if it names none.
std::string TaskOf(const std::string& device);
// Returns the task of a value, as far as its operation names one.
std::string TaskOf(tw_scope* scope, tw_output value);

// While it lives, the scope adds operations on that device.
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
// Adds an operation that runs after others; dtype: its attribute of that name, 0: it has none.
const tw_operation* After(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const Operations& after,
                          uint32_t dtype = 0);
inline tw_output First(const tw_operation* operation) { return tw_operation_output(operation, 0); }

}  // namespace thalweg::library
