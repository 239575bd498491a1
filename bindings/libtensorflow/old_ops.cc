#include "old_ops.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core.h"
#include "ops.h"

namespace thalweg::tf {
namespace {

// A vector of the texts that the inputs are: a Pack, or an empty constant.
proto::NodeDef Vector(const std::string& name, const proto::NodeDef& of, int first, int64_t n) {
  proto::NodeDef node;
  node.set_name(name);
  node.set_device(of.device());
  if (n == 0) {
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(proto::DT_STRING);
    auto* value = (*node.mutable_attr())["value"].mutable_tensor();
    value->set_dtype(proto::DT_STRING);
    value->mutable_tensor_shape()->add_dim()->set_size(0);
    return node;
  }
  node.set_op("Pack");
  (*node.mutable_attr())["T"].set_type(proto::DT_STRING);
  (*node.mutable_attr())["N"].set_i(n);
  (*node.mutable_attr())["axis"].set_i(0);
  for (int i = 0; i < n; ++i) node.add_input(of.input(first + i));
  return node;
}

// The inputs of ParseExample are serialized, names, the keys one by one, and the defaults.
void ReplaceParseExample(const proto::NodeDef& old, proto::GraphDef* to) {
  const auto length = [&](const char* attr) {
    const auto at = old.attr().find(attr);
    return at == old.attr().end() ? int64_t{0} : at->second.i();
  };
  const int64_t sparse = length("Nsparse"), dense = length("Ndense");
  const auto values = static_cast<int64_t>(
      std::count_if(old.input().begin(), old.input().end(), [](const std::string& input) { return input.empty() || input[0] != '^'; }));
  if (sparse < 0 || dense < 0 || sparse > values || dense > values || values != 2 + sparse + 2 * dense) {
    Fail(TF_INVALID_ARGUMENT, "ParseExample '", old.name(), "' has ", std::to_string(values), " inputs, but 'Nsparse' is ",
         std::to_string(sparse), " and 'Ndense' is ", std::to_string(dense));
  }
  *to->add_node() = Vector(old.name() + "/sparse_keys", old, 2, sparse);
  *to->add_node() = Vector(old.name() + "/dense_keys", old, static_cast<int>(2 + sparse), dense);
  *to->add_node() = Vector(old.name() + "/ragged_keys", old, 0, 0);
  proto::NodeDef node = old;
  node.set_op("ParseExampleV2");
  node.clear_input();
  for (int i = 0; i < 2; ++i) node.add_input(old.input(i));
  for (const char* keys : {"/sparse_keys", "/dense_keys", "/ragged_keys"}) node.add_input(old.name() + keys);
  for (int i = static_cast<int>(2 + sparse + dense); i < old.input_size(); ++i) node.add_input(old.input(i));
  auto& attrs = *node.mutable_attr();
  attrs.erase("Nsparse");
  attrs.erase("Ndense");
  attrs["num_sparse"].set_i(sparse);
  for (const char* none : {"ragged_value_types", "ragged_split_types"}) attrs[none].mutable_list();
  *to->add_node() = std::move(node);
}

}  // namespace

std::string CurrentOp(const std::string& op) { return op == "Iterator" && !FindOp(op) ? "IteratorV2" : op; }

void ReplaceOldOps(proto::GraphDef* def) {
  for (proto::NodeDef& node : *def->mutable_node()) {
    if (std::string current = CurrentOp(node.op()); current != node.op()) node.set_op(std::move(current));
  }
  if (FindOp("ParseExample")) return;
  const auto old = [](const proto::NodeDef& node) { return node.op() == "ParseExample"; };
  if (std::none_of(def->node().begin(), def->node().end(), old)) return;
  proto::GraphDef made;
  for (proto::NodeDef& node : *def->mutable_node()) {
    if (old(node)) {
      ReplaceParseExample(node, &made);
    } else {
      *made.add_node() = std::move(node);
    }
  }
  def->mutable_node()->Swap(made.mutable_node());
}

}  // namespace thalweg::tf
