// The hash tables: creation, and finding, inserting, removing, counting and exporting keys. The
// host lets many calls read a table at once, or one call change it.
#include <algorithm>
#include <memory>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/lookup_table.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

LookupTable& Table(const Var<Any>& v) { return *static_cast<LookupTable*>(v.handle()); }

const LookupTable& Initialized(const Var<Any>& v) {
  const LookupTable& table = Table(v);
  if (table.about().initializable && !table.initialized)
    throw tw::Error{TW_FAILED_PRECONDITION, "the table is not initialised; run its initializer first"};
  return table;
}

// Returns a table that may be changed at any time; throws UNIMPLEMENTED for others.
LookupTable& Mutable(const Var<Any>& v, const char* what) {
  LookupTable& table = Table(v);
  if (table.about().initializable)
    throw tw::Error{TW_UNIMPLEMENTED,
                    "a " + table.about().kind + " is filled once, by its initializer: it takes no " + what + "; use a MutableHashTableV2"};
  return table;
}

// Makes the table when the first step asks for its handle. The types come from the node; the key
// shape may come from inputs.
class MakeTable {
 public:
  explicit MakeTable(const tw::Node& n) : container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) {
    about_.kind = std::string(n.node->op, n.node->op_len);
    about_.key_dtype = n.type("key_dtype");
    about_.value_dtype = n.type("value_dtype");
    for (const uint32_t dtype : {about_.key_dtype, about_.value_dtype})
      if (dtype != TW_STRING && ElementBytes(dtype) == 0) Invalid("a table of " + TypeText(dtype) + " cannot be made");
    if (n.find("value_shape")) {
      const tw_shape& s = n.shape("value_shape");
      if (s.rank < 0 || std::find_if(s.dims, s.dims + s.rank, [](int64_t d) { return d < 0; }) != s.dims + s.rank)
        Invalid("value_shape is " + tw::text(s) + ", but must be known");
      about_.value_shape.assign(s.dims, s.dims + s.rank);
    }
    about_.initializable = about_.kind == "HashTableV2";
  }

 protected:
  void Open(const tw_frame* f, LookupTable::About about) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kLookupTable), container_.data(),
                                 container_.size(),         name_.data(),       name_.size()};
    const auto make = [](const tw_host* h, void* arg, void** out) {
      return tw::guard(h, [&] { *out = new LookupTable(*static_cast<LookupTable::About*>(arg)); });
    };
    tw::check(f->host->resource->open(f, &key, make, &about, 0));
  }
  LookupTable::About about_;

 private:
  std::string container_, name_;
};

struct PlainTable : MakeTable {
  using MakeTable::MakeTable;
  void operator()(Frame f) const { Open(f.f, about_); }
};

// Keys of any shape. Two keys are reserved: they mark empty and deleted entries, and cannot be
// used.
struct DenseTable : MakeTable {
  explicit DenseTable(const tw::Node& n) : MakeTable(n) {
    const int64_t buckets = n.i("initial_num_buckets");
    const double load = n.f("max_load_factor");
    if (buckets < 1 || (buckets & (buckets - 1)) != 0)
      Invalid("initial_num_buckets is " + std::to_string(buckets) + ", but must be a power of two");
    if (!(load > 0 && load < 1)) Invalid("max_load_factor is " + std::to_string(load) + ", but must be between 0 and 1");
  }
  void operator()(Frame f, In<Any> empty, In<Any> deleted) const {
    if (!SameDims(empty.v, deleted.v))
      Invalid("empty_key is " + DimsText(empty.v) + ", but deleted_key is " + DimsText(deleted.v) + ": their shapes must be the same");
    LookupTable::About about = about_;
    about.key_shape.assign(empty.dims(), empty.dims() + empty.rank());
    const LookupTable keys(about);
    std::string scratch;
    about.reserved = {std::string(keys.Key(empty.v, 0, &scratch))};
    about.reserved.emplace_back(keys.Key(deleted.v, 0, &scratch));
    if (about.reserved[0] == about.reserved[1]) Invalid("empty_key and deleted_key are equal");
    Open(f.f, std::move(about));
  }
};

// Calls visit(k, key, hash) for keys [begin, end). Takes several keys at a time, so that the slots
// of all of them are prefetched at once.
template <class Visit>
void EachKey(const LookupTable& table, const tw_view* keys, int64_t begin, int64_t end, const Visit& visit) {
  constexpr int64_t kTogether = 16;
  std::string scratch[kTogether];
  std::string_view key[kTogether];
  uint64_t hash[kTogether];
  for (int64_t k = begin; k < end; k += kTogether) {
    const int64_t n = std::min(kTogether, end - k);
    for (int64_t i = 0; i < n; ++i) {
      key[i] = table.Key(keys, uint64_t(k + i), &scratch[i]);
      hash[i] = LookupTable::Hash(key[i]);
      table.Prefetch(hash[i]);
    }
    for (int64_t i = 0; i < n; ++i) visit(k + i, key[i], hash[i]);
  }
}

void Find(Frame f, Var<Any> handle, In<Any> keys, In<Any> fallback, Out<Any> out) {
  const LookupTable& table = Initialized(handle);
  const uint64_t n = table.CountKeys(keys.v);
  const auto& shape = table.about().value_shape;
  if (fallback.v->dtype != table.about().value_dtype)
    Invalid("default_value is " + TypeText(fallback.v->dtype) + ", the values of the table are " + TypeText(table.about().value_dtype));
  std::vector<int64_t> dims(keys.dims(), keys.dims() + keys.rank() - int64_t(table.about().key_shape.size()));
  dims.insert(dims.end(), shape.begin(), shape.end());
  const std::vector<int64_t> given(fallback.dims(), fallback.dims() + fallback.rank());
  const bool one = given == shape;
  if (!one && given != dims)
    Invalid("default_value is " + DimsText(fallback.v) + ", but must be " + tw::text(shape.data(), int32_t(shape.size())) + " or " +
            tw::text(dims.data(), int32_t(dims.size())));
  Allocate(out, dims.data(), int(dims.size()));
  const int64_t size = int64_t(table.values().per_row());
  const auto look = [&](int64_t begin, int64_t end) {
    EachKey(table, keys.v, begin, end, [&](int64_t k, std::string_view key, uint64_t hash) {
      const int64_t at = table.Find(key, hash);
      if (at >= 0)
        table.values().Get(f.f, size_t(at), out.v(), uint64_t(k));
      else if (size > 0)
        CopyRun(f.f, fallback.v, one ? 0 : k * size, out.v(), k * size, size);
    });
  };
  constexpr int64_t kCost = 100;  // a look-up waits for memory
  ParallelFor(f.f, int64_t(n), kCost, look);
}

// If memory runs out, the keys before that point have been inserted.
void InsertAll(tw::Payer payer, LookupTable* table, const tw_view* keys, const tw_view* values, uint64_t n) {
  constexpr uint64_t kTogether = 1024;
  std::string scratch;
  for (uint64_t k = 0; k < n; ++k) (void)table->Key(keys, k, &scratch);  // a reserved key fails the call before anything is inserted
  for (uint64_t begin = 0, end; begin < n; begin = end) {
    end = std::min(begin + kTogether, n);
    table->Reserve(payer, end - begin, LookupTable::TextHeap(keys, values, n, begin, end));
    EachKey(*table, keys, int64_t(begin), int64_t(end),
            [&](int64_t k, std::string_view key, uint64_t hash) { table->Insert(key, hash, values, uint64_t(k)); });
  }
  table->Settle(payer);
}

void Insert(Frame f, Var<Any> handle, In<Any> keys, In<Any> values) {
  LookupTable& table = Mutable(handle, "keys");
  const uint64_t n = table.CountKeys(keys.v);
  table.WantValues(keys.v, values.v);
  InsertAll(f, &table, keys.v, values.v, n);
}

// For a table that is filled once, this acts as its initializer, because TensorFlow restores such
// tables this way.
void Import(Frame f, Var<Any> handle, In<Any> keys, In<Any> values) {
  LookupTable& table = Table(handle);
  if (table.about().initializable) return InitializeTable(f, &table, keys.v, values.v);
  const uint64_t n = table.CountKeys(keys.v);
  table.WantValues(keys.v, values.v);
  std::string scratch;
  for (uint64_t k = 0; k < n; ++k) (void)table.Key(keys.v, k, &scratch);
  table.Clear();
  InsertAll(f, &table, keys.v, values.v, n);
}

void Remove(Frame f, Var<Any> handle, In<Any> keys) {
  LookupTable& table = Mutable(handle, "removals");
  const uint64_t n = table.CountKeys(keys.v);
  std::string scratch;
  for (uint64_t k = 0; k < n; ++k) (void)table.Key(keys.v, k, &scratch);
  for (uint64_t k = 0; k < n; ++k) table.Remove(table.Key(keys.v, k, &scratch));
  table.Settle(f);
}

void Size(Var<Any> handle, Out<int64_t> size) { size[0] = int64_t(Initialized(handle).size()); }

void Export(Frame f, Var<Any> handle, Out<Any> keys, Out<Any> values) {
  const LookupTable& table = Initialized(handle);
  const auto& about = table.about();
  if (f.f->out[0]->dtype != about.key_dtype || f.f->out[1]->dtype != about.value_dtype)
    Invalid("the table holds " + TypeText(about.key_dtype) + " and " + TypeText(about.value_dtype) + ", not " +
            TypeText(f.f->out[0]->dtype) + " and " + TypeText(f.f->out[1]->dtype));
  const auto rows = [&](const std::vector<int64_t>& shape) {
    std::vector<int64_t> dims{int64_t(table.size())};
    dims.insert(dims.end(), shape.begin(), shape.end());
    return dims;
  };
  const auto key_dims = rows(about.key_shape), value_dims = rows(about.value_shape);
  Allocate(keys, key_dims.data(), int(key_dims.size()));
  Allocate(values, value_dims.data(), int(value_dims.size()));
  table.GetAll(f.f, keys.v(), values.v());
}

}  // namespace

void InitializeTable(tw::Payer payer, LookupTable* table, const tw_view* keys, const tw_view* values) {
  if (!table->about().initializable)
    throw tw::Error{TW_UNIMPLEMENTED, "a " + table->about().kind + " has no initializer; use LookupTableInsertV2"};
  const uint64_t n = table->CountKeys(keys);
  table->WantValues(keys, values);
  auto filled = std::make_unique<LookupTable>(table->about());
  std::string scratch;
  for (uint64_t k = 0; k < n; ++k) {
    const std::string_view key = filled->Key(keys, k, &scratch);
    const uint64_t hash = LookupTable::Hash(key);
    const int64_t at = filled->Find(key, hash);
    if (at >= 0 && !filled->values().Equal(size_t(at), values, k))
      Invalid("key number " + std::to_string(k) + " was there before, with another value");
    if (at >= 0) continue;
    filled->Reserve(payer, 1, LookupTable::TextHeap(keys, values, n, k, k + 1));
    filled->Insert(key, hash, values, k);
  }
  filled->Settle(payer);
  if (!table->initialized) {
    *table = std::move(*filled);
    table->initialized = true;
    return;
  }
  bool same = filled->size() == table->size();
  for (uint64_t k = 0; same && k < n; ++k) {
    const int64_t at = table->Find(table->Key(keys, k, &scratch));
    same = at >= 0 && table->values().Equal(size_t(at), values, k);
  }
  if (!same) throw tw::Error{TW_FAILED_PRECONDITION, "the table was initialised before, with other contents"};
}

namespace {

void Initialize(Frame f, Var<Any> handle, In<Any> keys, In<Any> values) {
  if (keys.rank() != 1) Invalid("keys must be a vector, but is " + DimsText(keys.v));
  InitializeTable(f, &Table(handle), keys.v, values.v);
}

}  // namespace

void register_lookup(tw::Plugin& p) {
  for (const char* op : {"HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2"})
    p.kernel<PlainTable>(std::string(op) + " @CPU; cheap");
  p.kernel<DenseTable>("MutableDenseHashTableV2 @CPU; cheap");
  p.kernel<Find>("LookupTableFindV2 @CPU; read table_handle");
  p.kernel<Insert>("LookupTableInsertV2 @CPU; update table_handle");
  p.kernel<Import>("LookupTableImportV2 @CPU; update table_handle");
  p.kernel<Remove>("LookupTableRemoveV2 @CPU; update table_handle");
  p.kernel<Size>("LookupTableSizeV2 @CPU; cheap; read table_handle");
  p.kernel<Export>("LookupTableExportV2 @CPU; read table_handle");
  p.kernel<Initialize>("InitializeTableV2 @CPU; update table_handle");
}

}  // namespace thalweg::cpu
