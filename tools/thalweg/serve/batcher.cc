#include "batcher.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "http_error.h"

namespace thalweg::cli::serve {

struct Batcher::Batch {
  std::vector<Inputs> members;
  std::vector<uint64_t> member_rows;
  uint64_t rows = 0;
  Deadline latest = Deadline::min();  // of the members
  bool closed = false;                // nobody joins any more
  bool done = false;
  bool apart = false;  // each member runs by itself
  std::exception_ptr error;
  std::vector<std::vector<Part>> results;  // of each member
  std::condition_variable changed;
};

namespace {

bool FirstIsFree(const tw_model_value& value) { return value.shape->rank > 0 && value.shape->dims[0] < 0; }

// Inputs and outputs whose first dimension is free and, as far as sizes have names, of one name.
bool IsJoinable(const tw_model_signature& s) {
  std::string name;
  const auto agrees = [&](const tw_model_value& value) {
    if (!FirstIsFree(value)) return false;
    const std::string own = value.symbols ? value.symbols[0] : "";
    if (!own.empty() && !name.empty() && own != name) return false;
    if (!own.empty()) name = own;
    return true;
  };
  return s.n_inputs > 0 && std::all_of(s.inputs, s.inputs + s.n_inputs, [&](const auto* v) { return agrees(*v); }) &&
         std::all_of(s.outputs, s.outputs + s.n_outputs, [&](const auto* v) { return agrees(*v); });
}

// What must agree: the signature and, of each input, type and dimensions but the first.
std::string Key(const tw_model_signature& s, const Inputs& inputs) {
  std::string key = s.name;
  for (const tw::Tensor& t : inputs) {
    key += '\n';
    if (!t) continue;
    key += std::to_string(t.dtype());
    const std::vector<int64_t> dims = t.dims();
    for (size_t axis = 1; axis < dims.size(); ++axis) key += "," + std::to_string(dims[axis]);
  }
  return key;
}

tw::Tensor Concatenated(const std::vector<Inputs>& members, size_t input, uint64_t rows) {
  const tw::Tensor& first = members[0][input];
  if (!first) return {};
  std::vector<int64_t> dims = first.dims();
  dims[0] = int64_t(rows);
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(first.dtype(), dims.data(), uint32_t(dims.size()), &made));
  tw::Tensor whole = tw::Tensor::adopt(made);
  auto* to = first.dtype() == TW_STRING ? nullptr : static_cast<char*>(tw_tensor_mutable_data(made));
  uint64_t at = 0;
  for (const Inputs& member : members) {
    const tw_tensor* part = member[input].c();
    for (uint64_t i = 0; !to && i < tw_tensor_count(part); ++i) {
      const char* data = nullptr;
      uint64_t bytes = 0;
      tw::raise(tw_tensor_get_string(part, i, &data, &bytes));
      tw::raise(tw_tensor_set_string(made, at++, data, bytes));
    }
    if (!to || tw_tensor_bytes(part) == 0) continue;
    std::memcpy(to, tw_tensor_data(part), tw_tensor_bytes(part));
    to += tw_tensor_bytes(part);
  }
  return whole;
}

std::vector<Part> WholeParts(const std::vector<tw::Tensor>& tensors) {
  std::vector<Part> parts;
  for (const tw::Tensor& t : tensors) parts.push_back(Part::Whole(t));
  return parts;
}

// Whether another run of the members could end better.
bool IsOfTheInputs(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const tw::StatusError& e) {
    return e.code() != TW_DEADLINE_EXCEEDED && e.code() != TW_CANCELLED;
  } catch (const HttpError& e) {
    return e.status() != 504;
  } catch (...) {
    return true;
  }
}

}  // namespace

// Returns the rows that all inputs have; 0 for a request that must run by itself.
uint64_t Batcher::Rows(const tw_model_signature& signature, const Inputs& inputs) {
  if (most_rows_ < 2 || !IsJoinable(signature)) return 0;
  int64_t rows = -1;
  for (const tw::Tensor& t : inputs) {
    if (!t) continue;
    if (tw_tensor_rank(t.c()) == 0 || (rows >= 0 && tw_tensor_dim(t.c(), 0) != rows)) return 0;
    rows = tw_tensor_dim(t.c(), 0);
  }
  return rows > 0 && uint64_t(rows) < most_rows_ ? uint64_t(rows) : 0;
}

std::vector<Part> Batcher::Apart(const tw_model_signature& signature, const Inputs& inputs, Deadline deadline) const {
  return WholeParts(run_(signature, inputs, deadline));
}

std::vector<Part> Batcher::Request(const tw_model_signature& signature, Inputs inputs, Deadline deadline) {
  const uint64_t rows = Rows(signature, inputs);
  if (rows == 0) return Apart(signature, inputs, deadline);
  const std::string key = Key(signature, inputs);
  std::unique_lock<std::mutex> lock(mutex_);
  if (never_.count(signature.name)) {
    lock.unlock();
    return Apart(signature, inputs, deadline);
  }
  const auto close = [&](Batch* full) {
    full->closed = true;
    full->changed.notify_all();
    open_.erase(key);
  };
  auto found = open_.find(key);
  if (found != open_.end() && found->second->rows + rows > most_rows_) {
    close(found->second.get());
    found = open_.end();
  }
  const bool leads = found == open_.end();
  if (leads) found = open_.emplace(key, std::make_shared<Batch>()).first;
  const std::shared_ptr<Batch> batch = found->second;
  const size_t member = batch->members.size();
  batch->members.push_back(inputs);
  batch->member_rows.push_back(rows);
  batch->rows += rows;
  batch->latest = std::max(batch->latest, deadline);
  if (batch->rows == most_rows_) close(batch.get());
  if (leads) {
    batch->changed.wait_until(lock, std::min(deadline, Clock::now() + delay_), [&] { return batch->closed; });
    if (!batch->closed) close(batch.get());
    lock.unlock();
    Lead(signature, batch.get());
    lock.lock();
    batch->done = true;
    batch->changed.notify_all();
  } else if (!batch->changed.wait_until(lock, deadline, [&] { return batch->done; })) {
    throw HttpError(504, "the request's time ran out while its batch ran");
  }
  if (!batch->apart) {
    if (batch->error) std::rethrow_exception(batch->error);
    return std::move(batch->results[member]);
  }
  lock.unlock();
  return Apart(signature, inputs, deadline);
}

// REQUIRES: the batch is closed, so that its members stay.
void Batcher::Lead(const tw_model_signature& signature, Batch* batch) {
  try {
    RunJoined(signature, batch);
  } catch (...) {
    batch->error = std::current_exception();
    batch->apart = batch->members.size() > 1 && IsOfTheInputs(batch->error);
  }
}

void Batcher::RunJoined(const tw_model_signature& signature, Batch* batch) {
  Inputs joined = batch->members[0];
  if (batch->members.size() > 1) {
    for (size_t i = 0; i < joined.size(); ++i) joined[i] = Concatenated(batch->members, i, batch->rows);
  }
  const std::vector<tw::Tensor> outputs = run_(signature, joined, batch->latest);
  const bool split = std::all_of(outputs.begin(), outputs.end(), [&](const tw::Tensor& t) {
    return tw_tensor_rank(t.c()) > 0 && uint64_t(tw_tensor_dim(t.c(), 0)) == batch->rows;
  });
  if (!split) {
    const std::lock_guard<std::mutex> lock(mutex_);
    never_.insert(signature.name);
    batch->apart = batch->members.size() > 1;
    if (!batch->apart) batch->results.push_back(WholeParts(outputs));
    return;
  }
  uint64_t first = 0;
  for (const uint64_t rows : batch->member_rows) {
    std::vector<Part> parts;
    for (const tw::Tensor& t : outputs) {
      std::vector<int64_t> dims = t.dims();
      const uint64_t each = t.count() / batch->rows;
      dims[0] = int64_t(rows);
      parts.push_back({t, std::move(dims), first * each, rows * each});
    }
    batch->results.push_back(std::move(parts));
    first += rows;
  }
}

}  // namespace thalweg::cli::serve
