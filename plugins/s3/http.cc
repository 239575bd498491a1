#include "http.h"

#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#define CURL_DISABLE_TYPECHECK  // its macros would hide the functions' names
#include <curl/curl.h>

#include "fail.h"

namespace thalweg::s3 {
namespace {

constexpr size_t kMostHeaderBytes = 64 << 10;
constexpr std::chrono::milliseconds kConnect{10'000};

#define THALWEG_S3_CURL_FUNCTIONS(f)                                                                                     \
  f(curl_global_init) f(curl_easy_init) f(curl_easy_cleanup) f(curl_easy_reset) f(curl_easy_setopt) f(curl_easy_perform) \
      f(curl_easy_strerror) f(curl_slist_append) f(curl_slist_free_all)

struct Curl {
#define THALWEG_S3_MEMBER(name) decltype(&::name) name = nullptr;
  THALWEG_S3_CURL_FUNCTIONS(THALWEG_S3_MEMBER)
#undef THALWEG_S3_MEMBER
  std::string why;  // it cannot be used

  Curl() {
    // It stays mapped, because OpenSSL behind it has functions that run at the end of the process.
    void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
      why = dlerror();
      return;
    }
#define THALWEG_S3_FIND(name)                                     \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) why = "libcurl.so.4 has no " #name;
    THALWEG_S3_CURL_FUNCTIONS(THALWEG_S3_FIND)
#undef THALWEG_S3_FIND
    dlclose(library);  // releases the reference, not the mapping
    if (why.empty() && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) why = "it does not start";
  }
};
#undef THALWEG_S3_CURL_FUNCTIONS

const Curl& TheCurl() {
  static const Curl* const curl = new Curl;  // threads may use it until the end of the process
  if (!curl->why.empty()) Fail(TW_FAILED_PRECONDITION, "libcurl cannot be used: " + curl->why + "; install it (Debian: libcurl4)");
  return *curl;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

// Keeps SIGPIPE from the process while libcurl writes. With CURLOPT_NOSIGNAL libcurl does nothing about
// it, and before version 7.87 its TLS connections write without MSG_NOSIGNAL. A plugin must not change
// signal handlers, so the thread blocks the signal and takes the one that came.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec now = {};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

// A transfer in progress. libcurl is written in C: nothing may be thrown through its callbacks.
struct Transfer {
  const Request& request;
  Answer& answer;
  size_t header_bytes = 0;
  const char* refused = nullptr;
  bool no_memory = false;

  bool Header(std::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kMostHeaderBytes) return refused = "the store sends more than 64 KiB of headers", false;
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {  // also of an answer 100 before the real one
      answer.headers.clear();
      answer.body.clear();
      answer.received = 0;
      const size_t blank = line.find(' ');
      answer.status = blank == line.npos ? 0 : std::atoi(std::string(line.substr(blank + 1, 3)).c_str());
      return true;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return true;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    answer.headers.emplace_back(Lower(line.substr(0, colon)), std::string(value));
    return true;
  }

  bool Body(std::string_view bytes) {
    if (request.to && (answer.status == 200 || answer.status == 206)) {
      if (bytes.size() > request.room - answer.received) return refused = "the store sends more bytes than were asked for", false;
      std::memcpy(request.to + answer.received, bytes.data(), bytes.size());
      answer.received += bytes.size();
      return true;
    }
    if (bytes.size() > request.most_bytes - answer.body.size()) return refused = "the store sends an answer that is too long", false;
    answer.body += bytes;
    return true;
  }

  template <class F>
  size_t Guard(size_t n, F&& body) {
    try {
      return body() ? n : 0;
    } catch (const std::exception&) {
      no_memory = true;
      return 0;
    }
  }
};

// libcurl calls it at least once a second. Returns non-zero to end the transfer.
int GoesOn(void* http, curl_off_t, curl_off_t, curl_off_t, curl_off_t) { return static_cast<const Http*>(http)->stopped() ? 1 : 0; }

size_t TakeHeader(char* bytes, size_t, size_t n, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  return t.Guard(n, [&] { return t.Header({bytes, n}); });
}

size_t TakeBody(char* bytes, size_t, size_t n, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  return n == 0 ? 0 : t.Guard(n, [&] { return t.Body({bytes, n}); });
}

void NameFailure(CURLcode code, const char* text, Answer* a) {
  a->why = *text ? text : TheCurl().curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: a->failure = Answer::Failure::kUnreachable; return;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      a->failure = Answer::Failure::kRefused;
      a->code = TW_UNAUTHENTICATED;
      a->why += "; plugin.org.thalweg.s3.ca names a file of the certificates to trust";
      return;
    case CURLE_ABORTED_BY_CALLBACK:
      a->failure = Answer::Failure::kRefused;
      a->code = TW_CANCELLED;
      a->why = "the runtime ends";
      return;
    case CURLE_OUT_OF_MEMORY:
      a->failure = Answer::Failure::kRefused;
      a->code = TW_RESOURCE_EXHAUSTED;
      a->why = "libcurl has no memory for the answer";
      return;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_TOO_MANY_REDIRECTS:
      a->failure = Answer::Failure::kRefused;
      a->code = TW_INTERNAL;
      return;
    default:  // resets, timeouts, bodies that end early, answers that are no HTTP
      a->failure = Answer::Failure::kBroken;
  }
}

}  // namespace

std::string_view Answer::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Http::Http(std::string ca, std::chrono::milliseconds silence, uint32_t most_idle)
    : ca_(std::move(ca)), silence_(silence), most_idle_(most_idle) {
  idle_.reserve(most_idle);
}

Http::~Http() {
  const NoBrokenPipe quiet;  // closing a TLS connection writes
  for (void* handle : idle_) TheCurl().curl_easy_cleanup(handle);
}

bool Http::Pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mu_);
  return !stops_.wait_for(lock, time, [&] { return stopped_.load(); });
}

void Http::Stop() {
  std::lock_guard lock(mu_);
  stopped_ = true;
  stops_.notify_all();
}

void* Http::Take() {
  {
    std::lock_guard lock(mu_);
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  void* handle = TheCurl().curl_easy_init();
  if (!handle) throw std::bad_alloc();
  return handle;
}

void Http::Give(void* handle) noexcept {
  const Curl& curl = TheCurl();
  curl.curl_easy_reset(handle);  // keeps its connections
  {
    std::lock_guard lock(mu_);
    if (idle_.size() < most_idle_) return idle_.push_back(handle);
  }
  curl.curl_easy_cleanup(handle);
}

Answer Http::Send(const Request& r) {
  const Curl& curl = TheCurl();
  Answer answer;
  Transfer transfer{r, answer};
  char text[CURL_ERROR_SIZE] = "";

  struct FreesList {
    const Curl& curl;
    curl_slist* list = nullptr;
    ~FreesList() { curl.curl_slist_free_all(list); }
  } list{curl};
  const auto add = [&](const std::string& line) {
    // Some values, such as ETags, come from the store.
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) {
      Fail(TW_DATA_LOSS, "a value for the header '" + line.substr(0, line.find(':')) + "' has a line end or a zero byte");
    }
    curl_slist* longer = curl.curl_slist_append(list.list, line.c_str());
    if (!longer) throw std::bad_alloc();
    list.list = longer;
  };
  for (const auto& [name, value] : r.headers) add(name + ": " + value);
  add("Expect:");  // no round trip before the body
  const bool sends = r.method == "PUT" || r.method == "POST";
  if (sends) add("Content-Type: application/octet-stream");

  const NoBrokenPipe quiet;
  struct GivesBack {
    Http* http;
    void* handle;
    ~GivesBack() { http->Give(handle); }
  } held{this, Take()};
  CURLcode code = CURLE_OK;
  const auto set = [&](CURLoption option, auto value) {
    if (code == CURLE_OK) code = curl.curl_easy_setopt(held.handle, option, value);
  };
  const auto left = std::max<long>(1, long(std::chrono::duration_cast<std::chrono::milliseconds>(r.deadline - Clock::now()).count()));
  set(CURLOPT_URL, r.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "thalweg-s3");
  set(CURLOPT_HTTPHEADER, list.list);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(text));
  set(CURLOPT_SSLVERSION, long(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!ca_.empty()) {
    set(CURLOPT_CAINFO, ca_.c_str());
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));  // else the machine's certificates are trusted, too
  }
  if (r.direct) set(CURLOPT_NOPROXY, "*");
  if (r.once) {
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);  // else each of them would leave one more open connection
  }
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, std::min(left, long(kConnect.count())));
  set(CURLOPT_TIMEOUT_MS, left);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, long(silence_.count() / 1000)));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, GoesOn);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  set(CURLOPT_HEADERFUNCTION, TakeHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, TakeBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  if (sends) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(r.body.size()));
    set(CURLOPT_POSTFIELDS, r.body.empty() ? "" : r.body.data());
  }
  if (r.method == "GET") {
    set(CURLOPT_HTTPGET, 1L);
  } else if (r.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else {
    set(CURLOPT_CUSTOMREQUEST, r.method.c_str());
  }
  if (code == CURLE_OK) code = curl.curl_easy_perform(held.handle);
  if (transfer.no_memory) throw std::bad_alloc();
  if (transfer.refused) {
    answer.failure = Answer::Failure::kRefused;
    answer.code = TW_DATA_LOSS;
    answer.why = transfer.refused;
  } else if (code != CURLE_OK) {
    NameFailure(code, text, &answer);
  }
  return answer;
}

}  // namespace thalweg::s3
