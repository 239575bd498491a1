// Conv2D, BiasAdd and, if it follows, Relu as one graph of cuDNN.
#include "kernels/images.h"
#include "kernels/patterns.h"

namespace thalweg::opencl {
namespace {

using Operation = DnnCall::Operation;

Dims DimsOf(const tw_shape& s) { return {s.dims, s.dims + s.rank}; }

tw::Attrs AttrsOf(const tw_part_node& n) { return {n.attrs, n.n_attrs}; }
bool ChannelsAreLast(const tw_part_node& n) { return AttrsOf(n).s("data_format") == "NHWC"; }

class FusedConvolution : public Pattern {
 public:
  struct Nodes {
    uint32_t conv, bias;
    std::optional<uint32_t> relu;
    std::vector<uint32_t> All() const { return relu ? std::vector<uint32_t>{conv, bias, *relu} : std::vector<uint32_t>{conv, bias}; }
  };
  FusedConvolution(const tw_host* host, Device& device, const PartView& part, const Nodes& nodes)
      : device_(device),
        images_(AttrsOf(part.node(nodes.conv))),
        type_(part.type_out(nodes.conv)),
        relu_(nodes.relu),
        copy_(host, device, type_),
        images_at_(part.InputAt(nodes.conv, 0)),
        filter_at_(part.InputAt(nodes.conv, 1)),
        bias_at_(part.InputAt(nodes.bias, 1)) {}

  static std::optional<Nodes> Match(const PartView& part, uint32_t first) {
    if (part.op(first) != "Conv2D" || !ChannelsAreLast(part.node(first))) return {};
    const std::optional<uint32_t> bias = part.OnlyReader(first);
    if (!bias || part.op(*bias) != "BiasAdd" || part.node(*bias).in[0].node != int32_t(first) || !ChannelsAreLast(part.node(*bias)))
      return {};
    const std::optional<uint32_t> relu = part.OnlyReader(*bias);
    return Nodes{first, *bias, relu && part.op(*relu) == "Relu" ? relu : std::nullopt};
  }

  bool Serves(const tw_host* host, const PartView& part, uint32_t first) const override {
    const std::optional<Nodes> nodes = Match(part, first);
    if (!nodes) return false;
    const tw_shape &x = part.shape_in(first, 0), &filter = part.shape_in(first, 1), &y = part.shape_out(first),
                   &bias = part.shape_in(nodes->bias, 1);
    if (!AllKnown(x) || !AllKnown(filter) || !AllKnown(y) || !AllKnown(bias)) return false;
    if (filter.rank != 4 || x.rank != 4 || y.rank != 4 || filter.dims[2] != x.dims[3] || bias.rank != 1 || bias.dims[0] != y.dims[3])
      return false;
    return CallFor(WindowOf(DimsOf(x), DimsOf(filter), DimsOf(y)), y.dims[3], {}, {}, {}, {}).Find(device_, host) != nullptr;
  }

  void Run(const tw_frame* f) const override {
    const tw_view *x = f->in[images_at_], *filter = f->in[filter_at_], *bias = f->in[bias_at_], *y = f->out[0];
    const Window w = WindowOf(opencl::DimsOf(x), opencl::DimsOf(filter), opencl::DimsOf(y));
    const Size out = filter->dims[3];
    const Dims dims = {out, w.filter_height, w.filter_width, w.channels};
    const Dims theirs = DenseSteps(dims), ours = {1, w.filter_width * w.channels * out, w.channels * out, out};
    const Temporary turned(device_, filter->bytes);
    const Aligned images(copy_, x), more(copy_, bias), results(copy_, y);
    const DnnCall call = CallFor(w, out, images.place(), turned.place(), more.place(), results.place());
    const DnnCall::Way way = call.Find(device_, f->host);
    if (!way) throw tw::Error{TW_INTERNAL, "cuDNN has lost the engine of a fused convolution"};
    images.Fetch(f), more.Fetch(f);
    copy_.Run(f, dims, At(filter), ours, turned.place(), theirs);
    call.Run(device_, f, "cuDNN fused convolution", way);
    results.Leave(f);
  }

 private:
  Window WindowOf(const Dims& x, const Dims& filter, const Dims& y) const { return images_.Of(x, filter[0], filter[1], y); }

  DnnCall CallFor(const Window& w, Size out, const Place& images, const Place& filter, const Place& bias, const Place& results) const {
    DnnCall call;
    const auto stored = [&](const DnnCall::Axes& dims, const Place& at) {
      return call.Stored(type_, dims, cuda::ChannelsLast(dims), at, kAligned);
    };
    const DnnCall::Axes made = {w.n, out, w.out_height, w.out_width};
    const auto inside = [&] { return call.Inside(TW_FLOAT, made, cuda::ChannelsLast(made)); };
    const uint32_t x = stored({w.n, w.channels, w.height, w.width}, images);
    const uint32_t weights = stored({out, w.channels, w.filter_height, w.filter_width}, filter);
    const uint32_t more = stored({1, out, 1, 1}, bias), convolved = inside(), added = relu_ ? inside() : 0, y = stored(made, results);
    Operation::Window window = DnnWindow(w);
    window.size = {};  // the library takes it from the filter
    call.Compute(Operation::kConvolution, {x, weights, convolved}, window);
    call.Compute(Operation::kAdd, {convolved, more, relu_ ? added : y});
    if (relu_) call.Compute(Operation::kRelu, {added, y});
    return call;
  }

  Device& device_;
  const Images images_;
  const uint32_t type_;
  const bool relu_;
  const Copy copy_;
  const uint32_t images_at_, filter_at_, bias_at_;
};

}  // namespace

std::unique_ptr<Pattern> FindConvolution(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                         std::vector<uint32_t>* nodes) {
  return FindPattern<FusedConvolution>(host, device, part, first, nodes);
}

}  // namespace thalweg::opencl
