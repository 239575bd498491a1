// Softmax, LogSoftmax and the two cross-entropies.
#include <vector>

#include "kernels/layout.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

std::string RowsText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_in(0))}}, {"rows.h"}); }

// Calls the device's vendor library, if it has one that can do this.
template <class D, class... Args>
bool RunsByLibrary(D& device, const Args&... args) {
  if constexpr (requires { device.dnn(); })
    return SoftmaxByLibrary(device, args...);
  else
    return false;
}

class Softmax {
 public:
  explicit Softmax(const tw::Node& n)
      : logarithm_(std::string_view(n.node->op, n.node->op_len) == "LogSoftmax"), kernel_(n, RowsText(n), "softmax") {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    if (x->count == 0) return;
    const Size n = x->dims[x->rank - 1], rows = Size(x->count) / n;
    if (RunsByLibrary(kernel_.device(), frame.f, x->dtype, rows, n, logarithm_, At(x), At(frame.f->out[0]))) return;
    kernel_.RunTasks(frame.f, rows, 16 * n, At(x), At(frame.f->out[0]), rows, n, Size(logarithm_));
  }

 private:
  bool logarithm_;
  Kernel kernel_;
};

class CrossEntropy {
 public:
  explicit CrossEntropy(const tw::Node& n) : kernel_(n, RowsText(n), "cross_entropy") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *labels = frame.f->in[1], *slope = frame.f->out[1];
    const Dims dims = DimsOf(slope), a = BroadcastSteps(DimsOf(x), dims), b = BroadcastSteps(DimsOf(labels), dims);
    if (dims[0] == 0) return;
    if (dims[1] == 0) Invalid("features have no classes; give them at least one");
    kernel_.RunTasks(frame.f, dims[0], 16 * dims[1], At(x), a[0], a[1], At(labels), b[0], b[1], At(frame.f->out[0]), At(slope), dims[0],
                     dims[1]);
  }

 private:
  Kernel kernel_;
};

class SparseCrossEntropy {
 public:
  explicit SparseCrossEntropy(const tw::Node& n) : kernel_(n, RowsText(n), "sparse_cross_entropy") {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    std::vector<int64_t> labels;
    tw::integers(frame.f->in[1], &labels);
    const Size n = x->dims[1], rows = x->dims[0];
    for (size_t k = 0; k < labels.size(); ++k)
      if (labels[k] < 0 || labels[k] >= n)
        Invalid("labels[" + std::to_string(k) + "] is " + tw::text(labels[k]) + ", outside [0, " + tw::text(n) +
                "), the classes of features");
    if (rows == 0) return;
    const Temporary sent(kernel_.device(), labels);
    kernel_.RunTasks(frame.f, rows, 16 * n, At(x), sent.place(), At(frame.f->out[0]), At(frame.f->out[1]), rows, n);
  }

 private:
  Kernel kernel_;
};

}  // namespace

void register_softmax(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    p.kernel<Softmax>("Softmax(" + t + " -> " + t + ") @OPENCL; inplace softmax=logits");
    p.kernel<Softmax>("LogSoftmax(" + t + " -> " + t + ") @OPENCL; inplace logsoftmax=logits");
    p.kernel<CrossEntropy>("SoftmaxCrossEntropyWithLogits(" + t + ", " + t + " -> " + t + ", " + t + ") @OPENCL");
    for (const std::string labels : {"int32", "int64"})
      p.kernel<SparseCrossEntropy>("SparseSoftmaxCrossEntropyWithLogits(" + t + ", " + labels + " -> " + t + ", " + t +
                                   ") @OPENCL; host labels");
  }
}

}  // namespace thalweg::opencl
