/* tw::Runtime and tw::Graph (runtime.h, plugin.h, graph.h). Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_GRAPH_HPP
#define THALWEG_CPP_GRAPH_HPP
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/handle.hpp"
#include "thalweg/graph.h"
#include "thalweg/plugin.h"
#include "thalweg/runtime.h"

namespace tw {

class Runtime : public Owned<tw_runtime, tw_runtime_release> {
 public:
  explicit Runtime(const std::vector<const char*>& options = {}) {
    tw_runtime* made = nullptr;
    raise(tw_runtime_create(options.data(), uint32_t(options.size()), &made));
    own(made);
  }
  explicit Runtime(const tw_runtime_config& config) {
    tw_runtime* made = nullptr;
    raise(tw_runtime_create_with(&config, &made));
    own(made);
  }
  void load_plugin(const std::string& path) const { raise(tw_plugin_load(c(), path.c_str())); }
  void unload_plugin(const std::string& id) const { raise(tw_plugin_unload(c(), id.c_str())); }
  /* Empties a container of state; "" means `localhost`. Returns how many resources it held. */
  uint64_t reset(const std::string& container = "") const {
    uint64_t count = 0;
    raise(tw_runtime_reset(c(), container.c_str(), &count));
    return count;
  }
  /* Returns the unused memory that the runtime's pools keep to the devices and the system. */
  void give_back() const { raise(tw_runtime_give_back(c())); }
};

class Graph : public Owned<tw_graph, tw_graph_destroy> {
 public:
  Graph() { create(nullptr); }
  explicit Graph(const Runtime& runtime) { create(runtime.c()); }
  bool has(const std::string& name) const { return tw_graph_has(c(), name.c_str()) != 0; }
  const tw_operation* find(const std::string& name) const {
    const tw_operation* found = nullptr;
    raise(tw_graph_find(c(), name.c_str(), &found));
    return found;
  }
  tw_output output(const std::string& name) const {
    tw_output found = 0;
    raise(tw_graph_find_output(c(), name.c_str(), &found));
    return found;
  }
  void close_loop(const tw_operation* merge, uint32_t input, const tw_operation* next_iteration) {
    raise(tw_graph_close_loop(c(), merge, input, next_iteration));
  }
  void import_graph_def(const std::string& graph_def, const char* prefix = nullptr) {
    tw_import_options options = {};
    options.size = sizeof(options);
    options.prefix = prefix;
    raise(tw_graph_import(c(), graph_def.data(), graph_def.size(), &options));
  }
  std::string graph_def() const {
    tw_buffer* bytes = nullptr;
    raise(tw_graph_export(c(), &bytes));
    return take_text(bytes);
  }

 private:
  void create(tw_runtime* runtime) {
    tw_graph* made = nullptr;
    raise(tw_graph_create(runtime, &made));
    own(made);
  }
};

}  // namespace tw
#endif
