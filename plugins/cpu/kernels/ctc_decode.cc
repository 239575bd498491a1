// CTCGreedyDecoder and CTCBeamSearchDecoder. The beam search is TensorFlow's, with probabilities in
// double (ctc_beam.h). Decoded sequences become sparse matrices of [batch, time].
#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/ctc_beam.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The labels of one sequence of the batch, path after path.
struct Decoded {
  explicit Decoded(const tw_frame* f) : labels(f), ends(f) {}
  tw::TempVector<int64_t> labels, ends;  // ends[p]: where path p ends
  int64_t begin(uint32_t path) const { return path == 0 ? 0 : ends[path - 1]; }
  int64_t length(uint32_t path) const { return ends[path] - begin(path); }
};
using DecodedBatch = tw::TempVector<Decoded>;

void CheckDecoderLengths(const tw_view* inputs, const tw::In<int32_t>& lengths) {
  if (inputs->rank != 3 || lengths.size() != uint64_t(inputs->dims[1]))
    Invalid("inputs " + DimsText(inputs) + " and sequence_length " + DimsText(lengths.v) + " do not fit together");
  for (uint64_t b = 0; b < lengths.size(); ++b)
    if (lengths[b] < 0 || lengths[b] > inputs->dims[0])
      Invalid("sequence_length[" + std::to_string(b) + "] is " + std::to_string(lengths[b]) + "; it must be in [0, " +
              std::to_string(inputs->dims[0]) + "], the steps of inputs");
}

DecodedBatch MakeBatch(const tw_frame* f, int64_t batch) {
  DecodedBatch decoded(f);
  decoded.reserve(size_t(batch));
  for (int64_t b = 0; b < batch; ++b) decoded.emplace_back(f);
  return decoded;
}

void WritePath(const DecodedBatch& decoded, uint32_t path, const tw::Out<int64_t>& indices, const tw::Out<int64_t>& values,
               const tw::Out<int64_t>& shape) {
  int64_t total = 0, most = 0;
  for (const Decoded& d : decoded) {
    total += d.length(path);
    most = std::max(most, d.length(path));
  }
  const int64_t pairs[] = {total, 2}, two = 2;
  Allocate(indices, pairs, 2);
  Allocate(values, &total, 1);
  Allocate(shape, &two, 1);
  shape[0] = int64_t(decoded.size());
  shape[1] = most;
  uint64_t to = 0;
  for (size_t b = 0; b < decoded.size(); ++b)
    for (int64_t t = 0; t < decoded[b].length(path); ++t, ++to) {
      indices[2 * to] = int64_t(b);
      indices[2 * to + 1] = t;
      values[to] = decoded[b].labels[size_t(decoded[b].begin(path) + t)];
    }
}

template <class T>
class Greedy {
 public:
  explicit Greedy(const tw::Node& n) : merge_(n.b("merge_repeated")), blank_(n.i("blank_index")) {}

  void operator()(tw::Frame f, tw::In<T> inputs, tw::In<int32_t> sequence_length, tw::Out<int64_t> decoded_indices,
                  tw::Out<int64_t> decoded_values, tw::Out<int64_t> decoded_shape, tw::Out<T> log_probability) const {
    CheckDecoderLengths(inputs.v, sequence_length);
    const int64_t steps = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
    const int64_t blank = blank_ < 0 ? blank_ + classes : blank_;
    DecodedBatch decoded = MakeBatch(f.f, batch);
    ParallelFor(f.f, batch, Cost(steps, classes), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Decoded& d = decoded[size_t(b)];
        double sum = 0;
        int64_t before = -1;
        for (int64_t t = 0; t < sequence_length[uint64_t(b)]; ++t) {
          const T* x = inputs.data() + (t * batch + b) * classes;
          int64_t best = 0;
          for (int64_t c = 1; c < classes; ++c)
            if (x[c] > x[best]) best = c;
          sum -= double(x[best]);
          if (best != blank && !(merge_ && best == before)) d.labels.push_back(best);
          before = best;
        }
        d.ends.push_back(int64_t(d.labels.size()));
        log_probability.data()[b] = T(sum);
      }
    });
    WritePath(decoded, 0, decoded_indices, decoded_values, decoded_shape);
  }

 private:
  const bool merge_;
  const int64_t blank_;
};

template <class T>
class BeamSearch {
 public:
  explicit BeamSearch(const tw::Node& n) : width_(n.i("beam_width")), merge_(n.b("merge_repeated")) {}

  void operator()(tw::Frame f, tw::In<T> inputs, tw::In<int32_t> sequence_length, tw::ManyOut<int64_t> decoded_indices,
                  tw::ManyOut<int64_t> decoded_values, tw::ManyOut<int64_t> decoded_shape, tw::Out<T> log_probability) const {
    CheckDecoderLengths(inputs.v, sequence_length);
    const int64_t steps = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
    const uint32_t paths = decoded_indices.size();
    DecodedBatch decoded = MakeBatch(f.f, batch);
    ParallelFor(f.f, batch, Cost(steps, classes, width_, 20), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        CtcBeam beam(f.f, classes, width_);
        for (int64_t t = 0; t < sequence_length[uint64_t(b)]; ++t) beam.Step(inputs.data() + (t * batch + b) * classes);
        if (beam.size() < paths)
          Invalid("the beam of sequence " + std::to_string(b) + " has " + std::to_string(beam.size()) + " paths after " +
                  std::to_string(sequence_length[uint64_t(b)]) + " steps, fewer than top_paths, which is " + std::to_string(paths) +
                  "; ask for fewer paths, or leave out sequences that are so short");
        beam.Sort();
        Decoded& d = decoded[size_t(b)];
        for (uint32_t p = 0; p < paths; ++p) {
          beam.Labels(p, merge_, &d.labels);
          d.ends.push_back(int64_t(d.labels.size()));
          log_probability.data()[b * paths + p] = T(beam.LogProbability(p));
        }
      }
    });
    for (uint32_t p = 0; p < paths; ++p) WritePath(decoded, p, decoded_indices[p], decoded_values[p], decoded_shape[p]);
  }

 private:
  const int64_t width_;
  const bool merge_;
};

}  // namespace

void register_ctc_decode(tw::Plugin& p) {
  p.kernel<Greedy<float>, Greedy<double>>("CTCGreedyDecoder @CPU");
  p.kernel<BeamSearch<float>, BeamSearch<double>>("CTCBeamSearchDecoder @CPU");
}

}  // namespace thalweg::cpu
