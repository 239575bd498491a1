#include "service.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <new>
#include <random>

#include "front_page.h"
#include "http_error.h"
#include "kserve.h"
#include "protocol.h"
#include "tf_rest.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

// Answers about the server and its models that have fewer bytes are not charged to the memory of requests, so that the server tells its
// health when requests hold all of it. Their number is bounded by that of connections.
constexpr size_t kLeastCharged = 64 << 10;

// Splits a path; empty segments are left out.
std::vector<std::string> Segments(const std::string& path) {
  std::vector<std::string> segments;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) segments.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return segments;
}

// Counts a request that may run a model, as long as it lives.
class Place {
 public:
  explicit Place(Metrics* metrics) : metrics_(metrics), running_(metrics->Begin()) {}
  ~Place() { metrics_->End(); }
  uint64_t running() const { return running_; }  // with this one, when it began
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Metrics* const metrics_;
  const uint64_t running_;
};

// One line for a request, with the time in UTC. error: what the answer says; "" if it is none.
void LogRequest(const Call& call, const Answer& answer, double seconds, const std::string& id, const std::string& error) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts = {};
  gmtime_r(&now.tv_sec, &parts);
  char time[32];
  std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string line = OneLine(call.client) + " " + OneLine(call.method) + " " + OneLine(call.path);
  std::fprintf(stderr, "%s.%03ldZ %s %d %zu bytes %.3f ms id=%s%s%s\n", time, now.tv_nsec / 1000000, line.c_str(), answer.status,
               answer.body.size(), seconds * 1e3, id.c_str(), error.empty() ? "" : ": ", OneLine(error).c_str());
}

Answer ErrorAnswer(int status, const std::string& text) {
  Answer answer = {status, ErrorBody(text)};
  if (status == 429 || status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

// A text of a client that may stand in a header and in the log.
bool IsPlainId(const std::string& text) {
  static constexpr std::string_view kPunctuation = "-_.:+/=@";
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kPunctuation.find(c) != kPunctuation.npos;
  };
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), plain);
}

// Returns 8 hexadecimal digits, by which the ids of several servers, and of one that was started again, differ.
std::string RandomPrefix() {
  char text[16];
  std::snprintf(text, sizeof(text), "%08x-", unsigned(std::random_device{}()));
  return text;
}

// origin: of the page that may read the answer; "*": any; "": none, which a cache must not take for the answer to another page.
void AddOrigin(const std::string& origin, Answer* answer) {
  if (origin != "*") answer->headers.emplace_back("Vary", "Origin");
  if (origin.empty()) return;
  answer->headers.emplace_back("Access-Control-Allow-Origin", origin);
  answer->headers.emplace_back("Access-Control-Expose-Headers", "Inference-Header-Content-Length, Retry-After, X-Request-Id");
}

// A browser asks with OPTIONS whether a page may send a request.
Answer Preflight() {
  Answer answer = {200, "", "text/plain"};
  answer.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  answer.headers.emplace_back("Access-Control-Allow-Headers",
                              "Content-Type, Content-Encoding, Inference-Header-Content-Length, X-Request-Id, X-Request-Timeout-Ms");
  answer.headers.emplace_back("Access-Control-Max-Age", "86400");
  return answer;
}

}  // namespace

Service::Service(const Settings& settings, const Repository* repository, const RequestBudget* budget, Metrics* metrics)
    : settings_(settings), repository_(repository), budget_(budget), metrics_(metrics), id_prefix_(RandomPrefix()) {}

Answer Service::MetricsText() const {
  std::vector<std::string> ready;
  for (const std::string& name : repository_->Names()) {
    try {
      for (const std::string& version : repository_->Served(name)) {
        ready.push_back("thalweg_model_ready{model=" + LabelText(name) + ",version=" + LabelText(version) + "} 1");
      }
    } catch (const HttpError&) {
      // The model was let go after Names.
    }
  }
  return {200, metrics_->Text(ready, budget_->held(), budget_->limit()), "text/plain; version=0.0.4"};
}

// Returns the client's own id for the request, or a new one.
std::string Service::RequestId(const Call& call) {
  const std::string given = call.header("X-Request-Id");
  return IsPlainId(given) ? given : id_prefix_ + std::to_string(++ids_);
}

// Returns what Access-Control-Allow-Origin says to the page that sent the request; "" if pages of its origin may not read the answer.
std::string Service::AllowedOrigin(const Call& call) const {
  const auto& allowed = settings_.allow_origins;
  if (allowed.empty()) return "";
  if (std::find(allowed.begin(), allowed.end(), "*") != allowed.end()) return "*";
  const std::string origin = call.header("Origin");
  return std::find(allowed.begin(), allowed.end(), origin) != allowed.end() ? origin : "";
}

Answer Service::Dispatch(ModelCall* call) {
  const Call& request = *call->call;
  if (request.refused) throw HttpError(request.refused, request.why);
  if (call->path.empty()) {
    RequireMethod(request, "GET");
    return FrontPage(*call);
  }
  const std::string& first = call->path[0];
  if (first == "metrics" && call->path.size() == 1) {
    RequireMethod(request, "GET");
    return MetricsText();
  }
  if (first != "v1" && first != "v2") throw HttpError(404, "'" + OneLine(request.path) + "' is not served; /, /v1, /v2 and /metrics are");
  if (request.method != "POST") return first == "v1" ? ServeV1(call) : ServeV2(call);
  const Place place(metrics_);
  if (place.running() > settings_.max_requests) {
    throw HttpError(429, std::to_string(settings_.max_requests) + " requests run already, which is the limit (--max-requests); try again");
  }
  return first == "v1" ? ServeV1(call) : ServeV2(call);
}

// Turns every exception into an answer, whose text goes to *error too.
Answer Service::Guarded(ModelCall* call, std::string* error) {
  int status = 500;
  try {
    Answer answer = Dispatch(call);
    const bool is_charged = answer.charge.bytes() > 0 || answer.body.size() < kLeastCharged;
    if (!is_charged) {
      answer.charge = Charge(call->call->memory);
      answer.charge.Add(answer.body.capacity());
    }
    return answer;
  } catch (const HttpError& e) {
    status = e.status();
    *error = e.what();
  } catch (const tw::StatusError& e) {
    status = HttpStatus(e.code());
    *error = (call->model ? "model '" + call->model->name() + "': " : "") + e.what();
  } catch (const std::bad_alloc&) {
    status = 503;
    *error = "there is not enough memory for the request";
  } catch (const std::exception& e) {
    *error = e.what();
  }
  return ErrorAnswer(status, *error);
}

Answer Service::Serve(Call& call) {
  ModelCall request = {&call, &settings_, repository_, Segments(call.path), Clock::now(), nullptr};
  const std::string protocol = request.path.empty() ? "" : request.path[0];
  const std::string id = RequestId(call), origin = AllowedOrigin(call);
  std::string error;
  const bool asks = call.method == "OPTIONS" && !origin.empty() && !call.refused;
  Answer answer = asks ? Preflight() : Guarded(&request, &error);
  answer.headers.emplace_back("X-Request-Id", id);
  if (!settings_.allow_origins.empty()) AddOrigin(origin, &answer);
  const double seconds = std::chrono::duration<double>(Clock::now() - request.began).count();
  if ((protocol == "v1" || protocol == "v2") && request.path.size() > 2) {
    metrics_->Request(request.model ? request.model->name() : "", request.model ? request.model->version() : "", protocol, answer.status,
                      seconds);
  }
  const bool is_own_failure = answer.status >= 500 && answer.status != 501 && !error.empty();
  if (settings_.log || is_own_failure) LogRequest(call, answer, seconds, id, error);
  return answer;
}

}  // namespace thalweg::cli::serve
