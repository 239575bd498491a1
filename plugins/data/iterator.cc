// The iterator resource `org.thalweg.iterator`: a position in a dataset, which steps move.
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

constexpr char kType[] = "org.thalweg.iterator";
constexpr uint64_t kFormat = 1;

// The object of the resource. The host's lock guards it.
struct Position {
  std::vector<uint32_t> types;         // of the elements; empty: unknown, after a restore
  DatasetPtr dataset;                  // NULL before the first MakeIterator
  std::unique_ptr<Iterator> iterator;  // NULL together with dataset
  uint64_t round = 0;
  std::string restored;  // the bytes of a restore until MakeIterator continues there

  // Returns the position as bytes.
  std::string Bytes(const tw_host* h) const {
    if (!iterator) {
      if (restored.empty()) Fail(TW_FAILED_PRECONDITION, "the iterator has no dataset yet, so it has no position; run MakeIterator first");
      return restored;
    }
    std::string what;
    dataset->Describe(&what);
    StateWriter w(h);
    w.Text(what);
    w.Number(round);
    iterator->Save(w);
    return w.bytes();
  }

  // Starts a pass over the dataset, or continues at the restored position.
  void Begin(Call& c, DatasetPtr of, uint64_t pass) {
    if (restored.empty()) {
      iterator = of->Begin(c, pass);
      round = pass;
    } else {
      StateReader r(restored);
      std::string what;
      of->Describe(&what);
      const std::string_view saved = r.Text();
      if (saved != what) {
        Invalid("the restored position is of the dataset '" + std::string(saved.substr(0, 400)) + "', and this is '" + what.substr(0, 400) +
                "'; use the pipeline that was saved, or make a new iterator");
      }
      const uint64_t saved_round = r.Number();
      auto continued = of->Begin(c, saved_round);
      continued->Restore(c, r);
      r.WantEnd();
      iterator = std::move(continued);
      round = saved_round;
      restored.clear();
    }
    dataset = std::move(of);
  }
};

Position& Opened(tw::Var<tw::Any> iterator) { return *static_cast<Position*>(iterator.handle()); }

class MakeHandle {
 public:
  explicit MakeHandle(const tw::Node& n) : types_(TypesOf(n, "output_types")) {
    if (!n.find("shared_name")) return;
    container_ = n.s("container");
    name_ = n.s("shared_name").empty() ? n.name() : n.s("shared_name");
  }
  void operator()(tw::Frame f) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kType), container_.data(), container_.size(), name_.data(), name_.size()};
    const auto make = [](const tw_host* h, void* arg, void** out) {
      return tw::guard(h, [&] {
        auto position = std::make_unique<Position>();
        position->types = *static_cast<const std::vector<uint32_t>*>(arg);
        *out = position.release();
      });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, const_cast<std::vector<uint32_t>*>(&types_), 0));
  }

 private:
  const std::vector<uint32_t> types_;
  std::string container_, name_;  // of an anonymous iterator: empty, so it ends with its last handle
};

std::string TypesText(const std::vector<uint32_t>& types) {
  std::string s = "[";
  for (size_t k = 0; k < types.size(); ++k) s += (k ? ", " : "") + tw::dtype_text(types[k]);
  return s + "]";
}

// Functions are found by name in the graph of the node that runs the iterator, so they belong to
// the kernel's state.
class Make {
 public:
  explicit Make(const tw::Node&) {}
  void operator()(tw::Frame f, tw::In<tw::Any> dataset, tw::Var<tw::Any> iterator) const { Begin(f, dataset, iterator, 0); }

 protected:
  void Begin(tw::Frame f, tw::In<tw::Any> dataset, tw::Var<tw::Any> iterator, int64_t epoch) const {
    if (epoch < 0) Invalid("'epoch' is " + tw::text(epoch) + "; it must be at least 0");
    Call c(f, &functions_);
    DatasetPtr of = DatasetOf(f.f, dataset.v);
    Position& position = Opened(iterator);
    if (!position.types.empty() && of->types != position.types) {
      Invalid("the dataset has elements of types " + TypesText(of->types) + ", and the iterator's 'output_types' are " +
              TypesText(position.types));
    }
    position.Begin(c, std::move(of), uint64_t(epoch));
  }

 private:
  mutable Functions functions_;
};

class MakeEpoch : public Make {
 public:
  using Make::Make;
  void operator()(tw::Frame f, tw::In<tw::Any> dataset, tw::Var<tw::Any> iterator, tw::In<int64_t> epoch) const {
    Begin(f, dataset, iterator, epoch[0]);
  }
};

class GetNext {
 public:
  explicit GetNext(const tw::Node&) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> iterator, tw::ManyOut<tw::Any> components) const {
    Call c(f, &functions_);
    Position& position = Opened(iterator);
    if (!position.iterator) {
      Fail(TW_FAILED_PRECONDITION, position.restored.empty()
                                       ? "the iterator has no dataset; run MakeIterator first"
                                       : "the iterator was restored; run MakeIterator, which continues at that position");
    }
    Element e;
    bool more = false;
    tw_status* failed = tw::guard(c.host(), [&] { more = position.iterator->Next(c, &e); });
    if (failed && c.host()->status->code(failed) == TW_OUT_OF_RANGE) {  // only the end of the data has this code
      const char text[] = "an element could not be computed";
      failed = c.host()->status->make(c.host(), TW_INVALID_ARGUMENT, text, sizeof text - 1, failed);
    }
    tw::check(failed);
    if (!more) Fail(TW_OUT_OF_RANGE, "End of sequence");
    if (e.size() != components.size()) {
      Invalid("an element has " + std::to_string(e.size()) + " components; 'output_types' of IteratorGetNext has " +
              std::to_string(components.size()));
    }
    for (uint32_t k = 0; k < components.size(); ++k) tw::check(c.host()->tensor->give(f.f, components.first + k, e[k].get()));
  }

 private:
  mutable Functions functions_;
};

tw_status* Save(const tw_host* h, const void* object, tw_sink* to) {
  return tw::guard(h, [&] {
    const std::string bytes = static_cast<const Position*>(object)->Bytes(h);
    tw::check(to->put(to, bytes.data(), bytes.size()));
  });
}

tw_status* Restore(const tw_host* h, void*, uint64_t format, tw_source* from, void** out_object) {
  return tw::guard(h, [&] {
    if (format != kFormat) Fail(TW_UNIMPLEMENTED, "there is no format " + std::to_string(format) + " of positions in datasets");
    auto position = std::make_unique<Position>();
    char part[1 << 14];
    for (uint64_t n = 1; n > 0; position->restored.append(part, n)) tw::check(from->get(from, part, sizeof part, &n));
    StateReader r(position->restored);
    (void)r.Text();  // damaged bytes are refused here as far as they can be seen without the dataset
    (void)r.Number();
    *out_object = position.release();
  });
}

}  // namespace

void register_iterator(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), kFormat, nullptr,
              [](const tw_host*, void* object) { delete static_cast<Position*>(object); }, Save, Restore});
  p.kernel<MakeHandle>("IteratorV2 @CPU");
  p.kernel<MakeHandle>("AnonymousIteratorV3 @CPU");
  p.kernel<Make>("MakeIterator @CPU; may_block; update iterator");
  p.kernel<MakeEpoch>("MakeEpochIterator @CPU; may_block; update iterator");
  p.kernel<GetNext>("IteratorGetNext @CPU; may_block; update iterator; gives components");
  p.kernel<GetNext>("IteratorGetNextSync @CPU; may_block; update iterator; gives components");
}

}  // namespace thalweg::data
