// The functions that return texts about a model.
#include "session.h"

namespace thalweg::ort::api {

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtModelMetadata(Need(session, "session")->file.metadata);
  });
}
void ReleaseModelMetadata(OrtModelMetadata* metadata) { delete metadata; }

namespace {

OrtStatus* GetText(const char* function, const OrtModelMetadata* metadata, std::string OrtModelMetadata::* text, OrtAllocator* allocator,
                   char** out) noexcept {
  return Guard(function, [&] {
    auto& result = Result(out, "value");
    result = CopyText(allocator, Need(metadata, "model_metadata")->*text);
  });
}

}  // namespace

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return GetText(__func__, metadata, &OrtModelMetadata::producer, allocator, out);
}
OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return GetText(__func__, metadata, &OrtModelMetadata::graph_name, allocator, out);
}
OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return GetText(__func__, metadata, &OrtModelMetadata::graph_description, allocator, out);
}
OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return GetText(__func__, metadata, &OrtModelMetadata::domain, allocator, out);
}
OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator, char** out) {
  return GetText(__func__, metadata, &OrtModelMetadata::description, allocator, out);
}
OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* metadata, int64_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "value");
    result = Need(metadata, "model_metadata")->version;
  });
}
// NULL for a key that does not exist.
OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* metadata, OrtAllocator* allocator, const char* key, char** out) {
  return Guard(__func__, [&] {
    char*& value = Result(out, "value");
    const auto found = Need(metadata, "model_metadata")->custom.find(Need(key, "key"));
    if (found != metadata->custom.end()) value = CopyText(allocator, found->second);
  });
}
OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* metadata, OrtAllocator* allocator, char*** out, int64_t* count) {
  return Guard(__func__, [&] {
    Result(out, "keys");
    Result(count, "num_keys");
    const auto& custom = Need(metadata, "model_metadata")->custom;
    if (custom.empty()) return;
    char** const keys = static_cast<char**>(Allocate(allocator, custom.size() * sizeof(char*)));
    size_t made = 0;
    try {
      for (const auto& entry : custom) {
        keys[made] = CopyText(allocator, entry.first);
        ++made;
      }
    } catch (...) {
      while (made > 0) allocator->Free(allocator, keys[--made]);
      allocator->Free(allocator, keys);
      throw;
    }
    *out = keys;
    *count = static_cast<int64_t>(custom.size());
  });
}

}  // namespace thalweg::ort::api
