// A graph rewriter that a test controls, and a substitution that is easy to write down.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

#include "framework/registry/role.h"
#include "framework/runtime/runtime.h"
#include "tests/framework/planner/test_compiler.h"
#include "tests/framework/support/test_ops.h"
#include "thalweg/plugin/rewriter.h"

namespace thalweg::testing_support {

class TestRewriter {
 public:
  std::function<tw_status*(const tw_part&, tw_rewriting*)> rewrite;
  int calls = 0;
  std::vector<std::string> shown;  // the nodes in the last call

  void Register(TestGraph* g, const std::string& name = "rules", const std::string& plugin = "org.test.w") {
    tw_rewriter_def d{};
    d.size = sizeof d;
    d.name = name.data();
    d.name_len = name.size();
    d.user = this;
    d.rewrite = [](const tw_host*, void* user, const tw_part* part, tw_rewriting* to) {
      auto* self = static_cast<TestRewriter*>(user);
      ++self->calls;
      self->shown.clear();
      for (uint32_t i = 0; i < part->n_nodes; ++i) self->shown.push_back(NameOf(*part->nodes[i]));
      return self->rewrite(*part, to);
    };
    auto role = SealRole(&d);
    ASSERT_TRUE(role.ok()) << role.status();
    (*role)->plugin = plugin;
    Registration r;
    r.roles.push_back(*std::move(role));
    ASSERT_TRUE(g->runtime().registry().Commit(std::move(r)).ok());
  }
};

class Substitution {
 public:
  explicit Substitution(const tw_part& part, std::string rule = "rule") : part_(part), rule_(std::move(rule)) {}
  Substitution& Goes(std::vector<uint32_t> nodes) {
    goes_ = std::move(nodes);
    return *this;
  }
  // Returns the number of the added node.
  int32_t Add(std::string op, std::vector<tw_part_edge> in, std::vector<tw_attr> attrs = {}) {
    nodes_.push_back({std::move(op), std::move(in), std::move(attrs)});
    return int32_t(part_.n_nodes + nodes_.size() - 1);
  }
  int32_t Constant(std::vector<float> values) {
    tensors_.push_back(Floats(values));
    handles_.push_back(tensors_.back().get());
    types_.push_back(TW_FLOAT);
    return Add("Const", {},
               {{TW_S("value"), &handles_.back(), TW_ATTR_TENSOR, 1, 0, 0}, {TW_S("dtype"), &types_.back(), TW_ATTR_TYPE, 1, 0, 0}});
  }
  Substitution& Stands(tw_part_edge now, tw_part_edge old) {
    old_.push_back(old);
    now_.push_back(now);
    return *this;
  }
  tw_status* Send(tw_rewriting* to) {
    std::deque<tw_added_node> records;
    std::vector<const tw_added_node*> added;
    for (const Row& row : nodes_) {
      records.push_back({TW_SIZED(tw_added_node), row.op.data(), row.op.size(), row.attrs.data(), row.in.data(), uint32_t(row.attrs.size()),
                         uint32_t(row.in.size())});
      added.push_back(&records.back());
    }
    const tw_substitution s = {TW_SIZED(tw_substitution),
                               rule_.data(),
                               rule_.size(),
                               goes_.data(),
                               added.data(),
                               old_.data(),
                               now_.data(),
                               uint32_t(goes_.size()),
                               uint32_t(added.size()),
                               uint32_t(old_.size()),
                               0};
    return to->substitute(to, &s);
  }

 private:
  struct Row {
    std::string op;
    std::vector<tw_part_edge> in;
    std::vector<tw_attr> attrs;
  };
  const tw_part& part_;
  std::string rule_;
  std::vector<uint32_t> goes_;
  std::vector<Row> nodes_;
  std::vector<tw_part_edge> old_, now_;
  std::deque<Tensor> tensors_;
  std::deque<tw_tensor*> handles_;
  std::deque<uint32_t> types_;
};

// Returns the number of the node of that name, or of the first node of that op.
inline uint32_t At(const tw_part& part, std::string_view name) {
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    if (NameOf(*part.nodes[i]) == name || OpOf(*part.nodes[i]) == name) return i;
  }
  ADD_FAILURE() << "there is no node " << name;
  return 0;
}

}  // namespace thalweg::testing_support
