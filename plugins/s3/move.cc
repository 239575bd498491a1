#include "move.h"

#include <exception>
#include <string>
#include <vector>

#include "fail.h"

namespace thalweg::s3 {
namespace {

// S3 copies up to 5 GiB by one request, but not faster than a connection; larger objects are copied in
// parts at once.
constexpr uint64_t kCopiedWhole = uint64_t{1} << 30, kCopiedPiece = uint64_t{512} << 20;

void CopyInParts(Process& process, const Address& from, const Seen& seen, const Address& to) {
  Objects& objects = process.objects;
  const std::string mark = seen.mark.empty() ? NewMark() : seen.mark, upload = objects.Begin(to, mark);
  const uint64_t n = (seen.size + kCopiedPiece - 1) / kCopiedPiece;
  std::vector<std::string> tags(n);
  try {
    process.workers.ForAll(n, [&](uint64_t i) {
      const uint64_t begin = seen.size * i / n, end = seen.size * (i + 1) / n;
      tags[i] = objects.CopyPart(to, upload, uint32_t(i + 1), from, seen, begin, end - begin);
    });
    objects.Complete(to, upload, tags, mark, false);
  } catch (...) {
    try {
      objects.Abort(to, upload);
    } catch (const tw::Error&) {  // the first error is the one to report
    } catch (const std::exception&) {
    }
    throw;
  }
}

// The store has answered that it did nothing.
bool IsAnswer(uint32_t code) {
  return code == TW_NOT_FOUND || code == TW_PERMISSION_DENIED || code == TW_UNAUTHENTICATED || code == TW_FAILED_PRECONDITION ||
         code == TW_INVALID_ARGUMENT || code == TW_UNIMPLEMENTED || code == TW_ABORTED;
}

// Returns true if the copy is there all the same.
bool HasArrived(Process& process, const Seen& seen, const Address& to) {
  if (seen.mark.empty()) return false;
  try {
    Seen there;
    return process.objects.Look(to, 1, &there) && there.mark == seen.mark && there.size == seen.size;
  } catch (const tw::Error&) {
    return false;
  }
}

}  // namespace

void Move(Store* store, const Address& from, const Address& to) {
  Process& process = store->here();
  Seen seen;
  if (!process.objects.Look(from, 1, &seen)) Fail(TW_NOT_FOUND, from.text() + ": there is no such object");
  if (from.text() == to.text()) return;
  try {
    if (seen.size <= kCopiedWhole) {
      process.objects.Copy(from, seen, to);
    } else {
      CopyInParts(process, from, seen, to);
    }
  } catch (const tw::Error& e) {
    if (IsAnswer(e.code)) throw;
    if (!HasArrived(process, seen, to)) {
      Fail(TW_UNAVAILABLE, e.text + "; the store may have made the copy '" + to.text() + "', or may still make it");
    }
  }
  // The new name has the object: a failure here must not look as if it had not.
  try {
    process.objects.Remove(from);
  } catch (const tw::Error& e) {
    store->Warn("'" + from.text() + "' was renamed to '" + to.text() + "', and its old name stays: " + e.text);
  } catch (const std::exception&) {
    store->Warn("'" + from.text() + "' was renamed to '" + to.text() + "', and its old name stays");
  }
}

}  // namespace thalweg::s3
