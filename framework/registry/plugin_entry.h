// The steps from a plugin's file to the registrations of its init: dlopen, entry query, ABI check,
// init. Nothing here changes a registry. Each step fills the record; on failure the record says
// what to do. Threads: any; one at a time per library.
#pragma once
#include <string_view>

#include "framework/base/status.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// Returns the library, which the caller must dlclose.
StatusOr<void*> OpenPluginLibrary(const std::string& path, PluginRecord* record);
StatusOr<tw_query_fn> FindPluginQuery(void* library, PluginRecord* record);
// Asks the plugin for its descriptor. Reads only the members that never move.
StatusOr<const tw_plugin*> AskPlugin(tw_query_fn query, PluginRecord* record);
// Checks that the ABI versions are compatible. *sealed: the descriptor, with zeros behind its end.
Status AgreeWithPlugin(const tw_plugin& d, PluginRecord* record, tw_plugin* sealed);
// FAILED_PRECONDITION if a library built with this sanitizer cannot be loaded into this process.
// sanitizer: "" for none.
Status SanitizerClash(PluginRecord* record, std::string_view sanitizer);
// Records the definitions that are left out.
void DescribeLeftOut(const Registration& r, PluginRecord* record);
// FAILED_PRECONDITION if all definitions are left out.
Status CheckSomethingIsLeft(const Registration& r, PluginRecord* record);
// Runs init and collects its registrations, all or none. *started: init returned without an error,
// so shutdown must be called.
Status InitPlugin(const tw_plugin& sealed, const tw_host* host, Registration* r, void** instance, bool* started, PluginRecord* record);

}  // namespace thalweg
