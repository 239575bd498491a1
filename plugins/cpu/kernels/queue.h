// Queue: the object of a queue resource. Its elements are lists of tensors, kept in the order in
// which they will leave. The host manages the calls that wait for room or elements; the kernels
// tell the host their decisions. Threads: one, which has the resource open for update.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_QUEUE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_QUEUE_H_

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

inline constexpr char kQueueType[] = "org.thalweg.queue";

struct QueueOptions {
  enum Kind { kFifo, kRandomShuffle, kPaddingFifo, kPriority };
  QueueOptions(Kind of, const tw::Node& n);
  // Throws unless a node that asks for a queue with the options `asked` may use this one.
  void CheckSame(const QueueOptions& asked) const;

  Kind kind;
  std::string title;  // "FIFOQueue 'name'", for messages
  std::vector<uint32_t> types;
  bool shaped = false;                       // the shapes below are given
  std::vector<std::vector<int64_t>> shapes;  // -1: any size
  uint64_t capacity = 0, min_after_dequeue = 0;
  int64_t asked_capacity = 0;
  uint64_t seed = 0;  // 0: a new random seed
};

class Queue {
 public:
  // A tensor, or row `row` of a tensor that other elements share.
  struct Part {
    std::shared_ptr<tw_tensor> tensor;
    int64_t row = -1;  // -1: the whole tensor
  };
  struct Element {
    std::vector<Part> parts;
    int64_t priority = 0;
  };

  explicit Queue(const QueueOptions& options);
  const QueueOptions& options() const { return options_; }

  // Throws unless such components can be elements, or rows of elements.
  void CheckComponents(const tw::Many<tw::Any>& components, bool rows) const;
  // Throws unless elements have these types.
  void CheckTypes(const tw::ManyOut<tw::Any>& outputs) const;

  bool closed() const { return closed_; }
  void Close() { closed_ = true; }
  // Returns the number of elements that can be taken now.
  uint64_t available() const;
  uint64_t size() const { return elements_.size(); }
  // Sets how many elements the first waiting dequeue wants. These elements count as taken, so they
  // leave room for others.
  void Promise(uint64_t wanted) { wanted_ = wanted; }
  // Returns the size without the promised elements. anybody: a call waits for elements.
  uint64_t SizeBut(bool anybody) const;
  bool HasRoom(bool anybody) const { return SizeBut(anybody) < options_.capacity; }

  // Throws if the payer may not hold so much more; the queue is then unchanged.
  void Put(tw::Payer payer, Element e);
  // Makes elements 0 to n - 1 the next to leave. REQUIRES: n elements are available.
  void Choose(uint64_t n);
  const Element& at(uint64_t i) const { return elements_[i]; }
  void Drop(uint64_t n) {
    elements_.erase(elements_.begin(), elements_.begin() + int64_t(n));
    held_.sub(n * EachElement());
  }

 private:
  // The bytes of an element apart from its tensors: its place, its list of parts, and the reference
  // of each part to its tensor.
  uint64_t EachElement() const { return sizeof(Element) + 2 * tw::kHeapBlock + options_.types.size() * (sizeof(Part) + 64); }

  const QueueOptions options_;
  tw::Holding held_;
  std::deque<Element> elements_;
  std::mt19937_64 random_;
  bool closed_ = false;
  uint64_t wanted_ = 0;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_QUEUE_H_
