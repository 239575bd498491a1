// The index of a folder of plugins, which `thalweg plugins search` and `add` read: `index.json`, and
// `index.json.sig`, its signature by `ssh-keygen -Y sign` in the namespace thalweg-index.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fetch.h"
#include "handles.h"
#include "json.h"

namespace thalweg::cli {

struct IndexedFile {
  std::string name;  // without a folder
  std::string sha256;
  uint64_t bytes = 0;
};

struct IndexedPlugin {
  std::string id, version;
  std::string build;               // what tw_plugins_build says of it
  std::string contents;            // its ops, devices and roles, in words
  std::vector<IndexedFile> files;  // the library, then its manual if it has one
};

// Writes the list of files under the key "files".
void WriteFiles(Json* json, const std::vector<IndexedFile>& files);

// Describes the plugins of `folder` (libNAME.so, and libNAME.md if it is there) as the text of an
// index. Each of them is loaded. Throws std::runtime_error for a file that is no usable plugin.
std::string MakeIndex(const Args& args, const std::string& folder);

// Fetches and parses the index. signers: the file of allowed signers (ssh-keygen(1)); "": the
// signature is not looked at. Throws std::runtime_error if the signature is not theirs or the text is
// malformed.
std::vector<IndexedPlugin> ReadIndex(const Source& source, const std::string& signers);

// Returns the plugins of an id from the newest version to the oldest, as strverscmp orders them.
// version: "" for all.
std::vector<IndexedPlugin> VersionsOf(const std::vector<IndexedPlugin>& index, const std::string& id, const std::string& version);

}  // namespace thalweg::cli
