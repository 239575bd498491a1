// Counts and times of requests, as text for Prometheus (text format 0.0.4).
// Threads: any.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::cli::serve {

class Metrics {
 public:
  // A request for a model has ended. model and version: "" if the request named none that is served, so that clients cannot make new
  // series.
  void Request(const std::string& model, const std::string& version, const std::string& protocol, int code, double seconds);
  // A run of so many rows has begun: of one request, or of several that were joined.
  void Batch(const std::string& model, const std::string& version, uint64_t rows);
  void Load(const std::string& model, bool good);
  // A request for a model begins and ends. Begin returns how many run now, with this one.
  uint64_t Begin();
  void End();
  // ready: lines that others know, one `name{labels} value` each. held and limit: bytes of all requests in flight.
  std::string Text(const std::vector<std::string>& ready, uint64_t held, uint64_t limit) const;

 private:
  template <size_t N>
  struct Histogram {
    std::array<uint64_t, N + 1> counts{};  // the last: beyond all bounds
    double sum = 0;
    uint64_t count = 0;
    void Add(const std::array<double, N>& bounds, double value);
    std::string Text(const std::string& name, const std::string& labels, const std::array<double, N>& bounds) const;
  };
  static constexpr std::array<double, 14> kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  static constexpr std::array<double, 9> kRows = {1, 2, 4, 8, 16, 32, 64, 128, 256};

  mutable std::mutex mutex_;                          // guards the members that follow
  std::map<std::string, uint64_t> requests_, loads_;  // by labels
  std::map<std::string, Histogram<14>> seconds_;
  std::map<std::string, Histogram<9>> rows_;
  uint64_t in_flight_ = 0;
};

// Escapes a text as the value of a label and quotes it.
std::string LabelText(std::string_view text);

}  // namespace thalweg::cli::serve
