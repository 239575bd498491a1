#include "channel.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace thalweg::ucx_transport {
namespace {

// UCX's options. A value of the environment (UCX_...) does not replace these, because the safety of
// memory and the admission of peers depend on some of them.
constexpr std::pair<const char*, const char*> kOptions[] = {
    {"RNDV_SCHEME", "get_zcopy"},  // a receiver fetches; nobody writes into memory of another process
    {"RNDV_THRESH", "64k"},        // shorter messages are copied
    {"MM_ERROR_HANDLING", "y"},    // shared memory takes part in the detection of lost peers
    {"MM_RX_BUFS_GROW", "32"},     // 264 KB of shared memory for a connection; more if it is needed
    {"KEEPALIVE_INTERVAL", "3s"},  // a silent host is noticed within about ten seconds
    {"TCP_KEEPIDLE", "3s"},       {"TCP_KEEPINTVL", "2s"},
};

// Threads that UCX starts meanwhile take no signals of the program.
struct QuietSignals {
  QuietSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~QuietSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before;
};

std::string Text(const Library& ucx, const char* what, ucs_status_t s) {
  std::string text = std::string("UCX cannot ") + what + ": " + ucx.ucs_status_string(s);
  if (const std::string logged = TakeLastError(); !logged.empty()) text += " (" + logged + ")";
  return text;
}

}  // namespace

std::unique_ptr<Context> Context::Create(const Library* ucx, const std::string& transports, const std::string& devices, std::string* why) {
  const QuietSignals quiet;
  std::unique_ptr<Context> c(new Context(ucx));
  ucp_config_t* config = nullptr;
  ucs_status_t s = ucx->ucp_config_read(nullptr, nullptr, &config);
  if (s != UCS_OK) {
    *why = Text(*ucx, "read its configuration", s);
    return nullptr;
  }
  s = ucx->ucp_config_modify(config, "TLS", transports.c_str());
  if (s == UCS_OK && !devices.empty()) s = ucx->ucp_config_modify(config, "NET_DEVICES", devices.c_str());
  for (const auto& [name, value] : kOptions) {
    if (s == UCS_OK) s = ucx->ucp_config_modify(config, name, value);
    if (s == UCS_OK) continue;
    *why = Text(*ucx, name, s);
    ucx->ucp_config_release(config);
    return nullptr;
  }
  ucp_params_t p = {};
  p.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  p.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  p.name = "thalweg";
  s = ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &p, config, &c->context_);
  ucx->ucp_config_release(config);
  if (s == UCS_OK) return c;
  c->context_ = nullptr;
  *why = Text(*ucx, ("start with the transports '" + transports + "'").c_str(), s);
  return nullptr;
}

Context::~Context() {
  if (context_) ucx_->ucp_cleanup(context_);
}

std::unique_ptr<Channel> Channel::Create(const Context& context, ChannelEvents* events, std::string* why) {
  const QuietSignals quiet;
  std::unique_ptr<Channel> c(new Channel(context, events));
  return c->Start(context.handle(), why) ? std::move(c) : nullptr;
}

bool Channel::Start(ucp_context_h context, std::string* why) {
  ucp_worker_params_t p = {};
  p.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  p.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  p.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  ucs_status_t s = ucx_.ucp_worker_create(context, &p, &worker_);
  if (s != UCS_OK) {
    worker_ = nullptr;
    *why = Text(ucx_, "make a worker", s);
    return false;
  }
  s = ucx_.ucp_worker_get_efd(worker_, &fd_);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (s == UCS_OK) s = ucx_.ucp_worker_get_address(worker_, &address, &bytes);
  if (s != UCS_OK) {
    *why = Text(ucx_, "describe a worker", s);
    return false;
  }
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucx_.ucp_worker_release_address(worker_, address);
  const auto on_message = [](void* self, const void* header, size_t header_bytes, void* data, size_t n,
                             const ucp_am_recv_param_t* how) -> ucs_status_t {
    // A rendezvous is fetched by nobody: UCX drops it.
    if (header_bytes != sizeof(Frame) || (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) return UCS_OK;
    Frame f;
    std::memcpy(&f, header, sizeof f);
    static_cast<Channel*>(self)->events_->OnMessage(f, static_cast<const uint8_t*>(data), n);
    return UCS_OK;
  };
  const auto on_body = [](void* self, const void* header, size_t header_bytes, void* data, size_t n,
                          const ucp_am_recv_param_t*) -> ucs_status_t {
    if (header_bytes != sizeof(Frame)) return UCS_OK;
    Frame f;
    std::memcpy(&f, header, sizeof f);
    return static_cast<Channel*>(self)->events_->OnBody(f, n, data) ? UCS_INPROGRESS : UCS_OK;
  };
  return Handle(kMessage, on_message, UCP_AM_FLAG_WHOLE_MSG, why) &&
         Handle(kBody, on_body, UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA, why);
}

bool Channel::Handle(unsigned id, ucp_am_recv_callback_t f, uint32_t flags, std::string* why) {
  ucp_am_handler_param_t p = {};
  p.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  p.id = id;
  p.flags = flags;
  p.cb = f;
  p.arg = this;
  const ucs_status_t s = ucx_.ucp_worker_set_am_recv_handler(worker_, &p);
  if (s != UCS_OK) *why = Text(ucx_, "receive active messages", s);
  return s == UCS_OK;
}

// REQUIRES: the bytes come from an admitted peer, because UCX's parser trusts them.
bool Channel::Connect(std::string_view peer, std::string* why) {
  const std::string copy(peer);
  ucp_ep_params_t p = {};
  p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  p.address = reinterpret_cast<const ucp_address_t*>(copy.data());
  p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  p.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t s) {
    auto* c = static_cast<Channel*>(self);
    c->events_->OnFailure(c->ucx_.ucs_status_string(s));
  };
  p.err_handler.arg = this;
  const ucs_status_t s = ucx_.ucp_ep_create(worker_, &p, &peer_);
  if (s == UCS_OK) return true;
  peer_ = nullptr;
  *why = Text(ucx_, "connect", s);
  return false;
}

// Destroys the worker even if the peer does not answer. Sends and receives that have not ended are
// reported before that, or never.
Channel::~Channel() {
  if (peer_) {
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucx_.ucp_ep_close_nbx(peer_, &p);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    if (UCS_PTR_IS_PTR(closing)) {
      while (ucx_.ucp_request_check_status(closing) == UCS_INPROGRESS && std::chrono::steady_clock::now() < until) Progress();
      ucx_.ucp_request_free(closing);
    }
  }
  if (worker_) ucx_.ucp_worker_destroy(worker_);
}

bool Channel::Arm() {
  const ucs_status_t s = ucx_.ucp_worker_arm(worker_);
  if (s != UCS_OK && s != UCS_ERR_BUSY) events_->OnFailure(ucx_.ucs_status_string(s));
  return s == UCS_OK;
}

Channel::Went Channel::Started(ucs_status_ptr_t request) const {
  if (!request) return Went::kDone;
  return UCS_PTR_IS_ERR(request) ? Went::kFailed : Went::kWaits;
}

Channel::Went Channel::Send(unsigned id, const Frame* f, const ucp_dt_iov_t* parts, size_t n, Transfer* transfer) {
  ucp_request_param_t p = {};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  p.flags = id == kBody ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  p.cb.send = [](void* request, ucs_status_t s, void* user) {
    const auto* t = static_cast<const Transfer*>(user);
    t->channel->ucx_.ucp_request_free(request);
    t->channel->events_->OnSent(t->call, s == UCS_OK);
  };
  transfer->channel = this;
  p.user_data = transfer;
  const void* data = n > 0 ? parts[0].buffer : nullptr;
  size_t count = n > 0 ? parts[0].length : 0;
  if (n > 1) {
    p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = UCP_DATATYPE_IOV;
    data = parts;
    count = n;
  }
  return Started(ucx_.ucp_am_send_nbx(peer_, id, f, sizeof *f, data, count, &p));
}

Channel::Went Channel::Receive(void* body, void* to, size_t bytes, Transfer* transfer) {
  ucp_request_param_t p = {};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  p.cb.recv_am = [](void* request, ucs_status_t s, size_t, void* user) {
    const auto* t = static_cast<const Transfer*>(user);
    t->channel->ucx_.ucp_request_free(request);
    t->channel->events_->OnReceived(t->call, s == UCS_OK);
  };
  transfer->channel = this;
  p.user_data = transfer;
  return Started(ucx_.ucp_am_recv_data_nbx(worker_, body, to, bytes, &p));
}

void Channel::Drop(void* body) { ucx_.ucp_am_data_release(worker_, body); }

}  // namespace thalweg::ucx_transport
