#include "distributed/ask_tasks.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "distributed/clock.h"
#include "distributed/messenger.h"
#include "distributed/server.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kLargestAnswer = 64 << 20;

// Asks any number of tasks at once, and waits for all of them.
class Asker {
 public:
  using Answer = TaskAnswers::Answer;
  Asker(Messenger* messenger, int64_t deadline) : messenger_(messenger), deadline_(deadline) {}

  std::vector<Answer> Ask(const std::vector<Destination>& all, Method method, const WireWriter& fields) {
    const auto open = std::make_shared<Open>();
    open->answers.resize(all.size());
    open->left = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      Call call;
      call.to = all[i];
      call.method = method;
      call.fields = fields;
      call.deadline = deadline_;
      call.done = [open, i](const Reply& reply) {
        std::lock_guard lock(open->mu);
        open->answers[i] = {reply.outcome.status, std::string(reply.fields), std::string(reply.body)};
        if (--open->left == 0) open->changed.notify_all();
      };
      messenger_->Start(std::move(call));
    }
    std::unique_lock lock(open->mu);
    open->changed.wait(lock, [&] { return open->left == 0; });
    return std::move(open->answers);
  }

 private:
  struct Open {  // the calls hold it too
    std::mutex mu;
    std::condition_variable changed;
    size_t left = 0;
    std::vector<Answer> answers;
  };
  Messenger* const messenger_;
  const int64_t deadline_;
};

}  // namespace

StatusOr<TaskAnswers> AskTasks(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout, Method method,
                               const WireWriter& fields) {
  ASSIGN_OR_RETURN(const Address target, ParseAddress(options.target));
  ASSIGN_OR_RETURN(auto transport, FindTransport(runtime.get(), target, options.insecure));
  SystemClock clock;
  auto nobody = [](std::shared_ptr<Incoming> request) {
    request->Fail({Unimplemented("a client is asked for nothing; its address is no server's"), false});
  };
  const EndpointOptions endpoint = {"", options.credentials, kLargestAnswer, options.insecure, true};
  ASSIGN_OR_RETURN(auto messenger, Messenger::Create(std::move(transport), endpoint, &clock, nobody));
  // In this order, whether the requests succeeded or not: the clock's thread may be in the
  // messenger until it has stopped.
  struct End {
    Messenger* messenger;
    Clock* clock;
    ~End() {
      messenger->Close();
      clock->Stop();
    }
  } const end{messenger.get(), &clock};
  Asker asker(messenger.get(), clock.Now() + timeout);
  const auto first = asker.Ask({{target.rest, StrCat("target ", target.text()), 0}}, Method::kHello, WireWriter());
  RETURN_IF_ERROR(first[0].status);
  TaskAnswers all;
  ASSIGN_OR_RETURN(all.cluster, ClusterSpec::Parse(first[0].body));
  std::vector<Destination> to;
  for (const ClusterSpec::Task& t : all.cluster.tasks()) to.push_back({t.address.rest, t.title(), 0});
  all.answers = asker.Ask(to, method, fields);
  return all;
}

}  // namespace thalweg::distributed
