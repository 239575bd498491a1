#include "writer.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "fail.h"

namespace thalweg::s3 {
namespace {

constexpr size_t kMostParts = 10'000;                // S3's limit
constexpr uint64_t kCopiedPart = uint64_t{1} << 30;  // S3 allows 5 GiB

}  // namespace

// A multipart upload; shared with the threads that upload its parts.
struct Writer::Uploads {
  explicit Uploads(Address where) : at(std::move(where)) {}
  const Address at;
  std::string id;  // constant once there is a part
  std::mutex mu;
  std::condition_variable changed;
  uint32_t running = 0;              // guarded by mu
  std::vector<std::string> tags;     // guarded by mu; of the parts, in their order
  std::optional<tw::Error> failure;  // guarded by mu

  void Wait() {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return running == 0; });
  }
  bool HasFailed() {
    std::lock_guard lock(mu);
    return failure.has_value();
  }
  // Uploads a part and enters its tag; does nothing after another part has failed. Never throws.
  void Upload(Process& process, size_t index, const std::string& bytes) noexcept {
    std::string tag;
    std::optional<tw::Error> failed;
    try {
      if (!HasFailed()) tag = process.objects.UploadPart(at, id, uint32_t(index + 1), bytes);
    } catch (tw::Error& e) {
      failed = std::move(e);
    } catch (const std::exception&) {
      failed = tw::Error{TW_RESOURCE_EXHAUSTED, "out of memory"};  // short texts need none
    }
    process.parts.Give();
    std::lock_guard lock(mu);
    tags[index] = std::move(tag);
    if (failed && !failure) failure = std::move(failed);
    --running;
    changed.notify_all();
  }
};

Writer::Name::Name(Process* p, std::string t) : process(*p), text(std::move(t)) {
  if (!process.EnterName(text)) Fail(TW_ALREADY_EXISTS, text + ": this process is writing an object of that name");
}

Writer::Name::~Name() {
  if (origin.here()) process.LeaveName(text);
}

Writer::Writer(Store* store, Address at) : store_(*store), at_(std::move(at)), name_(&store_.here(), at_.text()) {
  Seen there;
  if (store_.here().objects.Look(at_, 1, &there)) Fail(TW_ALREADY_EXISTS, at_.text() + ": there is an object of that name");
}

Writer::~Writer() {
  if (!uploads_ || !name_.origin.here()) return;
  uploads_->Wait();
  try {
    store_.here().objects.Abort(at_, uploads_->id);
  } catch (const tw::Error& e) {
    store_.Warn("parts of an upload that failed stay in the store until a rule of the bucket removes them: " + e.text);
  } catch (const std::exception&) {
    store_.Warn("parts of an upload that failed stay in the store until a rule of the bucket removes them");
  }
}

template <class F>
void Writer::Guard(F&& body) {
  if (!name_.origin.here()) {
    Fail(TW_FAILED_PRECONDITION, at_.text() + ": the file was created by the process that this one was forked from; write another one");
  }
  if (failure_) throw *failure_;
  try {
    body();
  } catch (const tw::Error& e) {
    failure_ = tw::Error{e.code, {}};  // stays if there is no memory for the text
    failure_->text = e.text;
    throw;
  } catch (const std::exception&) {
    failure_ = tw::Error{TW_RESOURCE_EXHAUSTED, "out of memory"};  // short texts need none
    throw;
  }
}

// Begins an upload. The bytes that the object has already are its first parts. Its mark is new: with that
// of the object that it replaces, an upload that somebody aborted would look like one that arrived.
void Writer::BeginUpload() {
  mark_ = NewMark();
  Objects& objects = store_.here().objects;
  auto uploads = std::make_shared<Uploads>(at_);
  uploads->id = objects.Begin(at_, mark_);
  uploads_ = std::move(uploads);  // from here on it is aborted after a failure
  CopyHead();
}

void Writer::CopyHead() {
  Seen own;
  own.size = base_;
  own.tag = tag_;
  // The parts are of equal size but for the last, and at least 5 MiB long.
  const uint64_t n = (base_ + kCopiedPart - 1) / kCopiedPart;
  std::vector<std::string> tags(n);
  store_.here().workers.ForAll(n, [&](uint64_t i) {
    const uint64_t from = base_ * i / n, to = base_ * (i + 1) / n;
    tags[i] = store_.here().objects.CopyPart(at_, uploads_->id, uint32_t(i + 1), at_, own, from, to - from);
  });
  std::lock_guard lock(uploads_->mu);
  uploads_->tags = std::move(tags);
}

// Uploads the buffer as the next part; waits while too many parts are under way.
void Writer::SubmitPart() {
  Process& process = store_.here();
  if (!uploads_) BeginUpload();
  auto bytes = std::make_shared<const std::string>(std::move(buffer_));
  buffer_.clear();
  size_t index;
  {
    std::lock_guard lock(uploads_->mu);
    if (uploads_->failure) throw *uploads_->failure;
    index = uploads_->tags.size();
    if (index == kMostParts) {
      Fail(TW_RESOURCE_EXHAUSTED, at_.text() + ": an object has at most 10,000 parts of " + std::to_string(store_.settings().part_bytes) +
                                      " bytes; set plugin.org.thalweg.s3.part_bytes to a larger number");
    }
    uploads_->tags.emplace_back();
  }
  process.parts.Take();
  {
    std::lock_guard lock(uploads_->mu);
    ++uploads_->running;
  }
  bool queued = false;
  try {
    queued = process.workers.Offer([&process, uploads = uploads_, index, bytes] { uploads->Upload(process, index, *bytes); });
  } catch (const std::bad_alloc&) {
  }
  if (!queued) uploads_->Upload(process, index, *bytes);
}

void Writer::Append(const void* bytes, uint64_t n) {
  Guard([&] {
    const char* from = static_cast<const char*>(bytes);
    const uint64_t part = store_.settings().part_bytes;
    while (n > 0) {
      const uint64_t k = std::min(n, part - buffer_.size());
      buffer_.append(from, k);
      from += k;
      n -= k;
      total_ += k;
      if (buffer_.size() == part) SubmitPart();
    }
  });
}

void Writer::Sync() {
  Guard([&] {
    if (!published_ || seen_ < total_) Publish();
  });
}

void Writer::Publish() {
  Objects& objects = store_.here().objects;
  const bool fresh = !published_ && store_.settings().conditional;
  if (!uploads_ && base_ == 0) {
    mark_ = NewMark();
    objects.Put(at_, buffer_, mark_, fresh);  // the buffer stays, because it may grow
  } else {
    if (!buffer_.empty()) SubmitPart();
    uploads_->Wait();
    std::vector<std::string> tags;
    {
      std::lock_guard lock(uploads_->mu);
      if (uploads_->failure) throw *uploads_->failure;
      tags = uploads_->tags;
    }
    tag_ = objects.Complete(at_, uploads_->id, tags, mark_, fresh);
    uploads_.reset();
    base_ = total_;
  }
  published_ = true;
  seen_ = total_;
}

}  // namespace thalweg::s3
