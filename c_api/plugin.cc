#include "thalweg/plugin.h"

#include "c_api/handles.h"
#include "c_api/shim.h"

using thalweg::PluginRecord;

struct tw_plugins {
  std::vector<PluginRecord> records;
};

static_assert(int(PluginRecord::kLoaded) == TW_PLUGIN_LOADED && int(PluginRecord::kFailed) == TW_PLUGIN_FAILED &&
              int(PluginRecord::kDisabled) == TW_PLUGIN_DISABLED && int(PluginRecord::kShadowed) == TW_PLUGIN_SHADOWED &&
              int(PluginRecord::kKnown) == TW_PLUGIN_KNOWN && int(PluginRecord::kQuarantined) == TW_PLUGIN_QUARANTINED &&
              int(PluginRecord::kNotAllowed) == TW_PLUGIN_NOT_ALLOWED);

static const PluginRecord* At(const tw_plugins* plugins, uint32_t i) {
  return i < tw_plugins_count(plugins) ? &plugins->records[i] : nullptr;
}

tw_status* tw_plugin_load(tw_runtime* runtime, const char* path) {
  NEED(path);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    return r->LoadPlugin(path);
  });
}

tw_status* tw_plugin_unload(tw_runtime* runtime, const char* id) {
  NEED(id);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    return r->UnloadPlugin(id);
  });
}

tw_status* tw_plugins_create(tw_runtime* runtime, tw_plugins** out_plugins) {
  NEED(out_plugins);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    *out_plugins = new tw_plugins{r->plugins()};
    return thalweg::Status();
  });
}

void tw_plugins_destroy(tw_plugins* plugins) { delete plugins; }

uint32_t tw_plugins_count(const tw_plugins* plugins) { return plugins ? uint32_t(plugins->records.size()) : 0; }

const char* tw_plugins_id(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->id.c_str() : nullptr; }

const char* tw_plugins_version(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->version.c_str() : nullptr; }

const char* tw_plugins_path(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->path.c_str() : nullptr; }

const char* tw_plugins_build(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->build.c_str() : nullptr; }

const char* tw_plugins_reason(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->reason.c_str() : nullptr; }

const char* tw_plugins_fix(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->fix.c_str() : nullptr; }

uint32_t tw_plugins_state(const tw_plugins* plugins, uint32_t i) {
  return At(plugins, i) ? uint32_t(At(plugins, i)->state) : uint32_t(TW_PLUGIN_FAILED);
}

uint32_t tw_plugins_kernel_count(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->kernels : 0; }

uint32_t tw_plugins_op_count(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? uint32_t(At(plugins, i)->ops.size()) : 0; }

const char* tw_plugins_op(const tw_plugins* plugins, uint32_t i, uint32_t k) {
  return k < tw_plugins_op_count(plugins, i) ? At(plugins, i)->ops[k].c_str() : nullptr;
}

uint32_t tw_plugins_device_kind_count(const tw_plugins* plugins, uint32_t i) {
  return At(plugins, i) ? uint32_t(At(plugins, i)->devices.size()) : 0;
}

const char* tw_plugins_device_kind(const tw_plugins* plugins, uint32_t i, uint32_t k) {
  return k < tw_plugins_device_kind_count(plugins, i) ? At(plugins, i)->devices[k].c_str() : nullptr;
}

uint32_t tw_plugins_role_count(const tw_plugins* plugins, uint32_t i) {
  return At(plugins, i) ? uint32_t(At(plugins, i)->roles.size()) : 0;
}

const char* tw_plugins_role(const tw_plugins* plugins, uint32_t i, uint32_t k) {
  return k < tw_plugins_role_count(plugins, i) ? At(plugins, i)->roles[k].c_str() : nullptr;
}

const char* tw_plugins_digest(const tw_plugins* plugins, uint32_t i) { return At(plugins, i) ? At(plugins, i)->digest.c_str() : nullptr; }
