// ShuffleDatasetV3: the next element is a random one of a buffer of the elements to come.
//
//     random = Random(mixed seeds)                         // random.h
//     loop: fill the buffer to buffer_size from the input
//           k = random.Below(size of the buffer)
//           give buffer[k]; buffer[k] = the last of the buffer; drop the last
#include "kernel.h"
#include "random.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

class Shuffle final : public Dataset {
 public:
  Shuffle(DatasetPtr input, int64_t size, uint64_t seed, bool each_round)
      : Dataset("Shuffle", input->types), input_(std::move(input)), size_(size), seed_(seed), each_round_(each_round) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), types, size_, each_round_ ? Combined(seed_, round) : seed_);
  }
  int64_t Cardinality() const override { return input_->Cardinality(); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Shuffle(" + tw::text(size_) + ", " + std::to_string(seed_) + ", " + (each_round_ ? "each pass" : "once") + ")";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, std::vector<uint32_t> types, int64_t size, uint64_t seed)
        : input_(std::move(input)), types_(std::move(types)), size_(uint64_t(size)), random_(seed) {}
    bool Next(Call& c, Element* out) override {
      while (!over_ && buffer_.size() < size_) {
        const size_t want = std::min<size_t>(size_ - buffer_.size(), kPiece), before = buffer_.size();
        input_->NextMany(c, want, &buffer_);
        over_ = buffer_.size() - before < want;
        if (want > 1) c.CheckCancelled();
      }
      if (buffer_.empty()) return false;
      Element& chosen = buffer_[random_.Below(buffer_.size())];
      *out = std::move(chosen);
      if (&chosen != &buffer_.back()) chosen = std::move(buffer_.back());
      buffer_.pop_back();
      return true;
    }
    void Save(StateWriter& w) const override {
      w.Number(random_.state());
      w.Number(over_);
      w.Elements(buffer_);
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      random_ = Random(r.Number());
      over_ = r.Number(1) != 0;
      buffer_ = r.Elements(c, types_);
      if (buffer_.size() > size_) StateReader::Damaged();
      input_->Restore(c, r);
    }

   private:
    static constexpr size_t kPiece = 1024;  // elements read between two looks at cancellation
    const std::unique_ptr<Iterator> input_;
    const std::vector<uint32_t> types_;
    const size_t size_;
    Random random_;
    std::vector<Element> buffer_;
    bool over_ = false;
  };

  const DatasetPtr input_;
  const int64_t size_;
  const uint64_t seed_;
  const bool each_round_;
};

struct ShuffleMaker : Maker {
  explicit ShuffleMaker(const tw::Node& n) : Maker(n), each_round(n.b("reshuffle_each_iteration")) {}
  DatasetPtr Make(const Inputs& in) const {
    DatasetPtr input = in.Dataset(0);
    int64_t size = in.Int(1, "buffer_size");
    if (size == -1) size = input->Cardinality() >= 0 ? std::max<int64_t>(1, input->Cardinality()) : INT64_MAX;  // all
    if (size < 1) Invalid("'buffer_size' is " + tw::text(size) + "; it must be at least 1, or -1 for all elements");
    return std::make_shared<Shuffle>(std::move(input), size, Combined(uint64_t(in.Int(2, "seed")), uint64_t(in.Int(3, "seed2"))),
                                     each_round);
  }
  const bool each_round;
};

}  // namespace

void register_shuffle(tw::Plugin& p) {
  AddDataset<ShuffleMaker>(p, "ShuffleDatasetV3(variant, int64, int64, int64, resource -> variant) @CPU");
}

}  // namespace thalweg::data
