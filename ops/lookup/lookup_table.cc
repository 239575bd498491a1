// Hash tables: ops that create handles, and ops on keys. The handle of a table with scalar keys
// carries the type and shape of a value.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Table(const tw::Shape& s) {
  const tw_shape scalar{nullptr, 0, 0};
  s.set_handle(0, s.type("value_dtype"), s.find("value_shape") ? s.shape("value_shape") : scalar);
}

void DenseTable(const tw::Shape& s) {
  Merge(s, In(s, 0), In(s, 1), "the shapes of 'empty_key' and 'deleted_key'");
  if (s.known(0) && s.rank(0) == 0) Table(s);
}

// The shape of the values for the keys at input 1, as far as the handle carries it.
MaybeDims Values(const tw::Shape& s) {
  uint32_t dtype = 0;
  tw_shape value{};
  s.handle(0, &dtype, &value);
  const MaybeDims keys = In(s, 1), each = ToDims(value);
  return dtype && keys && each ? MaybeDims(Join(*keys, *each)) : std::nullopt;
}

void Find(const tw::Shape& s) { Set(s, 0, Values(s)); }
void Insert(const tw::Shape& s) { Merge(s, Values(s), In(s, 2), "the shape of 'values' and the one that the keys and the table ask for"); }

void Export(const tw::Shape& s) {
  uint32_t dtype = 0;
  tw_shape value{};
  s.handle(0, &dtype, &value);
  if (!dtype) return;
  Set(s, 0, Dims{-1});
  if (const MaybeDims each = ToDims(value)) Set(s, 1, Join({-1}, *each));
}

void Initialize(const tw::Shape& s) {
  WantVector(s, 1, "keys");
  Merge(s, In(s, 1), In(s, 2), "the shapes of 'keys' and 'values'");
}

}  // namespace

void register_lookup_table(tw::Plugin& p) {
#define NAMED \
  "container: string = \"\"; shared_name: string = \"\"; use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; "
#define TABLE "stateful; resource table_handle org.thalweg.lookup_table; no_gradient "
  for (const char* op : {"HashTableV2", "MutableHashTableV2"})
    p.op<nullptr, Table>(
        std::string(op) + "() -> (table_handle: resource[]); " NAMED "once; " TABLE "\"it has no inputs\"; doc \"" +
        (op[0] == 'H' ? "a table that is filled once, by its initializer" : "a table of scalars, by keys that are scalars") + "\"");
  p.op<nullptr, Table>("MutableHashTableOfTensorsV2() -> (table_handle: resource[]); " NAMED "value_shape: shape = []; once; " TABLE
                       "\"it has no inputs\"; doc \"a table of tensors of one shape, by keys that are scalars\"");
  p.op<nullptr, DenseTable>("MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) -> (table_handle: resource[]); " NAMED
                            "value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = 0.8; " TABLE
                            "\"keys have no derivative\"; doc \"a table of tensors of one shape, by keys of one shape\"");
  p.op<nullptr, Find>(
      "LookupTableFindV2(table_handle: resource[], keys: Tin, default_value: Tout) -> (values: Tout); Tin: type; Tout: type; " TABLE
      "\"what a table holds has no derivative\"; doc \"the values of keys, or another where there is none\"");
  p.op<nullptr, Insert>("LookupTableInsertV2(table_handle: resource[], keys: Tin, values: Tout) -> (); Tin: type; Tout: type; " TABLE
                        "\"it has no outputs\"; doc \"gives keys their values\"");
  p.op("LookupTableRemoveV2(table_handle: resource[], keys: Tin) -> (); Tin: type; " TABLE
       "\"it has no outputs\"; doc \"takes keys out of a table\"");
  p.op("LookupTableSizeV2(table_handle: resource[]) -> (size: int64[]); " TABLE
       "\"a number of keys has no derivative\"; doc \"how many keys there are\"");
  p.op<nullptr, Export>(
      "LookupTableExportV2(table_handle: resource[]) -> (keys: Tkeys, values: Tvalues); Tkeys: type; Tvalues: type; " TABLE
      "\"what a table holds has no derivative\"; doc \"all keys and their values\"");
  p.op<nullptr, Insert>("LookupTableImportV2(table_handle: resource[], keys: Tin, values: Tout) -> (); Tin: type; Tout: type; " TABLE
                        "\"it has no outputs\"; doc \"a table that holds these keys and no others\"");
  p.op<nullptr, Initialize>("InitializeTableV2(table_handle: resource[], keys: Tkey, values: Tval) -> (); Tkey: type; Tval: type; " TABLE
                            "\"it has no outputs\"; doc \"fills a table\"");
  p.op(
      "InitializeTableFromTextFileV2(table_handle: resource[], filename: string[]) -> (); key_index: int >= -2; value_index: int >= -2; "
      "vocab_size: int >= -1 = -1; delimiter: string = \"\\t\"; offset: int = 0; touches files; " TABLE
      "\"it has no outputs\"; doc \"fills a table from the lines of a file\"");
#undef NAMED
#undef TABLE
}

}  // namespace thalweg::ops
