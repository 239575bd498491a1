#include "ops/library/saver_tables.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "ops/library/signature.h"
#include "ops/library/table.h"
#include "thalweg/checkpoint.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

namespace thalweg::library {
namespace {

struct Close {
  void operator()(tw_checkpoint* c) const { tw_checkpoint_close(c); }
};
using Checkpoint = std::unique_ptr<tw_checkpoint, Close>;

std::string PartName(const std::string& table, size_t k) { return table + "/part_" + std::to_string(k); }

tw_status* Open(const char* prefix, Checkpoint* out) {
  tw_checkpoint* opened = nullptr;
  tw_status* failed = tw_checkpoint_open(prefix, &opened);
  out->reset(opened);
  return failed;
}

bool Has(const tw_checkpoint* c, const std::string& name) {
  tw_status* missing = tw_checkpoint_describe(c, name.c_str(), nullptr, nullptr, nullptr);
  tw_status_release(missing);
  return !missing;
}

size_t ShardsIn(const tw_checkpoint* c, const std::string& table) {
  size_t n = 0;
  while (Has(c, PartName(table, n))) ++n;
  return n;
}

// ---- Rows ----

// Maps row `row` of shard k of n to the row of the table, and back.
struct Rows {
  int64_t all;
  uint32_t n, partition;
  int64_t First(int64_t k) const { return k * (all / n) + std::min<int64_t>(k, all % n); }
  int64_t Id(int64_t k, int64_t row) const { return partition == TW_SHARDED_MOD ? row * n + k : First(k) + row; }
  int64_t Shard(int64_t id) const {
    if (partition == TW_SHARDED_MOD) return id % n;
    const int64_t each = all / n, edge = (all % n) * (each + 1);
    return id < edge ? id / (each + 1) : all % n + (id - edge) / each;
  }
  int64_t Row(int64_t id) const { return partition == TW_SHARDED_MOD ? id / n : id - First(Shard(id)); }
};

tw_status* Refuse(uint32_t code, const std::string& text) { return tw_status_create(code, text.c_str()); }

std::string Title(const char* prefix, const std::string& table) {
  return "checkpoint '" + std::string(prefix) + "': table '" + table + "' ";
}

// A table in its saved shards.
struct Saved {
  std::vector<OwnedTensor> parts;
  Rows rows{};
  uint64_t row_bytes = 0;
};

tw_status* ReadTable(tw_checkpoint* c, const char* prefix, const SaverTable& table, const tw_saver& saver, Saved* out) {
  const VariableInfo& info = saver.infos[table.members[0]];
  const std::vector<int64_t> width(info.dims.begin() + 1, info.dims.end());
  const size_t n = ShardsIn(c, table.name);
  if (n == 0) return Refuse(TW_NOT_FOUND, Title(prefix, table.name) + "is not there; there is no tensor '" + PartName(table.name, 0) + "'");
  for (size_t k = 0; k < n; ++k) {
    tw_tensor* t = nullptr;
    if (tw_status* failed = tw_checkpoint_read(c, PartName(table.name, k).c_str(), &t)) return failed;
    out->parts.emplace_back(t);
    const int64_t* dims = tw_tensor_dims(t);
    const auto rank = size_t(tw_tensor_rank(t));
    const bool fits = tw_tensor_dtype(t) == info.dtype && rank == width.size() + 1 && std::equal(width.begin(), width.end(), dims + 1);
    if (!fits) return Refuse(TW_INVALID_ARGUMENT, Title(prefix, table.name) + "has rows of another type or shape than the variables");
    out->rows.all += dims[0];
  }
  out->rows.n = uint32_t(n);
  out->rows.partition = table.partition;
  for (size_t k = 0; k < n; ++k) {
    const int64_t rows = tw_tensor_dims(out->parts[k].get())[0];
    if (rows != tw_sharded_rows(out->rows.all, uint32_t(n), uint32_t(k)))
      return Refuse(TW_INVALID_ARGUMENT, Title(prefix, table.name) + "is in shards that make no table");
    if (rows > 0) out->row_bytes = tw_tensor_bytes(out->parts[k].get()) / uint64_t(rows);
  }
  return nullptr;
}

// Builds shard k of the table for the current number of shards.
tw_status* Arrange(const Saved& saved, const Rows& now, size_t k, const VariableInfo& info, OwnedTensor* out) {
  tw_tensor* made = nullptr;
  if (tw_status* failed = tw_tensor_create(info.dtype, info.dims.data(), uint32_t(info.dims.size()), &made)) return failed;
  out->reset(made);
  auto* to = static_cast<char*>(tw_tensor_mutable_data(made));
  for (int64_t row = 0; row < info.dims[0]; ++row) {
    const int64_t id = now.Id(int64_t(k), row);
    const auto* from = static_cast<const char*>(tw_tensor_data(saved.parts[size_t(saved.rows.Shard(id))].get()));
    std::memcpy(to + uint64_t(row) * saved.row_bytes, from + uint64_t(saved.rows.Row(id)) * saved.row_bytes, saved.row_bytes);
  }
  return nullptr;
}

tw_status* ArrangeTable(tw_checkpoint* c, const char* prefix, const SaverTable& table, const tw_saver& saver,
                        std::vector<OwnedTensor>* values) {
  const size_t shards = ShardsIn(c, table.name);
  if (saver.infos[table.members[0]].dtype == TW_STRING && shards != table.members.size()) {
    return Refuse(TW_UNIMPLEMENTED, Title(prefix, table.name) + "holds strings in " + std::to_string(shards) +
                                        " shards, but the graph has " + std::to_string(table.members.size()) +
                                        "; restore it into as many shards as it was saved from");
  }
  Saved saved;
  if (tw_status* failed = ReadTable(c, prefix, table, saver, &saved)) return failed;
  Rows now{0, uint32_t(table.members.size()), table.partition};
  for (const size_t i : table.members) now.all += saver.infos[i].dims[0];
  if (now.all != saved.rows.all) {
    return Refuse(TW_INVALID_ARGUMENT, Title(prefix, table.name) + "has " + std::to_string(saved.rows.all) + " rows in the file, but " +
                                           std::to_string(now.all) + " in the graph");
  }
  for (size_t k = 0; k < table.members.size(); ++k) {
    const size_t i = table.members[k];
    if (tw_status* failed = Arrange(saved, now, k, saver.infos[i], &(*values)[i])) return failed;
  }
  return nullptr;
}

// Reads a variable that is in no table.
tw_status* ReadPlain(tw_checkpoint* c, const char* prefix, const VariableInfo& info, const std::string& name, OwnedTensor* out) {
  tw_tensor* t = nullptr;
  if (tw_status* failed = tw_checkpoint_read(c, name.c_str(), &t)) return failed;
  out->reset(t);
  if (!info.resource.empty()) return nullptr;
  const auto rank = size_t(tw_tensor_rank(t));
  bool fits = tw_tensor_dtype(t) == info.dtype && (!info.known_rank || rank == info.dims.size());
  for (size_t i = 0; fits && i < info.dims.size(); ++i) fits = info.dims[i] < 0 || info.dims[i] == tw_tensor_dims(t)[i];
  if (fits) return nullptr;
  return Refuse(TW_INVALID_ARGUMENT, "checkpoint '" + std::string(prefix) + "': tensor '" + name +
                                         "' is of another type or shape than variable '" + info.name + "'");
}

}  // namespace

void NameTables(tw_scope* scope, const tw_saver_options* options, tw_saver* saver) {
  if (!options || options->size < sizeof(*options) || options->n_tables == 0) return;
  constexpr char kWho[] = "tw_saver_options: table ";
  if (!options->tables || !options->table_names) return Fail(scope, TW_INVALID_ARGUMENT, "tw_saver_options: tables or table_names is NULL");
  std::vector<uint8_t> taken(saver->handles.size());
  for (uint32_t i = 0; i < options->n_tables && Good(scope); ++i) {
    const char* name = options->table_names[i];
    if (!name || !*name) return Fail(scope, TW_INVALID_ARGUMENT, kWho + std::to_string(i) + " has no name");
    const Table table(scope, "tw_saver_create", name, &options->tables[i]);
    if (!Good(scope)) return;
    SaverTable entry{name, table.partition(), {}};
    for (size_t k = 0; k < table.n(); ++k) {
      const size_t at = size_t(std::find(saver->handles.begin(), saver->handles.end(), table.shard(k)) - saver->handles.begin());
      if (at == saver->handles.size() || taken[at]) {
        return Fail(
            scope, TW_INVALID_ARGUMENT,
            kWho + ("'" + std::string(name)) + "': shard " + std::to_string(k) + " is not among the variables, or is in two tables");
      }
      taken[at] = 1;
      entry.members.push_back(at);
      saver->names[at] = PartName(name, k);
    }
    saver->tables.push_back(std::move(entry));
  }
}

tw_status* FindOtherTables(const tw_saver& saver, const char* prefix, bool* other) {
  *other = false;
  if (saver.tables.empty()) return nullptr;
  Checkpoint c;
  if (tw_status* failed = Open(prefix, &c)) return failed;
  for (const SaverTable& table : saver.tables) *other = *other || ShardsIn(c.get(), table.name) != table.members.size();
  return nullptr;
}

tw_status* RestoreTables(tw_saver* saver, tw_session* session, const char* prefix) {
  Checkpoint c;
  if (tw_status* failed = Open(prefix, &c)) return failed;
  std::vector<OwnedTensor> values(saver->handles.size());
  for (const SaverTable& table : saver->tables) {
    if (tw_status* failed = ArrangeTable(c.get(), prefix, table, *saver, &values)) return failed;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    if (tw_status* failed = ReadPlain(c.get(), prefix, saver->infos[i], saver->names[i], &values[i])) return failed;
  }
  if (tw_status* failed = AddAssignments(saver)) return failed;
  std::vector<tw_tensor*> fed;
  for (const OwnedTensor& value : values) fed.push_back(value.get());
  const tw_signature what = SignatureOf({saver->feeds.data(), fed.size()}, {}, saver->assignments);
  return tw_session_run(session, &what, fed.data(), nullptr, nullptr);
}

}  // namespace thalweg::library
