// Reads and writes files as a whole. Threads: any; blocks on files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg {

// `prefix`.`what`.tmp-<16 hex digits>; the digits differ in each call.
std::string TemporaryName(std::string_view prefix, std::string_view what);

// Writes the bytes to a file `temporary` beside `path`, syncs it and renames it to `path`: a crash
// at any point leaves the old file or the new one. Errors: those of the file system; the temporary
// file is then removed.
Status ReplaceFile(const std::string& path, const std::string& temporary, std::string_view bytes, FileSystem& files);

}  // namespace thalweg
