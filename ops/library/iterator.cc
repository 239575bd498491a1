// The calls of iterators, which check the record and what its functions return.
#include "thalweg/iterator.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "ops/library/iterator.h"

using namespace thalweg::library;

namespace thalweg::library {

tw_status* CheckIterator(const char* function, const tw_iterator* iterator) {
  const auto refuse = [&](const std::string& text) { return Refusal(function, text); };
  if (!iterator) return refuse("iterator is NULL");
  if (iterator->size < sizeof(tw_iterator) || iterator->flags != 0) {
    return refuse("set the size of the iterator to sizeof(tw_iterator) and its flags to 0 (they are " + std::to_string(iterator->size) +
                  " and " + std::to_string(iterator->flags) + ")");
  }
  if (!iterator->next) return refuse("the iterator has no function next");
  if (iterator->n_tensors < 1) return refuse("n_tensors of the iterator is 0; a batch has at least one tensor");
  if (!iterator->save != !iterator->restore) return refuse("the iterator has one of save and restore; it must have both or none");
  return nullptr;
}

}  // namespace thalweg::library

tw_status* tw_iterator_next(tw_iterator* iterator, tw_tensor** out_tensors, uint32_t* out_end) {
  if (out_end) *out_end = 0;
  if (tw_status* refused = CheckIterator("tw_iterator_next", iterator)) return refused;
  if (!out_tensors || !out_end) return Refusal("tw_iterator_next", "out_tensors or out_end is NULL");
  const uint32_t n = iterator->n_tensors;
  std::fill_n(out_tensors, n, nullptr);
  uint32_t end = 0;
  tw_status* failed = iterator->next(iterator->user, out_tensors, &end);
  const auto given = size_t(std::count_if(out_tensors, out_tensors + n, [](const tw_tensor* t) { return t != nullptr; }));
  const size_t wanted = failed || end ? 0 : n;
  if (given == wanted) {
    *out_end = !failed && end;
    return failed;
  }
  std::for_each(out_tensors, out_tensors + n, tw_tensor_release);
  std::fill_n(out_tensors, n, nullptr);
  if (failed) return failed;
  const std::string text =
      "tw_iterator_next: the iterator gave " + std::to_string(given) + " tensors of " + std::to_string(n) + (end ? " at the end" : "");
  return tw_status_create(TW_INTERNAL, (text + "; its function next must give all of a batch, and none at the end").c_str());
}

tw_status* tw_iterator_reset(tw_iterator* iterator, int64_t epoch) {
  if (tw_status* refused = CheckIterator("tw_iterator_reset", iterator)) return refused;
  if (epoch < 0) return Refusal("tw_iterator_reset", "epoch is " + std::to_string(epoch) + "; epochs are counted from 0");
  if (iterator->reset) return iterator->reset(iterator->user, epoch);
  return tw_status_create(TW_UNIMPLEMENTED, ("tw_iterator_reset: the iterator cannot start epoch " + std::to_string(epoch) +
                                             ": it has no function reset, so its data can be read once only")
                                                .c_str());
}

tw_status* tw_iterator_save(tw_iterator* iterator, tw_buffer** out_position) {
  if (out_position) *out_position = nullptr;
  if (tw_status* refused = CheckIterator("tw_iterator_save", iterator)) return refused;
  if (!out_position) return Refusal("tw_iterator_save", "out_position is NULL");
  if (iterator->save) return iterator->save(iterator->user, out_position);
  return tw_status_create(TW_UNIMPLEMENTED, "tw_iterator_save: the iterator has no function save; count its batches instead");
}

tw_status* tw_iterator_restore(tw_iterator* iterator, const void* position, uint64_t bytes) {
  if (tw_status* refused = CheckIterator("tw_iterator_restore", iterator)) return refused;
  if (!position && bytes > 0) return Refusal("tw_iterator_restore", "position is NULL");
  if (iterator->restore) return iterator->restore(iterator->user, position, bytes);
  return tw_status_create(TW_UNIMPLEMENTED,
                          "tw_iterator_restore: the iterator has no function restore; reset it and pass over the batches instead");
}

void tw_iterator_destroy(tw_iterator* iterator) {
  if (iterator && iterator->size >= offsetof(tw_iterator, destroy) + sizeof(iterator->destroy) && iterator->destroy)
    iterator->destroy(iterator->user);
}
