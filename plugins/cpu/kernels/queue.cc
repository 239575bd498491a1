#include "kernels/queue.h"

#include <algorithm>

#include "kernels/same_resource.h"

namespace thalweg::cpu {
namespace {

constexpr const char* kNames[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};

std::vector<int64_t> DimsOf(const tw_shape* shapes, uint32_t i, QueueOptions::Kind kind) {
  const tw_shape& s = shapes[i];
  const std::string which = "shapes[" + std::to_string(i) + "] is " + tw::text(s);
  if (s.rank < 0) Invalid(which + ", but must have a known rank");
  std::vector<int64_t> dims(s.dims, s.dims + s.rank);
  if (kind != QueueOptions::kPaddingFifo && std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
    Invalid(which + ", but must be fully known; use a PaddingFIFOQueue");
  }
  return dims;
}

bool Fits(const std::vector<int64_t>& want, const int64_t* dims, int32_t rank) {
  if (int32_t(want.size()) != rank) return false;
  for (int32_t i = 0; i < rank; ++i) {
    if (want[size_t(i)] >= 0 && want[size_t(i)] != dims[i]) return false;
  }
  return true;
}

std::string ShapesText(const std::vector<std::vector<int64_t>>& shapes) {
  std::string s;
  for (const auto& dims : shapes) tw::list(s, tw::text(dims.data(), int32_t(dims.size())).c_str());
  return "(" + s + ")";
}

}  // namespace

QueueOptions::QueueOptions(Kind of, const tw::Node& n) : kind(of) {
  std::string name(n.s("shared_name"));
  if (name.empty()) name = n.name();
  title = std::string(kNames[kind]) + " '" + name + "'";
  if (kind == kPriority) {
    types.push_back(TW_INT64);
    shapes.emplace_back();
  }
  const tw_attr& given_types = n.at("component_types");
  for (uint32_t i = 0; i < given_types.count; ++i) types.push_back(static_cast<const uint32_t*>(given_types.data)[i]);
  const tw_attr& given_shapes = n.at("shapes");
  shaped = given_shapes.count > 0 || kind == kPriority;
  for (uint32_t i = 0; i < given_shapes.count; ++i) shapes.push_back(DimsOf(static_cast<const tw_shape*>(given_shapes.data), i, kind));
  if (shaped && shapes.size() != types.size()) {
    Invalid("component_types has length " + std::to_string(given_types.count) + ", but shapes has length " +
            std::to_string(given_shapes.count) + "; give each component a shape" +
            (kind == kFifo || kind == kRandomShuffle ? ", or none" : ""));
  }
  if (kind == kPaddingFifo && !shaped)
    Invalid("shapes is empty, but a PaddingFIFOQueue needs the shapes of its components, -1 where sizes differ");
  const int64_t most = n.i("capacity");
  capacity = most < 0 ? UINT64_MAX : uint64_t(most);
  asked_capacity = std::max<int64_t>(most, -1);
  if (kind != kRandomShuffle) return;
  const int64_t least = n.i("min_after_dequeue");
  if (least < 0) Invalid("min_after_dequeue is " + std::to_string(least) + ", but must be at least 0");
  min_after_dequeue = uint64_t(least);
  if (min_after_dequeue >= capacity) {
    Invalid("min_after_dequeue is " + std::to_string(least) + ", but must be less than the capacity " + std::to_string(most));
  }
  seed = uint64_t(n.i("seed")) * 0x9e3779b97f4a7c15u ^ uint64_t(n.i("seed2"));
}

void QueueOptions::CheckSame(const QueueOptions& asked) const {
  const auto refuse = [&](const char* what, const std::string& is, const std::string& wanted) {
    Invalid(title + " is there already and has " + what + " " + is + ", but " + wanted + " was asked for; choose another shared_name");
  };
  if (asked.kind != kind) Invalid(title + " is there already, and a " + kNames[asked.kind] + " was asked for; choose another shared_name");
  if (asked.asked_capacity != asked_capacity) refuse("capacity", std::to_string(asked_capacity), std::to_string(asked.asked_capacity));
  if (asked.types != types) refuse("component types", TypesText(types), TypesText(asked.types));
  if (asked.shapes != shapes) refuse("shapes", ShapesText(shapes), ShapesText(asked.shapes));
  if (asked.min_after_dequeue != min_after_dequeue) {
    refuse("min_after_dequeue", std::to_string(min_after_dequeue), std::to_string(asked.min_after_dequeue));
  }
  if (asked.seed != seed) Invalid(title + " is there already and has another seed; choose another shared_name");
}

Queue::Queue(const QueueOptions& options) : options_(options), random_(options.seed ? options.seed : std::random_device()()) {}

void Queue::CheckComponents(const tw::Many<tw::Any>& components, bool rows) const {
  if (components.size() != options_.types.size()) {
    Invalid(options_.title + " has elements of " + std::to_string(options_.types.size()) + " components, not " +
            std::to_string(components.size()));
  }
  for (uint32_t c = 0; c < components.size(); ++c) {
    const tw_view* v = components[c].v;
    const std::string which = "component " + std::to_string(c) + " of " + options_.title;
    if (v->dtype != options_.types[c]) Invalid(which + " is " + TypeText(options_.types[c]) + ", not " + TypeText(v->dtype));
    if (rows && v->rank == 0) Invalid(which + " is a scalar, which has no rows; QueueEnqueueV2 puts in one element");
    if (rows && v->dims[0] != components[0].v->dims[0]) {
      Invalid(which + " has " + std::to_string(v->dims[0]) + " rows, but component 0 has " + std::to_string(components[0].v->dims[0]));
    }
    if (options_.shaped && !Fits(options_.shapes[c], v->dims + rows, v->rank - rows)) {
      Invalid(which + " has shape " + tw::text(options_.shapes[c].data(), int32_t(options_.shapes[c].size())) + ", not " +
              tw::text(v->dims + rows, v->rank - rows));
    }
  }
}

void Queue::CheckTypes(const tw::ManyOut<tw::Any>& outputs) const {
  std::vector<uint32_t> wanted;
  for (uint32_t c = 0; c < outputs.size(); ++c) wanted.push_back(outputs[c].v()->dtype);
  if (wanted != options_.types) Invalid(options_.title + " has elements of " + TypesText(options_.types) + ", not " + TypesText(wanted));
}

uint64_t Queue::available() const {
  const uint64_t kept = closed_ ? 0 : options_.min_after_dequeue;
  return size() > kept ? size() - kept : 0;
}

uint64_t Queue::SizeBut(bool anybody) const { return size() - (anybody ? std::min(wanted_, available()) : 0); }

void Queue::Put(tw::Payer payer, Element e) {
  held_.add(payer, EachElement());
  auto where = elements_.end();
  if (options_.kind == QueueOptions::kPriority) {
    where = std::upper_bound(elements_.begin(), where, e, [](const Element& a, const Element& b) { return a.priority < b.priority; });
  }
  elements_.insert(where, std::move(e));
}

void Queue::Choose(uint64_t n) {
  if (options_.kind != QueueOptions::kRandomShuffle) return;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t k = std::uniform_int_distribution<uint64_t>(i, elements_.size() - 1)(random_);
    std::swap(elements_[i], elements_[k]);
  }
}

}  // namespace thalweg::cpu
