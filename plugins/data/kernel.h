// How an op becomes a dataset. A maker is a class that reads the attributes of its node once and
// makes a Dataset from the inputs of each call:
//
//     struct TakeMaker : Maker {
//       using Maker::Maker;
//       DatasetPtr Make(const Inputs& in) const { return std::make_shared<Take>(in.Dataset(0), in.Int(1, "count")); }
//     };
//     AddDataset<TakeMaker>(p, "TakeDataset(_, int64 -> variant) @CPU; cheap");
#ifndef THALWEG_PLUGINS_DATA_KERNEL_H_
#define THALWEG_PLUGINS_DATA_KERNEL_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset.h"

namespace thalweg::data {

// The inputs of a call of a dataset op.
class Inputs {
 public:
  explicit Inputs(Call& call) : c(call) {}
  const tw_frame* frame() const { return c.f.f; }
  // Argument a of the schema, a single value.
  const tw_view& At(uint32_t a) const { return *frame()->in[frame()->in_at[a]]; }
  DatasetPtr Dataset(uint32_t a) const { return DatasetOf(frame(), &At(a)); }
  std::vector<DatasetPtr> Datasets(uint32_t a) const;
  // A scalar int64 or bool or string.
  int64_t Int(uint32_t a, const char* what) const;
  bool Bool(uint32_t a, const char* what) const;
  std::string_view Text(uint32_t a, const char* what) const;
  // As Int; refuses numbers below `least`.
  int64_t Least(uint32_t a, const char* what, int64_t least) const;
  std::vector<std::string> Texts(uint32_t a) const;
  // The tensors of a list argument, which the spec's `keep` names.
  Element Kept(uint32_t a) const;

  Call& c;
};

// What makers of one op share: the types of the elements and the function.
struct Maker {
  explicit Maker(const tw::Node& n);
  std::string op;
  std::vector<uint32_t> types;  // output_types or Toutput_types; empty if the op has neither
};
std::vector<uint32_t> TypesOf(const tw::Node& n, std::string_view attr);

template <class M>
class DatasetKernel {
 public:
  explicit DatasetKernel(const tw::Node& n) : maker_(n) {}
  void operator()(tw::Frame f) const {
    Functions functions;
    Call c(f, &functions);
    const Ref v = VariantOf(c, maker_.Make(Inputs(c)));
    tw::check(c.host()->tensor->give(f.f, 0, v.get()));
  }

 private:
  const M maker_;
};

// spec: with the types in parentheses.
template <class M>
void AddDataset(tw::Plugin& p, std::string_view spec) {
  p.kernel<DatasetKernel<M>>(std::string(spec) + "; gives handle");
}

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_KERNEL_H_
