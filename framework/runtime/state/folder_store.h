// FolderStore: the key-value store of a group (plugin/membership.h, tw_key_value_api) in a folder
// that all members share. Each key is a file, which appears whole.
// Threads: any.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/membership.h"

namespace thalweg {

class FolderStore {
 public:
  // stop: returns true if a Get that waits should end with CANCELLED.
  FolderStore(std::string folder, std::function<bool()> stop) : folder_(std::move(folder)), stop_(std::move(stop)) {}
  // Makes the folder if it is missing.
  Status Put(std::string_view key, std::string_view value);
  // Waits until the key exists. deadline: on the clock of MonotonicNs. CANCELLED, DEADLINE_EXCEEDED.
  StatusOr<std::string> Get(std::string_view key, int64_t deadline) const;
  // The C interface, whose `self` is a FolderStore.
  static const tw_key_value_api* Api();

 private:
  std::string PathOf(std::string_view key) const;

  const std::string folder_;
  const std::function<bool()> stop_;
};

}  // namespace thalweg
