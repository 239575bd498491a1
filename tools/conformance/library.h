// The library under test, loaded into this process.
#pragma once
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::conformance {

class Library {
 public:
  static StatusOr<std::unique_ptr<Library>> Open(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  // Returns the descriptor for this host's epoch and minor; NULL if the plugin returns NULL.
  const tw_plugin* Descriptor() const;
  tw_query_fn query() const { return query_; }
  const std::string& path() const { return path_; }

 private:
  Library(std::string file, void* handle, tw_query_fn entry) : path_(std::move(file)), handle_(handle), query_(entry) {}
  const std::string path_;
  void* const handle_;
  const tw_query_fn query_;
};

std::string_view TextOf(const char* text, uint64_t len);

}  // namespace thalweg::conformance
