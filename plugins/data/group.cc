// GroupByWindowDataset: elements with one key are collected in a window, and a function makes a
// dataset of each full window. At the end of the input the windows that are not full follow, in the
// order of their keys.
#include <map>

#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

struct GroupFunctions {
  CapturedFunction key, reduce, size;
};

class Group final : public Dataset {
 public:
  Group(DatasetPtr input, std::shared_ptr<const GroupFunctions> functions, std::vector<uint32_t> element_types)
      : Dataset("GroupByWindow", std::move(element_types)), input_(std::move(input)), functions_(std::move(functions)) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(*this, input_->Begin(c, round), round);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > GroupByWindow";
  }

 private:
  struct Window {
    int64_t size = 0;  // at which it is full
    std::vector<Element> elements;
  };

  class Walk final : public Iterator {
   public:
    Walk(const Group& of, std::unique_ptr<Iterator> input, uint64_t round)
        : input_(std::move(input)), functions_(of.functions_), types_(of.types), in_types_(of.input_->types), round_(round) {}
    bool Next(Call& c, Element* out) override {
      for (;; c.CheckCancelled()) {
        if (given_) {
          if (given_->Next(c, out)) return true;
          given_.reset();
          given_elements_.clear();
        }
        if (over_ && windows_.empty()) return false;
        if (over_) {
          Give(c, windows_.begin());
          continue;
        }
        Element e;
        if (!input_->Next(c, &e)) {
          over_ = true;
          continue;
        }
        const int64_t key = Number(functions_->key, functions_->key(c, e));
        auto at = windows_.find(key);
        if (at == windows_.end()) {
          const int64_t size = Number(functions_->size, functions_->size(c, {c.MakeInt64(key)}));
          if (size < 1)
            Invalid("function '" + functions_->size.name + "' gives the window size " + tw::text(size) + " for key " + tw::text(key) +
                    "; it must be at least 1");
          at = windows_.try_emplace(key, Window{size, {}}).first;
        }
        at->second.elements.push_back(std::move(e));
        if (int64_t(at->second.elements.size()) == at->second.size) Give(c, at);
      }
    }
    void Save(StateWriter& w) const override {
      w.Number(over_);
      w.Number(given_ != nullptr);
      if (given_) {
        w.Number(uint64_t(given_key_));
        w.Elements(given_elements_);
        given_->Save(w);
      }
      w.Number(windows_.size());
      for (const auto& [key, window] : windows_) {
        w.Number(uint64_t(key));
        w.Number(uint64_t(window.size));
        w.Elements(window.elements);
      }
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      over_ = r.Number(1) != 0;
      given_.reset();
      given_elements_.clear();
      if (r.Number(1) != 0) {
        given_key_ = int64_t(r.Number());
        given_elements_ = r.Elements(c, in_types_);
        given_ = Made(c, given_key_, given_elements_);
        given_->Restore(c, r);
      }
      windows_.clear();
      for (uint64_t n = r.Number(); n > 0; --n) {
        const auto key = int64_t(r.Number());
        Window window;
        window.size = int64_t(r.Number(INT64_MAX));
        window.elements = r.Elements(c, in_types_);
        if (window.elements.empty() || int64_t(window.elements.size()) >= window.size || !windows_.emplace(key, std::move(window)).second)
          StateReader::Damaged();
      }
      input_->Restore(c, r);
    }

   private:
    static int64_t Number(const CapturedFunction& of, const Element& results) {
      if (results.size() != 1 || results[0].view().dtype != TW_INT64 || results[0].view().count != 1)
        Invalid("function '" + of.name + "' must give one scalar of type int64");
      return *static_cast<const int64_t*>(results[0].view().data);
    }
    // The elements of the dataset of this window are given next. A window whose function fails is lost, as other elements of a failed call.
    void Give(Call& c, std::map<int64_t, Window>::iterator at) {
      given_key_ = at->first;
      std::vector<Element> elements = std::move(at->second.elements);
      windows_.erase(at);
      given_ = Made(c, given_key_, elements);
      given_elements_ = std::move(elements);
    }
    std::unique_ptr<Iterator> Made(Call& c, int64_t key, const std::vector<Element>& elements) const {
      const CapturedFunction& reduce = functions_->reduce;
      const Element results = reduce(c, {c.MakeInt64(key), VariantOf(c, ListOf(elements, in_types_))});
      if (results.size() != 1)
        Invalid("function '" + reduce.name + "' must give one dataset; it gives " + std::to_string(results.size()) + " values");
      const DatasetPtr dataset = DatasetOf(c.f.f, &results[0].view());
      if (dataset->types != types_)
        Invalid("the dataset of function '" + reduce.name + "' has elements of other types than 'output_types'");
      return dataset->Begin(c, round_);
    }

    const std::unique_ptr<Iterator> input_;
    const std::shared_ptr<const GroupFunctions> functions_;
    const std::vector<uint32_t> types_, in_types_;
    const uint64_t round_;
    std::map<int64_t, Window> windows_;  // by key; none is full or empty
    int64_t given_key_ = 0;
    std::vector<Element> given_elements_;  // the window whose dataset is being given, from which it is made again after a restore
    std::unique_ptr<Iterator> given_;
    bool over_ = false;  // the input has ended
  };

  const DatasetPtr input_;
  const std::shared_ptr<const GroupFunctions> functions_;
};

struct GroupMaker : Maker {
  explicit GroupMaker(const tw::Node& n) : Maker(n), key(n.s("key_func")), reduce(n.s("reduce_func")), size(n.s("window_size_func")) {}
  DatasetPtr Make(const Inputs& in) const {
    auto functions = std::make_shared<GroupFunctions>(GroupFunctions{{key, in.Kept(1)}, {reduce, in.Kept(2)}, {size, in.Kept(3)}});
    return std::make_shared<Group>(in.Dataset(0), std::move(functions), types);
  }
  const std::string key, reduce, size;
};

}  // namespace

void register_group(tw::Plugin& p) {
  AddDataset<GroupMaker>(p,
                         "GroupByWindowDataset(variant, _, _, _ -> variant) @CPU; keep key_func_other_arguments "
                         "reduce_func_other_arguments window_size_func_other_arguments");
}

}  // namespace thalweg::data
