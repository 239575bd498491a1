// The NonMaxSuppression kernels. Scores and boxes of half are widened to float; products of scores
// are rounded to half, as in TensorFlow.
#include "kernels/non_max_suppression.h"

#include "kernels/common/element.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

float ElementAt(const tw_view* v, uint64_t i) {
  return v->dtype == TW_HALF ? float(reinterpret_cast<const half*>(Bytes(v))[i]) : reinterpret_cast<const float*>(Bytes(v))[i];
}
void SetElement(const tw_view* v, uint64_t i, float x) {
  if (v->dtype == TW_HALF)
    reinterpret_cast<half*>(Bytes(v))[i] = half(x);
  else
    reinterpret_cast<float*>(Bytes(v))[i] = x;
}
float Unrounded(float x) { return x; }
float ToHalf(float x) { return float(half(x)); }

float Threshold(const tw_view* v, const char* name) {
  const float x = ElementAt(v, 0);
  if (!(x >= 0 && x <= 1)) Invalid(std::string(name) + " is " + std::to_string(x) + "; it must be in [0, 1]");
  return x;
}
int64_t Most(const tw_view* v, const char* name, int64_t least) {
  const int64_t n = IndexAt(v, 0);
  if (n < least) Invalid(std::string(name) + " is " + tw::text(n) + "; it must be at least " + tw::text(least));
  return n;
}

// One kernel for all versions. The node has the number of inputs and outputs of its version.
class Choice {
 public:
  explicit Choice(const tw::Node& n)
      : overlaps_(n.node->op_len == std::string_view("NonMaxSuppressionWithOverlaps").size()),
        padded_(n.find("pad_to_max_output_size") && n.b("pad_to_max_output_size")),
        threshold_(n.find("iou_threshold") ? float(n.f("iou_threshold")) : 0),
        inputs_(n.node->n_in),
        outputs_(n.node->n_out) {
    if (!(threshold_ >= 0 && threshold_ <= 1)) Invalid("iou_threshold is " + std::to_string(threshold_) + "; it must be in [0, 1]");
  }

  void Run(const tw_frame* f) const {
    const tw_view *boxes = f->in[0], *scores = f->in[1];
    const int64_t n = int64_t(scores->count);
    if (boxes->count != uint64_t(n) * uint64_t(overlaps_ ? n : 4))
      Invalid("boxes " + DimsText(boxes) + " and scores " + DimsText(scores) + " do not fit together");
    if (n > INT32_MAX) Invalid(tw::text(n) + " boxes are too many for 32-bit indices");
    ChoiceLimits limits{Most(f->in[2], "max_output_size", 0), threshold_, -INFINITY, 0, scores->dtype == TW_HALF ? ToHalf : Unrounded};
    if (inputs_ > 3) limits.overlap = overlaps_ ? ElementAt(f->in[3], 0) : Threshold(f->in[3], "iou_threshold");
    if (inputs_ > 4) limits.score = ElementAt(f->in[4], 0);
    if (inputs_ > 5) limits.sigma = ElementAt(f->in[5], 0);
    if (!(limits.sigma >= 0)) Invalid("soft_nms_sigma is " + std::to_string(limits.sigma) + "; it must not be negative");
    if (inputs_ <= 4) limits.score = -INFINITY;
    tw::TempVector<Candidate> heap(f);
    tw::TempVector<Chosen> chosen(f);
    const auto score = [&](int64_t i) { return ElementAt(scores, uint64_t(i)); };
    if (overlaps_) {
      const float* table = reinterpret_cast<const float*>(Bytes(boxes));
      ChooseBoxes(n, limits, score, [&](int64_t i, int64_t j) { return table[i * n + j]; }, heap, chosen);
    } else {
      const TempArray<float> corners(f, size_t(4 * n));
      for (uint64_t i = 0; i < boxes->count; ++i) corners[i] = ElementAt(boxes, i);
      ChooseBoxes(
          n, limits, score, [&](int64_t i, int64_t j) { return Overlap(&corners[size_t(4 * i)], &corners[size_t(4 * j)]); }, heap, chosen);
    }
    Write(f, limits.most, chosen);
  }

 private:
  void Write(const tw_frame* f, int64_t most, const tw::TempVector<Chosen>& chosen) const {
    const int64_t n = int64_t(chosen.size()), length = padded_ ? most : n;
    const bool scored = outputs_ == 3;
    const tw::Out<int32_t> indices{f, 0};
    Allocate(indices, &length, 1);
    if (scored) Allocate(tw::Out<tw::Any>{f, 1}, &length, 1);
    for (int64_t i = 0; i < length; ++i) {
      indices[uint64_t(i)] = i < n ? chosen[size_t(i)].box : 0;
      if (scored) SetElement(f->out[1], uint64_t(i), i < n ? chosen[size_t(i)].score : 0);
    }
    if (outputs_ > 1) reinterpret_cast<int32_t*>(Bytes(f->out[outputs_ - 1]))[0] = int32_t(n);
  }

  bool overlaps_, padded_;
  float threshold_;
  uint32_t inputs_, outputs_;
};

// The signatures of the versions; all run the same code.
struct Simple : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<float>, tw::In<float>, tw::In<int32_t>, tw::Out<int32_t>) const { Run(f.f); }
};
template <class T, class Limit>
struct WithThreshold : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<T>, tw::In<T>, tw::In<int32_t>, tw::In<Limit>, tw::Out<int32_t>) const { Run(f.f); }
};
template <class T, class Limit>
struct WithScores : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<T>, tw::In<T>, tw::In<int32_t>, tw::In<Limit>, tw::In<Limit>, tw::Out<int32_t>) const { Run(f.f); }
};
template <class T, class Limit>
struct Padded : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<T>, tw::In<T>, tw::In<int32_t>, tw::In<Limit>, tw::In<Limit>, tw::Out<int32_t>,
                  tw::Out<int32_t>) const {
    Run(f.f);
  }
};
template <class T>
struct Soft : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<T>, tw::In<T>, tw::In<int32_t>, tw::In<T>, tw::In<T>, tw::In<T>, tw::Out<int32_t>, tw::Out<T>,
                  tw::Out<int32_t>) const {
    Run(f.f);
  }
};

// The best boxes of all classes of one image.
struct Detection {
  float score;
  int32_t box, kind;
};

class Combined {
 public:
  explicit Combined(const tw::Node& n) : per_class_(n.b("pad_per_class")), clip_(n.b("clip_boxes")) {}

  void operator()(tw::Frame f, tw::In<float> boxes, tw::In<float> scores, tw::In<int32_t> most_per_class, tw::In<int32_t> most_in_all,
                  tw::In<float> iou_threshold, tw::In<float> score_threshold, tw::Out<float> nmsed_boxes, tw::Out<float> nmsed_scores,
                  tw::Out<float> nmsed_classes, tw::Out<int32_t> valid) const {
    if (boxes.rank() != 4 || scores.rank() != 3 || boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(1) || boxes.dim(3) != 4 ||
        (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)))
      Invalid("boxes " + DimsText(boxes.v) + " and scores " + DimsText(scores.v) + " do not fit together");
    const int64_t batch = scores.dim(0), n = scores.dim(1), classes = scores.dim(2), own = boxes.dim(2);
    if (n > INT32_MAX || classes > INT32_MAX) Invalid("scores " + DimsText(scores.v) + " has too many boxes for 32-bit indices");
    const int64_t most_of_class = Most(most_per_class.v, "max_output_size_per_class", 1), total = Most(most_in_all.v, "max_total_size", 1);
    const ChoiceLimits limits{most_of_class, Threshold(iou_threshold.v, "iou_threshold"), score_threshold[0], 0, Unrounded};
    const int64_t room = per_class_ ? int64_t(std::min(uint64_t(total), uint64_t(most_of_class) * uint64_t(classes))) : total;
    const int64_t dims[] = {batch, room, 4};
    Allocate(nmsed_boxes, dims, 3);
    Allocate(nmsed_scores, dims, 2);
    Allocate(nmsed_classes, dims, 2);
    Allocate(valid, dims, 1);
    std::fill_n(nmsed_boxes.data(), nmsed_boxes.size(), 0.0F);
    std::fill_n(nmsed_scores.data(), nmsed_scores.size(), 0.0F);
    std::fill_n(nmsed_classes.data(), nmsed_classes.size(), 0.0F);
    tw::TempVector<Candidate> heap(f.f);
    tw::TempVector<Chosen> chosen(f.f);
    tw::TempVector<Detection> found(f.f);
    for (int64_t image = 0; image < batch; ++image) {
      const float *of_image = boxes.data() + image * n * own * 4, *its_scores = scores.data() + image * n * classes;
      found.clear();
      for (int64_t kind = 0; kind < classes; ++kind) {
        const auto corners = [&](int64_t i) { return of_image + (i * own + (own == 1 ? 0 : kind)) * 4; };
        ChooseBoxes(
            n, limits, [&](int64_t i) { return its_scores[i * classes + kind]; },
            [&](int64_t i, int64_t j) { return Overlap(corners(i), corners(j)); }, heap, chosen);
        for (const Chosen& c : chosen) found.push_back({c.score, c.box, int32_t(kind)});
      }
      const int64_t kept = std::min(room, int64_t(found.size()));
      // The order is total, so the result does not depend on the algorithm.
      std::partial_sort(found.begin(), found.begin() + kept, found.end(), [](const Detection& x, const Detection& y) {
        return x.score != y.score ? x.score > y.score : x.kind != y.kind ? x.kind < y.kind : x.box < y.box;
      });
      for (int64_t i = 0; i < kept; ++i) {
        const Detection& d = found[size_t(i)];
        const float* from = of_image + (int64_t(d.box) * own + (own == 1 ? 0 : d.kind)) * 4;
        float* to = nmsed_boxes.data() + (image * room + i) * 4;
        for (int c = 0; c < 4; ++c) to[c] = clip_ ? std::max(std::min(from[c], 1.0F), 0.0F) : from[c];
        nmsed_scores.data()[image * room + i] = d.score;
        nmsed_classes.data()[image * room + i] = float(d.kind);
      }
      valid.data()[image] = int32_t(kept);
    }
  }

 private:
  bool per_class_, clip_;
};

struct WithOverlaps : Choice {
  using Choice::Choice;
  void operator()(tw::Frame f, tw::In<float>, tw::In<float>, tw::In<int32_t>, tw::In<float>, tw::In<float>, tw::Out<int32_t>) const {
    Run(f.f);
  }
};

}  // namespace

void register_non_max_suppression(tw::Plugin& p) {
  p.kernel<Simple>("NonMaxSuppression @CPU");
  p.kernel<WithThreshold<float, float>, WithThreshold<float, half>, WithThreshold<half, float>, WithThreshold<half, half>>(
      "NonMaxSuppressionV2 @CPU");
  p.kernel<WithScores<float, float>, WithScores<float, half>, WithScores<half, float>, WithScores<half, half>>("NonMaxSuppressionV3 @CPU");
  p.kernel<Padded<float, float>, Padded<float, half>, Padded<half, float>, Padded<half, half>>("NonMaxSuppressionV4 @CPU");
  p.kernel<Soft<float>, Soft<half>>("NonMaxSuppressionV5 @CPU");
  p.kernel<WithOverlaps>("NonMaxSuppressionWithOverlaps @CPU");
  p.kernel<Combined>("CombinedNonMaxSuppression @CPU");
}

}  // namespace thalweg::cpu
