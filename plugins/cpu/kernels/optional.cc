// Optionals: objects behind variants that share the tensors that they hold.
#include "kernels/register.h"
#include "kernels/tensor_list.h"

namespace thalweg::cpu {
namespace {

struct Optional {
  std::vector<Kept> values;  // empty: nothing

  static constexpr std::string_view variant_name = "org.thalweg.optional";
  uint64_t bytes() const { return sizeof *this + values.capacity() * sizeof(Kept); }

  Optional plus(const tw_frame* f, const Optional& o) const {
    if (values.size() != o.values.size())
      Invalid("optionals of " + std::to_string(values.size()) + " and " + std::to_string(o.values.size()) + " tensors have no sum");
    Optional sum;
    for (size_t k = 0; k < values.size(); ++k) {
      const tw_view *x = values[k].view(), *y = o.values[k].view();
      if (x->dtype != y->dtype || !SameDims(x, y))
        Invalid("tensors " + std::to_string(k) + " of two optionals are " + TypeText(x->dtype) + DimsText(x) + " and " +
                TypeText(y->dtype) + DimsText(y) + ": they have no sum");
      sum.values.push_back(SumOf(f, x, y));
    }
    return sum;
  }
  Optional zeros(const tw_frame* f) const {
    Optional zero;
    for (const Kept& value : values) zero.values.push_back(ZerosOf(f, value.view()));
    return zero;
  }
};

void FromValue(tw::Frame f, tw::Many<tw::Any> components, tw::Out<tw::Any> optional) {
  auto made = std::make_unique<Optional>();
  for (uint32_t i = 0; i < components.size(); ++i) made->values.push_back(KeepInput(f.f, components.first + i));
  tw::put(f.f, optional.v(), 0, std::move(made));
}

void None(tw::Frame f, tw::Out<tw::Any> optional) { tw::put(f.f, optional.v(), 0, std::make_unique<Optional>()); }

void HasValue(tw::Frame f, tw::In<tw::Any> optional, tw::Out<bool> has_value) {
  has_value[0] = !tw::get<Optional>(f.f, optional.v).values.empty();
}

class GetValue {
 public:
  explicit GetValue(const tw::Node& n) {
    const tw_attr& shapes = n.at("output_shapes");
    for (uint32_t o = 0; o < n.node->n_out; ++o) {
      types_.push_back(n.type_out(o));
      const tw_shape* shape = static_cast<const tw_shape*>(shapes.data) + o;
      shapes_.push_back(o < shapes.count ? PartialShape(shape->dims, shape->rank) : PartialShape());
    }
  }

  void operator()(tw::Frame f, tw::In<tw::Any> optional, tw::ManyOut<tw::Any> components) const {
    const auto& values = tw::get<Optional>(f.f, optional.v).values;
    if (values.empty()) Invalid("the optional holds nothing; ask OptionalHasValue first");
    if (values.size() != types_.size())
      Invalid("the optional holds " + std::to_string(values.size()) + " tensors, but 'output_types' has " + std::to_string(types_.size()));
    for (size_t k = 0; k < values.size(); ++k) {
      const tw_view* v = values[k].view();
      if (v->dtype != types_[k])
        Invalid("tensor " + std::to_string(k) + " of the optional is " + TypeText(v->dtype) + ", but 'output_types' says " +
                TypeText(types_[k]));
      if (!shapes_[k].Admits(v))
        Invalid("tensor " + std::to_string(k) + " of the optional is " + DimsText(v) + ", but 'output_shapes' says " + shapes_[k].text());
      GiveTensor(f.f, components.first + uint32_t(k), values[k]);
    }
  }

 private:
  std::vector<uint32_t> types_;
  std::vector<PartialShape> shapes_;
};

}  // namespace

void register_optional(tw::Plugin& p) {
  p.kernel<FromValue>("OptionalFromValue @CPU; cheap; keep components");
  p.kernel<None>("OptionalNone @CPU; cheap");
  p.kernel<HasValue>("OptionalHasValue @CPU; cheap");
  p.kernel<GetValue>("OptionalGetValue @CPU; cheap; gives components");
}

}  // namespace thalweg::cpu
