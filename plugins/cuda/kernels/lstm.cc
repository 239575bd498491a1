// BlockLSTM and BlockLSTMV2 as one call of cuDNN. Applies if no node reads their gates and states
// (a gradient does), the cells have neither peepholes nor a clip limit, and the sequences are as
// long as the input.
#include "kernels/patterns.h"
#include "kernels/product.h"

namespace thalweg::opencl {
namespace {

class Lstm : public Pattern {
 public:
  struct Nodes {
    uint32_t lstm;
    std::vector<uint32_t> All() const { return {lstm}; }
  };
  Lstm(const tw_host* host, Device& device, const PartView& part, const Nodes& n)
      : device_(device),
        type_(part.type_out(n.lstm)),
        copy_(host, device, type_),
        forget_before_content_(part.op(n.lstm) == "BlockLSTMV2") {
    for (uint32_t k = 0; k < kInputs; ++k) at_[k] = part.InputAt(n.lstm, k);
  }

  static std::optional<Nodes> Match(const PartView& part, uint32_t first) {
    constexpr uint32_t kResults = 6;  // index of output h of every step
    const bool is_first = part.op(first) == "BlockLSTM";
    if (!is_first && part.op(first) != "BlockLSTMV2") return {};
    const tw::Attrs attrs{part.node(first).attrs, part.node(first).n_attrs};
    if (attrs.b("use_peephole") || attrs.f("cell_clip") > 0 || (is_first && attrs.f("forget_bias") != 0)) return {};
    if (!part.NobodyReadsBut(first, kResults)) return {};
    return Nodes{first};
  }

  bool Serves(const tw_host* host, const PartView& part, uint32_t first) const override {
    constexpr int64_t kFew = 4;  // minimum number of steps; below it, rearranging the weights costs as much
    if (!Match(part, first)) return false;
    const tw_shape &x = part.shape_in(first, kX), &c = part.shape_in(first, kC), &h = part.shape_in(first, kH),
                   &w = part.shape_in(first, kW), &b = part.shape_in(first, kB);
    for (const tw_shape* s : {&x, &c, &h, &w, &b})
      if (!AllKnown(*s)) return false;
    if (x.rank != 3 || c.rank != 2 || h.rank != 2 || w.rank != 2 || b.rank != 1) return false;
    const cuda::DnnLstm of = {type_, x.dims[0], x.dims[1], x.dims[2], c.dims[1]};
    const bool fits = c.dims[0] == of.batch && h.dims[0] == of.batch && h.dims[1] == of.units && w.dims[0] == of.inputs + of.units &&
                      w.dims[1] == 4 * of.units && b.dims[0] == 4 * of.units;
    if (!fits || of.steps < kFew || part.WholeNumberIn(first, kLength) != of.steps) return false;
    device_.Enter();
    return device_.dnn().Find(host, of) != nullptr;
  }

  void Run(const tw_frame* f) const override {
    const tw_view *x = f->in[at_[kX]], *y = f->out[0];
    const cuda::DnnLstm of = {type_, x->dims[0], x->dims[1], x->dims[2], y->dims[2]};
    device_.Enter();
    const auto way = device_.dnn().Find(f->host, of);
    if (!way) throw tw::Error{TW_INTERNAL, "cuDNN has lost a layer of LSTM cells"};
    const cuda::DnnLstmMemory& m = cuda::Dnn::Memory(*way);
    const Temporary parameters(device_, m.parameters), workspace(device_, m.workspace);
    const Aligned inputs(copy_, x), states(copy_, f->in[at_[kC]]), before(copy_, f->in[at_[kH]]), results(copy_, y);
    inputs.Fetch(f), states.Fetch(f), before.Fetch(f);
    Lay(f, of, m, parameters.place());
    const uint32_t element = ElementBytes(type_);
    cuda::Submit(device_, f->stream, "cuDNN LSTM", [&](CUstream queue) {
      const auto at = [&](const Place& p) { return Address(p, queue, element); };
      device_.dnn().Enqueue(*way, queue, at(inputs.place()), at(before.place()), at(states.place()), at(parameters.place()),
                            at(results.place()), m.workspace ? workspace.On(queue) : 0);
    });
    if (f->stream) static_cast<cuda::Stream*>(f->stream)->Hold(way);
    results.Leave(f);
  }

 private:
  enum Input : uint32_t { kLength, kX, kC, kH, kW, kWci, kWcf, kWco, kB, kInputs };

  // w is [inputs + units, gates] with the gates beside each other. The library has a matrix [units,
  // ...] for each gate, in the order i, f, new content, o.
  void Lay(const tw_frame* f, const cuda::DnnLstm& of, const cuda::DnnLstmMemory& m, const Place& to) const {
    const Size order[] = {0, forget_before_content_ ? 1 : 2, forget_before_content_ ? 2 : 1, 3}, gates = 4 * of.units;
    const Size element = ElementBytes(type_);
    const Place w = At(f->in[at_[kW]]), b = At(f->in[at_[kB]]);
    for (size_t k = 0; k < m.matrices.size(); ++k) {
      const bool of_inputs = k < 4;
      const Size columns = of_inputs ? of.inputs : of.units, first = (of_inputs ? 0 : of.inputs * gates) + order[k % 4] * of.units;
      copy_.Run(f, {of.units, columns}, w.After(first), {1, gates}, to.After(Size(m.matrices[k]) / element), {columns, 1});
    }
    for (size_t k = 0; k < m.biases.size(); ++k)
      copy_.Dense(f, of.units, b.After(order[k] * of.units), to.After(Size(m.biases[k]) / element));
  }

  Device& device_;
  const uint32_t type_;
  const Copy copy_;
  const bool forget_before_content_;
  uint32_t at_[kInputs];
};

}  // namespace

std::unique_ptr<Pattern> FindLstm(const tw_host* host, Device& device, const PartView& part, uint32_t first, std::vector<uint32_t>* nodes) {
  return FindPattern<Lstm>(host, device, part, first, nodes);
}

}  // namespace thalweg::opencl
