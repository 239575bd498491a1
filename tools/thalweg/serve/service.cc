#include "service.h"

#include <cstdio>
#include <ctime>

#include "http_error.h"
#include "kserve.h"
#include "protocol.h"
#include "tf_rest.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

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

// One line for each request, with the time in UTC.
void LogRequest(const Call& call, const Answer& answer, double seconds) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts = {};
  gmtime_r(&now.tv_sec, &parts);
  char time[32];
  std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string line = OneLine(call.client) + " " + OneLine(call.method) + " " + OneLine(call.path);
  std::fprintf(stderr, "%s.%03ldZ %s %d %zu bytes %.3f ms\n", time, now.tv_nsec / 1000000, line.c_str(), answer.status, answer.body.size(),
               seconds * 1e3);
}

Answer ErrorAnswer(int status, const std::string& text) {
  Answer answer = {status, ErrorBody(text)};
  if (status == 429 || status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace

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
  return {200, metrics_->Text(ready), "text/plain; version=0.0.4"};
}

Answer Service::Dispatch(ModelCall* call) {
  if (call->call->refused) throw HttpError(call->call->refused, call->call->why);
  const std::string first = call->path.empty() ? "" : call->path[0];
  if (first == "metrics" && call->path.size() == 1) {
    RequireMethod(*call->call, "GET");
    return MetricsText();
  }
  if (first != "v1" && first != "v2") throw HttpError(404, "'" + OneLine(call->call->path) + "' is not served; /v1, /v2 and /metrics are");
  if (call->call->method != "POST") return first == "v1" ? ServeV1(call) : ServeV2(call);
  const Place place(metrics_);
  if (place.running() > settings_.max_requests) {
    throw HttpError(429, std::to_string(settings_.max_requests) + " requests run already, which is the limit (--max-requests); try again");
  }
  return first == "v1" ? ServeV1(call) : ServeV2(call);
}

Answer Service::Serve(Call& call) {
  ModelCall request = {&call, &settings_, repository_, Segments(call.path), Clock::now(), nullptr};
  const std::string protocol = request.path.empty() ? "" : request.path[0];
  Answer answer;
  try {
    answer = Dispatch(&request);
  } catch (const HttpError& e) {
    answer = ErrorAnswer(e.status(), e.what());
  } catch (const tw::StatusError& e) {
    answer = ErrorAnswer(HttpStatus(e.code()), (request.model ? "model '" + request.model->name() + "': " : "") + e.what());
  } catch (const std::bad_alloc&) {
    answer = ErrorAnswer(503, "there is not enough memory for the request");
  } catch (const std::exception& e) {
    answer = ErrorAnswer(500, e.what());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - request.began).count();
  if ((protocol == "v1" || protocol == "v2") && request.path.size() > 2) {
    metrics_->Request(request.model ? request.model->name() : "", request.model ? request.model->version() : "", protocol, answer.status,
                      seconds);
  }
  if (settings_.log) LogRequest(call, answer, seconds);
  return answer;
}

}  // namespace thalweg::cli::serve
