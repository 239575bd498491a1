// From a plugin's file to what its init registers: dlopen, the entry query, the agreement on the ABI, init. Nothing here changes a
// registry. Each step fills the record, and on failure says there what to do. Threads: any; one at a time for one library.
#pragma once
#include <string_view>

#include "framework/base/status.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// The library, to be closed with dlclose.
StatusOr<void*> OpenPluginLibrary(const std::string& path, PluginRecord* record);
StatusOr<tw_query_fn> FindPluginQuery(void* library, PluginRecord* record);
// Who is it? Reads only the members that never move.
StatusOr<const tw_plugin*> AskPlugin(tw_query_fn query, PluginRecord* record);
// Do we understand each other? *sealed: the descriptor, with zeros where it ends early.
Status AgreeWithPlugin(const tw_plugin& d, PluginRecord* record, tw_plugin* sealed);
// FAILED_PRECONDITION if a library that was built with it cannot live in this process; empty: none.
Status SanitizerClash(PluginRecord* record, std::string_view sanitizer);
// What init registers, all of it or nothing. *started: init returned without an error, so that shutdown is due.
Status InitPlugin(const tw_plugin& sealed, const tw_host* host, Registration* r, void** instance, bool* started, PluginRecord* record);

}  // namespace thalweg
