// What graph compilers made, kept in a folder for other processes. A file that is torn, of another version or that others could have
// written counts for nothing and is written anew.
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
  std::string tag;       // what the compiler says that it depends on
};

class ArtefactCache {
 public:
  // Made where it is missing, with a folder `parts` in it. PERMISSION_DENIED for a folder that others than root and the user could write
  // to.
  static StatusOr<std::unique_ptr<ArtefactCache>> Open(const std::string& folder);

  // The bytes of that key, or of one with another tag that `usable` accepts. NOT_FOUND.
  StatusOr<std::string> Read(const ArtefactKey& key, const std::function<bool(std::string_view tag)>& usable) const;
  // Replaces what is there, atomically.
  Status Write(const ArtefactKey& key, std::string_view bytes) const;

 private:
  explicit ArtefactCache(std::string folder) : folder_(std::move(folder)) {}
  StatusOr<std::string> ReadFile(const std::string& name, const ArtefactKey& key, std::string* tag) const;
  const std::string folder_;
};

}  // namespace thalweg
