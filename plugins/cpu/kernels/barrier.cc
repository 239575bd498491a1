// Barriers. A call that takes elements waits at the resource until they are complete. Waiting calls
// are served in order.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/common/text.h"
#include "kernels/register.h"
#include "kernels/same_resource.h"
#include "kernels/tensor_list.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {
namespace {

constexpr char kType[] = "org.thalweg.barrier";

struct Options {
  explicit Options(const tw::Node& n) {
    title = "Barrier '" + std::string(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) + "'";
    const tw_attr &given_types = n.at("component_types"), &given_shapes = n.at("shapes");
    for (uint32_t i = 0; i < given_types.count; ++i) types.push_back(static_cast<const uint32_t*>(given_types.data)[i]);
    if (n.i("capacity") != -1) {
      Invalid("capacity is " + std::to_string(n.i("capacity")) + ", but only -1 is supported; let a queue before it hold back");
    }
    if (given_shapes.count != given_types.count) {
      Invalid("component_types has length " + std::to_string(given_types.count) + ", but shapes has length " +
              std::to_string(given_shapes.count) + "; give each component a shape");
    }
    for (uint32_t i = 0; i < given_shapes.count; ++i) {
      const tw_shape& s = static_cast<const tw_shape*>(given_shapes.data)[i];
      shapes.emplace_back(s.dims, s.rank);
      if (!shapes.back().full()) Invalid("shapes[" + std::to_string(i) + "] is " + shapes.back().text() + ", but must be fully known");
    }
  }
  std::string title;
  std::vector<uint32_t> types;
  std::vector<PartialShape> shapes;
};

// A row of a tensor that several elements share.
struct Part {
  std::shared_ptr<const Kept> tensor;
  uint64_t row = 0;
};
struct Element {
  int64_t batch;  // the batch in which its first component arrived
  std::string key;
  std::vector<Part> parts;
  size_t missing;
};

struct Barrier {
  explicit Barrier(const Options& o) : options(o) {}
  const Options options;
  std::unordered_map<std::string, Element> incomplete;
  std::multimap<int64_t, Element> ready;  // by batch
  int64_t batch = INT64_MIN;
  bool closed = false, cancelled = false;
  tw::Holding held;  // the bytes apart from the tensors

  // The bytes of an element: its places in both maps, its key, which is stored twice, and its
  // parts.
  uint64_t Each(uint64_t key_bytes) const {
    return sizeof(Element) + sizeof(std::string) + 6 * tw::kHeapBlock + 2 * key_bytes + 2 * options.types.size() * sizeof(Part);
  }
  void CheckTaken(const tw::ManyOut<tw::Any>& values) const {
    bool same = values.size() == options.types.size();
    for (uint32_t c = 0; same && c < values.size(); ++c) same = values[c].v()->dtype == options.types[c];
    if (same) return;
    Invalid(options.title + " has elements of " + TypesText(options.types));
  }
};
Barrier& BarrierAt(const tw::Var<tw::Any>& handle) { return *static_cast<Barrier*>(handle.handle()); }

class Handle {
 public:
  explicit Handle(const tw::Node& n)
      : options_(n), container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) {}
  void operator()(tw::Frame f, tw::Out<tw::Any> handle) const {
    OpenSame<Barrier>(f, ResourceKey(kType, container_, name_), handle.o, options_, [&](const Barrier& b) {
      if (b.options.types != options_.types) Refuse(b, "component types", TypesText(b.options.types), TypesText(options_.types));
      if (b.options.shapes != options_.shapes) Refuse(b, "shapes", ShapesText(b.options.shapes), ShapesText(options_.shapes));
    });
  }

 private:
  [[noreturn]] static void Refuse(const Barrier& b, const char* what, const std::string& is, const std::string& wanted) {
    Invalid(b.options.title + " is there already and has " + what + " " + is + ", but " + wanted +
            " was asked for; choose another shared_name");
  }
  static std::string ShapesText(const std::vector<PartialShape>& shapes) {
    std::string s;
    for (const PartialShape& shape : shapes) tw::list(s, shape.text().c_str());
    return s;
  }

  const Options options_;
  std::string container_, name_;
};

class InsertMany {
 public:
  explicit InsertMany(const tw::Node& n) : component_(n.i("component_index")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::In<tw_string> keys, tw::In<tw::Any> values) const {
    Barrier& b = BarrierAt(handle);
    Check(f, b, keys, values);
    const size_t c = size_t(component_);
    uint64_t fresh = 0, bytes = 0;
    for (uint64_t i = 0; i < keys.size(); ++i) {
      if (b.incomplete.count(KeyAt(keys, i))) continue;
      ++fresh;
      bytes += b.Each(keys[i].size);
    }
    if (b.closed && (b.cancelled || fresh > 0)) {
      throw tw::Error{TW_CANCELLED, b.options.title + " is closed; " + std::to_string(fresh) + " of the keys are new, " +
                                        std::to_string(b.incomplete.size()) + " are incomplete"};
    }
    b.held.add(f, bytes);
    const auto tensor = std::make_shared<const Kept>(KeepInput(f.f, 2));
    for (uint64_t i = 0; i < keys.size(); ++i) Insert(&b, KeyAt(keys, i), c, {tensor, i});
    b.batch += fresh > 0;
  }

 private:
  static std::string KeyAt(tw::In<tw_string> keys, uint64_t i) { return {keys[i].data, keys[i].size}; }

  // Checks all input before any of it is inserted.
  void Check(tw::Frame f, const Barrier& b, tw::In<tw_string> keys, tw::In<tw::Any> values) const {
    const Options& o = b.options;
    if (component_ < 0 || size_t(component_) >= o.types.size()) {
      Invalid(o.title + " has " + std::to_string(o.types.size()) + " components, and component_index is " + std::to_string(component_));
    }
    const size_t c = size_t(component_);
    if (values.v->dtype != o.types[c])
      Invalid("component " + std::to_string(c) + " of " + o.title + " is " + TypeText(o.types[c]) + ", not " + TypeText(values.v->dtype));
    if (keys.rank() != 1) Invalid("keys must be a vector, but has shape " + DimsText(keys.v));
    if (values.rank() < 1 || values.dim(0) != keys.dim(0)) {
      Invalid("values has shape " + DimsText(values.v) + ", but needs a row for each of the " + std::to_string(keys.dim(0)) + " keys");
    }
    if (!o.shapes[c].Admits(values.dims() + 1, values.rank() - 1)) {
      Invalid("component " + std::to_string(c) + " of " + o.title + " has shape " + o.shapes[c].text() + ", not " +
              tw::text(values.dims() + 1, values.rank() - 1));
    }
    std::map<std::string, int> seen;
    tw::Charge charge(f);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      charge.add(sizeof(std::pair<std::string, int>) + 32 + 2 * tw::kHeapBlock + keys[i].size);
      const std::string key = KeyAt(keys, i);
      auto it = b.incomplete.find(key);
      if ((it != b.incomplete.end() && it->second.parts[c].tensor) || seen[key]++ > 0) {
        Invalid("key " + Quoted(key) + " of " + o.title + " has component " + std::to_string(c) + " already");
      }
    }
  }

  static void Insert(Barrier* b, const std::string& key, size_t c, Part part) {
    const size_t n = b->options.types.size();
    Element& e = b->incomplete.try_emplace(key, Element{b->batch, key, std::vector<Part>(n), n}).first->second;
    e.parts[c] = std::move(part);
    if (--e.missing > 0) return;
    b->ready.emplace(e.batch, e);
    b->incomplete.erase(key);
  }

  const int64_t component_;
};

class TakeMany {
 public:
  explicit TakeMany(const tw::Node& n) : small_(n.b("allow_small_batch")) {
    if (n.i("timeout_ms") != -1)
      Invalid("timeout_ms is " + std::to_string(n.i("timeout_ms")) + ", but only -1 is supported; give the run a deadline");
  }
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int32_t> num_elements, tw::Out<int64_t> indices, tw::Out<tw_string> keys,
                  tw::ManyOut<tw::Any> values) const {
    Barrier& b = BarrierAt(handle);
    b.CheckTaken(values);
    if (num_elements[0] < 0) Invalid("num_elements is " + std::to_string(num_elements[0]) + ", but must be at least 0");
    if (f.waiting(0, 0) > 0) return f.wait(0, 0, 0);
    uint64_t n = uint64_t(num_elements[0]);
    if (b.closed) n = AtTheEnd(b, n);
    if (b.ready.size() < n) return f.wait(0, 0, 0);
    Hand(f, b, n, indices, keys, values);
    for (uint64_t i = 0; i < n; ++i) {
      b.held.sub(b.Each(b.ready.begin()->second.key.size()));
      b.ready.erase(b.ready.begin());
    }
    f.complete();
  }

 private:
  // Returns the number of elements that a call for n elements gets from a closed barrier. Throws if
  // it will never get any.
  uint64_t AtTheEnd(const Barrier& b, uint64_t n) const {
    const uint64_t there = b.ready.size() + (small_ ? 0 : b.incomplete.size());
    const uint64_t wanted = small_ ? std::min<uint64_t>(n, there) : n;
    if (there >= std::max<uint64_t>(wanted, 1)) return wanted;
    throw tw::Error{TW_OUT_OF_RANGE, b.options.title + " is closed and has insufficient elements: " + std::to_string(n) +
                                         " were asked for, " + std::to_string(there) + " are left"};
  }

  static void Hand(tw::Frame f, const Barrier& b, uint64_t n, const tw::Out<int64_t>& indices, const tw::Out<tw_string>& keys,
                   const tw::ManyOut<tw::Any>& values) {
    const int64_t count = int64_t(n);
    Allocate(indices, &count, 1);
    Allocate(keys, &count, 1);
    for (uint32_t c = 0; c < values.size(); ++c) {
      std::vector<int64_t> dims = b.options.shapes[c].dims;
      dims.insert(dims.begin(), count);
      Allocate(values[c], dims.data(), int(dims.size()));
    }
    auto it = b.ready.begin();
    for (uint64_t i = 0; i < n; ++i, ++it) {
      const Element& e = it->second;
      indices[i] = e.batch;
      keys.set(i, e.key);
      for (uint32_t c = 0; c < values.size(); ++c) {
        const int64_t each = Product(b.options.shapes[c].dims.data(), 0, int(b.options.shapes[c].dims.size()));
        if (each > 0) CopyRun(f.f, e.parts[c].tensor->view(), int64_t(e.parts[c].row) * each, values[c].v(), int64_t(i) * each, each);
      }
    }
  }

  const bool small_;
};

class Close {
 public:
  explicit Close(const tw::Node& n) : cancel_(n.b("cancel_pending_enqueues")) {}
  void operator()(tw::Var<tw::Any> handle) const {
    Barrier& b = BarrierAt(handle);
    if (b.closed && (b.cancelled || !cancel_)) throw tw::Error{TW_CANCELLED, b.options.title + " is already closed"};
    b.closed = true;
    b.cancelled = cancel_;
    if (!cancel_) return;
    for (const auto& [key, e] : b.incomplete) b.held.sub(b.Each(key.size()));
    b.incomplete.clear();
  }

 private:
  const bool cancel_;
};

void ReadySize(tw::Var<tw::Any> handle, tw::Out<int32_t> size) { size[0] = int32_t(BarrierAt(handle).ready.size()); }
void IncompleteSize(tw::Var<tw::Any> handle, tw::Out<int32_t> size) { size[0] = int32_t(BarrierAt(handle).incomplete.size()); }

}  // namespace

void register_barrier(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, [](const tw_host*, void* b) { delete static_cast<Barrier*>(b); }, nullptr,
              nullptr});
  p.kernel<Handle>("ResourceBarrier @CPU");
  p.kernel<InsertMany>("ResourceBarrierInsertMany @CPU; update handle; keep values");
  p.kernel<TakeMany>("ResourceBarrierTakeMany @CPU; async; update handle; nondeterministic");
  p.kernel<Close>("ResourceBarrierClose @CPU; update handle");
  p.kernel<ReadySize>("ResourceBarrierReadySize @CPU; read handle");
  p.kernel<IncompleteSize>("ResourceBarrierIncompleteSize @CPU; read handle");
}

}  // namespace thalweg::cpu
