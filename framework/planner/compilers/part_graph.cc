#include "framework/planner/compilers/part_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/sha256.h"
#include "framework/planner/compilers/value_limits.h"

namespace thalweg {
namespace {

std::vector<size_t> FirstSlots(const WorkGraph& w) {
  std::vector<size_t> first{0};
  for (const WorkNode& n : w.nodes) first.push_back(first.back() + n.shapes.size());
  return first;
}

}  // namespace

void Readers::Lists::Begin() {
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  at_.assign(begin_.begin(), begin_.end() - 1);
  values_.resize(begin_.back());
}

Readers::Readers(const WorkGraph& w) : first_(FirstSlots(w)), after_(w.nodes.size()), of_(first_.back()) {
  auto each = [&](auto&& waits, auto&& reads) {
    for (size_t i = 0; i < w.nodes.size(); ++i) {
      const WorkNode& x = w.nodes[i];
      if (x.dead) continue;
      for (int32_t c : x.controls) waits(size_t(c), int32_t(i));
      if (x.constant) continue;  // it already has its value
      for (const WorkEdge& e : x.in) {
        waits(size_t(e.node), int32_t(i));
        reads(slot(e), int32_t(i));
      }
    }
    for (const WorkEdge& e : w.fetches) reads(slot(e), -1);
  };
  each([&](size_t of, int32_t) { after_.Count(of); }, [&](size_t of, int32_t) { of_.Count(of); });
  after_.Begin();
  of_.Begin();
  each([&](size_t of, int32_t i) { after_.Add(of, i); }, [&](size_t of, int32_t i) { of_.Add(of, i); });
}

PartGraph TakePart(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work, ValueLimits* limits) {
  PartGraph g;
  g.work = work;
  std::map<int32_t, int32_t> member_of;
  for (size_t i = 0; i < work.size(); ++i) member_of[work[i]] = int32_t(i);
  std::map<std::pair<int32_t, int32_t>, int32_t> input_of;
  std::set<int32_t> before;
  for (int32_t at : work) {
    const WorkNode& n = w.nodes[size_t(at)];
    PartGraph::Member m;
    m.node = n.node;
    m.kernel = n.kernel;
    m.shapes = n.shapes;
    for (const WorkEdge& e : n.in) {
      if (auto it = member_of.find(e.node); it != member_of.end()) {
        m.in.push_back({it->second, e.port});
        continue;
      }
      auto [it, is_new] = input_of.try_emplace({e.node, e.port}, int32_t(g.inputs.size()));
      if (is_new) {
        const WorkNode& from = w.nodes[size_t(e.node)];
        PartGraph::Input in;
        in.from = e;
        if (from.node) in.edge = {from.node, e.port};
        in.dtype = from.out_types[size_t(e.port)];
        in.shape = from.shapes[size_t(e.port)];
        in.limit = limits->of(e);
        in.handle = from.handle(e.port);
        if (!from.varies) in.value = from.values[size_t(e.port)];
        g.inputs.push_back(std::move(in));
      }
      m.in.push_back({-1, it->second});
    }
    for (int32_t c : n.controls) {
      if (auto it = member_of.find(c); it != member_of.end()) {
        m.after.push_back(it->second);
      } else {
        before.insert(c);
      }
    }
    g.members.push_back(std::move(m));
  }
  for (size_t i = 0; i < work.size(); ++i) {
    for (int32_t o = 0; o < int32_t(g.members[i].shapes.size()); ++o) {
      const std::span<const int32_t> all = readers.of({work[i], o});
      if (std::any_of(all.begin(), all.end(), [&](int32_t r) { return !member_of.count(r); })) g.out.push_back({int32_t(i), o});
    }
  }
  g.work_before.assign(before.begin(), before.end());
  return g;
}

std::string DigestOf(const Tensor& value) {
  const DTypeInfo* info = FindDType(value.dtype());
  if (info && info->plain) return Sha256({static_cast<const char*>(value.data()), size_t(value.bytes())});
  std::string bytes;
  if (value.dtype() == TW_STRING) {
    for (uint64_t i = 0; i < value.count(); ++i) {
      const tw_string& s = value.as<tw_string>()[i];
      bytes += StrCat(s.size, ":", std::string_view(s.data, s.size));
    }
  }
  return Sha256(bytes);
}

std::string DescribePart(const PartGraph& g) {
  std::string text;
  for (const PartGraph::Input& in : g.inputs) {
    text += StrCat("in ", in.dtype, in.shape.text(), in.shape == in.limit ? "" : " at most " + in.limit.text(),
                   in.value && in.dtype != TW_RESOURCE ? DigestOf(in.value) : "", "\n");
  }
  for (const PartGraph::Member& m : g.members) {
    text += StrCat(m.node->op().name, " ", m.node->name().size(), ":", m.node->name(), " (");
    for (const WorkEdge& e : m.in) text += StrCat(e.node, ".", e.port, " ");
    text += ") after (";
    for (int32_t a : m.after) text += StrCat(a, " ");
    text += ")";
    for (size_t o = 0; o < m.shapes.size(); ++o) text += StrCat(" ", m.node->out_type(int32_t(o)), m.shapes[o].text());
    for (size_t a = 0; a < m.node->attrs().size(); ++a) {
      const AttrValue& v = m.node->attrs()[a];
      text += StrCat(" ", m.node->op().attrs[a].name, "=", v.kind(), v.text());
      if (v.kind() == TW_ATTR_TENSOR) {
        for (const Tensor& t : v.tensors()) text += t ? DigestOf(t) : "-";
      }
    }
    text += "\n";
  }
  for (const WorkEdge& e : g.out) text += StrCat("out ", e.node, ".", e.port, "\n");
  return text;
}

}  // namespace thalweg
