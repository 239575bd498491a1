// A plugin file whose kernels throw across the C ABI, which no kernel may do.
#include <stdexcept>

#include "thalweg/plugin/plugin.h"

static tw_status* Throw(const tw_frame*) { throw std::runtime_error("it was thrown"); }
static tw_status* ThrowWhenMade(const tw_node*, void**) { throw std::runtime_error("it was thrown when it was made"); }

static tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  const tw_op_def ops[] = {{TW_SIZED(tw_op_def), TW_S("Throw(x: float[*s]) -> (y: float[*s])"), nullptr, nullptr, nullptr},
                           {TW_SIZED(tw_op_def), TW_S("ThrowWhenMade(x: float[*s]) -> (y: float[*s])"), nullptr, nullptr, nullptr}};
  for (const tw_op_def& op : ops) TW_TRY(tw_add_op(r, &op));
  tw_kernel_def kernel{};
  kernel.size = sizeof kernel;
  kernel.spec = "Throw @CPU";
  kernel.spec_len = 10;
  kernel.execute = Throw;
  TW_TRY(tw_add_kernel(r, &kernel));
  kernel.spec = "ThrowWhenMade @CPU";
  kernel.spec_len = 18;
  kernel.create = ThrowWhenMade;
  return tw_add_kernel(r, &kernel);
}

TW_PLUGIN("org.test.throwing", "1", Init)
