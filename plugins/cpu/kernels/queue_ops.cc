// Queue ops: create, enqueue, dequeue, close. Calls wait at the resource, enqueues for room and
// dequeues for elements, each in order of arrival. A dequeue takes all its elements at once, so a
// cancelled one leaves the queue unchanged. An enqueue inserts row by row, as room becomes free.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/queue.h"
#include "kernels/register.h"
#include "kernels/same_resource.h"

namespace thalweg::cpu {
namespace {

enum Condition : uint64_t { kRoom, kElements };

Queue& QueueAt(const tw::Var<tw::Any>& handle) { return *static_cast<Queue*>(handle.handle()); }

void RefuseTimeout(const tw::Node& n) {
  if (const int64_t ms = n.i("timeout_ms"); ms != -1) {
    Invalid("timeout_ms is " + std::to_string(ms) + ", but only -1 is supported; give the run a deadline");
  }
}

template <QueueOptions::Kind kind>
class QueueHandle {
 public:
  explicit QueueHandle(const tw::Node& n) : options_(kind, n), container_(n.s("container")), name_(n.s("shared_name")) {
    if (name_.empty()) name_ = n.name();
  }
  void operator()(tw::Frame f, tw::Out<tw::Any> handle) const {
    OpenSame<Queue>(f, ResourceKey(kQueueType, container_, name_), handle.o, options_,
                    [&](const Queue& q) { q.options().CheckSame(options_); });
  }

 private:
  const QueueOptions options_;
  std::string container_, name_;
};

// Returns input i as a tensor that outlives the call.
std::shared_ptr<tw_tensor> Keep(const tw_frame* f, uint32_t i) {
  tw_tensor* t = nullptr;
  tw::check(f->host->tensor->keep(f, i, &t));
  return {t, f->host->tensor->release};
}

// The memo is the number of rows already in the queue.
template <bool kRows>
class Enqueue {
 public:
  explicit Enqueue(const tw::Node& n) { RefuseTimeout(n); }
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::Many<tw::Any> components) const {
    Queue& q = QueueAt(handle);
    q.CheckComponents(components, kRows);
    const uint64_t rows = kRows ? uint64_t(components[0].dim(0)) : 1;
    uint64_t done = f.memo();
    if (done == rows) return f.complete();
    if (f.waiting(0, kRoom) > 0) return f.wait(0, kRoom, done);
    if (q.closed()) throw tw::Error{TW_CANCELLED, q.options().title + " is closed; nothing can be put into it"};
    std::vector<std::shared_ptr<tw_tensor>> kept;
    const bool anybody = f.waiting(0, kElements) > 0;
    for (; done < rows && q.HasRoom(anybody); ++done) {
      if (kept.empty()) kept = KeepAll(f, components);
      q.Put(f, Row(f, kept, q.options(), done));
    }
    if (done < rows) return f.wait(0, kRoom, done);
    f.complete();
  }

 private:
  static std::vector<std::shared_ptr<tw_tensor>> KeepAll(tw::Frame f, const tw::Many<tw::Any>& components) {
    std::vector<std::shared_ptr<tw_tensor>> kept;
    for (uint32_t c = 0; c < components.size(); ++c) kept.push_back(Keep(f.f, components.first + c));
    return kept;
  }
  static Queue::Element Row(tw::Frame f, const std::vector<std::shared_ptr<tw_tensor>>& kept, const QueueOptions& options, uint64_t row) {
    Queue::Element e;
    for (const auto& t : kept) e.parts.push_back({t, kRows ? int64_t(row) : -1});
    if (options.kind == QueueOptions::kPriority) e.priority = IndexAt(f.f->host->tensor->view(kept[0].get()), row);
    return e;
  }
};

// A component of one element or of many, as a view of its tensor.
struct Item {
  const tw_view* view;
  const int64_t* dims;
  int32_t rank;
  int64_t first;  // index of its first element in the view
  uint64_t count;
};
Item ItemOf(const tw_host* h, const Queue::Part& part) {
  const tw_view* v = h->tensor->view(part.tensor.get());
  if (part.row < 0) return {v, v->dims, v->rank, 0, v->count};
  const uint64_t count = uint64_t(Product(v->dims, 1, v->rank));
  return {v, v->dims + 1, v->rank - 1, part.row * int64_t(count), count};
}

// Writes component c of the first n elements, padded to one shape, along a new first axis.
void Join(tw::Frame f, const Queue& q, uint64_t n, uint32_t c, const tw::Out<tw::Any>& out) {
  const tw_host* h = f.f->host;
  std::vector<int64_t> dims = q.options().shapes[c];
  bool padded = std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; });
  for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
  for (uint64_t i = 0; i < n && padded; ++i) {
    const Item item = ItemOf(h, q.at(i).parts[c]);
    for (size_t k = 0; k < dims.size(); ++k) dims[k] = std::max(dims[k], item.dims[k]);
  }
  const int rank = int(dims.size());
  const int64_t each = Product(dims.data(), 0, rank);
  dims.insert(dims.begin(), int64_t(n));
  Allocate(out, dims.data(), rank + 1);
  if (padded) FillZero(f.f, out.v());
  const Ints to = DenseStrides(dims.data() + 1, rank);
  for (uint64_t i = 0; i < n; ++i) {
    const Item item = ItemOf(h, q.at(i).parts[c]);
    if (item.count == 0) continue;
    const Ints from = DenseStrides(item.dims, rank);
    Box box;
    for (int k = 0; k < rank; ++k) box.Add(item.dims[k], from[k], to[k]);
    CopyBox(f.f, box, item.view, item.first, out.v(), int64_t(i) * each);
  }
}

// Writes component c of the first element.
void Give(tw::Frame f, const Queue& q, uint32_t c, const tw::Out<tw::Any>& out) {
  const Queue::Part& part = q.at(0).parts[c];
  if (part.row < 0) return tw::check(f.f->host->tensor->give(f.f, out.o, part.tensor.get()));
  const Item item = ItemOf(f.f->host, part);
  Allocate(out, item.dims, item.rank);
  CopyRun(f.f, item.view, item.first, out.v(), 0, int64_t(item.count));
}

// Takes n elements or waits for them. From a closed queue it takes the rest, if `fewer` allows
// that. The memo is 1 once the call has been first in line and has promised its elements.
template <class Hand>
void Dequeue(tw::Frame f, Queue& q, uint64_t n, bool fewer, Hand&& hand) {
  if (f.waiting(0, kElements) > 0) return f.wait(0, kElements, f.memo());
  if (q.closed() && q.size() < n) {
    if (!fewer || q.size() == 0) {
      throw tw::Error{TW_OUT_OF_RANGE, q.options().title + " is closed and has insufficient elements: " + std::to_string(n) +
                                           " were asked for, " + std::to_string(q.size()) + " are left"};
    }
    n = q.size();
  }
  if (q.available() < n) {
    q.Promise(n);
    return f.wait(0, kElements, 1);
  }
  q.Choose(n);
  hand(n);
  q.Drop(n);
  q.Promise(0);
  f.complete();
}

class DequeueOne {
 public:
  explicit DequeueOne(const tw::Node& n) { RefuseTimeout(n); }
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::ManyOut<tw::Any> components) const {
    Queue& q = QueueAt(handle);
    q.CheckTypes(components);
    Dequeue(f, q, 1, false, [&](uint64_t) {
      for (uint32_t c = 0; c < components.size(); ++c) Give(f, q, c, components[c]);
    });
  }
};

template <bool kFewer>
class DequeueMany {
 public:
  explicit DequeueMany(const tw::Node& n) { RefuseTimeout(n); }
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int32_t> n, tw::ManyOut<tw::Any> components) const {
    Queue& q = QueueAt(handle);
    q.CheckTypes(components);
    if (n[0] < 0) Invalid("n is " + std::to_string(n[0]) + ", but must be at least 0");
    if (!q.options().shaped)
      Invalid(q.options().title + " does not know the shapes of its components; many can be taken only where 'shapes' says them");
    Dequeue(f, q, uint64_t(n[0]), kFewer, [&](uint64_t count) {
      for (uint32_t c = 0; c < components.size(); ++c) Join(f, q, count, c, components[c]);
    });
  }
};

// Calls that waited for room before the close are served first, unless they are to be cancelled.
class Close {
 public:
  explicit Close(const tw::Node& n) : cancel_(n.b("cancel_pending_enqueues")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> handle) const {
    Queue& q = QueueAt(handle);
    if (!cancel_ && f.waiting(0, kRoom) > 0) return f.wait(0, kRoom, 0);
    if (!cancel_ && q.closed()) throw tw::Error{TW_CANCELLED, q.options().title + " is already closed"};
    q.Close();
    f.complete();
  }

 private:
  bool cancel_;
};

void IsClosed(tw::Var<tw::Any> handle, tw::Out<bool> is_closed) { is_closed[0] = QueueAt(handle).closed(); }
void Size(tw::Frame f, tw::Var<tw::Any> handle, tw::Out<int32_t> size) {
  size[0] = int32_t(std::min<uint64_t>(QueueAt(handle).SizeBut(f.waiting(0, kElements) > 0), INT32_MAX));
}

}  // namespace

void register_queue(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kQueueType), 1, nullptr, [](const tw_host*, void* q) { delete static_cast<Queue*>(q); },
              nullptr, nullptr});
  p.kernel<QueueHandle<QueueOptions::kFifo>>("FIFOQueueV2 @CPU");
  p.kernel<QueueHandle<QueueOptions::kRandomShuffle>>("RandomShuffleQueueV2 @CPU");
  p.kernel<QueueHandle<QueueOptions::kPaddingFifo>>("PaddingFIFOQueueV2 @CPU");
  p.kernel<QueueHandle<QueueOptions::kPriority>>("PriorityQueueV2 @CPU");
  p.kernel<Enqueue<false>>("QueueEnqueueV2 @CPU; async; update handle; keep components");
  p.kernel<Enqueue<true>>("QueueEnqueueManyV2 @CPU; async; update handle; keep components");
  p.kernel<DequeueOne>("QueueDequeueV2 @CPU; async; update handle; nondeterministic");
  p.kernel<DequeueMany<false>>("QueueDequeueManyV2 @CPU; async; update handle; nondeterministic");
  p.kernel<DequeueMany<true>>("QueueDequeueUpToV2 @CPU; async; update handle; nondeterministic");
  p.kernel<Close>("QueueCloseV2 @CPU; async; update handle");
  p.kernel<IsClosed>("QueueIsClosedV2 @CPU; read handle");
  p.kernel<Size>("QueueSizeV2 @CPU; update handle");
}

}  // namespace thalweg::cpu
