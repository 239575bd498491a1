// EventWriter: event files, which TensorBoard reads while they grow. Events wait in a queue, and a
// thread of the writer encodes them and appends whole records, at latest flush_seconds after they
// came. A crash of the process loses the events in the queue, and leaves a file that readers read
// to its end.
// Threads: any number, except for the destructor. All calls may block on files or a full queue.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/io/summary.h"

namespace thalweg {

struct EventWriterOptions {
  double flush_seconds = 1;          // the longest time that an event waits in the queue
  uint64_t queue_bytes = 64u << 20;  // events of more bytes than these make their callers wait
  uint64_t queue_events = 0;         // the same for their number; 0: no limit
  uint64_t most_bytes = 0;           // a file that is larger is closed, and another one begun; 0: never
  std::string suffix;                // of the files' names
};

struct EventWriterReport {
  uint64_t events = 0, bytes = 0, files = 0;  // written
};

class EventWriter {
 public:
  using Summary = std::function<Status(std::string* to)>;

  // Creates the folder, with those above it, and a file `events.out.tfevents.`seconds`.`host`.`
  // process`.`number in it. files: used until the writer ends, or, if most_bytes is 0, only by this
  // call. Errors: those of the file system; INVALID_ARGUMENT for a suffix with a '/'.
  static StatusOr<std::unique_ptr<EventWriter>> Open(const std::string& folder, const EventWriterOptions& options,
                                                     std::shared_ptr<FileSystem> files);
  // As Close; drops the error.
  ~EventWriter();

  // Queue an event. wall_time: seconds since 1970. All return the first failure of the file, after
  // which the writer writes nothing more; FAILED_PRECONDITION after Close, and in another process
  // than that of Open.
  Status Add(double wall_time, int64_t step, EventField field, std::string_view bytes);
  Status AddEvent(std::string event);  // a whole Event message
  // Queues an event whose Summary the writer's thread makes. held: the bytes that `make` keeps. If
  // it fails, the event is left out, and the next Flush or Close returns the first such failure.
  Status AddLater(double wall_time, int64_t step, uint64_t held, Summary make);
  // Waits until all events that came before are in the file and the file is synced.
  Status Flush();
  // As Flush, and closes the file. Later calls return the same status.
  Status Close();

  // The file that is being written.
  std::string path() const;
  EventWriterReport report() const;

  static double Now();  // seconds since 1970

 private:
  struct Item {
    double wall_time;
    int64_t step;
    uint64_t held;
    std::string event;  // of AddEvent and Add
    Summary make;       // of AddLater
  };

  EventWriter(std::string folder, const EventWriterOptions& options, std::shared_ptr<FileSystem> files);
  Status Push(Item item);
  Status CheckProcess() const;
  void StartWork();
  void Work();
  // Of the writing thread, and of Open and Close while there is none.
  static Status Make(const Item& item, std::string* summary);
  Status Write(std::deque<Item>* items, bool sync);
  Status BeginFile();
  Status EndFile();
  Status WriteOut();

  const std::string folder_;
  const EventWriterOptions options_;
  std::shared_ptr<FileSystem> files_;
  const pid_t process_;

  std::unique_ptr<WritableFile> file_;
  std::string buffer_;       // whole records that are not in the file yet
  uint64_t file_bytes_ = 0;  // of the file and the buffer
  uint64_t next_number_ = 0;

  // On the heap, because a forked process must leave it: there the thread is missing, and the
  // conditions wait for it forever when they are destroyed.
  struct Waits {
    std::thread thread;  // started by the first event
    std::mutex mu;
    std::condition_variable wake;  // for the thread
    std::condition_variable done;  // for callers: the thread has taken or written something
  };
  std::unique_ptr<Waits> waits_;
  std::thread& thread_;
  std::mutex& mu_;
  std::condition_variable &wake_, &done_;
  // Guarded by mu_.
  std::deque<Item> queue_;
  uint64_t waiting_bytes_ = 0;  // of the queue and of the items that the thread writes
  uint64_t waiting_events_ = 0;
  uint64_t asked_ = 0, flushed_ = 0;  // flushes
  bool hurry_ = false, closing_ = false, closed_ = false;
  Status failure_;   // of the file
  Status left_out_;  // of a Summary, not yet returned
  std::string path_;
  EventWriterReport report_;
};

}  // namespace thalweg
