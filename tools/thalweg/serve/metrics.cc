#include "metrics.h"

#include <charconv>

namespace thalweg::cli::serve {
namespace {

std::string Number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string Head(const char* name, const char* type, const char* help) {
  return std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

std::string ModelLabels(const std::string& model, const std::string& version) {
  return "model=" + LabelText(model) + ",version=" + LabelText(version);
}

}  // namespace

std::string LabelText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

template <size_t N>
void Metrics::Histogram<N>::Add(const std::array<double, N>& bounds, double value) {
  size_t i = 0;
  while (i < N && value > bounds[i]) ++i;
  ++counts[i];
  ++count;
  sum += value;
}

template <size_t N>
std::string Metrics::Histogram<N>::Text(const std::string& name, const std::string& labels, const std::array<double, N>& bounds) const {
  std::string text;
  uint64_t below = 0;
  for (size_t i = 0; i < N; ++i) {
    below += counts[i];
    text += name + "_bucket{" + labels + ",le=\"" + Number(bounds[i]) + "\"} " + std::to_string(below) + "\n";
  }
  text += name + "_bucket{" + labels + ",le=\"+Inf\"} " + std::to_string(count) + "\n";
  return text + name + "_sum{" + labels + "} " + Number(sum) + "\n" + name + "_count{" + labels + "} " + std::to_string(count) + "\n";
}

void Metrics::Request(const std::string& model, const std::string& version, const std::string& protocol, int code, double seconds) {
  const std::string labels = ModelLabels(model, version) + ",protocol=" + LabelText(protocol);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++requests_[labels + ",code=\"" + std::to_string(code) + "\""];
  seconds_[labels].Add(kSeconds, seconds);
}

void Metrics::Batch(const std::string& model, const std::string& version, uint64_t rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  rows_[ModelLabels(model, version)].Add(kRows, double(rows));
}

void Metrics::Load(const std::string& model, bool good) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++loads_["model=" + LabelText(model) + ",result=\"" + (good ? "good" : "failed") + "\""];
}

uint64_t Metrics::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ++in_flight_;
}

void Metrics::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --in_flight_;
}

std::string Metrics::Text(const std::vector<std::string>& ready, uint64_t held, uint64_t limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = Head("thalweg_requests_total", "counter", "Requests to models that were answered.");
  for (const auto& [labels, n] : requests_) text += "thalweg_requests_total{" + labels + "} " + std::to_string(n) + "\n";
  text += Head("thalweg_request_seconds", "histogram", "Time from a request's header to its answer.");
  for (const auto& [labels, h] : seconds_) text += h.Text("thalweg_request_seconds", labels, kSeconds);
  text += Head("thalweg_batch_rows", "histogram", "Rows of a run, of one request or of several that were joined.");
  for (const auto& [labels, h] : rows_) text += h.Text("thalweg_batch_rows", labels, kRows);
  text += Head("thalweg_requests_in_flight", "gauge", "Requests to models that run now.");
  text += "thalweg_requests_in_flight " + std::to_string(in_flight_) + "\n";
  text += Head("thalweg_request_memory_bytes", "gauge", "Memory that requests in flight hold: bodies, values, answers.");
  text += "thalweg_request_memory_bytes " + std::to_string(held) + "\n";
  text += Head("thalweg_request_memory_limit_bytes", "gauge", "What they may hold (--request-memory).");
  text += "thalweg_request_memory_limit_bytes " + std::to_string(limit) + "\n";
  text += Head("thalweg_model_loads_total", "counter", "Loads of versions of models.");
  for (const auto& [labels, n] : loads_) text += "thalweg_model_loads_total{" + labels + "} " + std::to_string(n) + "\n";
  text += Head("thalweg_model_ready", "gauge", "1 for each version that is served.");
  for (const std::string& line : ready) text += line + "\n";
  return text;
}

}  // namespace thalweg::cli::serve
