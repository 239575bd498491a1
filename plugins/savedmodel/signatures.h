// Values of signatures, for tw_import_signature. Threads: one thread at a time.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "sink.h"

namespace thalweg::savedmodel {

// Owns the records of one signature.
class SignatureRecords {
 public:
  explicit SignatureRecords(Sink* sink) : sink_(sink) {}
  void AddInput(const std::string& name, const std::string& value) { inputs_.push_back(Add(name, value)); }
  void AddOutput(const std::string& name, const std::string& value) { outputs_.push_back(Add(name, value)); }
  // Gives the shape that the file declares for the value that was added last.
  void SetShape(std::vector<int64_t> dims);
  void Finish(const std::string& name, const std::string& doc, bool is_default);

 private:
  const tw_import_value* Add(const std::string& name, const std::string& value);

  Sink* const sink_;
  std::deque<std::string> names_;
  std::deque<std::vector<int64_t>> dims_;
  std::deque<tw_shape> shapes_;
  std::deque<tw_import_value> values_;
  std::vector<const tw_import_value*> inputs_, outputs_;
};

}  // namespace thalweg::savedmodel
