#include "ops.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace thalweg::tf {
namespace {

using OpsRef = Owner<tw_ops, tw_ops_destroy>;

// Messages are made when an op is first asked for. A message stays where it is until the process ends.
struct Ops {
  std::mutex mu;  // guards all that follows
  OpsRef list;
  std::unordered_map<std::string, uint32_t> index;
  std::unordered_map<std::string, const proto::OpDef*> made;
  std::deque<proto::OpDef> defs;

  void Load() {
    if (list) return;
    tw_ops* ops = nullptr;
    Check(tw_ops_create(nullptr, &ops));
    list.reset(ops);
    for (uint32_t i = 0; i < tw_ops_count(ops); ++i) index[tw_ops_name(ops, i)] = i;
  }
  const proto::OpDef* Make(const std::string& name, uint32_t i) {
    const proto::OpDef*& known = made[name];
    if (known) return known;
    tw_buffer* bytes = nullptr;
    Check(tw_ops_message(list.get(), i, &bytes));
    const BufferRef owner(bytes);
    proto::OpDef def;
    Parse(tw_buffer_data(bytes), tw_buffer_bytes(bytes), "OpDef", &def);
    defs.push_back(std::move(def));
    return known = &defs.back();
  }
};

Ops& All() {
  static Ops* const ops = new Ops;  // outlives all graphs
  return *ops;
}

}  // namespace

const proto::OpDef* FindOp(std::string_view name) {
  Ops& ops = All();
  const std::lock_guard lock(ops.mu);
  ops.Load();
  const auto at = ops.index.find(std::string(name));
  return at == ops.index.end() ? nullptr : ops.Make(at->first, at->second);
}

const proto::OpDef& NeedOp(std::string_view name) {
  if (const proto::OpDef* op = FindOp(name)) return *op;
  Fail(TF_NOT_FOUND, "Op type not registered '", name, "' in binary running Thalweg: no loaded plugin defines it");
}

const proto::OpDef::AttrDef* FindAttr(const proto::OpDef& op, std::string_view name) {
  for (const proto::OpDef::AttrDef& a : op.attr()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}

proto::OpList AllOps() {
  Ops& ops = All();
  const std::lock_guard lock(ops.mu);
  ops.Load();
  proto::OpList list;
  for (uint32_t i = 0; i < tw_ops_count(ops.list.get()); ++i) *list.add_op() = *ops.Make(tw_ops_name(ops.list.get(), i), i);
  return list;
}

void OpsChanged() {
  Ops& ops = All();
  const std::lock_guard lock(ops.mu);
  ops.list.reset();
  ops.index.clear();
}

}  // namespace thalweg::tf
