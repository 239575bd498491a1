// The host table that plugins call, implemented with the classes of this folder. There is one per
// plugin; `self` points to the runtime.
#pragma once
#include <memory>
#include <string_view>

#include "thalweg/plugin/host.h"

namespace thalweg {

class FileSystem;
class Runtime;

// plugin: keeps the plugin's code while it is locked; empty: the code stays by itself.
std::unique_ptr<tw_host, void (*)(tw_host*)> MakeHostTable(Runtime* runtime, std::string_view id, std::string_view path, uint32_t minor,
                                                           std::weak_ptr<const void> plugin = {});
// Keeps the code of the table's plugin loaded; NULL if it stays by itself.
std::shared_ptr<const void> PinOf(const tw_host* host);
// Returns a copy of the table whose file functions use `files`. `host` and `files` must outlive the
// copy.
std::unique_ptr<tw_host, void (*)(tw_host*)> ConfinedHost(const tw_host* host, FileSystem* files);
// Returns the file system that the file functions of a host table use.
FileSystem& FilesOf(const tw_host* host);

}  // namespace thalweg
