// Objects: the operations of S3 that the file system is made of. Threads: any; the calling thread
// waits. Errors: those of Client::Send; NOT_FOUND names a missing object or bucket.
#ifndef THALWEG_PLUGINS_S3_OBJECTS_H_
#define THALWEG_PLUGINS_S3_OBJECTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "client.h"

namespace thalweg::s3 {

// An object as it was when it was looked at.
struct Seen {
  uint64_t size = 0;
  std::string tag;      // its ETag
  std::string version;  // of a bucket that keeps versions; else empty
  std::string mark;     // of the writer that made it; empty if unknown
  std::string head;     // its first bytes
};

// Returns a new mark: a text that no other writer uses.
std::string NewMark();

class Objects {
 public:
  explicit Objects(Client* client) : client_(*client) {}

  // Looks at an object and reads its first `head` bytes, at least 1. Returns false if there is none.
  bool Look(const Address& at, uint64_t head, Seen* seen);
  // Reads exactly n bytes of the object that was seen. DATA_LOSS if it was replaced or removed since,
  // unless the bucket keeps its old version.
  void Read(const Address& at, const Seen& seen, uint64_t offset, void* to, uint64_t n);
  // Makes or replaces an object. mark: from NewMark, for these bytes alone. fresh: ALREADY_EXISTS if there
  // is an object that did not come from this very call.
  void Put(const Address& at, std::string_view bytes, const std::string& mark, bool fresh);
  // Succeeds also if there is no such object.
  void Remove(const Address& at);
  // Copies the object that was seen, replacing `to` at once. ABORTED if it was replaced since.
  // UNAVAILABLE leaves open whether `to` has the copy; after other errors it is as it was.
  void Copy(const Address& from, const Seen& seen, const Address& to);
  // Calls page(keys, prefixes) for each page of the names that begin with the folder's key.
  void List(const Address& folder, const std::function<void(const std::vector<std::string>&, const std::vector<std::string>&)>& page);

  // A multipart upload. Until it is completed, nobody sees anything of it.
  std::string Begin(const Address& at, const std::string& mark);
  // number: from 1. Returns the ETag of the part.
  std::string UploadPart(const Address& at, const std::string& upload, uint32_t number, std::string_view bytes);
  // The part is bytes [offset, offset + n) of another object.
  std::string CopyPart(const Address& at, const std::string& upload, uint32_t number, const Address& from, const Seen& seen,
                       uint64_t offset, uint64_t n);
  // Makes the parts an object, at once. Returns its ETag. mark, fresh: as in Begin and Put. UNAVAILABLE
  // leaves open whether the object is there.
  std::string Complete(const Address& at, const std::string& upload, const std::vector<std::string>& tags, const std::string& mark,
                       bool fresh);
  // Frees the parts. Waits for a short time only.
  void Abort(const Address& at, const std::string& upload);

 private:
  bool IsMine(const Address& at, const std::string& mark, std::string* tag);
  bool LookAtEmpty(const Address& at, Seen* seen);
  bool TryRead(const Address& at, const Seen& seen, bool by_version, uint64_t offset, void* to, uint64_t n);

  Client& client_;
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_OBJECTS_H_
