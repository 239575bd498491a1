#include "framework/io/event_writer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "framework/io/record_file.h"

namespace thalweg {
namespace {

constexpr uint64_t kBuffer = 1 << 20;  // bytes that are written at once
constexpr uint64_t kEventBytes = 128;  // of an item beside its contents
constexpr double kLongestFlush = 24 * 3600;

// Creates the folder and those above it.
Status MakeFolders(const std::string& folder, FileSystem& files) {
  Status made = files.MakeFolder(folder);
  if (!absl::IsNotFound(made)) return made;
  const std::string above = FolderOf(folder.substr(0, folder.find_last_not_of('/') + 1));
  if (above == "." || above == "/" || above.size() >= folder.size()) return made;
  RETURN_IF_ERROR(MakeFolders(above, files));
  return files.MakeFolder(folder);
}

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || !name[0]) return "localhost";
  for (char* c = name; *c; ++c) {
    if (*c == '/') *c = '_';
  }
  return name;
}

// Names sort by the times at which the files were begun.
std::string FileName(double seconds, uint64_t number, const std::string& suffix) {
  char begin[64], end[64];
  std::snprintf(begin, sizeof begin, "events.out.tfevents.%010lld.", static_cast<long long>(seconds));
  std::snprintf(end, sizeof end, ".%lld.%05llu", static_cast<long long>(getpid()), static_cast<unsigned long long>(number));
  return begin + HostName() + end + suffix;
}

}  // namespace

double EventWriter::Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

EventWriter::EventWriter(std::string folder, const EventWriterOptions& options, std::shared_ptr<FileSystem> files)
    : folder_(std::move(folder)),
      options_(options),
      files_(std::move(files)),
      process_(getpid()),
      waits_(std::make_unique<Waits>()),
      thread_(waits_->thread),
      mu_(waits_->mu),
      wake_(waits_->wake),
      done_(waits_->done) {}

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Open(const std::string& folder, const EventWriterOptions& options,
                                                         std::shared_ptr<FileSystem> files) {
  if (folder.empty()) return InvalidArgument("the folder of summaries is empty; name one such as 'runs/1'");
  if (options.suffix.find('/') != std::string::npos) {
    return InvalidArgument("the suffix '", options.suffix, "' of event files has a '/' in it");
  }
  if (!(options.flush_seconds >= 0)) {
    return InvalidArgument("flush_seconds is ", options.flush_seconds, "; it must be 0 or more");
  }
  RETURN_IF_ERROR(MakeFolders(folder, *files));
  std::unique_ptr<EventWriter> writer(new EventWriter(folder, options, std::move(files)));
  RETURN_IF_ERROR(writer->BeginFile());
  RETURN_IF_ERROR(writer->WriteOut());
  if (options.most_bytes == 0) writer->files_.reset();
  return writer;
}

EventWriter::~EventWriter() {
  if (getpid() == process_) {
    Close().IgnoreError();
  } else {
    static_cast<void>(waits_.release());
  }
}

Status EventWriter::CheckProcess() const {
  if (getpid() == process_) return Status();
  return FailedPrecondition("the writer of '", folder_, "' was made before this process was forked; make a writer in this process");
}

Status EventWriter::Add(double wall_time, int64_t step, EventField field, std::string_view bytes) {
  return Push({wall_time, step, bytes.size() + kEventBytes, EncodeEvent(wall_time, step, field, bytes), nullptr});
}

Status EventWriter::AddEvent(std::string event) {
  RETURN_IF_ERROR(CheckMessage("an event", event));
  const uint64_t held = event.size() + kEventBytes;
  return Push({0, 0, held, std::move(event), nullptr});
}

Status EventWriter::AddLater(double wall_time, int64_t step, uint64_t held, Summary make) {
  return Push({wall_time, step, held + kEventBytes, {}, std::move(make)});
}

Status EventWriter::Push(Item item) {
  RETURN_IF_ERROR(CheckProcess());
  std::unique_lock lock(mu_);
  const auto fits = [&] {
    if (closing_ || !failure_.ok() || waiting_events_ == 0) return true;
    return waiting_bytes_ + item.held <= options_.queue_bytes && (options_.queue_events == 0 || waiting_events_ < options_.queue_events);
  };
  if (!fits()) {
    hurry_ = true;
    wake_.notify_one();
    done_.wait(lock, fits);
  }
  if (!failure_.ok()) return failure_;
  if (closing_) return FailedPrecondition("the writer of '", folder_, "' is closed; make another one");
  if (!thread_.joinable()) StartWork();
  waiting_bytes_ += item.held;
  waiting_events_ += 1;
  const bool first = queue_.empty(), much = waiting_bytes_ > options_.queue_bytes / 4;
  hurry_ = hurry_ || much;
  queue_.push_back(std::move(item));
  if (first || much) wake_.notify_one();
  return Status();
}

Status EventWriter::Flush() {
  RETURN_IF_ERROR(CheckProcess());
  std::unique_lock lock(mu_);
  if (closing_) return failure_.ok() ? FailedPrecondition("the writer of '", folder_, "' is closed") : failure_;
  if (!thread_.joinable()) StartWork();
  const uint64_t mine = ++asked_;
  wake_.notify_one();
  done_.wait(lock, [&] { return flushed_ >= mine; });
  return failure_.ok() ? std::exchange(left_out_, Status()) : failure_;
}

Status EventWriter::Close() {
  RETURN_IF_ERROR(CheckProcess());
  std::unique_lock lock(mu_);
  if (closing_) {
    done_.wait(lock, [&] { return closed_; });
    return failure_;
  }
  closing_ = true;
  wake_.notify_one();
  done_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  Status ended = EndFile();
  lock.lock();
  if (failure_.ok()) failure_ = ended.ok() ? std::exchange(left_out_, Status()) : std::move(ended);
  closed_ = true;
  done_.notify_all();
  return failure_;
}

std::string EventWriter::path() const {
  std::lock_guard lock(mu_);
  return path_;
}

EventWriterReport EventWriter::report() const {
  std::lock_guard lock(mu_);
  return report_;
}

// REQUIRES: mu_ is locked.
void EventWriter::StartWork() {
  thread_ = StartThread([this] { Work(); });
}

void EventWriter::Work() {
  LeaveSignalsToTheProgram();
  const auto longest = std::chrono::duration<double>(std::min(options_.flush_seconds, kLongestFlush));
  std::unique_lock lock(mu_);
  for (;;) {
    const auto urgent = [&] { return closing_ || hurry_ || asked_ > flushed_; };
    wake_.wait(lock, [&] { return urgent() || !queue_.empty(); });
    if (!urgent()) wake_.wait_for(lock, longest, urgent);
    std::deque<Item> items;
    items.swap(queue_);
    hurry_ = false;
    const uint64_t asked = asked_;
    const bool write = failure_.ok(), sync = asked > flushed_ || closing_;
    lock.unlock();
    uint64_t bytes = 0;
    for (const Item& item : items) bytes += item.held;
    const uint64_t n = items.size();
    Status written;
    if (write) {
      try {
        written = Write(&items, sync);
      } catch (...) {
        written = Thrown();
      }
    }
    items.clear();
    lock.lock();
    waiting_bytes_ -= bytes;
    waiting_events_ -= n;
    if (failure_.ok()) failure_ = std::move(written);
    flushed_ = asked;
    done_.notify_all();
    if (closing_ && queue_.empty()) return;
  }
}

Status EventWriter::Make(const Item& item, std::string* summary) {
  try {
    return item.make(summary);
  } catch (...) {
    return Thrown();
  }
}

Status EventWriter::Write(std::deque<Item>* items, bool sync) {
  for (; !items->empty(); items->pop_front()) {
    Item& item = items->front();
    if (item.make) {
      std::string summary;
      if (Status made = Make(item, &summary); !made.ok()) {
        std::lock_guard lock(mu_);
        if (left_out_.ok()) left_out_ = std::move(made);
        continue;
      }
      item.event = EncodeEvent(item.wall_time, item.step, EventField::kSummary, summary);
    }
    const size_t before = buffer_.size();
    AppendRecord(item.event, &buffer_);
    file_bytes_ += buffer_.size() - before;
    {
      std::lock_guard lock(mu_);
      report_.events += 1;
    }
    if (buffer_.size() >= kBuffer) RETURN_IF_ERROR(WriteOut());
    if (options_.most_bytes == 0 || file_bytes_ <= options_.most_bytes) continue;
    RETURN_IF_ERROR(EndFile());
    RETURN_IF_ERROR(BeginFile());
  }
  RETURN_IF_ERROR(WriteOut());
  return sync ? file_->Sync() : Status();
}

// If a write fails in the middle, the file ends with part of a record, and nothing follows.
Status EventWriter::WriteOut() {
  if (buffer_.empty()) return Status();
  RETURN_IF_ERROR(file_->Append(buffer_.data(), buffer_.size()));
  std::lock_guard lock(mu_);
  report_.bytes += buffer_.size();
  buffer_.clear();
  return Status();
}

Status EventWriter::BeginFile() {
  const double now = Now();
  std::string path = folder_ + (folder_.back() == '/' ? "" : "/");
  for (file_.reset(); !file_; ++next_number_) {
    const std::string name = path + FileName(now, next_number_, options_.suffix);
    StatusOr<std::unique_ptr<WritableFile>> made = files_->Create(name);
    if (absl::IsAlreadyExists(made.status())) continue;  // another writer of this process has the name
    ASSIGN_OR_RETURN(file_, std::move(made));
    path = name;
  }
  const size_t before = buffer_.size();
  AppendRecord(EncodeEvent(now, 0, EventField::kFileVersion, "brain.Event:2"), &buffer_);
  file_bytes_ = buffer_.size() - before;
  std::lock_guard lock(mu_);
  path_ = path;
  report_.files += 1;
  return Status();
}

Status EventWriter::EndFile() {
  if (!file_) return Status();
  Status s;
  {
    std::lock_guard lock(mu_);
    s = failure_;
  }
  if (s.ok()) s = WriteOut();
  if (s.ok()) s = file_->Sync();
  const Status closed = file_->Close();
  file_.reset();
  return s.ok() ? closed : s;
}

}  // namespace thalweg
