// Merges several traces. Renames processes with equal names. Times count from the earliest
// beginning, by the clocks recorded in the files.
#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "handles.h"
#include "json.h"
#include "json_value.h"
#include "trace_top.h"
#include "words.h"

namespace thalweg::cli {
namespace {

struct Part {
  std::string path;
  JsonValue file;
  double unix_us = 0;  // Unix time of the file's time 0, in microseconds
};

// Parses FILE=MILLISECONDS, the time by which the clock of the file's machine is ahead.
std::map<std::string, double> Offsets(const Args& args) {
  std::map<std::string, double> offsets;
  for (const std::string& text : args.all("--offset")) {
    const size_t at = text.rfind('=');
    double ms = 0;
    size_t used = 0;
    try {
      if (at != text.npos) ms = std::stod(text.substr(at + 1), &used);
    } catch (const std::exception&) {  // reported below
    }
    if (at == text.npos || used == 0 || at + 1 + used != text.size())
      throw UsageError{"--offset takes FILE=MILLISECONDS, not '" + text + "'"};
    offsets[text.substr(0, at)] = ms;
  }
  return offsets;
}

std::vector<Part> ReadParts(const Args& args) {
  const std::map<std::string, double> offsets = Offsets(args);
  std::vector<Part> parts;
  for (size_t i = 1; i < args.positional().size(); ++i) {
    Part part{args.positional()[i], {}, 0};
    try {
      part.file = JsonValue::Parse(ReadFile(part.path));
    } catch (const std::exception& e) {
      throw std::runtime_error("'" + part.path + "' is no trace: " + e.what());
    }
    if (!part.file.has("traceEvents")) throw std::runtime_error("'" + part.path + "' is no trace: it has no traceEvents");
    const auto offset = offsets.find(part.path);
    part.unix_us = part.file["metadata"]["unix_ns"].number() / 1000 - (offset == offsets.end() ? 0 : offset->second * 1000);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string Number(double value) {
  Json json;
  json.Array().Real("", value).End();
  std::string text = json.text();
  return text.substr(1, text.size() - 3);
}

// Assigns processes and ids that no earlier part uses.
class Renaming {
 public:
  void BeginPart() {
    processes_.clear();
    ids_ += last_id_;
    last_id_ = 0;
  }
  int64_t Process(int64_t process) {
    auto [it, is_new] = processes_.try_emplace(process, process);
    if (is_new) {
      while (!taken_.insert(it->second).second) ++it->second;
    }
    return it->second;
  }
  int64_t Id(int64_t id) {
    last_id_ = std::max(last_id_, id + 1);
    return ids_ + id;
  }

 private:
  std::map<int64_t, int64_t> processes_;
  std::set<int64_t> taken_;
  int64_t ids_ = 0, last_id_ = 0;
};

}  // namespace

int TraceMerge(const Args& args) {
  const std::vector<Part> parts = ReadParts(args);
  double first = parts[0].unix_us, left_out = 0;
  for (const Part& p : parts) first = std::min(first, p.unix_us);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  Renaming names;
  bool any = false;
  for (const Part& p : parts) {
    names.BeginPart();
    const double shift = p.unix_us - first;  // one shift for the whole file keeps nested bars nested
    left_out += p.file["metadata"]["left_out"].number();
    for (const JsonValue& e : p.file["traceEvents"].items()) {
      std::vector<std::pair<std::string, std::string>> instead = {{"pid", std::to_string(names.Process(int64_t(e["pid"].number())))}};
      if (e["ph"].text() != "M") instead.emplace_back("ts", Number(e["ts"].number() + shift));
      if (e.has("id")) instead.emplace_back("id", std::to_string(names.Id(int64_t(e["id"].number()))));
      text += (any ? ",\n" : "\n") + JsonText(e, instead);
      any = true;
    }
  }
  Json metadata;
  metadata.Object().Text("product", "thalweg").Number("unix_ns", int64_t(std::llround(first)) * 1000).Number("left_out", int64_t(left_out));
  WriteOutput(args.get("--output"), text + "],\n\"metadata\": " + metadata.End().text() + "}\n");
  return kGood;
}

}  // namespace thalweg::cli
