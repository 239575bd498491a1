// GeneratorDataset: elements come from a function that is called for each. It has a state, which
// another function makes at the start of a pass. The pass ends when the function fails with
// OUT_OF_RANGE, as taking from a closed queue does.
#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

struct Functions3 {
  CapturedFunction init, next, finalize;
};

class Generator final : public Dataset {
 public:
  Generator(std::vector<uint32_t> element_types, std::shared_ptr<const Functions3> functions)
      : Dataset("Generator", std::move(element_types)), functions_(std::move(functions)) {}
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(functions_, types); }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::shared_ptr<const Functions3> functions, std::vector<uint32_t> types)
        : functions_(std::move(functions)), types_(std::move(types)) {}
    bool Next(Call& c, Element* out) override {
      if (over_) return false;
      if (!begun_) state_ = functions_->init(c, {});
      begun_ = true;
      tw_status* failed = tw::guard(c.host(), [&] { *out = functions_->next(c, state_); });
      if (!failed) return CheckResults(functions_->next.name, *out, types_), ++given_, true;
      if (c.host()->status->code(failed) != TW_OUT_OF_RANGE) throw tw::Raised{failed};
      c.host()->status->release(failed);
      over_ = true;
      functions_->finalize(c, state_);
      return false;
    }
    void Save(StateWriter& w) const override {
      w.Number(given_);
      w.Number(over_);
    }
    // Makes a new state, and passes over the elements that were given.
    void Restore(Call& c, StateReader& r) override {
      const uint64_t given = r.Number();
      const bool over = r.Number(1) != 0;
      Element e;
      for (; given_ < given && !over; c.CheckCancelled()) {
        if (!Next(c, &e)) {
          Invalid("the restored position is behind " + std::to_string(given) + " elements of a generator, which now gives only " +
                  std::to_string(given_) + "; it must give the same elements in each pass");
        }
      }
      given_ = given;
      over_ = over;
    }

   private:
    const std::shared_ptr<const Functions3> functions_;
    const std::vector<uint32_t> types_;
    Element state_;
    uint64_t given_ = 0;
    bool begun_ = false, over_ = false;
  };
  const std::shared_ptr<const Functions3> functions_;
};

struct GeneratorMaker : Maker {
  explicit GeneratorMaker(const tw::Node& n) : Maker(n), init(n.s("init_func")), next(n.s("next_func")), finalize(n.s("finalize_func")) {}
  DatasetPtr Make(const Inputs& in) const {
    return std::make_shared<Generator>(
        types, std::make_shared<Functions3>(Functions3{{init, in.Kept(0)}, {next, in.Kept(1)}, {finalize, in.Kept(2)}}));
  }
  const std::string init, next, finalize;
};

}  // namespace

void register_generator(tw::Plugin& p) {
  AddDataset<GeneratorMaker>(
      p, "GeneratorDataset(_, _, _ -> variant) @CPU; keep init_func_other_args next_func_other_args finalize_func_other_args");
}

}  // namespace thalweg::data
