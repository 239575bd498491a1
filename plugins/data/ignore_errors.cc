// IgnoreErrorsDataset: elements that fail are skipped and counted.
#include <memory>

#include "kernel.h"
#include "register.h"
#include "state.h"
#include "thalweg/cpp/trace.hpp"

namespace thalweg::data {
namespace {

std::string TextOf(const tw_host* h, const tw_status* s) {
  std::string text;
  tw_sink sink{TW_SIZED(tw_sink), &text, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                 static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                 return nullptr;
               }};
  h->status->release(h->status->text(s, &sink));
  return text;
}

constexpr uint64_t kMostInARow = 10'000;  // an input that only fails would never end

class IgnoreErrors final : public Dataset {
 public:
  IgnoreErrors(DatasetPtr input, bool log) : Dataset("IgnoreErrors", input->types), input_(std::move(input)), log_(log) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override { return std::make_unique<Walk>(input_->Begin(c, round), log_); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > IgnoreErrors";
  }

 private:
  // The flag of a call while an input runs.
  class Skips {
   public:
    explicit Skips(Call& c) : c_(c), before_(std::exchange(c.skips_failures, true)) {}
    ~Skips() { c_.skips_failures = before_; }
    Skips(const Skips&) = delete;

   private:
    Call& c_;
    const bool before_;
  };

  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, bool log) : input_(std::move(input)), log_(log) {}
    bool Next(Call& c, Element* out) override {
      for (uint64_t in_a_row = 0;; c.CheckCancelled()) {
        bool more = false;
        tw_status* failed = nullptr;
        {
          const Skips skips(c);
          failed = tw::guard(c.host(), [&] { more = input_->Next(c, out); });
        }
        if (!failed) return more;
        const uint32_t code = c.host()->status->code(failed);
        if (!MaySkip(code)) tw::check(failed);
        Skipped(c, failed);
        if (++in_a_row == kMostInARow) {
          Fail(code, "IgnoreErrors: " + std::to_string(in_a_row) + " elements in a row failed, the last with: " + last_);
        }
      }
    }
    void Save(StateWriter& w) const override {
      w.Number(skipped_);
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      skipped_ = r.Number();
      const Skips skips(c);  // a cache reads its elements again
      input_->Restore(c, r);
    }

   private:
    // Takes the failure. The log has each of the first ten, each 10th up to the hundredth, and so on.
    void Skipped(Call& c, tw_status* failed) {
      const std::unique_ptr<tw_status, void (*)(tw_status*)> owned(failed, c.host()->status->release);
      last_ = TextOf(c.host(), failed);
      ++skipped_;
      tw::count(c.f, "elements skipped", int64_t(skipped_));
      if (!log_) return;
      uint64_t power = 1;
      while (skipped_ / 10 >= power) power *= 10;
      if (skipped_ % power != 0) return;
      const std::string line = "IgnoreErrors: " + std::to_string(skipped_) + (skipped_ == 1 ? " element was" : " elements were") +
                               " skipped, the last because: " + last_;
      c.host()->run->log(c.host(), 2, line.data(), line.size());
    }

    const std::unique_ptr<Iterator> input_;
    const bool log_;
    uint64_t skipped_ = 0;  // since the first element
    std::string last_;
  };

  const DatasetPtr input_;
  const bool log_;
};

struct IgnoreErrorsMaker : Maker {
  explicit IgnoreErrorsMaker(const tw::Node& n) : Maker(n), log(n.b("log_warning")) {}
  DatasetPtr Make(const Inputs& in) const { return std::make_shared<IgnoreErrors>(in.Dataset(0), log); }
  const bool log;
};

}  // namespace

void register_ignore_errors(tw::Plugin& p) { AddDataset<IgnoreErrorsMaker>(p, "IgnoreErrorsDataset(variant -> variant) @CPU"); }

}  // namespace thalweg::data
