#include "thalweg/runtime.h"

#include <cstddef>
#include <cstring>

#include "c_api/handles.h"
#include "c_api/option_list.h"
#include "c_api/shim.h"
#include "framework/runtime/devices/give_memory_back.h"
#include "framework/runtime/state/container.h"
#include "ops/ops.h"

namespace thalweg {

StatusOr<std::shared_ptr<Runtime>> MakeRuntime(RuntimeOptions options) {
  options.static_plugins.insert(options.static_plugins.begin(), {"ops", tw_plugin_query_v0_ops, true});
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

namespace {

Status ToThreadPool(const tw_thread_pool& pool, thalweg::RuntimeOptions* options) {
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_thread_pool", pool.size, pool.flags, sizeof(tw_thread_pool)));
  if (!pool.schedule && pool.threads > 0) {
    return thalweg::InvalidArgument("tw_thread_pool: schedule is NULL, but threads is ", pool.threads, "; set both, or threads to 0");
  }
  options->program_threads = pool;
  return Status();
}

Status ToOptions(const tw_runtime_config& config, thalweg::RuntimeOptions* options) {
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_runtime_config", config.size, config.flags, offsetof(tw_runtime_config, plugins)));
  if (config.n_options > 0 && !config.options) return thalweg::InvalidArgument("tw_runtime_config: options is NULL");
  RETURN_IF_ERROR(thalweg::SetOptions(config.options, config.n_options, thalweg::SetRuntimeOption, options));
  RETURN_IF_ERROR(thalweg::CheckLogLevel(config.log_level));
  options->log = config.log;
  options->log_arg = config.log_user;
  options->log_level = config.log_level;
  if (HAS_FIELD(config, n_plugins)) {
    if (config.n_plugins > 0 && !config.plugins) return thalweg::InvalidArgument("tw_runtime_config: plugins is NULL");
    for (uint32_t i = 0; i < config.n_plugins; ++i) options->static_plugins.push_back({thalweg::StrCat("plugin ", i), config.plugins[i]});
  }
  return config.threads ? ToThreadPool(*config.threads, options) : Status();
}

}  // namespace

tw_status* tw_runtime_create_with(const tw_runtime_config* config, tw_runtime** out_runtime) {
  NEED(config);
  NEED(out_runtime);
  return thalweg::Enter([&]() -> Status {
    thalweg::RuntimeOptions options;
    RETURN_IF_ERROR(ToOptions(*config, &options));
    auto handle = std::make_unique<tw_runtime>();
    ASSIGN_OR_RETURN(handle->runtime, thalweg::MakeRuntime(std::move(options)));
    *out_runtime = handle.release();
    return Status();
  });
}

tw_status* tw_runtime_create(const char* const* options, uint32_t n_options, tw_runtime** out_runtime) {
  NEED(out_runtime);
  NEED_ARRAY(options, n_options);
  tw_runtime_config config{};
  config.size = sizeof config;
  config.options = options;
  config.n_options = n_options;
  return tw_runtime_create_with(&config, out_runtime);
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

tw_status* tw_runtime_reset(tw_runtime* runtime, const char* container, uint64_t* out_count) {
  if (out_count) *out_count = 0;
  return thalweg::Guard([&]() -> Status {
    const std::string name = thalweg::TextOrEmpty(container);
    RETURN_IF_ERROR(thalweg::CheckContainerName(name));
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    const size_t count = of->resources().ResetContainer(name.empty() ? thalweg::kSharedContainer : std::string_view(name));
    thalweg::GiveMemoryBack(*of);
    if (out_count) *out_count = count;
    return Status();
  });
}

tw_status* tw_runtime_give_back(tw_runtime* runtime) {
  return thalweg::Guard([&]() -> Status {
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    thalweg::GiveMemoryBack(*of);
    return Status();
  });
}
