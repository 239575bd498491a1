// NonMaxSuppression in its versions, and CombinedNonMaxSuppression: chooses boxes by their scores
// and leaves out boxes that overlap a chosen one.
#include <algorithm>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks a threshold at input i: a scalar.
void WantThresholds(const tw::Shape& s, uint32_t first, std::initializer_list<const char*> names) {
  for (const char* name : names) WantScalar(s, first++, name);
}

// Returns the value of a limit of results at input i, -1 if it is unknown.
int64_t Limit(const tw::Shape& s, uint32_t i, const char* name, int64_t least) {
  const std::optional<int64_t> limit = ScalarValue(s, i, name);
  if (limit && *limit < least) Fail("'" + std::string(name) + "' is " + tw::text(*limit) + "; it must be at least " + tw::text(least));
  return limit.value_or(-1);
}

// Inputs: boxes [n, 4], or overlaps [n, n], and scores [n].
void CheckBoxes(const tw::Shape& s, bool overlaps) {
  WantRank(s, 0, 2, overlaps ? "overlaps" : "boxes");
  WantVector(s, 1, "scores");
  const int64_t rows = s.known(0) ? s.dim(0, 0) : -1, columns = s.known(0) ? s.dim(0, 1) : -1;
  const int64_t n = MergeSize(s, rows, s.known(1) ? s.dim(1, 0) : -1, "the numbers of boxes and of scores");
  if (overlaps) {
    MergeSize(s, n, columns, "the rows and the columns of 'overlaps'");
  } else if (Known(columns) && columns != 4) {
    Fail("'boxes' is " + tw::text(s.in(0)) + "; a box has four coordinates: y, x of one corner, y, x of the opposite one");
  }
}

// kThresholds: the number of inputs behind max_output_size.
template <bool kOverlaps, uint32_t kThresholds>
void ChosenRule(const tw::Shape& s) {
  CheckBoxes(s, kOverlaps);
  const int64_t most = Limit(s, 2, "max_output_size", 0);
  const char* names[] = {kOverlaps ? "overlap_threshold" : "iou_threshold", "score_threshold", "soft_nms_sigma"};
  for (uint32_t k = 0; k < kThresholds; ++k) WantScalar(s, 3 + k, names[k]);
  const bool padded = s.find("pad_to_max_output_size") && s.b("pad_to_max_output_size");
  s.out(0, Dims{padded ? most : most == 0 ? 0 : -1});
}

void PaddedRule(const tw::Shape& s) {
  ChosenRule<false, 2>(s);
  s.out(1, Dims{});
}

void SoftRule(const tw::Shape& s) {
  ChosenRule<false, 3>(s);
  const bool padded = s.b("pad_to_max_output_size");
  const int64_t most = Limit(s, 2, "max_output_size", 0);
  s.out(1, Dims{padded ? most : most == 0 ? 0 : -1});
  s.out(2, Dims{});
}

void CombinedRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "boxes");
  WantRank(s, 1, 3, "scores");
  const Dims boxes = In(s, 0).value_or(Dims(4, -1)), scores = In(s, 1).value_or(Dims(3, -1));
  const int64_t batch = MergeSize(s, boxes[0], scores[0], "the batches of 'boxes' and 'scores'");
  MergeSize(s, boxes[1], scores[1], "the numbers of boxes and of scores");
  if (Known(boxes[2]) && boxes[2] != 1) MergeSize(s, boxes[2], scores[2], "the classes of 'boxes' and 'scores'");
  if (Known(boxes[3]) && boxes[3] != 4)
    Fail("'boxes' is " + Text(boxes) + "; a box has four coordinates: y, x of one corner, y, x of the opposite one");
  const int64_t per_class = Limit(s, 2, "max_output_size_per_class", 1);
  int64_t most = Limit(s, 3, "max_total_size", 1);
  WantThresholds(s, 4, {"iou_threshold", "score_threshold"});
  if (s.b("pad_per_class")) {
    const int64_t room = s.calc('*', per_class, scores[2]);
    most = Known(most) && Known(room) ? std::min(most, room) : -1;
  }
  s.out(0, Dims{batch, most, 4});
  s.out(1, Dims{batch, most});
  s.out(2, Dims{batch, most});
  s.out(3, Dims{batch});
}

#define CHOICE "no_gradient \"a choice of boxes has no derivative\"; "
#define PADDED "?limits selected_indices 0 value max_output_size; " CHOICE
#define CHOSEN "?limits selected_indices 0 axis scores 0; " PADDED
#define BOXES "boxes: T, scores: T, max_output_size: int32"
#define TYPES "T: {half, float} = float; T_threshold: {half, float} = float; "

}  // namespace

void register_non_max_suppression(tw::Plugin& p) {
  p.op<nullptr, ChosenRule<false, 0>>(
      "NonMaxSuppression(boxes: float, scores: float, max_output_size: int32) -> (selected_indices: int32); iou_threshold: float = "
      "0.5; " CHOSEN "doc \"the boxes with the largest scores that do not overlap a box of a larger score\"");
  p.op<nullptr, ChosenRule<false, 1>>("NonMaxSuppressionV2(" BOXES
                                      ", iou_threshold: T_threshold) -> (selected_indices: int32); " TYPES CHOSEN
                                      "doc \"NonMaxSuppression with its threshold as an input\"");
  p.op<nullptr, ChosenRule<false, 2>>(
      "NonMaxSuppressionV3(" BOXES ", iou_threshold: T_threshold, score_threshold: T_threshold) -> (selected_indices: int32); " TYPES CHOSEN
      "doc \"NonMaxSuppression of the boxes whose scores are above a threshold\"");
  p.op<nullptr, PaddedRule>("NonMaxSuppressionV4(" BOXES
                            ", iou_threshold: T_threshold, score_threshold: T_threshold) -> (selected_indices: int32, valid_outputs: "
                            "int32[]); " TYPES "pad_to_max_output_size: bool = false; " PADDED
                            "doc \"NonMaxSuppressionV3 that can pad its result with zeros to a fixed length\"");
  p.op<nullptr, SoftRule>("NonMaxSuppressionV5(" BOXES
                          ", iou_threshold: T, score_threshold: T, soft_nms_sigma: T) -> (selected_indices: int32, selected_scores: T, "
                          "valid_outputs: int32[]); T: {half, float} = float; pad_to_max_output_size: bool = false; " PADDED
                          "doc \"NonMaxSuppressionV4 that can lower the scores of overlapping boxes instead of leaving the boxes out\"");
  p.op<nullptr, ChosenRule<true, 2>>(
      "NonMaxSuppressionWithOverlaps(overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
      "score_threshold: float) -> (selected_indices: int32); " CHOSEN
      "doc \"NonMaxSuppressionV3 with the overlaps of all pairs of boxes as an input\"");
  p.op<nullptr, CombinedRule>(
      "CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: "
      "float, score_threshold: float) -> (nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: int32); "
      "pad_per_class: bool = false; clip_boxes: bool = true; " CHOICE
      "doc \"non-max suppression of each class of each image, and the best boxes of all classes\"");
}

}  // namespace thalweg::ops
