#include "http_server.h"

#include <httplib.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "charged_text.h"
#include "client_watch.h"
#include "connections.h"
#include "gzip.h"
#include "http_error.h"
#include "stream.h"

namespace thalweg::cli::serve {
namespace {

constexpr std::chrono::seconds kMostIdle{60};
constexpr size_t kMostRequests = 1'000'000;   // on one connection
constexpr size_t kMostPath = 1024;            // the library matches paths by std::regex, which recurses for each character
constexpr uint64_t kMostReserved = 64 << 20;  // bytes of a body for which memory is taken before they come
constexpr int kBacklog = 1024;
constexpr std::chrono::milliseconds kAcceptPause{10};  // after a connection could not be accepted

// Returns false for what is no decimal number.
bool ToLength(const std::string& text, uint64_t* length) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *length);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool IsOneOf(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return strcasecmp(text.c_str(), word) == 0; });
}

// What the library does not tell the handler about the request that a thread serves.
struct Exchange {
  ClientWatch::Client* client = nullptr;
  ConnectionStream* stream = nullptr;
  bool parsed = false;                  // the header was whole
  bool body_left = false;               // bytes of the body may be unread, so the connection cannot be used again
  uint64_t length = 0;                  // of the body as it is sent; 0 if it comes in chunks
  Deadline deadline = Deadline::max();  // of the body, by --timeout-ms
  std::shared_ptr<RequestMemory> memory;
  Charge answer;            // for the body of the answer, until it is written
  bool takes_gzip = false;  // the client accepts an answer that is packed
  int refused = 0;          // the status of a request that must not be handled; 0: none
  std::string why;

  // The first reason counts.
  void Refuse(int status, std::string reason) {
    if (refused) return;
    refused = status;
    why = std::move(reason);
  }
};

// The exchange of this thread.
Exchange*& Current() {
  static thread_local Exchange* current = nullptr;
  return current;
}

// A body whose end is not certain is refused, because the rest of the connection could be read as a request that nobody sent.
void CheckLength(const httplib::Request& request, uint64_t most, Exchange* exchange) {
  const size_t lengths = request.get_header_value_count("Content-Length"), codings = request.get_header_value_count("Transfer-Encoding");
  const std::string length = request.get_header_value("Content-Length"), coding = request.get_header_value("Transfer-Encoding");
  if (lengths > 1 || (lengths == 1 && codings > 0)) exchange->Refuse(400, "the request's length is given more than once");
  if (lengths == 1 && !ToLength(length, &exchange->length)) exchange->Refuse(400, "Content-Length is '" + length + "', which is no length");
  if (codings > 1 || (codings == 1 && !IsOneOf(coding, {"chunked"}))) {
    exchange->Refuse(501, "Transfer-Encoding is '" + coding + "'; send the body in chunks or with its length");
  }
  if (codings > 0 && request.version == "HTTP/1.0")
    exchange->Refuse(400, "HTTP/1.0 has no Transfer-Encoding; send the body with its length");
  if (request.method == "POST" && lengths == 0 && codings == 0) {
    exchange->Refuse(411, "the request has neither Content-Length nor chunks; send one of them");
  }
  if (exchange->length > most) {
    exchange->Refuse(413, "the request has " + std::to_string(exchange->length) + " bytes; the limit is " + std::to_string(most) +
                              " (--max-request-bytes)");
  }
  exchange->body_left = exchange->length > 0 || codings > 0;
  if (codings > 0) exchange->stream->ExpectChunks();
}

// Checks a request's header. REQUIRES: *exchange is new.
void Check(httplib::Request* request, const Settings& settings, Exchange* exchange) {
  exchange->parsed = true;
  if (settings.timeout.count()) exchange->deadline = Clock::now() + settings.timeout;
  request->ranges.clear();  // answers are whole
  CheckLength(*request, settings.max_request_bytes, exchange);
  if (request->path.size() > kMostPath) {
    exchange->Refuse(
        414, "the path has " + std::to_string(request->path.size()) + " characters; at most " + std::to_string(kMostPath) + " are served");
  }
  std::string packed = request->get_header_value("Content-Encoding");
  if (!packed.empty() && !IsOneOf(packed, {"identity", "gzip", "deflate", "br"})) {
    exchange->Refuse(415, "Content-Encoding is '" + packed + "'; gzip, deflate and br are known");
  }
  if (!packed.empty()) {  // the library compares the small letters
    std::transform(packed.begin(), packed.end(), packed.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    request->headers.erase("Content-Encoding");
    request->set_header("Content-Encoding", packed);
  }
  if (exchange->refused) exchange->body_left = true;
  // The library would pack answers without an account of their memory.
  exchange->takes_gzip = AcceptsGzip(request->get_header_value("Accept-Encoding"));
  request->headers.erase("Accept-Encoding");
}

// A body and the charge for its memory.
struct ChargedBody {
  explicit ChargedBody(const std::shared_ptr<RequestMemory>& memory) : charge(memory) {}
  Charge charge;
  std::string text;
};

// Appends bytes and charges the memory that they need before they take it. The old memory and the new one are there together for a moment.
void AppendTo(ChargedBody* body, const char* bytes, size_t n) {
  std::string& text = body->text;
  const size_t before = text.capacity(), needed = text.size() + n;
  if (needed > before) {
    const size_t after = std::max(needed, 2 * before);
    body->charge.Add(after);
    text.reserve(after);
    body->charge.Remove(std::min<uint64_t>(before, body->charge.bytes() - after));
  }
  text.append(bytes, n);
}

// Returns the bytes that the library holds to unpack a body: a window, tables, a buffer.
uint64_t UnpackingBytes(const std::string& coding) {
  constexpr uint64_t kDeflate = 96 << 10, kBrotli = 32 << 20;  // Brotli's window has up to 16 MiB, and is copied as it grows
  return IsOneOf(coding, {"br"}) ? kBrotli : IsOneOf(coding, {"gzip", "deflate"}) ? kDeflate : 0;
}

// Takes memory for a body whose length is known, and fills the front of *storage so that byte `aligned` of the body will be aligned.
// Returns the number of bytes in front. The body comes without a further copy then.
size_t Reserve(uint64_t length, size_t aligned, ChargedBody* body) {
  if (length == 0 || length > kMostReserved) return 0;
  std::string* const storage = &body->text;
  body->charge.Add(length + kAlignment);
  storage->reserve(length + kAlignment);
  const size_t front = (kAlignment - (reinterpret_cast<uintptr_t>(storage->data()) + aligned) % kAlignment) % kAlignment;
  storage->append(front, ' ');
  return front;
}

// reader: NULL for a request without a body.
Body ReadBody(const httplib::Request& request, const httplib::ContentReader* reader, uint64_t most, size_t aligned, Exchange* exchange) {
  const auto body = std::make_shared<ChargedBody>(exchange->memory);
  const bool packed = request.has_header("Content-Encoding");  // its length is that of the packed bytes
  Charge unpacking(exchange->memory);
  if (packed) unpacking.Add(UnpackingBytes(request.get_header_value("Content-Encoding")));
  const size_t front = Reserve(packed ? 0 : exchange->length, aligned, body.get());
  bool over = false, late = false;
  std::exception_ptr no_memory;  // not thrown through the library
  const bool whole = reader && (*reader)([&](const char* part, size_t n) {
                       over = n > most - (body->text.size() - front);
                       late = Clock::now() >= exchange->deadline;
                       if (over || late) return false;
                       try {
                         AppendTo(body.get(), part, n);
                       } catch (...) {
                         no_memory = std::current_exception();
                       }
                       return !no_memory;
                     });
  if (no_memory) std::rethrow_exception(no_memory);
  if (late) throw HttpError(504, "the request's time ran out before its body was whole (--timeout-ms)");
  if (over) throw HttpError(413, "the request's body has more than " + std::to_string(most) + " bytes (--max-request-bytes)");
  if (!whole) throw HttpError(400, "the request's body ended early, came too slowly or is not packed as its Content-Encoding says");
  exchange->body_left = false;
  return {std::shared_ptr<const std::string>(body, &body->text), std::string_view(body->text).substr(front)};
}

// Packs the answer if the client accepts that, the answer is text, and packing is worth its time. Without memory for it the answer goes
// as it is.
void PackAnswer(const Exchange& exchange, Answer* answer) {
  constexpr size_t kLeastPacked = 1024;
  const bool text = IsOneOf(answer->type, {"application/json"}) || answer->type.starts_with("text/");
  if (!text || answer->body.size() < kLeastPacked) return;
  answer->headers.emplace_back("Vary", "Accept-Encoding");
  if (!exchange.takes_gzip) return;
  try {
    ChargedText packed(exchange.memory);
    Gzip(answer->body, &packed);
    answer->body = packed.TakeText();
    answer->charge = packed.TakeCharge();
    answer->headers.emplace_back("Content-Encoding", "gzip");
  } catch (const HttpError&) {
  } catch (const std::bad_alloc&) {
  }
}

// Gives answers that the library makes by itself, which have no body, the body of an error.
void ExplainError(httplib::Response* response) {
  const Exchange* exchange = Current();
  const std::string why = exchange->refused         ? exchange->why
                          : response->status == 414 ? "the address is too long"
                          : exchange->parsed        ? "the request cannot be served"
                                                    : "the request's header is malformed, too long or came too slowly";
  response->set_content(ErrorBody(why), "application/json");
  response->set_header("Connection", "close");
}

}  // namespace

class HttpServer::Library final : private httplib::Server {
 public:
  Library(const Settings& settings, RequestBudget* budget, AnswerCall answer);
  ~Library() override;
  int Start();
  void Stop(Deadline deadline);

 private:
  void Accept();
  void ServeAndClose(int socket);
  void Serve(int socket);
  void Fill(const httplib::Request& request, const httplib::ContentReader* reader, httplib::Response* response);

  const Settings settings_;
  RequestBudget* const budget_;
  const AnswerCall answer_;
  ClientWatch watch_;
  Connections connections_;
  std::thread listener_;
};

HttpServer::HttpServer(const Settings& settings, RequestBudget* budget, AnswerCall answer)
    : library_(std::make_unique<Library>(settings, budget, std::move(answer))) {}
HttpServer::~HttpServer() = default;
int HttpServer::Start() { return library_->Start(); }
void HttpServer::Stop(Deadline deadline) { library_->Stop(deadline); }

HttpServer::Library::Library(const Settings& settings, RequestBudget* budget, AnswerCall answer)
    : settings_(settings), budget_(budget), answer_(std::move(answer)), connections_(settings.max_connections) {
  set_keep_alive_timeout(kMostIdle.count());  // for the answer's header
  set_keep_alive_max_count(kMostRequests);
  // Not SO_REUSEPORT, which is the library's choice: two servers would share a port without a word.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  // The handler of every request but those with a body, which the library gives to a handler below.
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (request.method == "POST" && !Current()->refused) return HandlerResponse::Unhandled;
    Fill(request, nullptr, &response);
    return HandlerResponse::Handled;
  });
  Post("[^]*", [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
    Fill(request, &reader, &response);
  });
  set_expect_100_continue_handler([](const httplib::Request&, httplib::Response& response) {
    if (Current()->refused) response.status = Current()->refused;
    return Current()->refused ? Current()->refused : 100;
  });
  set_error_handler(httplib::Server::HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return HandlerResponse::Unhandled;
    ExplainError(&response);
    return HandlerResponse::Handled;
  }));
}

HttpServer::Library::~Library() {
  if (listener_.joinable()) Stop(Clock::now());
}

int HttpServer::Library::Start() {
  const int port = settings_.port ? (bind_to_port(settings_.host, settings_.port) ? settings_.port : -1) : bind_to_any_port(settings_.host);
  if (port < 0) {
    throw std::runtime_error("cannot listen at " + settings_.host + ":" + std::to_string(settings_.port) + ": " + std::strerror(errno) +
                             "; give another --host or --port");
  }
  ::listen(svr_sock_, kBacklog);  // once more: the library's own queue has five places
  listener_ = std::thread([this] { Accept(); });
  return port;
}

void HttpServer::Library::Stop(Deadline deadline) {
  connections_.Stop();
  shutdown(svr_sock_, SHUT_RDWR);  // ends accept4
  listener_.join();
  close(svr_sock_.exchange(INVALID_SOCKET));
  if (!connections_.WaitUntilEmpty(deadline)) {
    watch_.CancelAll();
    connections_.Break();
  }
  connections_.Join();
}

// Accepts connections until Stop. The library's own loop would end for good when the system is out of files or memory for a moment.
void HttpServer::Library::Accept() {
  bool failing = false;
  for (;;) {
    const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    const int error = errno;
    if (socket < 0) {
      if (connections_.stopping()) return;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (!failing) std::fprintf(stderr, "thalweg serve: cannot accept a connection: %s; trying again\n", std::strerror(error));
      failing = true;
      std::this_thread::sleep_for(kAcceptPause);
      continue;
    }
    failing = false;
    try {
      connections_.Start([this, socket] { ServeAndClose(socket); });
    } catch (const std::exception& e) {
      std::fprintf(stderr, "thalweg serve: a connection was closed: %s\n", e.what());
      close(socket);
    }
  }
}

void HttpServer::Library::ServeAndClose(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  try {
    Serve(socket);
  } catch (const std::exception& e) {
    // There is no memory for an answer, or too little to watch the connection; the client sees its end.
    std::fprintf(stderr, "thalweg serve: a connection was closed: %s\n", e.what());
  }
  close(socket);
}

void HttpServer::Library::Serve(int socket) {
  Connections::Open open(&connections_, socket);
  ClientWatch::Client client(&watch_, socket);
  ConnectionStream stream(socket, settings_.io_timeout);
  for (size_t n = 0; n < kMostRequests; ++n) {
    open.Idle(true);
    const bool came = stream.Await(kMostIdle);
    open.Idle(false);
    if (!came) return;
    Exchange exchange;
    exchange.client = &client;
    exchange.stream = &stream;
    exchange.memory = std::make_shared<RequestMemory>(budget_);
    Current() = &exchange;
    stream.Begin();
    bool closed = false;
    const bool answered =
        process_request(stream, connections_.stopping(), closed, [&](httplib::Request& request) { Check(&request, settings_, &exchange); });
    Current() = nullptr;
    if (!exchange.parsed || exchange.body_left) return stream.Linger();
    if (!answered || closed || connections_.stopping()) return;
  }
}

void HttpServer::Library::Fill(const httplib::Request& request, const httplib::ContentReader* reader, httplib::Response* response) {
  Exchange* const exchange = Current();
  Call call;
  call.method = request.method;
  call.path = request.path;
  call.client = request.remote_addr;
  call.header = [&](const char* name) { return request.get_header_value(name); };
  call.body = [&](size_t aligned) { return ReadBody(request, reader, settings_.max_request_bytes, aligned, exchange); };
  call.refused = exchange->refused;
  call.why = exchange->why;
  call.memory = exchange->memory;
  const ClientWatch::Serving serving(exchange->client, &call.cancellation);
  Answer answer = answer_(call);
  PackAnswer(*exchange, &answer);
  exchange->answer = std::move(answer.charge);
  response->status = answer.status;
  for (const auto& [name, value] : answer.headers) response->set_header(name, value);
  if (exchange->body_left || connections_.stopping()) response->set_header("Connection", "close");
  response->body = std::move(answer.body);
  response->set_header("Content-Type", answer.type);
}

}  // namespace thalweg::cli::serve
