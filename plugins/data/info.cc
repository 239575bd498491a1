// Facts about datasets, and the handle that shuffles take and do not need.
#include "kernel.h"
#include "register.h"

namespace thalweg::data {
namespace {

void Cardinality(tw::Frame f, tw::In<tw::Any> dataset, tw::Out<int64_t> cardinality) {
  cardinality[0] = DatasetOf(f.f, dataset.v)->Cardinality();
}

// DummySeedGenerator: a handle of a resource without a meaning.
constexpr char kDummy[] = "org.thalweg.dataset_option";

void Dummy(tw::Frame f) {
  const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kDummy), nullptr, 0, nullptr, 0};
  tw::check(f.f->host->resource->open(f.f, &key, nullptr, nullptr, 0));
}

}  // namespace

void register_dataset_info(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kDummy), 1, nullptr, [](const tw_host*, void*) {}, nullptr, nullptr});
  p.kernel<Cardinality>("DatasetCardinality @CPU");
  p.kernel<Dummy>("DummySeedGenerator(-> resource) @CPU");
}

}  // namespace thalweg::data
