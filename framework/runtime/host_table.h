// The host table that plugins call, over the classes of this folder. One per plugin; `self` leads back to the runtime.
#pragma once
#include <memory>
#include <string_view>

#include "thalweg/plugin/host.h"

namespace thalweg {

class FileSystem;
class Runtime;

std::unique_ptr<tw_host, void (*)(tw_host*)> MakeHostTable(Runtime* runtime, std::string_view id, std::string_view path, uint32_t minor);
// A copy of that table whose file functions work on `files`. Both must outlive it.
std::unique_ptr<tw_host, void (*)(tw_host*)> ConfinedHost(const tw_host* host, FileSystem* files);
// What the file functions of a host table work on.
FileSystem& FilesOf(const tw_host* host);

}  // namespace thalweg
