// Tally: how often each number was seen, as a resource with three ops. Written from
// plugins/first_op.md, the README of `thalweg new resource` and the public headers alone.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace {

using Counts = std::map<int64_t, int64_t>;

constexpr char kType[] = "org.example.tally.counts";

// ---- The object ----

tw_status* Make(const tw_host* h, void*, void** out_object) {
  return tw::guard(h, [&] { *out_object = new Counts; });
}

void Destroy(const tw_host*, void* object) { delete static_cast<Counts*>(object); }

// Pairs of a number and its count, in the machine's byte order.
tw_status* Save(const tw_host* h, const void* object, tw_sink* to) {
  return tw::guard(h, [&] {
    for (const auto& [number, count] : *static_cast<const Counts*>(object)) {
      const int64_t pair[] = {number, count};
      tw::check(to->put(to, pair, sizeof pair));
    }
  });
}

// Reads until n bytes are there or the source ends, and returns how many are there.
uint64_t Read(tw_source* from, void* to, uint64_t n) {
  uint64_t have = 0, got = 1;
  while (have < n && got > 0) {
    tw::check(from->get(from, static_cast<char*>(to) + have, n - have, &got));
    have += got;
  }
  return have;
}

tw_status* Restore(const tw_host* h, void*, uint64_t, tw_source* from, void** out_object) {
  return tw::guard(h, [&] {
    auto counts = std::make_unique<Counts>();
    int64_t pair[2];
    for (uint64_t n; (n = Read(from, pair, sizeof pair)) != 0;) {
      const bool in_order = counts->empty() || counts->rbegin()->first < pair[0];
      if (n < sizeof pair || pair[1] <= 0 || !in_order) throw tw::Error{TW_DATA_LOSS, "these are no counts of a Tally"};
      counts->emplace_hint(counts->end(), pair[0], pair[1]);
    }
    *out_object = counts.release();
  });
}

// ---- The handle: a kernel of C, since the views of C++ have none for a handle that is made ----

struct Key {
  std::string container, name;
};

std::string TextOf(const tw_node* n, const char* name, uint64_t len) {
  const tw_attr* a = tw_find_attr(n->attrs, n->n_attrs, name, len);
  if (!a || a->kind != TW_ATTR_STRING || a->is_list) throw tw::Error{TW_INTERNAL, "Tally without container or shared_name"};
  const auto* text = static_cast<const tw_string*>(a->data);
  return {text->data, size_t(text->size)};
}

tw_status* CreateOpen(const tw_node* n, void** out_state) {
  return tw::guard(n->host, [&] {
    auto key = std::make_unique<Key>(Key{TextOf(n, TW_S("container")), TextOf(n, TW_S("shared_name"))});
    if (key->name.empty()) key->name.assign(n->name, size_t(n->name_len));
    *out_state = key.release();
  });
}

tw_status* Open(const tw_frame* f) {
  const auto& key = *static_cast<const Key*>(f->state);
  const tw_resource_key k = {TW_SIZED(tw_resource_key), TW_S(kType),     key.container.data(),
                             key.container.size(),      key.name.data(), key.name.size()};
  return f->host->resource->open(f, &k, Make, nullptr, 0);
}

void DestroyOpen(const tw_host*, void* state) { delete static_cast<Key*>(state); }

// ---- Its use ----

void Add(tw::Var<tw::Any> tally, tw::In<int64_t> numbers) {
  auto& counts = *static_cast<Counts*>(tally.handle());
  for (uint64_t i = 0; i < numbers.size(); ++i) ++counts[numbers[i]];
}

void Count(tw::Var<tw::Any> tally, tw::In<int64_t> numbers, tw::Out<int64_t> count) {
  const auto& counts = *static_cast<const Counts*>(tally.handle());
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const auto at = counts.find(numbers[i]);
    count[i] = at == counts.end() ? 0 : at->second;
  }
}

}  // namespace

TW_CPP_PLUGIN("org.example.tally", "1.0", p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, Destroy, Save, Restore});
  p.op(
      "Tally() -> (tally: resource[]); container: string = \"\"; shared_name: string = \"\"; stateful; once;"
      " resource tally org.example.tally.counts; no_gradient \"a handle\"; doc \"a handle to the counts of a name\"");
  p.op(
      "TallyAdd(tally: resource[], numbers: int64[*s]) -> (); stateful; resource tally org.example.tally.counts;"
      " no_gradient \"it counts\"; doc \"counts the numbers\"");
  p.op(
      "TallyCount(tally: resource[], numbers: int64[*s]) -> (count: int64[*s]); stateful; resource tally org.example.tally.counts;"
      " no_gradient \"it counts\"; doc \"how often each number was counted\"");
  const tw_kernel_def open = {TW_SIZED(tw_kernel_def), TW_S("Tally @CPU"), nullptr, CreateOpen, Open, DestroyOpen, nullptr, nullptr};
  tw::check(tw_add_kernel(p.r, &open));
  p.kernel<Add>("TallyAdd @CPU; update tally");
  p.kernel<Count>("TallyCount @CPU; read tally");
}
