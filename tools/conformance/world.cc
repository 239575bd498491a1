#include "tools/conformance/world.h"

#include "ops/ops.h"

// The query of the CPU plugin, which is linked into this program.
extern "C" const tw_plugin* tw_plugin_query_v0(const tw_host_info* host);

namespace thalweg::conformance {
namespace {

std::string_view CpuId() {
  const tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("Thalweg")};
  const tw_plugin* cpu = tw_plugin_query_v0(&info);
  return {cpu->id, cpu->id_len};
}

RuntimeOptions Standard() {
  RuntimeOptions options;
  options.load_plugins = false;
  options.threads = 4;
  options.static_plugins.push_back({"ops", tw_plugin_query_v0_ops});
  return options;
}

}  // namespace

StatusOr<std::unique_ptr<World>> World::Make(const Library& library, const Play& play) {
  const tw_plugin* descriptor = library.Descriptor();
  if (!descriptor) return FailedPrecondition("the query answered NULL");
  std::unique_ptr<World> w(new World);
  w->play_ = play;
  w->id_ = TextOf(descriptor->id, descriptor->id_len);
  RuntimeOptions options = Standard();
  if (w->id_ != CpuId()) options.static_plugins.push_back({"cpu", tw_plugin_query_v0});
  options.static_plugins.push_back({"the plugin", PlayedQuery});
  for (const auto& [key, value] : play.settings) options.plugin_settings[StrCat("plugin.", w->id_, ".", key)] = value;
  SetSubject(descriptor, play);
  ASSIGN_OR_RETURN(w->runtime_, Runtime::Create(options));
  return w;
}

StatusOr<std::unique_ptr<World>> World::Oracle() {
  std::unique_ptr<World> w(new World);
  RuntimeOptions options = Standard();
  options.static_plugins.push_back({"cpu", tw_plugin_query_v0});
  ASSIGN_OR_RETURN(w->runtime_, Runtime::Create(options));
  return w;
}

std::vector<const OpSchema*> World::Ops() const {
  std::vector<const OpSchema*> out = registry().Ops();
  std::erase_if(out, [&](const OpSchema* op) { return op->plugin != id_; });
  return out;
}

std::vector<const KernelDef*> World::Kernels() const {
  std::vector<const KernelDef*> out;
  for (const OpSchema* op : registry().Ops()) {
    for (const KernelDef* k : registry().Kernels(op->name)) {
      if (k->plugin == id_) out.push_back(k);
    }
  }
  return out;
}

std::vector<const DeviceKind*> World::Kinds() const {
  std::vector<const DeviceKind*> out = registry().DeviceKinds();
  std::erase_if(out, [&](const DeviceKind* k) { return k->plugin != id_; });
  return out;
}

std::vector<Device*> World::Devices() const {
  std::vector<Device*> out = runtime_->devices();
  std::erase_if(out, [&](const Device* d) { return d->plugin() != id_; });
  return out;
}

Device* World::DeviceOf(std::string_view kind) const {
  for (Device* d : runtime_->devices()) {
    if (d->kind() == kind) return d;
  }
  return nullptr;
}

}  // namespace thalweg::conformance
