// PaddedBatchDatasetV2: consecutive elements of different sizes become one.
#include <cstring>

#include "kernel.h"
#include "register.h"
#include "rows.h"
#include "state.h"

namespace thalweg::data {
namespace {

using Dims = std::vector<int64_t>;

// Fills `n` elements of `to` from number `at` on with the scalar `value`.
void Fill(const Call& c, const tw_view& value, const Ref& to, uint64_t at, uint64_t n) {
  if (value.dtype == TW_STRING) {
    const auto& s = *static_cast<const tw_string*>(value.data);
    for (uint64_t i = 0; s.size > 0 && i < n; ++i) tw::check(c.host()->tensor->set_string(to.get(), at + i, s.data, s.size));
    return;
  }
  const uint64_t each = ElementBytes(value.dtype);
  char* p = static_cast<char*>(to.view().data) + at * each;
  for (uint64_t i = 0; i < n; ++i) std::memcpy(p + i * each, value.data, each);
}

// Copies the elements of `from` to the corner of the box of sizes `box` that starts at element `at`.
void CopyCorner(const Call& c, const tw_view& from, const Ref& to, const Dims& box, uint64_t at) {
  if (from.count == 0) return;
  if (from.rank == 0) return CopyInto(c, from, to, at);
  const int32_t last = from.rank - 1;
  const uint64_t run = uint64_t(from.dims[last]), rows = from.count / run;
  const uint64_t each = ElementBytes(from.dtype);
  Dims place(size_t(last), 0);
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t offset = 0;
    for (int32_t k = 0; k < last; ++k) offset = (offset + uint64_t(place[size_t(k)])) * uint64_t(box[size_t(k) + 1]);
    if (from.dtype == TW_STRING) {
      const auto* s = static_cast<const tw_string*>(from.data) + row * run;
      for (uint64_t i = 0; i < run; ++i) tw::check(c.host()->tensor->set_string(to.get(), at + offset + i, s[i].data, s[i].size));
    } else {
      std::memcpy(static_cast<char*>(to.view().data) + (at + offset) * each, static_cast<const char*>(from.data) + row * run * each,
                  run * each);
    }
    for (int32_t k = last - 1; k >= 0 && ++place[size_t(k)] == from.dims[k]; --k) place[size_t(k)] = 0;
  }
}

class PaddedBatch final : public Dataset {
 public:
  PaddedBatch(DatasetPtr input, int64_t size, std::vector<Dims> shapes, Element padding, bool drop)
      : Dataset("PaddedBatch", input->types),
        shapes_(std::move(shapes)),
        padding_(std::move(padding)),
        input_(std::move(input)),
        size_(size),
        drop_(drop) {
    if (shapes_.size() != types.size() || padding_.size() != types.size()) {
      Invalid("there are " + std::to_string(shapes_.size()) + " padded_shapes and " + std::to_string(padding_.size()) +
              " padding_values for " + std::to_string(types.size()) + " components; give one for each");
    }
    for (size_t k = 0; k < types.size(); ++k) {
      const tw_view& v = padding_[k].view();
      const std::string which = "padding_values[" + std::to_string(k) + "] is ";
      if (v.rank != 0) Invalid(which + DimsText(v) + "; it must be a scalar");
      if (v.dtype != types[k]) Invalid(which + tw::dtype_text(v.dtype) + "; the component is " + tw::dtype_text(types[k]));
      if (v.dtype == TW_VARIANT || v.dtype == TW_RESOURCE)
        Invalid("component " + std::to_string(k) + " is " + tw::dtype_text(v.dtype) + ", which cannot be padded");
    }
  }
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), shapes_, padding_, size_, drop_);
  }
  int64_t Cardinality() const override {
    const int64_t n = input_->Cardinality();
    return n < 0 ? n : n / size_ + (!drop_ && n % size_ != 0);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > PaddedBatch(" + tw::text(size_) + (drop_ ? ", whole" : "");
    for (const Dims& d : shapes_) *to += ", " + tw::text(d.data(), int32_t(d.size()));
    *to += ")";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, std::vector<Dims> shapes, Element padding, int64_t size, bool drop)
        : input_(std::move(input)), shapes_(std::move(shapes)), padding_(std::move(padding)), size_(size_t(size)), drop_(drop) {}
    bool Next(Call& c, Element* out) override {
      std::vector<Element> elements;
      input_->NextMany(c, size_, &elements);
      if (elements.empty() || (drop_ && elements.size() < size_)) return false;
      c.CheckCancelled();
      out->clear();
      for (size_t k = 0; k < shapes_.size(); ++k) out->push_back(Padded(c, elements, k));
      return true;
    }
    void Save(StateWriter& w) const override { input_->Save(w); }
    void Restore(Call& c, StateReader& r) override { input_->Restore(c, r); }

   private:
    Ref Padded(Call& c, const std::vector<Element>& elements, size_t k) const {
      const Dims box = Box(elements, k);
      Dims dims = {int64_t(elements.size())};
      dims.insert(dims.end(), box.begin(), box.end());
      const tw_view& padding = padding_[k].view();
      Ref t = c.Make(padding.dtype, dims);
      const uint64_t each = elements.empty() ? 0 : t.view().count / elements.size();
      for (size_t i = 0; i < elements.size(); ++i) {
        const tw_view& v = elements[i][k].view();
        if (v.count != each) Fill(c, padding, t, i * each, each);
        CopyCorner(c, v, t, box, i * each);
      }
      return t;
    }

    // Returns the sizes of component k of the batch, without the first.
    Dims Box(const std::vector<Element>& elements, size_t k) const {
      Dims box = shapes_[k];
      for (size_t i = 0; i < elements.size(); ++i) {
        const tw_view& v = elements[i][k].view();
        const auto which = [&] {
          return "component " + std::to_string(k) + " of element " + std::to_string(i) + " of a batch is " + DimsText(v);
        };
        if (size_t(v.rank) != box.size())
          Invalid(which() + "; padded_shapes gives it " + std::to_string(box.size()) +
                  " axes: " + tw::text(shapes_[k].data(), int32_t(box.size())));
        for (size_t a = 0; a < box.size(); ++a) {
          if (shapes_[k][a] < 0) {
            box[a] = std::max(box[a], v.dims[a]);
          } else if (v.dims[a] > box[a]) {
            Invalid(which() + ", which is larger than padded_shapes " + tw::text(shapes_[k].data(), int32_t(box.size())) +
                    "; give a larger size, or -1 for the largest of each batch");
          }
        }
      }
      return box;
    }

    const std::unique_ptr<Iterator> input_;
    const std::vector<Dims> shapes_;
    const Element padding_;
    const size_t size_;
    const bool drop_;
  };

  const std::vector<Dims> shapes_;
  const Element padding_;
  const DatasetPtr input_;
  const int64_t size_;
  const bool drop_;
};

struct PaddedBatchMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    std::vector<Dims> shapes;
    const tw_frame* f = in.frame();
    for (uint32_t i = f->in_at[2]; i < f->in_at[3]; ++i) {
      const tw_view& v = *f->in[i];
      if (v.rank != 1) Invalid("padded_shapes[" + std::to_string(shapes.size()) + "] is " + DimsText(v) + "; it must be a vector of sizes");
      const auto* d = static_cast<const int64_t*>(v.data);
      shapes.emplace_back(d, d + v.count);
      for (int64_t& size : shapes.back()) {
        if (size < -1)
          Invalid("padded_shapes has the size " + tw::text(size) + "; it must be at least 0, or -1 for the largest of each batch");
      }
    }
    return std::make_shared<PaddedBatch>(in.Dataset(0), in.Least(1, "batch_size", 1), std::move(shapes), in.Kept(3),
                                         in.Bool(4, "drop_remainder"));
  }
};

}  // namespace

void register_padded_batch(tw::Plugin& p) {
  AddDataset<PaddedBatchMaker>(p, "PaddedBatchDatasetV2(variant, int64, int64, _, bool -> variant) @CPU; keep padding_values");
}

}  // namespace thalweg::data
