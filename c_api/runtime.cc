#include "thalweg/runtime.h"

#include <cstring>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "ops/ops.h"

namespace thalweg {

StatusOr<std::shared_ptr<Runtime>> MakeRuntime(RuntimeOptions options) {
  options.static_plugins.emplace_back("ops", tw_plugin_query_v0_ops);
  return Runtime::Create(options);
}

Status SplitOption(const char* option, std::string_view* key, std::string_view* value) {
  if (!option) return InvalidArgument("an option is NULL");
  const char* equals = std::strchr(option, '=');
  if (!equals) return InvalidArgument("option '", option, "' is not of the form key=value");
  *key = std::string_view(option, size_t(equals - option));
  *value = equals + 1;
  return Status();
}

}  // namespace thalweg

using thalweg::Status;

tw_status* tw_runtime_create(const char* const* options, uint32_t n_options, tw_runtime** out_runtime) {
  NEED(out_runtime);
  NEED_ARRAY(options, n_options);
  return thalweg::Guard([&]() -> Status {
    thalweg::RuntimeOptions parsed;
    for (uint32_t i = 0; i < n_options; ++i) {
      std::string_view key, value;
      RETURN_IF_ERROR(thalweg::SplitOption(options[i], &key, &value));
      RETURN_IF_ERROR(thalweg::SetRuntimeOption(&parsed, key, value));
    }
    auto handle = std::make_unique<tw_runtime>();
    ASSIGN_OR_RETURN(handle->runtime, thalweg::MakeRuntime(std::move(parsed)));
    *out_runtime = handle.release();
    return Status();
  });
}

void tw_runtime_retain(tw_runtime* runtime) {
  if (runtime) runtime->refs.fetch_add(1, std::memory_order_relaxed);
}

void tw_runtime_release(tw_runtime* runtime) {
  if (runtime && runtime->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete runtime;
}

const tw_option* tw_runtime_option(uint32_t i) {
  const auto rows = thalweg::RuntimeOptionRows();
  return i < rows.size() ? &rows[i].about : nullptr;
}
