// CTCLoss and CTCLossV2: the loss of connectionist temporal classification, and its gradient for the
// logits (Graves: "Supervised Sequence Labelling with Recurrent Neural Networks", chapter 7). The
// forward and backward sums run over logarithms in double, for every type.
#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/log_sum.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct CtcHow {
  bool collapse, merge, ignore_longer, blank_first;
};

// The labels of every sequence of the batch, without blanks.
class CtcLabels {
 public:
  CtcLabels(const tw_frame* f, const tw::In<int64_t>& indices, const tw::In<int32_t>& values, int64_t batch, int64_t classes,
            const CtcHow& how)
      : labels_(f, size_t(values.size())), first_(f, size_t(batch)), end_(f, size_t(batch)), given_(f, size_t(batch)) {
    const int64_t n = int64_t(values.size());
    std::fill_n(first_.get(), batch, 0);
    std::fill_n(end_.get(), batch, 0);
    std::fill_n(given_.get(), batch, 0);
    int64_t kept = 0;
    for (int64_t begin = 0, end = 0; begin < n; begin = end) {
      const int64_t b = indices[uint64_t(2 * begin)];
      for (end = begin; end < n && indices[uint64_t(2 * end)] == b; ++end) CheckPlace(indices, end, batch);
      first_[size_t(b)] = kept;
      bool ended = false;
      for (int64_t k = begin; k < end; ++k) {
        const int64_t label = values[uint64_t(k)];
        if (how.collapse && k > begin && label == values[uint64_t(k - 1)]) continue;
        if (label < 0 || (how.blank_first && label >= classes))
          Invalid("labels_values[" + std::to_string(k) + "] is " + std::to_string(label) + "; labels must be in [" +
                  (how.blank_first ? "1, " + std::to_string(classes) : "0, " + std::to_string(classes - 1)) + ")");
        const bool blank = how.blank_first ? label == 0 : label >= classes - 1;
        if (!blank && ended)
          Invalid("labels_values[" + std::to_string(k) + "] is " + std::to_string(label) +
                  " and follows a blank of the same sequence; blanks may only stand behind all labels of a sequence");
        ended |= blank;
        if (!blank) labels_[size_t(kept++)] = label;
      }
      end_[size_t(b)] = kept;
      given_[size_t(b)] = end - begin;
    }
  }
  // The number of labels of sequence b as they were given: with blanks and repetitions.
  int64_t given(int64_t b) const { return given_[size_t(b)]; }
  // State u of sequence b: a blank where u is even, else label u / 2.
  int64_t states(int64_t b) const { return 2 * (end_[size_t(b)] - first_[size_t(b)]) + 1; }
  const int64_t* labels(int64_t b) const { return labels_.get() + first_[size_t(b)]; }

 private:
  static void CheckPlace(const tw::In<int64_t>& indices, int64_t k, int64_t batch) {
    const int64_t b = indices[uint64_t(2 * k)], t = indices[uint64_t(2 * k + 1)];
    const std::string where = "labels_indices[" + std::to_string(k) + "] is [" + std::to_string(b) + ", " + std::to_string(t) + "]";
    if (b < 0 || b >= batch || t < 0)
      Invalid(where + "; it must be [batch, time] with a batch in [0, " + std::to_string(batch) + ") and a time that is not negative");
    if (k == 0) return;
    const int64_t before = indices[uint64_t(2 * k - 2)], time = indices[uint64_t(2 * k - 1)];
    if (before > b || (before == b && time >= t))
      Invalid(where + " and comes after [" + std::to_string(before) + ", " + std::to_string(time) +
              "]; the rows must be sorted and different; put them in order with SparseReorder");
  }

  TempArray<int64_t> labels_, first_, end_, given_;
};

// One sequence: logits x[t * stride + class], of which `time` steps count.
template <class T>
class CtcSequence {
 public:
  CtcSequence(const tw_frame* f, const T* x, int64_t stride, int64_t time, int64_t classes, int64_t blank, const int64_t* labels,
              int64_t states, bool merge)
      : x_(x),
        stride_(stride),
        time_(time),
        classes_(classes),
        blank_(blank),
        labels_(labels),
        states_(states),
        merge_(merge),
        norm_(f, size_t(time)),
        alpha_(f, AlphaSize(time, states)),
        beta_(f, size_t(states)),
        next_(f, size_t(states)),
        paths_(f, size_t(classes)) {}

  // Returns the loss, and writes the gradient at the places of the logits.
  double Run(T* gradient) {
    for (int64_t t = 0; t < time_; ++t) norm_[size_t(t)] = LogSumExp(x_ + t * stride_, classes_);
    Forward();
    const double* last = Alpha(time_ - 1);
    const double log_p = states_ > 1 ? LogSum(last[states_ - 1], last[states_ - 2]) : last[0];
    Backward(log_p, gradient);
    return -log_p;
  }

 private:
  static size_t AlphaSize(int64_t time, int64_t states) {
    int64_t n;
    if (__builtin_mul_overflow(time, states, &n) || n > INT64_MAX / int64_t(sizeof(double)))
      throw tw::Error{TW_RESOURCE_EXHAUSTED, std::to_string(time) + " steps of " + std::to_string(states) + " states do not fit in memory"};
    return size_t(n);
  }
  double* Alpha(int64_t t) const { return alpha_.get() + t * states_; }
  int64_t Class(int64_t u) const { return u % 2 == 0 ? blank_ : labels_[u / 2]; }
  double LogY(int64_t t, int64_t u) const { return double(x_[t * stride_ + Class(u)]) - norm_[size_t(t)]; }
  // Whether a path may stay in state u, and whether it may go there from state u - 2.
  bool Stays(int64_t u) const { return merge_ || u % 2 == 0; }
  bool Skips(int64_t u) const { return u % 2 == 1 && u > 1 && !(merge_ && labels_[u / 2] == labels_[u / 2 - 1]); }

  // Alpha(t)[u]: the logarithm of the probability of all paths that are in state u at step t.
  void Forward() {
    for (int64_t u = 0; u < states_; ++u) Alpha(0)[u] = u < 2 ? LogY(0, u) : -INFINITY;
    for (int64_t t = 1; t < time_; ++t) {
      const double* before = Alpha(t - 1);
      for (int64_t u = 0; u < states_; ++u) {
        double sum = Stays(u) ? before[u] : -INFINITY;
        if (u > 0) sum = LogSum(sum, before[u - 1]);
        if (Skips(u)) sum = LogSum(sum, before[u - 2]);
        Alpha(t)[u] = sum + LogY(t, u);
      }
    }
  }

  // beta_[u]: the logarithm of the probability of all ways from state u at step t to the end, without
  // the step itself.
  void Backward(double log_p, T* gradient) {
    for (int64_t u = 0; u < states_; ++u) beta_[size_t(u)] = u + 2 >= states_ ? 0 : -INFINITY;
    for (int64_t t = time_; t-- > 0;) {
      WriteGradient(t, log_p, gradient + t * stride_);
      if (t == 0) break;
      for (int64_t u = 0; u < states_; ++u) next_[size_t(u)] = beta_[size_t(u)] + LogY(t, u);
      for (int64_t u = 0; u < states_; ++u) {
        double sum = Stays(u) ? next_[size_t(u)] : -INFINITY;
        if (u + 1 < states_) sum = LogSum(sum, next_[size_t(u + 1)]);
        if (u + 2 < states_ && Skips(u + 2)) sum = LogSum(sum, next_[size_t(u + 2)]);
        beta_[size_t(u)] = sum;
      }
    }
  }

  // The probability of a class minus the part of all paths of the labels that use it. If no path has
  // these labels, the second part is 0, as in TensorFlow.
  void WriteGradient(int64_t t, double log_p, T* to) {
    std::fill_n(paths_.get(), classes_, -INFINITY);
    for (int64_t u = 0; u < states_; ++u) {
      double& sum = paths_[size_t(Class(u))];
      sum = LogSum(sum, Alpha(t)[u] + beta_[size_t(u)]);
    }
    for (int64_t c = 0; c < classes_; ++c) {
      const double y = std::exp(double(x_[t * stride_ + c]) - norm_[size_t(t)]);
      to[c] = T(log_p == -INFINITY ? y : y - std::exp(paths_[size_t(c)] - log_p));
    }
  }

  const T* x_;
  const int64_t stride_, time_, classes_, blank_;
  const int64_t* labels_;
  const int64_t states_;
  const bool merge_;
  TempArray<double> norm_, alpha_, beta_, next_, paths_;
};

template <class T, bool kBlankFirst>
class CtcLoss {
 public:
  explicit CtcLoss(const tw::Node& n)
      : how_{n.b("preprocess_collapse_repeated"), n.b("ctc_merge_repeated"), n.b("ignore_longer_outputs_than_inputs"), kBlankFirst} {}

  void operator()(tw::Frame f, tw::In<T> inputs, tw::In<int64_t> labels_indices, tw::In<int32_t> labels_values,
                  tw::In<int32_t> sequence_length, tw::Out<T> loss, tw::Out<T> gradient) const {
    if (inputs.rank() != 3 || sequence_length.size() != uint64_t(inputs.dim(1)) || labels_indices.rank() != 2 ||
        labels_indices.dim(1) != 2 || labels_indices.dim(0) != int64_t(labels_values.size()))
      Invalid("inputs " + DimsText(inputs.v) + ", labels_indices " + DimsText(labels_indices.v) + ", labels_values " +
              DimsText(labels_values.v) + " and sequence_length " + DimsText(sequence_length.v) + " do not fit together");
    const int64_t steps = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
    const CtcLabels labels(f.f, labels_indices, labels_values, batch, classes, how_);
    for (int64_t b = 0; b < batch; ++b) CheckLength(b, sequence_length[uint64_t(b)], steps, labels.given(b));
    std::fill_n(gradient.data(), gradient.size(), T(0));
    ParallelFor(f.f, batch, Cost(steps, classes, 40), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t time = sequence_length[uint64_t(b)];
        loss.data()[b] = 0;
        if (time == 0 || labels.given(b) > time) continue;
        CtcSequence<T> sequence(f.f, inputs.data() + b * classes, batch * classes, time, classes, kBlankFirst ? 0 : classes - 1,
                                labels.labels(b), labels.states(b), how_.merge);
        loss.data()[b] = T(sequence.Run(gradient.data() + b * classes));
      }
    });
  }

 private:
  void CheckLength(int64_t b, int64_t length, int64_t steps, int64_t given) const {
    const std::string name = "sequence_length[" + std::to_string(b) + "] is " + std::to_string(length);
    if (length < 0 || length > steps) Invalid(name + "; it must be in [0, " + std::to_string(steps) + "], the steps of inputs");
    if (given > length && !how_.ignore_longer)
      Invalid(name + ", too short for " + std::to_string(given) +
              " labels; shorten the labels, or set ignore_longer_outputs_than_inputs to leave such sequences out");
  }

  const CtcHow how_;
};

}  // namespace

void register_ctc_loss(tw::Plugin& p) {
  p.kernel<CtcLoss<float, false>, CtcLoss<double, false>>("CTCLoss @CPU");
  p.kernel<CtcLoss<float, true>>("CTCLossV2 @CPU");
}

}  // namespace thalweg::cpu
