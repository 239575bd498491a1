// Datasets and iterators: the interfaces of this plugin (see README.md). A Dataset is an immutable
// description; an Iterator is a position in it. Threads: a Dataset is used by any number; an
// Iterator by one at a time.
#ifndef THALWEG_PLUGINS_DATA_DATASET_H_
#define THALWEG_PLUGINS_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "functions.h"
#include "thalweg/cpp/function.hpp"
#include "thalweg/cpp/memory.hpp"
#include "thalweg/cpp/variant.hpp"

namespace thalweg::data {

// A reference to a tensor. It may outlive the session that made it, so it keeps no host of a frame.
class Ref {
 public:
  Ref() = default;
  Ref(const tw_host* h, tw_tensor* t) : api_(h->tensor), t_(t) {}  // takes a reference over
  Ref(const Ref& o) : api_(o.api_), t_(o.t_) {
    if (t_) api_->retain(t_);
  }
  Ref(Ref&& o) noexcept : api_(o.api_), t_(std::exchange(o.t_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(api_, o.api_);
    std::swap(t_, o.t_);
    return *this;
  }
  ~Ref() {
    if (t_) api_->release(t_);
  }
  tw_tensor* get() const { return t_; }
  const tw_view& view() const { return *api_->view(t_); }
  // A new reference for a call that takes one over.
  tw_tensor* share() const {
    api_->retain(t_);
    return t_;
  }

 private:
  const tw_tensor_api* api_ = nullptr;
  tw_tensor* t_ = nullptr;
};

// One element: a tensor per component.
using Element = std::vector<Ref>;

// A kernel call in which iterators run. Iterators get it as an argument and never keep it.
class Call {
 public:
  Call(tw::Frame frame, Functions* functions) : f(frame), pays_(frame), functions_(functions) {}
  const tw_host* host() const { return f.f->host; }
  // Throws if the step is cancelled or past its deadline.
  void CheckCancelled() const { tw::check(host()->run->cancelled(f.f)); }
  // Makes a tensor; its elements are undefined, or empty strings or variants.
  Ref Make(uint32_t dtype, const std::vector<int64_t>& dims) const;
  Ref MakeInt64(int64_t value) const;
  Ref MakeString(std::string_view bytes) const;
  const tw::Function& Find(const std::string& name) const { return functions_->Find(name); }
  // Calls the function on the element and then the captured values. Threads: several at once.
  Element Run(const tw::Function& fn, const Element& element, const Element& captured) const;

  const tw::Frame f;
  // An iterator above skips elements that fail. A reader of files then leaves a file in which it cannot go on.
  bool skips_failures = false;

 private:
  const tw::PaysHere pays_;
  Functions* const functions_;
};

class StateReader;
class StateWriter;

class Iterator {
 public:
  virtual ~Iterator() = default;
  // Gives the next element; returns false at the end, and in each later call.
  virtual bool Next(Call& c, Element* out) = 0;
  // Appends up to n elements, fewer only at the end.
  virtual void NextMany(Call& c, size_t n, std::vector<Element>* out);
  // Passes over n elements, or fewer at the end. Returns their number.
  virtual int64_t Skip(Call& c, int64_t n);
  // Writes the position. Restore is called on a new iterator of an equal dataset, with these bytes.
  virtual void Save(StateWriter& w) const = 0;
  virtual void Restore(Call& c, StateReader& r) = 0;
};

class Dataset {
 public:
  static constexpr int64_t kInfinite = -1, kUnknown = -2;

  Dataset(std::string op, std::vector<uint32_t> element_types) : name(std::move(op)), types(std::move(element_types)) {}
  virtual ~Dataset() = default;
  // Makes an iterator before the first element. round: the number of the pass, for shuffles.
  virtual std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const = 0;
  // Appends the op and all that decides whether a position fits; for example "Range(0, 10, 1)".
  virtual void Describe(std::string* to) const { *to += name; }
  // Returns the number of elements, kInfinite or kUnknown.
  virtual int64_t Cardinality() const { return kUnknown; }
  // Returns the elements of a dataset that consists of them, or NULL. Only such a dataset can be
  // part of a saved element.
  virtual const std::vector<Element>* Elements() const { return nullptr; }

  const std::string name;             // of the op, for messages
  const std::vector<uint32_t> types;  // of the components
};
using DatasetPtr = std::shared_ptr<const Dataset>;

// The object behind an element of type variant that is a dataset.
struct DatasetObject {
  DatasetPtr dataset;
  static constexpr std::string_view variant_name = "org.thalweg.dataset";
  uint64_t bytes() const { return sizeof *this; }
};

// Returns the dataset that a scalar variant refers to.
DatasetPtr DatasetOf(const tw_frame* f, const tw_view* v);
// Returns a scalar variant that refers to the dataset.
Ref VariantOf(const Call& c, DatasetPtr dataset);
// Makes a dataset of these elements, of one or more components.
DatasetPtr ListOf(std::vector<Element> elements, std::vector<uint32_t> types);

// "[2, 3]"
inline std::string DimsText(const tw_view& v) { return tw::text(v.dims, v.rank); }
inline std::vector<int64_t> DimsOf(const tw_view& v) { return {v.dims, v.dims + v.rank}; }
// Bytes of an element of a type of fixed size; 0 for strings, variants and resources.
uint64_t ElementBytes(uint32_t dtype);

// Whether an element that failed with this code may be skipped: another attempt would fail, too, and
// nobody asked the step to end.
inline bool MaySkip(uint32_t code) {
  return code != TW_CANCELLED && code != TW_DEADLINE_EXCEEDED && code != TW_ABORTED && code != TW_UNAVAILABLE &&
         code != TW_RESOURCE_EXHAUSTED;
}

[[noreturn]] inline void Fail(uint32_t code, std::string text) { throw tw::Error{code, std::move(text)}; }
[[noreturn]] inline void Invalid(std::string text) { Fail(TW_INVALID_ARGUMENT, std::move(text)); }

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_DATASET_H_
