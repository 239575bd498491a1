// Iterators: positions in datasets, which steps move.
#include "ops/data/dataset.h"
#include "ops/functional/outputs.h"

namespace thalweg::ops {

void register_iterator(tw::Plugin& p) {
  const std::string of = "resource iterator org.thalweg.iterator; ", none = "no_gradient \"it has no outputs\"; ";
  p.op("IteratorV2() -> (handle: resource[]); shared_name: string; container: string; " + kElements +
       "stateful; once; resource handle org.thalweg.iterator; no_gradient \"it has no inputs\"; doc \"the iterator of that name\"");
  p.op("AnonymousIteratorV3() -> (handle: resource[]); " + kElements +
       "stateful; no_gradient \"it has no inputs\"; doc \"a new iterator, which ends with its last handle\"");
  p.op("MakeIterator(dataset: variant, iterator: resource) -> (); stateful; " + of + none +
       "doc \"moves an iterator to the first element of a dataset, or to the position that was restored\"");
  p.op("MakeEpochIterator(dataset: variant, iterator: resource, epoch: int64[]) -> (); stateful; " + of + none +
       "doc \"MakeIterator for the pass of that number, on which shuffles depend\"");
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"}) {
    p.op<nullptr, StatedShapes>(
        std::string(name) + "(iterator: resource) -> (components: output_types); " + kElements + "stateful; " + of +
        "no_gradient \"an element is no function of its iterator\"; doc \"the next element, or OUT_OF_RANGE at the end\"");
  }
  p.op("DatasetCardinality(input_dataset: variant) -> (cardinality: int64[]); cardinality_options: string = \"\"; " + kNoDataGradient +
       "doc \"the number of elements; -1: without end, -2: unknown\"");
  p.op(
      "DummyMemoryCache() -> (handle: resource[]); stateful; once; resource handle org.thalweg.dataset_cache; no_gradient \"it has no "
      "inputs\"; doc \"the memory of a CacheDatasetV2\"");
  p.op(
      "DummySeedGenerator() -> (handle: resource[]); stateful; no_gradient \"it has no inputs\"; doc \"a handle for ShuffleDatasetV3, "
      "which it does not use\"");
}

}  // namespace thalweg::ops
