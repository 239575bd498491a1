#include "distributed/server.h"

#include <chrono>
#include <random>
#include <utility>

#include "distributed/gate.h"
#include "distributed/local_tasks.h"
#include "distributed/rules.h"
#include "distributed/sandbox/pipe_transport.h"
#include "framework/files/confined_files.h"
#include "thalweg/log.h"
#include "thalweg/version.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kLeastMessage = 64 << 10;  // bytes; with less a client could not send a useful request

constexpr tw_option AtLeast(int64_t least, tw_option o) {
  o.min = least;
  return o;
}

// Finds a bad folder now, rather than with the first client.
Status CheckFolder(const std::string& allow_files, Runtime* runtime) {
  if (allow_files.empty()) return Status();
  const bool scheme = !SchemeOf(allow_files).empty();
  const Status s = (scheme ? FilesBeneathScheme(allow_files, &runtime->files()) : OpenFilesBeneath(allow_files)).status();
  return s.ok() ? s : Prefix(s, "server option 'allow_files':");
}

}  // namespace

uint64_t NewIncarnation() {
  std::random_device device;
  uint64_t n = 0;
  while (n == 0) n = uint64_t{device()} << 32 | device();
  return n;
}

StatusOr<std::shared_ptr<const TransportRole>> FindTransport(Runtime* runtime, const Address& address, bool insecure) {
  if (address.scheme == kPipeScheme) return PipeTransport();
  const auto found = runtime->registry().RolesOf<TransportRole>(address.scheme);
  if (found.empty()) {
    std::string all;
    for (const auto& r : runtime->registry().RolesOf<TransportRole>()) all += StrCat(all.empty() ? "" : ", ", r->name);
    return NotFound("address '", address.text(), "': no transport of scheme '", address.scheme,
                    "'; registered: ", all.empty() ? "none" : all, "; load the plugin that provides it");
  }
  if (found[0]->def.security == TW_TRANSPORT_OPEN && !insecure) {
    return Error(absl::StatusCode::kPermissionDenied, "address '", address.text(), "': anybody who reaches it is let in by transport '",
                 address.scheme, "'; use one that proves who calls, or set the option `insecure`");
  }
  return found[0];
}

std::span<const OptionRow<ServerOptions>> ServerOptionRows() {
  using O = ServerOptions;
  static constexpr const char* kSandboxes[] = {"off", "on", "strict"};
  static const OptionRow<O> rows[] = {
      {TextOption("allow_files", "",
                  "a folder, of the machine or `scheme://...`, beneath which clients' operations may read and write files; relative paths "
                  "start there; empty: no files"),
       SetMember<&O::allow_files>},
      {BoolOption("trust_clients", "false", "clients' operations may do what the program's own may: files, network, all memory"),
       SetMember<&O::trust_clients>},
      {IntOption("max_sessions", "1000", 1, UINT32_MAX, "sessions of clients that may be open at once"), SetMember<&O::max_sessions>},
      {IntOption("max_client_sessions", "250", 1, UINT32_MAX, "of those, the ones of one client, where clients prove who they are"),
       SetMember<&O::max_client_sessions>},
      {BytesOption("memory_limit", "0",
                   "bytes that clients may make the task hold in all: messages, graphs, values, answers that nobody has read; 0: three "
                   "quarters of the machine's memory (or of the control group's)"),
       SetMember<&O::memory_limit>},
      {BytesOption("client_memory_limit", "0",
                   "of those, what one client may hold in all its sessions, where clients prove who they are; 0: three quarters"),
       SetMember<&O::client_memory_limit>},
      {IntOption("max_client_requests", "4096", 1, UINT32_MAX,
                 "requests of one client that may be served at once, those included whose answers it has not read, where clients prove who "
                 "they are"),
       SetMember<&O::max_client_requests>},
      {IntOption("max_threads", "512", 3, UINT32_MAX,
                 "threads that may run clients' steps, kernels that block, and ends of sessions at once; what is beyond waits"),
       SetMember<&O::max_threads>},
      {IntOption("max_client_threads", "64", 3, UINT32_MAX, "of those, the ones of one client, where clients prove who they are"),
       SetMember<&O::max_client_threads>},
      {AtLeast(kLeastMessage, BytesOption("max_message_bytes", "4294967296", "the largest message that is taken")),
       SetMember<&O::max_message_bytes>},
      {TextOption("credentials", "",
                  "what proves who the task is, and who may use it: a folder as `thalweg cluster init` makes one; empty: programs of this "
                  "user on this machine alone"),
       SetMember<&O::credentials>},
      {BoolOption("insecure", "false", "whoever reaches the address may use the task, without proof and encryption"),
       SetMember<&O::insecure>},
      {ChoiceOption("sandbox", "off", kSandboxes,
                    "on: each client's graphs run in a process of its own that has no network, writes no files and reads those of "
                    "allow_files alone; the start fails where the machine cannot hold it to that. strict: also where memory and threads "
                    "cannot be limited"),
       SetMember<&O::sandbox>},
      {BytesOption("sandbox_memory", "0", "of a client's process, at most; 0: a quarter of the machine's memory"),
       SetMember<&O::sandbox_memory>},
      {IntOption("sandbox_threads", "64", 4, 4096, "threads that a client's process may have"), SetMember<&O::sandbox_threads>},
      {IntOption("sandbox_step_ms", "60000", 0, UINT32_MAX,
                 "milliseconds that a request of a client may take; its process is ended where that does not end by itself; 0: any"),
       SetMember<&O::sandbox_step_ms>},
      {IntOption("sandbox_processes", "64", 1, 4096, "processes of clients that there may be at once"), SetMember<&O::sandbox_processes>},
  };
  return rows;
}

Status SetServerOption(ServerOptions* options, std::string_view key, std::string_view value) {
  return SetOption("server", ServerOptionRows(), options, key, value);
}

// The entry for clients of this program.
class Server::Here final : public LocalTask {
 public:
  Here(Worker* worker, Inbox* inbox) : worker_(worker), inbox_(inbox) {}
  bool Run(const SessionName& session, const RunRequest& m, bool watched, Payload body, Answer answer) override {
    const Gate::Pass pass(&gate_);
    if (pass) worker_->Run(m, watched, Incoming::Local(session.owner, std::move(body), std::move(answer)));
    return bool(pass);
  }
  void Take(const SessionName& session, uint64_t step, std::vector<PushedValue> values) override {
    const Gate::Pass pass(&gate_);
    // Takes all of them: their senders have given them away. A step that has ended needs none.
    if (pass) inbox_->Put(session, step, std::move(values), true).status().IgnoreError();
  }
  void Close() { gate_.Close(); }

 private:
  Worker* const worker_;
  Inbox* const inbox_;
  Gate gate_;
};

Server::Server(std::shared_ptr<Runtime> runtime, ClusterSpec cluster, TaskId task)
    : runtime_(std::move(runtime)), cluster_(std::move(cluster)), task_(std::move(task)), incarnation_(NewIncarnation()) {}

StatusOr<std::unique_ptr<Server>> Server::Start(std::shared_ptr<Runtime> runtime, const ClusterSpec& cluster, const TaskId& task,
                                                const ServerOptions& options) {
  const ClusterSpec::Task* self = cluster.Find(task);
  if (!self) return NotFound("server: the cluster has no ", task.text(), "; its tasks: ", cluster.names());
  RETURN_IF_ERROR(runtime->host_device().status());
  RETURN_IF_ERROR(CheckFolder(options.allow_files, runtime.get()));
  ASSIGN_OR_RETURN(auto transport, FindTransport(runtime.get(), self->address, options.insecure));
  std::unique_ptr<Server> s(new Server(std::move(runtime), cluster, task));
  s->scheme_ = self->address.scheme;
  s->clock_ = std::make_unique<SystemClock>();
  s->began_ = s->clock_->Now();
  s->accounts_ = std::make_shared<PeerAccounts>(options, &s->runtime_->pool());
  const EndpointOptions endpoint = {self->address.rest, options.credentials, options.max_message_bytes, options.insecure, false};
  auto messenger = Messenger::Create(
      transport, endpoint, s->clock_.get(), [server = s.get()](std::shared_ptr<Incoming> request) { server->Serve(std::move(request)); },
      s->accounts_);
  if (!messenger.ok()) return Prefix(messenger.status(), StrCat("server ", task.text(), ":"));
  s->messenger_ = *std::move(messenger);
  RETURN_IF_ERROR(s->FindOwnAddress());
  s->pusher_ = std::make_unique<Pusher>(&s->mailbox_, s->messenger_.get());
  const Channels channels = {s->messenger_.get(), &s->mailbox_, &s->inbox_, s->pusher_.get()};
  if (!cluster.membership().empty()) {
    const auto announce = [server = s.get()](Members* m) { return m->Announce(server->task_, server->incarnation_); };
    const Members::Config member = {cluster.membership(), task.text(), options.credentials};
    s->membership_ = std::make_unique<Membership>(s->runtime_.get(), member, announce);
  }
  const auto others_tell = [m = s->membership_.get()] { return m && m->joined(); };
  s->worker_ = std::make_unique<Worker>(s->runtime_, options, &s->cluster_, channels, others_tell);
  if (options.sandbox != "off") {
    RETURN_IF_ERROR(s->StartSandbox(options));
  } else {  // a sandboxed client has no local shortcut
    s->here_ = std::make_shared<Here>(s->worker_.get(), &s->inbox_);
    s->runtime_->Common<LocalTasks>()->Add(s->incarnation_, s->here_);
  }
  {
    std::lock_guard lock(s->mu_);
    s->ready_ = true;
    s->changed_.notify_all();
  }
  if (Status named = s->CheckOwnName(std::move(transport), endpoint); !named.ok())
    return Prefix(named, StrCat("server ", task.text(), ":"));
  const Status joined = s->membership_ ? s->membership_->Start() : Status();
  if (!joined.ok()) return Prefix(joined, StrCat("server ", task.text(), ":"));
  return s;
}

Status Server::StartSandbox(const ServerOptions& options) {
  if (options.trust_clients) return InvalidArgument("server options 'sandbox' and 'trust_clients' exclude each other; leave one out");
  if (!SchemeOf(options.allow_files).empty()) {
    return InvalidArgument("server option 'allow_files': '", options.allow_files,
                           "' is no folder of this machine, and a sandbox reads no others");
  }
  SandboxSettings settings;
  settings.strict = options.sandbox == "strict";
  settings.memory = options.sandbox_memory;
  settings.threads = options.sandbox_threads;
  settings.step_ns = int64_t{options.sandbox_step_ms} * 1'000'000;
  settings.most_processes = options.sandbox_processes;
  settings.allow_files = options.allow_files;
  sandbox_ =
      std::make_unique<SandboxHost>(runtime_, std::move(settings), options.max_message_bytes, options.max_client_sessions, clock_.get());
  return Prefix(sandbox_->Start(), StrCat("server ", task_.text(), ":"));
}

// A cluster of one task may leave its port to the system: whoever knows address() knows the
// cluster. In a larger cluster the other tasks would never learn the port.
Status Server::FindOwnAddress() {
  const Address& said = cluster_.Find(task_)->address;
  if (!said.leaves_port_open() || messenger_->address() == said.rest) return Status();
  if (cluster_.tasks().size() > 1) {
    return InvalidArgument("server ", task_.text(), ": the cluster says ", said.text(),
                           ", and no other task can know which port that becomes (", messenger_->address(),
                           " now); write a port that is free");
  }
  cluster_.SetAddress(task_, messenger_->address());
  return Status();
}

Status Server::CheckOwnName(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options) {
  if (options.credential.empty()) return Status();
  const ClusterSpec::Task& self = *cluster_.Find(task_);
  std::string warning;
  RETURN_IF_ERROR(
      own_name_.Check(std::move(transport), options, task_, {self.address.rest, self.title(), incarnation_}, clock_.get(), &warning));
  if (!warning.empty()) runtime_->Log(TW_LOG_WARNING, StrCat("server ", task_.text(), ": ", warning));
  return Status();
}

Server::~Server() { Stop(); }

void Server::Stop() {
  {
    std::unique_lock lock(mu_);
    if (std::exchange(stopping_, true)) {
      changed_.wait(lock, [this] { return stopped_; });
      return;
    }
  }
  changed_.notify_all();
  if (membership_) membership_->Stop();  // other members learn that the task is gone before its connections end
  if (here_) {
    runtime_->Common<LocalTasks>()->Remove(incarnation_);
    here_->Close();
  }
  if (worker_) worker_->Close();
  if (sandbox_) sandbox_->Close();
  if (messenger_) messenger_->Close();
  clock_->Stop();
  std::lock_guard lock(mu_);
  stopped_ = true;
  changed_.notify_all();
}

void Server::Join() {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] { return stopped_; });
}

Hello Server::MakeHello() const {
  Hello m;
  m.job = task_.job;
  m.index = task_.index;
  m.incarnation = incarnation_;
  m.version = StrCat(TW_VERSION_MAJOR, ".", TW_VERSION_MINOR, ".", TW_VERSION_PATCH);
  m.steps = sandbox_ ? sandbox_->steps() : worker_->steps();
  m.sessions = sandbox_ ? sandbox_->sessions() : worker_->sessions();
  return m;
}

void Server::AnswerHello(bool asks_features, Incoming* request) const {
  WireWriter w;
  Hello m = MakeHello();
  if (asks_features && !sandbox_) m.features = kTakesPushes;
  m.Put(&w);
  request->Answer(PutAnswer(w), Payload::Of(cluster_.text()));
}

void Server::AnswerStatus(uint64_t session, Incoming* request) const {
  TaskStatus m;
  m.hello = MakeHello();
  m.age = clock_->Now() - began_;
  m.memory = ProcessMemory();
  for (const Device* d : runtime_->ready_devices()) {
    const MemoryPool::Stats stats = d->pool()->stats();
    m.devices.push_back({d->name(), stats.in_use, stats.limit});
  }
  worker_->Look(session, request->peer(), request->role(), &m);
  // As a field, because the bytes of the status are a fixed format; older clients read no fields.
  WireWriter fields;
  fields.Text(sandbox_ ? std::string_view(sandbox_->in_force()) : std::string_view());
  request->Answer(PutAnswer(fields), Payload::Of(m.Put()));
}

void Server::Serve(std::shared_ptr<Incoming> request) {
  {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return ready_ || stopping_; });  // requests may come in while the server is being built
  }
  const auto head = GetRequest(request->head());
  if (!head.ok()) return request->Fail({head.status(), false});
  if (Status s = CheckRole(head->method, request->role()); !s.ok()) return request->Fail({s, false});
  if (head->incarnation != 0 && head->incarnation != incarnation_) {
    return request->Fail({Error(absl::StatusCode::kAborted, "was restarted: what it held is gone, and it has to be told anew"), false});
  }
  if (head->method == Method::kHello) own_name_.Heard(head->fields, *request);
  if (head->method == Method::kHello) return AnswerHello(!head->fields.empty(), request.get());
  if (head->method == Method::kStatus) {
    const auto m = SessionRequest::Get(head->fields);
    return m.ok() ? AnswerStatus(m->session, request.get()) : request->Fail({m.status(), false});
  }
  if (sandbox_) return sandbox_->Serve(*head, std::move(request));
  if (head->method == Method::kPush) return inbox_.Serve(head->fields, request.get());
  if (head->method != Method::kReceive) return worker_->Serve(*head, std::move(request));
  const auto m = ReceiveRequest::Get(head->fields);
  if (!m.ok()) return request->Fail({m.status(), false});
  mailbox_.Ask(*m, std::move(request));
}

}  // namespace thalweg::distributed
