// FilterDataset, TakeWhileDataset and ScanDataset: functions that see the elements in order.
#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {

void CheckResults(const std::string& function, const Element& results, const std::vector<uint32_t>& types) {
  if (results.size() != types.size()) {
    Invalid("function '" + function + "' gives " + std::to_string(results.size()) + " values; 'output_types' has " +
            std::to_string(types.size()));
  }
  for (size_t k = 0; k < types.size(); ++k) {
    if (results[k].view().dtype == types[k]) continue;
    Invalid("value " + std::to_string(k) + " of function '" + function + "' is " + tw::dtype_text(results[k].view().dtype) +
            "; 'output_types' says " + tw::dtype_text(types[k]));
  }
}

bool CapturedFunction::Holds(Call& c, const Element& e) const {
  const Element results = (*this)(c, e);
  if (results.size() != 1 || results[0].view().dtype != TW_BOOL || results[0].view().count != 1)
    Invalid("predicate '" + name + "' must give one scalar of type bool");
  return *static_cast<const uint8_t*>(results[0].view().data) != 0;
}

namespace {

// Gives the elements for which the predicate holds; `until`: those before the first for which it
// does not.
class Filter final : public Dataset {
 public:
  Filter(DatasetPtr input, Captured predicate, bool until)
      : Dataset(until ? "TakeWhile" : "Filter", input->types), input_(std::move(input)), predicate_(std::move(predicate)), until_(until) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), predicate_, until_);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > " + name;
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, Captured predicate, bool until)
        : input_(std::move(input)), predicate_(std::move(predicate)), until_(until) {}
    bool Next(Call& c, Element* out) override {
      for (; !over_; c.CheckCancelled()) {
        if (!input_->Next(c, out)) return false;
        if (predicate_->Holds(c, *out)) return true;
        over_ = until_;
      }
      return false;
    }
    void Save(StateWriter& w) const override {
      w.Number(over_);
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      over_ = r.Number(1) != 0;
      input_->Restore(c, r);
    }

   private:
    const std::unique_ptr<Iterator> input_;
    const Captured predicate_;
    const bool until_;
    bool over_ = false;
  };
  const DatasetPtr input_;
  const Captured predicate_;
  const bool until_;
};

template <bool until>
struct FilterMaker : Maker {
  explicit FilterMaker(const tw::Node& n) : Maker(n), function(n.s("predicate")) {}
  DatasetPtr Make(const Inputs& in) const {
    return std::make_shared<Filter>(in.Dataset(0), std::make_shared<CapturedFunction>(CapturedFunction{function, in.Kept(1)}), until);
  }
  const std::string function;
};

class Scan final : public Dataset {
 public:
  Scan(DatasetPtr input, Captured function, Element initial, std::vector<uint32_t> state_types, std::vector<uint32_t> element_types)
      : Dataset("Scan", std::move(element_types)),
        input_(std::move(input)),
        function_(std::move(function)),
        initial_(std::move(initial)),
        state_types_(std::move(state_types)) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), function_, initial_, state_types_, types);
  }
  int64_t Cardinality() const override { return input_->Cardinality(); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Scan";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, Captured function, Element state, std::vector<uint32_t> state_types, std::vector<uint32_t> types)
        : input_(std::move(input)), function_(std::move(function)), state_types_(std::move(state_types)), state_(std::move(state)) {
      results_ = state_types_;
      results_.insert(results_.end(), types.begin(), types.end());
    }
    bool Next(Call& c, Element* out) override {
      Element e;
      if (!input_->Next(c, &e)) return false;
      Element args = state_;
      args.insert(args.end(), e.begin(), e.end());
      Element results = (*function_)(c, args);
      CheckResults(function_->name, results, results_);
      const auto cut = results.begin() + int64_t(state_.size());
      out->assign(cut, results.end());
      results.erase(cut, results.end());
      state_ = std::move(results);
      return true;
    }
    void Save(StateWriter& w) const override {
      w.Values(state_);
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      state_ = r.Values(c, state_types_);
      input_->Restore(c, r);
    }

   private:
    const std::unique_ptr<Iterator> input_;
    const Captured function_;
    const std::vector<uint32_t> state_types_;
    std::vector<uint32_t> results_;
    Element state_;
  };
  const DatasetPtr input_;
  const Captured function_;
  const Element initial_;
  const std::vector<uint32_t> state_types_;
};

struct ScanMaker : Maker {
  explicit ScanMaker(const tw::Node& n) : Maker(n), function(n.s("f")), state_types(TypesOf(n, "Tstate")) {}
  DatasetPtr Make(const Inputs& in) const {
    auto captured = std::make_shared<CapturedFunction>(CapturedFunction{function, in.Kept(2)});
    return std::make_shared<Scan>(in.Dataset(0), std::move(captured), in.Kept(1), state_types, types);
  }
  const std::string function;
  const std::vector<uint32_t> state_types;
};

}  // namespace

void register_filter(tw::Plugin& p) {
  AddDataset<FilterMaker<false>>(p, "FilterDataset(variant, _ -> variant) @CPU; keep other_arguments");
  AddDataset<FilterMaker<true>>(p, "TakeWhileDataset(variant, _ -> variant) @CPU; keep other_arguments");
  AddDataset<ScanMaker>(p, "ScanDataset(variant, _, _ -> variant) @CPU; keep initial_state other_arguments");
}

}  // namespace thalweg::data
