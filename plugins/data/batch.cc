// BatchDatasetV2 and ParallelBatchDataset: consecutive elements become one.
#include "kernel.h"
#include "register.h"
#include "rows.h"
#include "state.h"

namespace thalweg::data {
namespace {

class Batch final : public Dataset {
 public:
  Batch(DatasetPtr input, int64_t size, bool drop_remainder)
      : Dataset("Batch", input->types), input_(std::move(input)), size_(size), drop_(drop_remainder) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), types.size(), size_, drop_);
  }
  int64_t Cardinality() const override {
    const int64_t n = input_->Cardinality();
    return n < 0 ? n : n / size_ + (!drop_ && n % size_ != 0);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Batch(" + tw::text(size_) + (drop_ ? ", whole)" : ")");
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, size_t components, int64_t size, bool drop)
        : input_(std::move(input)), components_(components), size_(size_t(size)), drop_(drop) {}
    bool Next(Call& c, Element* out) override {
      std::vector<Element> elements;
      input_->NextMany(c, size_, &elements);
      if (elements.empty() || (drop_ && elements.size() < size_)) return false;
      c.CheckCancelled();
      out->clear();
      for (size_t k = 0; k < components_; ++k) out->push_back(Stacked(c, elements, k));
      return true;
    }
    void Save(StateWriter& w) const override { input_->Save(w); }
    void Restore(Call& c, StateReader& r) override { input_->Restore(c, r); }

   private:
    const std::unique_ptr<Iterator> input_;
    const size_t components_, size_;
    const bool drop_;
  };

  const DatasetPtr input_;
  const int64_t size_;
  const bool drop_;
};

// drop: the argument `drop_remainder`.
template <uint32_t drop>
struct BatchMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    return std::make_shared<Batch>(in.Dataset(0), in.Least(1, "batch_size", 1), in.Bool(drop, "drop_remainder"));
  }
};

}  // namespace

void register_batch(tw::Plugin& p) {
  AddDataset<BatchMaker<2>>(p, "BatchDatasetV2(variant, int64, bool -> variant) @CPU");
  AddDataset<BatchMaker<3>>(p, "ParallelBatchDataset(variant, int64, int64, bool -> variant) @CPU");
}

}  // namespace thalweg::data
