// ArtefactCache: the output of graph compilers, kept in a folder for other processes. A file that
// is torn, has another version, or could have been written by other users is ignored and written
// anew.
// Threads: any; blocks on files. Processes may share a folder.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/status.h"

namespace thalweg {

struct ArtefactKey {
  std::string compiler;  // plugin and name
  std::string part;      // DescribePart
  std::string tag;       // the dependencies that the compiler states
};

class ArtefactCache {
 public:
  // Creates the folder if it is missing, with a folder `parts` in it. PERMISSION_DENIED for a
  // folder that users other than root and the owner of the process could write to.
  static StatusOr<std::unique_ptr<ArtefactCache>> Open(const std::string& folder);

  // Returns the bytes of that key, or of the same key with another tag that `usable` accepts.
  // NOT_FOUND if there are none.
  StatusOr<std::string> Read(const ArtefactKey& key, const std::function<bool(std::string_view tag)>& usable) const;
  // Replaces an existing entry, atomically.
  Status Write(const ArtefactKey& key, std::string_view bytes) const;

 private:
  explicit ArtefactCache(std::string folder) : folder_(std::move(folder)) {}
  StatusOr<std::string> ReadFile(const std::string& name, const ArtefactKey& key, std::string* tag) const;
  const std::string folder_;
};

}  // namespace thalweg
