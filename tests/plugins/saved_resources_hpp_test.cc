// A program in C++ that keeps a plugin's resource in checkpoints.
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"

#include "thalweg/cpp/thalweg.hpp"

namespace {

struct Program {
  tw::Runtime runtime = Loaded();
  tw::Graph graph{runtime};
  tw_output keys = 0, found = 0, count = 0;
  const tw_operation *insert = nullptr, *init = nullptr;

  static tw::Runtime Loaded() {
    tw::Runtime r;
    r.load_plugin(BLOOM);
    return r;
  }
  Program() {
    tw::Scope s(graph);
    keys = s.placeholder("keys", TW_INT32, {-1});
    const tw_output filter = s.op("BloomFilter", {}, [](tw_op* op) { tw_op_set_int(op, "bits", 1 << 12); }, "filter");
    found = s.op("BloomContains", {filter, keys});
    count = s.read(s.variable("count", s.scalar(TW_INT32, 3)));
    tw_op* op = tw_scope_begin(s.c(), "BloomInsert", "insert");
    tw_op_add_input(op, filter);
    tw_op_add_input(op, keys);
    insert = tw_scope_end_operation(s.c(), op);
    init = tw_variable_initializer(s.c(), "init");
    s.finish();
  }
};

TEST(SavedResourcesCppTest, ACheckpointerCarriesAFilterBesideAVariable) {
  const std::string folder = std::filesystem::temp_directory_path() / ("thalweg-filter-" + std::to_string(getpid()));
  const tw::Tensor some({3}, std::vector<int32_t>{1, 5, 9}), all({4}, std::vector<int32_t>{1, 2, 5, 9});
  {
    Program p;
    tw::Session session(p.graph);
    session.run({}, {}, {p.init});
    session.run({{p.keys, some}}, {}, {p.insert});
    tw::Saver saver(p.graph);
    tw::Checkpointer(saver, session, folder).save(7);
  }
  Program p;  // another runtime, into which nothing was inserted
  tw::Session session(p.graph);
  tw::Saver saver(p.graph);
  EXPECT_EQ(tw::Checkpointer(saver, session, folder).restore(), 7);
  const std::vector<tw::Tensor> out = session.run({{p.keys, all}}, {p.found, p.count});
  const auto* found = out[0].data<bool>();
  EXPECT_TRUE(found[0] && !found[1] && found[2] && found[3]);
  EXPECT_EQ(out[1].text(), "3");
  std::filesystem::remove_all(folder);
}

}  // namespace
