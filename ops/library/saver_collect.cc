#include "ops/library/saver_collect.h"

#include <set>
#include <tuple>

#include "thalweg/op.h"
#include "thalweg/plugin/resource.h"

namespace thalweg::library {
namespace {

// Fills *out for a handle to a plugin's resource that can be saved; returns its type, or NULL for
// other handles.
const char* Describe(const tw_operation* operation, uint32_t i, VariableInfo* out, bool* saved) {
  uint32_t can = 0;
  const char* type = tw_operation_resource(operation, i, &can);
  *saved = can && std::string(type) != TW_VARIABLE_TYPE;
  if (!*saved) return type;
  out->operation = tw_operation_name(operation);
  out->name = StringAttr(operation, "shared_name");
  if (out->name.empty()) out->name = out->operation;
  out->resource = type;
  out->dtype = TW_STRING;
  out->dims = {3};
  out->known_rank = out->known_shape = true;
  return type;
}

void AddVariables(tw_scope* scope, tw_saver* saver) {
  tw_variables* all = nullptr;
  tw_scope_fail(scope, tw_variables_create(tw_scope_graph(scope), &all));
  for (uint32_t i = 0; i < tw_variables_count(all); ++i) saver->handles.push_back(tw_variables_handle(all, i));
  tw_variables_destroy(all);
}

void AddResources(tw_scope* scope, tw_saver* saver) {
  const tw_graph* graph = tw_scope_graph(scope);
  std::set<std::tuple<std::string, std::string, std::string>> seen;  // container, type, name
  for (uint32_t k = 0; graph && k < tw_graph_count(graph); ++k) {
    const tw_operation* operation = tw_graph_operation(graph, k);
    for (uint32_t i = 0; i < tw_operation_output_count(operation); ++i) {
      VariableInfo info;
      bool saved = false;
      Describe(operation, i, &info, &saved);
      if (saved && seen.emplace(StringAttr(operation, "container"), info.resource, info.name).second) {
        saver->handles.push_back(tw_operation_output(operation, i));
      }
    }
  }
}

bool Look(tw_scope* scope, tw_output handle, VariableInfo* out) {
  tw_graph* graph = tw_scope_graph(scope);
  const tw_operation* operation = nullptr;
  uint32_t i = 0;
  bool saved = false;
  if (graph) tw_scope_fail(scope, tw_graph_producer(graph, handle, &operation, &i));
  if (!operation) return false;
  const char* type = Describe(operation, i, out, &saved);
  if (saved) return true;
  if (!type || std::string(type) == TW_VARIABLE_TYPE) return Inspect(scope, handle, out);
  Fail(scope, TW_UNIMPLEMENTED,
       std::string("'") + tw_operation_name(operation) + "' is a " + type + ", which cannot be saved: its plugin has no save and restore");
  return false;
}

}  // namespace

void Collect(tw_scope* scope, const tw_output* handles, uint32_t n, tw_saver* saver) {
  saver->handles.assign(handles, handles + n);
  if (n == 0) {
    AddVariables(scope, saver);
    AddResources(scope, saver);
  }
  for (const tw_output handle : saver->handles) {
    VariableInfo info;
    if (!Look(scope, handle, &info)) break;
    saver->infos.push_back(std::move(info));
  }
  if (saver->handles.empty()) {
    Fail(scope, TW_FAILED_PRECONDITION, "tw_saver_create: the graph has no variables, and no resources that plugins save");
  }
}

}  // namespace thalweg::library
