// The optional set "files" of the host table: plugin/file_system.h over the file systems that the
// user of the host table may access.
#pragma once
#include "thalweg/plugin/file_system.h"

namespace thalweg {

const tw_files_api* FileSet();

}  // namespace thalweg
