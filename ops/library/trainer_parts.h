// Definition of tw_trainer, for the files that make it, train, evaluate and predict.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "ops/library/iterator.h"
#include "thalweg/saver.h"
#include "thalweg/trainer.h"

namespace thalweg::library {

struct DestroySaver {
  void operator()(tw_saver* s) const { tw_saver_destroy(s); }
};
using OwnedSaver = std::unique_ptr<tw_saver, DestroySaver>;

// The place of a loop. The trainer's variables hold it in checkpoints.
struct LoopPlace {
  int64_t epoch = 0, batch = 0, step = 0;  // batch: in the epoch
  int64_t best_epoch = -1, waited = 0;     // waited: epochs since the best one
  int64_t why = 0;                         // TW_FIT_*; 0: training goes on
  double loss = 0, rows = 0, best = NAN;   // loss: the sum over the rows of the epoch so far
};

// The variables that hold a place and the position of the data, and the operations that set them.
struct PlaceVariables {
  tw_output counts = 0, sums = 0, position = 0;        // their values
  tw_output new_counts = 0, new_sums = 0, new_position = 0;  // feeds of `set`
  const tw_operation* set = nullptr;
};

// The weights of the best epoch. In memory: one placeholder and one assignment for each weight.
struct BestWeights {
  OwnedSaver saver;
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> assigns;
  std::vector<OwnedTensor> values;  // in the saver's order; empty: none kept in memory
};

// The tensors of a batch.
class Batch {
 public:
  explicit Batch(uint32_t n) : tensors_(n) {}
  ~Batch() { Clear(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  tw_tensor** Room() {
    Clear();
    return tensors_.data();
  }
  tw_tensor* operator[](size_t i) const { return tensors_[i]; }
  void Clear() {
    for (tw_tensor*& t : tensors_) tw_tensor_release(std::exchange(t, nullptr));
  }
  double Rows() const { return tw_tensor_rank(tensors_[0]) > 0 ? double(tw_tensor_dim(tensors_[0], 0)) : 1; }

 private:
  std::vector<tw_tensor*> tensors_;
};

}  // namespace thalweg::library

struct tw_trainer {
  tw_trainer_model model;  // its lists are those below
  std::vector<tw_output> feeds, predictions, weights;
  std::vector<tw_metric> metrics;
  std::vector<std::string> names;       // "loss", then those of the metrics
  std::vector<const char*> name_texts;  // the same
  tw_output loss = 0;                   // as double
  thalweg::library::OwnedTensor yes, no;  // values of model.training
  thalweg::library::PlaceVariables variables;
  thalweg::library::OwnedCallable train, update, evaluate, predict, values;  // made on first use
  thalweg::library::OwnedSaver saver;  // of all variables, for checkpoints
  thalweg::library::BestWeights best;
  thalweg::library::LoopPlace place;
  int64_t pending = 0;  // batches that were accumulated for the next step
  bool begun = false;   // a call of tw_trainer_fit has looked at its folder
};

namespace thalweg::library {

// ---- trainer.cc ----

// A callable over the feeds of the model and its training flag.
tw_status* MakeCallable(tw_trainer& t, uint32_t n_feeds, const std::vector<tw_output>& fetches,
                        const std::vector<const tw_operation*>& targets, OwnedCallable* out);
// Runs operations for their effects.
tw_status* RunTargets(tw_trainer& t, const std::vector<const tw_operation*>& targets);
// Runs a callable of MakeCallable on the first n tensors of a batch. cancel may be NULL.
tw_status* RunOn(tw_trainer& t, const OwnedCallable& callable, const Batch& batch, uint32_t n, bool training, tw_cancel_token* cancel,
                 std::vector<OwnedTensor>* fetched);

// ---- trainer_state.cc ----

// Adds the variables of a place.
void AddPlaceVariables(tw_scope* scope, tw_trainer* t);
// Sets the variables from t.place and a position, which may be NULL.
tw_status* StorePlace(tw_trainer& t, const tw_buffer* position);
// Sets t.place from the variables. *out_position: NULL if there is none.
tw_status* LoadPlace(tw_trainer& t, OwnedBuffer* out_position);

// ---- trainer_best.cc ----

// Keeps the present weights as the best ones: in the folder, or in memory if folder is NULL.
tw_status* KeepBest(tw_trainer& t, const char* folder);
// Sets the weights to the best ones.
tw_status* TakeBest(tw_trainer& t, const char* folder);

// ---- trainer_evaluate.cc ----

// Forgets the batches of all metrics.
tw_status* ResetMetrics(tw_trainer& t);
// The loss, given as a sum over rows, and the metrics.
tw_status* ReadValues(tw_trainer& t, double loss, double rows, std::vector<double>* out);
// As tw_trainer_evaluate, with the weights as they are.
tw_status* Evaluate(tw_trainer& t, const char* function, tw_iterator* data, tw_cancel_token* cancel, std::vector<double>* out);
// Fails unless the iterator's batches fit the model. exact: of n tensors; else of at least n.
tw_status* CheckData(const char* function, const tw_iterator* data, uint32_t n, bool exact);
// Starts epoch 0, if the iterator can be reset.
tw_status* Rewind(tw_iterator* data);
// A scalar that was fetched as double.
inline double Number(const OwnedTensor& t) { return *static_cast<const double*>(tw_tensor_data(t.get())); }

}  // namespace thalweg::library
