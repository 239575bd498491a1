#include "batcher.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "http_error.h"

namespace thalweg::cli::serve {

// One request of a batch.
struct Batcher::Member {
  Charge charge;  // for the inputs
  Inputs inputs;
  uint64_t rows;
  Deadline deadline;
  bool left = false;         // nobody waits for the result any more
  std::vector<Part> result;  // written by the thread that runs the batch, read when the batch is done
};

// The batcher's lock guards all fields. From `started` to `done` the list of members stays as it is, and the thread that runs the batch
// uses the members and the results without the lock.
struct Batcher::Batch {
  Batch(std::string what, Deadline begin) : key(std::move(what)), due(begin) {}

  const std::string key;
  Deadline due;                                  // it runs then, even if it is not full
  std::vector<std::shared_ptr<Member>> members;  // the first leads
  uint64_t rows = 0;
  size_t waiting = 0;    // members that have not left
  bool closed = false;   // nobody joins any more
  bool started = false;  // nobody is left out any more
  bool done = false;
  bool apart = false;  // each member runs by itself
  std::exception_ptr error;
  CancelToken cancel;  // of the joined run
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

// Returns the values of one input, one after the other. `each`: a value for each member; none is empty.
tw::Tensor Concatenated(const std::vector<const tw::Tensor*>& each, uint64_t rows) {
  const tw::Tensor& first = *each[0];
  std::vector<int64_t> dims = first.dims();
  dims[0] = int64_t(rows);
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(first.dtype(), dims.data(), uint32_t(dims.size()), &made));
  tw::Tensor whole = tw::Tensor::adopt(made);
  auto* to = first.dtype() == TW_STRING ? nullptr : static_cast<char*>(tw_tensor_mutable_data(made));
  uint64_t at = 0;
  for (const tw::Tensor* one : each) {
    const tw_tensor* part = one->c();
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

// Returns the bytes of a tensor's elements and strings.
uint64_t BytesOf(const tw::Tensor& t) {
  uint64_t bytes = TensorBytes(t.dtype(), t.count());
  if (t.dtype() != TW_STRING) return bytes;
  for (uint64_t i = 0; i < t.count(); ++i) {
    const char* data = nullptr;
    uint64_t size = 0;
    tw::raise(tw_tensor_get_string(t.c(), i, &data, &size));
    bytes += size;
  }
  return bytes;
}

// Charges outputs to a request. The session has charged them to its own account before it made them.
std::shared_ptr<const Charge> ChargeFor(const std::vector<tw::Tensor>& outputs, const std::shared_ptr<RequestMemory>& request) {
  auto charge = std::make_shared<Charge>(request);
  for (const tw::Tensor& t : outputs) charge->Add(BytesOf(t));
  return charge;
}

std::vector<Part> WholeParts(const std::vector<tw::Tensor>& tensors, const std::shared_ptr<const Charge>& charge) {
  std::vector<Part> parts;
  for (const tw::Tensor& t : tensors) parts.push_back(Part::Whole(t, charge));
  return parts;
}

// Returns when a request that begins to wait for others now must run at the latest.
Deadline LatestRun(Deadline deadline) {
  const Deadline now = Clock::now();
  return deadline == Deadline::max() || deadline <= now ? Deadline::max() : now + (deadline - now) / 2;
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

std::vector<Part> Batcher::Apart(const tw_model_signature& signature, const Member& member, Cancellation* cancellation) const {
  const CancelToken cancel;
  const Cancellation::Scope scope(cancellation, [&] { cancel.Cancel(); });
  cancellation->ThrowIfCancelled();
  try {
    const std::vector<tw::Tensor> outputs = run_(signature, member.inputs, member.deadline, cancel);
    return WholeParts(outputs, ChargeFor(outputs, member.charge.request()));
  } catch (const tw::StatusError&) {
    cancellation->ThrowIfCancelled();  // says why the run was cancelled
    throw;
  }
}

std::vector<Part> Batcher::Request(const tw_model_signature& signature, Inputs inputs, Charge charge, Deadline deadline,
                                   Cancellation* cancellation, std::shared_ptr<const void> owner) {
  const uint64_t rows = Rows(signature, inputs);
  const auto member = std::make_shared<Member>(Member{std::move(charge), std::move(inputs), rows, deadline});
  if (rows == 0) return Apart(signature, *member, cancellation);
  std::shared_ptr<Batch> batch;
  // Made first: once the request is in a batch, nothing may fail before the request waits there.
  std::function<void()> leave = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    Leave(batch.get(), member.get());
  };
  batch = Join(signature, member);
  if (!batch) return Apart(signature, *member, cancellation);
  {
    const Cancellation::Scope scope(cancellation, std::move(leave));
    Await(signature, batch, member.get(), owner);
  }
  cancellation->ThrowIfCancelled();
  if (batch->apart) return Apart(signature, *member, cancellation);
  if (batch->error) std::rethrow_exception(batch->error);
  return std::move(member->result);
}

// Returns the batch that the request has joined; NULL if the signature's requests are never joined.
std::shared_ptr<Batcher::Batch> Batcher::Join(const tw_model_signature& signature, const std::shared_ptr<Member>& member) {
  std::string key = Key(signature, member->inputs);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (never_.count(signature.name)) return nullptr;
  auto found = open_.find(key);
  if (found != open_.end() && found->second->rows + member->rows > most_rows_) {
    Close(found->second.get());
    found = open_.end();
  }
  if (found == open_.end()) {
    auto made = std::make_shared<Batch>(key, Clock::now() + delay_);
    found = open_.emplace(std::move(key), std::move(made)).first;
  }
  const std::shared_ptr<Batch> batch = found->second;
  batch->members.push_back(member);
  batch->rows += member->rows;
  ++batch->waiting;
  if (const Deadline latest = LatestRun(member->deadline); latest < batch->due) {
    batch->due = latest;
    batch->changed.notify_all();  // the request that leads waits for it
  }
  if (batch->rows == most_rows_) Close(batch.get());
  return batch;
}

void Batcher::Close(Batch* batch) {
  if (batch->closed) return;
  batch->closed = true;
  batch->changed.notify_all();
  open_.erase(batch->key);
}

void Batcher::Leave(Batch* batch, Member* member) {
  if (member->left) return;
  member->left = true;
  --batch->waiting;
  if (!batch->started) {
    batch->rows -= member->rows;
    std::erase_if(batch->members, [&](const auto& m) { return m.get() == member; });
    if (batch->members.empty()) Close(batch);
  } else if (batch->waiting == 0 && !batch->done) {
    batch->cancel.Cancel();
  }
  batch->changed.notify_all();
}

// Returns when the batch is done or the request has left it. The thread whose request comes first starts the batch. Throws HttpError 504.
void Batcher::Await(const tw_model_signature& signature, const std::shared_ptr<Batch>& batch, Member* member,
                    const std::shared_ptr<const void>& owner) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!batch->done && !member->left) {
    const bool leads = !batch->started && batch->members.front().get() == member;
    const Deadline now = Clock::now();
    if (now >= member->deadline) {
      Leave(batch.get(), member);
      throw HttpError(504, std::string("the request's time ran out while its batch ") + (batch->started ? "ran" : "waited for others"));
    }
    if (leads && (batch->closed || now >= batch->due)) {
      Start(signature, batch, owner);
    } else {
      batch->changed.wait_until(lock, leads ? std::min(batch->due, member->deadline) : member->deadline);
    }
  }
}

// Runs the batch on a thread of its own: the members may leave while it runs.
void Batcher::Start(const tw_model_signature& signature, const std::shared_ptr<Batch>& batch, const std::shared_ptr<const void>& owner) {
  Close(batch.get());
  batch->started = true;
  try {
    runners_->Start([this, &signature, batch, owner] {
      RunBatch(signature, batch.get());
      const std::lock_guard<std::mutex> lock(mutex_);
      batch->done = true;
      batch->changed.notify_all();
    });
  } catch (const std::exception&) {
    batch->error = std::make_exception_ptr(HttpError(503, "the system gives no thread for the run; try again"));
    batch->done = true;
    batch->changed.notify_all();
  }
}

// REQUIRES: the batch has started.
void Batcher::RunBatch(const tw_model_signature& signature, Batch* batch) {
  try {
    RunJoined(signature, batch);
  } catch (...) {
    batch->error = std::current_exception();
    batch->apart = batch->members.size() > 1 && IsOfTheInputs(batch->error);
  }
}

void Batcher::RunJoined(const tw_model_signature& signature, Batch* batch) {
  const auto& members = batch->members;
  Deadline latest = Deadline::min();
  for (const auto& member : members) latest = std::max(latest, member->deadline);
  const std::shared_ptr<RequestMemory>& payer = members[0]->charge.request();
  Charge copies(payer);
  Inputs joined = members[0]->inputs;
  for (size_t i = 0; members.size() > 1 && i < joined.size(); ++i) {
    if (!joined[i]) continue;
    std::vector<const tw::Tensor*> each;
    for (const auto& member : members) {
      each.push_back(&member->inputs[i]);
      copies.Add(BytesOf(*each.back()));
    }
    joined[i] = Concatenated(each, batch->rows);
  }
  const std::vector<tw::Tensor> outputs = run_(signature, joined, latest, batch->cancel);
  const std::shared_ptr<const Charge> charge = ChargeFor(outputs, payer);
  const bool split = std::all_of(outputs.begin(), outputs.end(), [&](const tw::Tensor& t) {
    return tw_tensor_rank(t.c()) > 0 && uint64_t(tw_tensor_dim(t.c(), 0)) == batch->rows;
  });
  if (split) return Split(outputs, charge, batch);
  batch->apart = members.size() > 1;
  if (!batch->apart) members[0]->result = WholeParts(outputs, charge);
  const std::lock_guard<std::mutex> lock(mutex_);
  never_.insert(signature.name);
}

// Gives each member its rows.
void Batcher::Split(const std::vector<tw::Tensor>& outputs, const std::shared_ptr<const Charge>& charge, Batch* batch) {
  uint64_t first = 0;
  for (const auto& member : batch->members) {
    for (const tw::Tensor& t : outputs) {
      std::vector<int64_t> dims = t.dims();
      const uint64_t each = t.count() / batch->rows;
      dims[0] = int64_t(member->rows);
      member->result.push_back({t, std::move(dims), first * each, member->rows * each, charge});
    }
    first += member->rows;
  }
}

}  // namespace thalweg::cli::serve
