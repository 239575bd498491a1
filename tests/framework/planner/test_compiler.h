// A graph compiler that a test controls, for tests of the parts that compilers see and of the nodes
// that they claim.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

#include "framework/registry/role.h"
#include "framework/runtime/runtime.h"
#include "tests/framework/support/test_ops.h"
#include "thalweg/plugin/compiler.h"

namespace thalweg::testing_support {

inline tw_status* Fail(uint32_t code, std::string_view text) { return ToC(Status(absl::StatusCode(code), AbslView(text))); }
inline std::string OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }
inline std::string NameOf(const tw_part_node& n) { return {n.name, n.name_len}; }

// Claims nodes as a test says, and computes them by interpretation: Add, Mul, Neg and Next of
// float, Put and Get of variables.
class TestCompiler {
 public:
  using Claim = std::function<tw_status*(const tw_part&, tw_claims*)>;
  Claim claim;
  std::function<tw_status*()> on_compile, on_execute, on_prepare, on_load;
  std::function<void(const tw_part&)> on_compile_part;
  std::function<bool(uint32_t out, uint32_t in)> inplace;
  std::string tag = "1", other_tag;  // other_tag: a second usable tag
  int compiled = 0, loaded = 0, destroyed = 0, prepared = 0;
  std::vector<std::string> shown;  // the parts in the last call of claim

  // has_prepare, stores: provide optional entries.
  void Register(TestGraph* g, const std::string& name, bool has_prepare = true, bool stores = false,
                const std::string& plugin = "org.test.c") {
    tw_compiler_def d{};
    d.size = sizeof d;
    d.name = name.data();
    d.name_len = name.size();
    d.kind = "CPU";
    d.kind_len = 3;
    d.user = this;
    d.claim = [](const tw_host*, void* user, void*, const tw_part* part, tw_claims* to) {
      auto* self = static_cast<TestCompiler*>(user);
      self->shown.clear();
      for (uint32_t i = 0; i < part->n_nodes; ++i) self->shown.push_back(NameOf(*part->nodes[i]));
      return self->claim(*part, to);
    };
    d.compile = [](const tw_compile_call* c, void** out) -> tw_status* {
      auto* self = static_cast<TestCompiler*>(c->user);
      ++self->compiled;
      if (self->on_compile_part) self->on_compile_part(*c->part);
      if (self->on_compile) {
        if (tw_status* s = self->on_compile()) return s;
      }
      *out = new Program(self, *c->part);
      return nullptr;
    };
    d.execute = [](const tw_frame* f) {
      auto* p = static_cast<Program*>(f->state);
      return p->owner->on_execute ? p->owner->on_execute() : p->Run(f);
    };
    d.destroy = [](const tw_host*, void* state) {
      auto* p = static_cast<Program*>(state);
      ++p->owner->destroyed;
      delete p;
    };
    if (inplace) {
      d.inplace = [](const tw_host*, const void* state, uint32_t out, uint32_t in) {
        return uint32_t{static_cast<const Program*>(state)->owner->inplace(out, in)};
      };
    }
    if (has_prepare) {
      d.prepare = [](const tw_compile_call* c, void*, uint64_t* out) {
        auto* self = static_cast<TestCompiler*>(c->user);
        ++self->prepared;
        *out = 100;
        return self->on_prepare ? self->on_prepare() : nullptr;
      };
    }
    if (stores) {
      d.serialize = [](const tw_host*, const void* state, tw_sink* to) {
        const std::string text = static_cast<const Program*>(state)->text();
        return to->put(to, text.data(), text.size());
      };
      d.load = [](const tw_compile_call* c, tw_source* from, void** out) -> tw_status* {
        auto* self = static_cast<TestCompiler*>(c->user);
        std::string text;
        char some[7];
        for (uint64_t n = 1; n > 0; text.append(some, n)) {
          if (tw_status* s = from->get(from, some, sizeof some, &n)) return s;
        }
        auto made = std::make_unique<Program>(self, *c->part);
        if (text != made->text()) return Fail(TW_DATA_LOSS, "not what was written");
        if (self->on_load) {
          if (tw_status* s = self->on_load()) return s;
        }
        ++self->loaded;
        *out = made.release();
        return nullptr;
      };
      d.tag = [](const tw_host*, void* user, void*, tw_sink* to) {
        const std::string& text = static_cast<TestCompiler*>(user)->tag;
        return to->put(to, text.data(), text.size());
      };
      d.usable = [](const tw_host*, void* user, void*, const char* text, uint64_t len) {
        return uint32_t{std::string_view(text, len) == static_cast<TestCompiler*>(user)->other_tag};
      };
    }
    auto role = SealRole(&d);
    ASSERT_TRUE(role.ok()) << role.status();
    (*role)->plugin = plugin;
    (*role)->host = nullptr;
    Registration r;
    r.roles.push_back(*std::move(role));
    ASSERT_TRUE(g->runtime().registry().Commit(std::move(r)).ok());
  }

 private:
  struct Program {
    struct Row {
      std::string op;
      std::vector<tw_part_edge> in;
    };
    TestCompiler* owner;
    std::vector<Row> rows;
    std::vector<tw_part_edge> out;
    Program(TestCompiler* c, const tw_part& part) : owner(c), out(part.out, part.out + part.n_out) {
      for (uint32_t i = 0; i < part.n_nodes; ++i) {
        const tw_part_node& n = *part.nodes[i];
        rows.push_back({OpOf(n), {n.in, n.in + n.n_in}});
      }
    }
    std::string text() const {
      std::string all;
      for (const Row& r : rows) all += r.op + " ";
      return all;
    }
    tw_status* Run(const tw_frame* f) const {
      std::vector<std::vector<float>> value(rows.size());
      auto read = [&](const tw_part_edge& e) -> std::vector<float> {
        if (e.node >= 0) return value[size_t(e.node)];
        const auto* p = static_cast<const float*>(f->in[e.port]->data);
        return {p, p + f->in[e.port]->count};
      };
      for (size_t i = 0; i < rows.size(); ++i) {
        const Row& r = rows[i];
        if (r.op == "Put") {
          std::vector<float> v = read(r.in[1]);
          std::copy(v.begin(), v.end(), static_cast<float*>(f->in[r.in[0].port]->data));
          continue;
        }
        value[i] = read(r.in[0]);
        const std::vector<float> b = r.in.size() > 1 ? read(r.in[1]) : std::vector<float>();
        for (size_t k = 0; k < value[i].size(); ++k) {
          float& y = value[i][k];
          y = r.op == "Add" ? y + b[k] : r.op == "Mul" ? y * b[k] : r.op == "Neg" ? -y : r.op == "Next" ? y + 1 : y;
        }
      }
      for (size_t o = 0; o < out.size(); ++o) {
        const std::vector<float>& v = value[size_t(out[o].node)];
        if (f->out[o]->rank < 0) return Fail(TW_INTERNAL, "an output without memory");
        std::copy(v.begin(), v.end(), static_cast<float*>(f->out[o]->data));
      }
      return nullptr;
    }
  };
};

// Claims all nodes with those names, or ops, as one set.
inline TestCompiler::Claim Take(std::set<std::string> names, int32_t priority = 0) {
  return [=](const tw_part& part, tw_claims* to) -> tw_status* {
    std::vector<uint32_t> set;
    for (uint32_t i = part.n_nodes; i-- > 0;) {
      if (names.count(NameOf(*part.nodes[i])) || names.count(OpOf(*part.nodes[i]))) set.push_back(i);
    }
    return set.empty() ? nullptr : to->take(to, set.data(), uint32_t(set.size()), priority);
  };
}

}  // namespace thalweg::testing_support
