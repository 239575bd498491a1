// Sharded tables, for builders.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/library/task.h"
#include "thalweg/sharded.h"

namespace thalweg::library {

class Table {
 public:
  // Fails the scope for an invalid record; the message names the function and, by `what`, the
  // argument.
  Table(tw_scope* scope, const std::string& function, const char* what, const tw_sharded* given);

  size_t n() const { return shards_.size(); }
  int64_t rows() const { return rows_; }
  uint32_t dtype() const { return infos_[0].dtype; }
  const std::vector<int64_t>& dims() const { return infos_[0].dims; }  // of a shard
  uint32_t partition() const { return partition_; }
  int64_t rows(size_t k) const { return infos_[k].dims[0]; }
  const std::string& task(size_t k) const { return tasks_[k]; }
  tw_output shard(size_t k) const { return shards_[k]; }

  // For row numbers, an int64 vector: the shard of each (int32), and its row in that shard.
  struct Places {
    tw_output shard, row;
  };
  Places Find(tw_scope* scope, tw_output ids) const;
  // Returns the rows.
  tw_output Lookup(tw_scope* scope, tw_output ids) const;

 private:
  void Check(tw_scope* scope, const std::string& who);
  std::vector<tw_output> shards_;
  std::vector<VariableInfo> infos_;
  std::vector<std::string> tasks_;
  uint32_t partition_ = TW_SHARDED_MOD;
  int64_t rows_ = 0;
};

}  // namespace thalweg::library
