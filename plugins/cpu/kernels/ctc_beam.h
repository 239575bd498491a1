// TensorFlow's beam search over the outputs of a CTC network, for one sequence: the `width` most
// likely sequences of labels are kept after each step. The blank is the last class. All
// probabilities are logarithms, in double. Of two sequences with the same probability, the one that
// entered the beam first counts as the more likely one; NaN counts as probability 0.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CTC_BEAM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CTC_BEAM_H_

#include <algorithm>
#include <cmath>

#include "kernels/common/temp.h"
#include "kernels/log_sum.h"

namespace thalweg::cpu {

class CtcBeam {
 public:
  CtcBeam(const tw_frame* f, int64_t classes, int64_t width)
      : classes_(classes), width_(uint64_t(width)), nodes_(f), leaves_(f), branches_(f), child_of_(size_t(classes), -1, f) {
    nodes_.push_back(Node{});
    nodes_[0].now = {0, 0, -INFINITY};
    Push(0);
  }

  // Takes the logits of the next step.
  template <class T>
  void Step(const T* logits) {
    const double norm = LogSumExp(logits, classes_);
    Sort();
    branches_.assign(leaves_.begin(), leaves_.end());
    leaves_.clear();
    for (const Leaf& b : branches_) nodes_[size_t(b.node)].before = nodes_[size_t(b.node)].now;
    for (const Leaf& b : branches_) Continue(b.node, logits, norm);
    for (const Leaf& b : branches_) Grow(b.node, logits, norm);
  }

  // The number of sequences in the beam.
  size_t size() const { return leaves_.size(); }
  // Sorts the beam: number 0 is the most likely sequence. Until the next step.
  void Sort() { std::sort(leaves_.begin(), leaves_.end(), Better); }
  double LogProbability(size_t number) const { return nodes_[size_t(leaves_[number].node)].now.total; }
  // Appends the labels of a sequence; merge: of equal labels in a row, only one. REQUIRES: sorted.
  void Labels(size_t number, bool merge, tw::TempVector<int64_t>* labels) const {
    const size_t begin = labels->size();
    for (int64_t at = leaves_[number].node, later = -1; nodes_[size_t(at)].parent >= 0; at = nodes_[size_t(at)].parent) {
      const int64_t label = nodes_[size_t(at)].label;
      if (!merge || label != later) labels->push_back(label);
      later = label;
    }
    std::reverse(labels->begin() + int64_t(begin), labels->end());
  }

 private:
  // The probability of a sequence; the part of the paths that end with a blank, and of those that end
  // with its last label.
  struct Parts {
    double total = -INFINITY, blank = -INFINITY, label = -INFINITY;
  };
  // A sequence: that of its parent and one more label. The root is the empty sequence.
  struct Node {
    int64_t parent = -1, label = -1, first_child = -1, sibling = -1;
    Parts before, now;
  };
  // A node in the beam. order: how many entered before.
  struct Leaf {
    double key;
    uint64_t order;
    int64_t node;
  };

  static bool Better(const Leaf& a, const Leaf& b) { return a.key != b.key ? a.key > b.key : a.order < b.order; }
  static double Key(double total) { return std::isnan(total) ? -INFINITY : total; }

  // leaves_ is a heap with the worst leaf in front.
  void Push(int64_t node) {
    leaves_.push_back({Key(nodes_[size_t(node)].now.total), entered_++, node});
    std::push_heap(leaves_.begin(), leaves_.end(), Better);
  }
  bool Candidate(const Parts& p) const { return p.total > -INFINITY && (leaves_.size() < width_ || p.total > leaves_.front().key); }

  // A sequence stays the same: the step is a blank or, once more, the last label.
  template <class T>
  void Continue(int64_t at, const T* logits, double norm) {
    Node& node = nodes_[size_t(at)];
    if (node.parent >= 0) {
      const Node& parent = nodes_[size_t(node.parent)];
      if (parent.now.total != -INFINITY)
        node.now.label = LogSum(node.now.label, node.label == parent.label ? parent.before.blank : parent.before.total);
      node.now.label += double(logits[node.label]) - norm;
    }
    node.now.blank = node.before.total + (double(logits[classes_ - 1]) - norm);
    node.now.total = LogSum(node.now.blank, node.now.label);
    Push(at);
  }

  // A sequence gets one more label, if that is likely enough for the beam.
  template <class T>
  void Grow(int64_t at, const T* logits, double norm) {
    if (!Candidate(nodes_[size_t(at)].before)) return;
    const Parts before = nodes_[size_t(at)].before;
    const int64_t last = nodes_[size_t(at)].label;
    for (int64_t c = nodes_[size_t(at)].first_child; c >= 0; c = nodes_[size_t(c)].sibling) child_of_[size_t(nodes_[size_t(c)].label)] = c;
    for (int64_t label = 0; label + 1 < classes_; ++label) {
      int64_t child = child_of_[size_t(label)];
      if (child >= 0 && nodes_[size_t(child)].now.total != -INFINITY) continue;
      Parts grown;
      grown.total = grown.label = (label == last ? before.blank : before.total) + (double(logits[label]) - norm);
      if (!Candidate(grown)) {
        if (child >= 0) nodes_[size_t(child)].before = nodes_[size_t(child)].now = Parts{};
        continue;
      }
      if (child < 0) child = Add(at, label);
      nodes_[size_t(child)].now = grown;
      if (leaves_.size() == width_) {
        std::pop_heap(leaves_.begin(), leaves_.end(), Better);
        nodes_[size_t(leaves_.back().node)].now = Parts{};
        leaves_.pop_back();
      }
      Push(child);
    }
    for (int64_t c = nodes_[size_t(at)].first_child; c >= 0; c = nodes_[size_t(c)].sibling) child_of_[size_t(nodes_[size_t(c)].label)] = -1;
  }

  int64_t Add(int64_t parent, int64_t label) {
    const int64_t child = int64_t(nodes_.size());
    Node node;
    node.parent = parent;
    node.label = label;
    node.sibling = nodes_[size_t(parent)].first_child;
    nodes_.push_back(node);
    nodes_[size_t(parent)].first_child = child;
    return child;
  }

  const int64_t classes_;
  const uint64_t width_;
  uint64_t entered_ = 0;
  tw::TempVector<Node> nodes_;
  tw::TempVector<Leaf> leaves_, branches_;
  tw::TempVector<int64_t> child_of_;  // while a node grows: the child with a label, or -1
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CTC_BEAM_H_
