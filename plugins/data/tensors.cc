// TensorDataset: one element. TensorSliceDataset: an element for each row.
#include <cstring>

#include "kernel.h"
#include "register.h"
#include "rows.h"
#include "state.h"

namespace thalweg::data {
namespace {

struct TensorMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    std::vector<Element> one;
    one.push_back(in.Kept(0));
    return ListOf(std::move(one), types);
  }
};

class Slices final : public Dataset {
 public:
  Slices(std::vector<uint32_t> element_types, Element components)
      : Dataset("TensorSlice", std::move(element_types)), components_(std::make_shared<Element>(std::move(components))) {
    if (components_->empty()) Invalid("there are no components; give at least one tensor");
    for (const Ref& t : *components_) {
      const tw_view& v = t.view();
      if (v.rank == 0) Invalid("a component is a scalar, which has no rows; use TensorDataset");
      if (v.dims[0] != Rows())
        Invalid("the components have " + tw::text(Rows()) + " and " + tw::text(v.dims[0]) + " rows; they must have equally many");
    }
  }
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(components_); }
  int64_t Cardinality() const override { return Rows(); }
  void Describe(std::string* to) const override { *to += "TensorSlice(" + tw::text(Rows()) + ")"; }

 private:
  using Shared = std::shared_ptr<const Element>;
  int64_t Rows() const { return (*components_)[0].view().dims[0]; }

  class Walk final : public Iterator {
   public:
    explicit Walk(Shared components) : components_(std::move(components)), rows_((*components_)[0].view().dims[0]) {}
    bool Next(Call& c, Element* out) override {
      if (at_ == rows_) return false;
      out->clear();
      for (const Ref& t : *components_) out->push_back(Row(c, t.view(), at_));
      ++at_;
      return true;
    }
    int64_t Skip(Call&, int64_t n) override {
      n = std::min(n, rows_ - at_);
      at_ += n;
      return n;
    }
    void Save(StateWriter& w) const override { w.Number(uint64_t(at_)); }
    void Restore(Call&, StateReader& r) override { at_ = int64_t(r.Number(uint64_t(rows_))); }

   private:
    const Shared components_;
    const int64_t rows_;
    int64_t at_ = 0;
  };

  const Shared components_;
};

struct SliceMaker : Maker {
  explicit SliceMaker(const tw::Node& n) : Maker(n) {
    if (n.b("is_files")) Invalid("'is_files' is true; TensorSliceDataset has no sharding by files here, leave it false");
  }
  DatasetPtr Make(const Inputs& in) const { return std::make_shared<Slices>(types, in.Kept(0)); }
};

}  // namespace

void register_tensors(tw::Plugin& p) {
  AddDataset<TensorMaker>(p, "TensorDataset(_ -> variant) @CPU; keep components");
  AddDataset<SliceMaker>(p, "TensorSliceDataset(_ -> variant) @CPU; keep components");
}

}  // namespace thalweg::data
