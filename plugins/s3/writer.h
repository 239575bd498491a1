// Writer: an object that is being written. Appended bytes collect in a buffer; whenever it has
// `part_bytes`, they go to the store as a part of a multipart upload, by a thread. The object appears,
// or changes, only as a whole: in Sync and in Close. A file of one buffer is a single PUT.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_S3_WRITER_H_
#define THALWEG_PLUGINS_S3_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "../common/origin.h"
#include "address.h"
#include "store.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::s3 {

class Writer {
 public:
  // Throws ALREADY_EXISTS if there is an object of that name, or this process writes one. store: must
  // outlive this.
  Writer(Store* store, Address at);
  // Aborts an upload that was not completed.
  ~Writer();
  Writer(const Writer&) = delete;
  // After a failure all calls throw that failure.
  void Append(const void* bytes, uint64_t n);
  // Makes all that was appended an object, durably; it can then be read. Later parts are added by
  // copying the object within the store.
  void Sync();
  // The same. ALREADY_EXISTS if somebody else has made an object of that name meanwhile.
  void Close() { Sync(); }

 private:
  struct Uploads;
  // Holds a path in Process::EnterName.
  struct Name {
    Name(Process* p, std::string t);
    ~Name();
    Process& process;
    const std::string text;
    const common::Origin origin;
  };

  template <class F>
  void Guard(F&& body);
  void BeginUpload();
  void SubmitPart();
  void Publish();
  void CopyHead();

  Store& store_;
  const Address at_;
  const Name name_;
  std::string mark_;  // of the upload that is open, or of the last PUT
  std::string buffer_;
  uint64_t total_ = 0;      // bytes appended
  bool published_ = false;  // the object is there
  uint64_t seen_ = 0;       // bytes that it has
  // Bytes that it has and that the buffer has no more. The object is then one of parts, and its ETag
  // is tag_.
  uint64_t base_ = 0;
  std::string tag_;
  std::shared_ptr<Uploads> uploads_;  // of the upload that is open, or NULL
  std::optional<tw::Error> failure_;
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_WRITER_H_
