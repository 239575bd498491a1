#include "dataset.h"

#include <cstring>

#include "state.h"

namespace thalweg::data {
namespace {

class List final : public Dataset {
 public:
  List(std::vector<Element> elements, std::vector<uint32_t> element_types)
      : Dataset("List", std::move(element_types)), elements_(std::make_shared<std::vector<Element>>(std::move(elements))) {}

  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(elements_); }
  int64_t Cardinality() const override { return int64_t(elements_->size()); }
  const std::vector<Element>* Elements() const override { return elements_.get(); }
  void Describe(std::string* to) const override { *to += "List(" + std::to_string(elements_->size()) + ")"; }

 private:
  using Shared = std::shared_ptr<const std::vector<Element>>;
  class Walk final : public Iterator {
   public:
    explicit Walk(Shared elements) : elements_(std::move(elements)) {}
    bool Next(Call&, Element* out) override {
      if (at_ == elements_->size()) return false;
      *out = (*elements_)[at_++];
      return true;
    }
    void Save(StateWriter& w) const override { w.Number(at_); }
    void Restore(Call&, StateReader& r) override { at_ = r.Number(elements_->size()); }

   private:
    const Shared elements_;
    size_t at_ = 0;
  };

  const Shared elements_;
};

}  // namespace

uint64_t ElementBytes(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT:
    case TW_INT32:
    case TW_UINT32:
    case TW_QINT32: return 4;
    case TW_DOUBLE:
    case TW_INT64:
    case TW_UINT64:
    case TW_COMPLEX64: return 8;
    case TW_COMPLEX128: return 16;
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_INT16:
    case TW_UINT16:
    case TW_QINT16:
    case TW_QUINT16: return 2;
    case TW_STRING:
    case TW_RESOURCE:
    case TW_VARIANT: return 0;
    default: return 1;
  }
}

Ref Call::Make(uint32_t dtype, const std::vector<int64_t>& dims) const {
  tw_tensor* t = nullptr;
  tw::check(tw_make_tensor(host(), dtype, dims.data(), uint32_t(dims.size()), &t));
  return Ref(host(), t);
}

Ref Call::MakeInt64(int64_t value) const {
  Ref t = Make(TW_INT64, {});
  *static_cast<int64_t*>(t.view().data) = value;
  return t;
}

Ref Call::MakeString(std::string_view bytes) const {
  Ref t = Make(TW_STRING, {});
  tw::check(host()->tensor->set_string(t.get(), 0, bytes.data(), bytes.size()));
  return t;
}

Element Call::Run(const tw::Function& fn, const Element& element, const Element& captured) const {
  tw::Values args;
  args.reserve(element.size() + captured.size());
  for (const Ref& t : element) args.emplace_back(host(), t.share());
  for (const Ref& t : captured) args.emplace_back(host(), t.share());
  tw::Values results = fn(f, std::move(args));
  Element out;
  out.reserve(results.size());
  for (tw::Value& v : results) out.emplace_back(host(), v.release());
  return out;
}

void Iterator::NextMany(Call& c, size_t n, std::vector<Element>* out) {
  for (Element e; n > 0 && Next(c, &e); --n) out->push_back(std::move(e));
}

int64_t Iterator::Skip(Call& c, int64_t n) {
  Element e;
  for (int64_t k = 0; k < n; ++k)
    if (!Next(c, &e)) return k;
  return n;
}

DatasetPtr DatasetOf(const tw_frame* f, const tw_view* v) {
  if (v->dtype != TW_VARIANT || v->count != 1)
    Invalid("a dataset is a scalar variant, not " + tw::dtype_text(v->dtype) + " " + DimsText(*v));
  return tw::get<DatasetObject>(f, v).dataset;
}

Ref VariantOf(const Call& c, DatasetPtr dataset) {
  Ref t = c.Make(TW_VARIANT, {});
  tw::put(c.f.f, &t.view(), 0, std::make_unique<DatasetObject>(DatasetObject{std::move(dataset)}));
  return t;
}

DatasetPtr ListOf(std::vector<Element> elements, std::vector<uint32_t> types) {
  return std::make_shared<List>(std::move(elements), std::move(types));
}

}  // namespace thalweg::data
