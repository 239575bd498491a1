// WindowDataset: elements become datasets of consecutive elements. UnbatchDataset: rows become
// elements.
#include <deque>

#include "kernel.h"
#include "register.h"
#include "rows.h"
#include "state.h"

namespace thalweg::data {
namespace {

struct Windowing {
  int64_t size, shift, stride;
  bool drop;
  int64_t span() const { return (size - 1) * stride + 1; }  // elements from the first to the last of a window
};

class Window final : public Dataset {
 public:
  Window(DatasetPtr input, Windowing how)
      : Dataset("Window", std::vector<uint32_t>(input->types.size(), TW_VARIANT)), input_(std::move(input)), how_(how) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), input_->types, how_);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Window(" + tw::text(how_.size) + ", " + tw::text(how_.shift) + ", " + tw::text(how_.stride) + (how_.drop ? ", whole)" : ")");
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, std::vector<uint32_t> types, Windowing how)
        : input_(std::move(input)), types_(std::move(types)), how_(how) {}
    bool Next(Call& c, Element* out) override {
      if (to_pass_ > 0) to_pass_ -= input_->Skip(c, to_pass_);
      if (to_pass_ > 0) return over_ = true, false;
      while (!over_ && int64_t(held_.size()) < how_.span()) {
        Element e;
        over_ = !input_->Next(c, &e);
        if (!over_) held_.push_back(std::move(e));
      }
      if (held_.empty() || (how_.drop && int64_t(held_.size()) < how_.span())) return held_.clear(), false;
      std::vector<std::vector<Element>> parts(types_.size());
      for (int64_t i = 0; i < how_.size && i * how_.stride < int64_t(held_.size()); ++i)
        for (size_t k = 0; k < types_.size(); ++k) parts[k].push_back({held_[size_t(i * how_.stride)][k]});
      const auto used = size_t(std::min(how_.shift, int64_t(held_.size())));
      out->clear();
      for (size_t k = 0; k < types_.size(); ++k) out->push_back(VariantOf(c, ListOf(std::move(parts[k]), {types_[k]})));
      held_.erase(held_.begin(), held_.begin() + int64_t(used));
      to_pass_ = over_ ? 0 : how_.shift - int64_t(used);
      return true;
    }
    void Save(StateWriter& w) const override {
      w.Number(over_);
      w.Number(uint64_t(to_pass_));
      w.Elements({held_.begin(), held_.end()});
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      over_ = r.Number(1) != 0;
      to_pass_ = int64_t(r.Number(INT64_MAX));
      std::vector<Element> held = r.Elements(c, types_);
      held_.assign(held.begin(), held.end());
      input_->Restore(c, r);
    }

   private:
    const std::unique_ptr<Iterator> input_;
    const std::vector<uint32_t> types_;
    const Windowing how_;
    std::deque<Element> held_;  // the elements from the first of the next window on
    int64_t to_pass_ = 0;       // elements before the next window
    bool over_ = false;
  };

  const DatasetPtr input_;
  const Windowing how_;
};

struct WindowMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const Windowing how = {in.Least(1, "size", 1), in.Least(2, "shift", 1), in.Least(3, "stride", 1), in.Bool(4, "drop_remainder")};
    int64_t span = 0;
    if (__builtin_mul_overflow(how.size, how.stride, &span)) Invalid("'size' times 'stride' is too large");
    return std::make_shared<Window>(in.Dataset(0), how);
  }
};

class Unbatch final : public Dataset {
 public:
  explicit Unbatch(DatasetPtr input) : Dataset("Unbatch", input->types), input_(std::move(input)) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override { return std::make_unique<Walk>(input_->Begin(c, round), types); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Unbatch";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, std::vector<uint32_t> types) : input_(std::move(input)), types_(std::move(types)) {}
    bool Next(Call& c, Element* out) override {
      while (row_ == rows_) {
        row_ = rows_ = 0;
        if (!input_->Next(c, &whole_)) return whole_.clear(), false;
        rows_ = Rows();
      }
      out->clear();
      for (const Ref& t : whole_) out->push_back(Row(c, t.view(), row_));
      ++row_;
      return true;
    }
    void Save(StateWriter& w) const override {
      w.Number(row_ < rows_);
      if (row_ < rows_) {
        w.Number(uint64_t(row_));
        w.Values(whole_);
      }
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      row_ = rows_ = 0;
      if (r.Number(1) != 0) {
        const uint64_t row = r.Number(INT64_MAX);
        whole_ = r.Values(c, types_);
        for (const Ref& t : whole_)
          if (t.view().rank == 0) StateReader::Damaged();
        rows_ = Rows();
        if (row >= uint64_t(rows_)) StateReader::Damaged();
        row_ = int64_t(row);
      }
      input_->Restore(c, r);
    }

   private:
    int64_t Rows() const {
      for (const Ref& t : whole_) {
        if (t.view().rank == 0) Invalid("a component of an element is a scalar, which has no rows; unbatch takes batches");
        if (t.view().dims[0] != whole_[0].view().dims[0])
          Invalid("the components of an element have " + tw::text(whole_[0].view().dims[0]) + " and " + tw::text(t.view().dims[0]) +
                  " rows; they must have equally many");
      }
      return whole_[0].view().dims[0];
    }
    const std::unique_ptr<Iterator> input_;
    const std::vector<uint32_t> types_;
    Element whole_;
    int64_t row_ = 0, rows_ = 0;
  };
  const DatasetPtr input_;
};

struct UnbatchMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const { return std::make_shared<Unbatch>(in.Dataset(0)); }
};

}  // namespace

void register_window(tw::Plugin& p) {
  AddDataset<WindowMaker>(p, "WindowDataset(variant, int64, int64, int64, bool -> variant) @CPU");
  AddDataset<UnbatchMaker>(p, "UnbatchDataset(variant -> variant) @CPU");
}

}  // namespace thalweg::data
