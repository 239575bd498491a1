#include "framework/plan/part.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/base/sink.h"
#include "framework/graph/shape_inference.h"
#include "framework/plan/artefacts.h"
#include "framework/registry/plugin_digest.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr size_t kMostNames = 8;  // of members, in the name of a part

// "a+b+c": how messages name the members.
std::string NameOf(const PartGraph& g) {
  std::string name;
  for (size_t i = 0; i < g.members.size(); ++i) {
    if (i == kMostNames && g.members.size() > kMostNames + 1) return name + StrCat("+", g.members.size() - i, " more");
    name += StrCat(i ? "+" : "", Shown(g.members[i].node->name()));
  }
  return name;
}

std::vector<Edge> EdgesOf(const PartGraph& g) {
  std::vector<Edge> edges;
  for (const PartGraph::Input& in : g.inputs) edges.push_back(in.edge);
  return edges;
}

std::vector<uint32_t> TypesOf(const PartGraph& g) {
  std::vector<uint32_t> types;
  for (const PartGraph::Input& in : g.inputs) types.push_back(in.dtype);
  for (const WorkEdge& e : g.out) types.push_back(g.members[size_t(e.node)].node->out_type(e.port));
  return types;
}

std::vector<Shape> OutShapes(const PartGraph& g) {
  std::vector<Shape> shapes;
  for (const WorkEdge& e : g.out) shapes.push_back(g.members[size_t(e.node)].shapes[size_t(e.port)]);
  return shapes;
}

// The argument that flat input or output i belongs to.
size_t ArgumentOf(const std::vector<uint32_t>& at, size_t i) {
  return size_t(std::upper_bound(at.begin(), at.end(), uint32_t(i)) - at.begin()) - 1;
}

// Calls the plugin; what it throws is an answer, too.
template <class F>
Status Ask(F&& f) {
  try {
    return FromC(f());
  } catch (...) {
    return Thrown();
  }
}

}  // namespace

// ---- Readers ----

void Readers::Lists::Begin() {
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  at_.assign(begin_.begin(), begin_.end() - 1);
  values_.resize(begin_.back());
}

namespace {

std::vector<size_t> FirstSlots(const WorkGraph& w) {
  std::vector<size_t> first{0};
  for (const WorkNode& n : w.nodes) first.push_back(first.back() + n.shapes.size());
  return first;
}

}  // namespace

Readers::Readers(const WorkGraph& w) : first_(FirstSlots(w)), after_(w.nodes.size()), of_(first_.back()) {
  auto each = [&](auto&& waits, auto&& reads) {
    for (size_t i = 0; i < w.nodes.size(); ++i) {
      const WorkNode& x = w.nodes[i];
      if (x.dead) continue;
      for (int32_t c : x.controls) waits(size_t(c), int32_t(i));
      if (x.constant) continue;  // it has its value already
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

// ---- PartGraph ----

PartGraph TakePart(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work) {
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

// ---- Records ----

void PartRecords::Reserve(size_t nodes, size_t in, size_t out, size_t after, size_t attrs) {
  records_.reserve(nodes);
  nodes_.reserve(nodes);
  in_.reserve(in);
  shapes_.reserve(in + out);
  values_.reserve(in + out);
  after_.reserve(after);
  attrs_.Reserve(attrs);
}

void PartRecords::Add(const Node& n) {
  tw_part_node& c = records_.emplace_back();
  nodes_.push_back(&c);
  const uint32_t first = attrs_.size();
  n.FillC(&attrs_);
  c.size = sizeof c;
  c.flags = n.op().stateful ? uint32_t{TW_PART_NODE_STATEFUL} : 0u;
  c.name = n.name().data();
  c.name_len = n.name().size();
  c.op = n.op().name.data();
  c.op_len = n.op().name.size();
  c.attrs = attrs_.data() + first;
  c.n_attrs = attrs_.size() - first;
  c.types = n.types().data();
  c.in = in_.data() + in_.size();
  c.shapes = shapes_.data() + shapes_.size();
  c.value = values_.data() + values_.size();
  c.after = after_.data() + after_.size();
}

void PartRecords::AddIn(tw_part_edge from, tw_shape shape, const tw_view* value) {
  in_.push_back(from);
  shapes_.push_back(shape);
  values_.push_back(value);
  ++records_.back().n_in;
}

void PartRecords::AddOut(tw_shape shape) {
  shapes_.push_back(shape);
  values_.push_back(nullptr);
  ++records_.back().n_out;
}

void PartRecords::AddAfter(int32_t node) {
  after_.push_back(node);
  ++records_.back().n_after;
}

void PartRecords::AddInput(uint32_t type, tw_shape shape) {
  in_types_.push_back(type);
  in_shapes_.push_back(shape);
}

void PartRecords::Finish() {
  c_.size = sizeof c_;
  c_.nodes = nodes_.data();
  c_.in_types = in_types_.data();
  c_.in_shapes = in_shapes_.data();
  c_.out = out_.data();
  c_.n_nodes = uint32_t(nodes_.size());
  c_.n_in = uint32_t(in_types_.size());
  c_.n_out = uint32_t(out_.size());
}

PartView::PartView(const PartGraph& g) {
  size_t in = 0, out = 0, after = 0, attrs = 0;
  for (const PartGraph::Member& m : g.members) {
    in += m.in.size();
    out += m.shapes.size();
    after += m.after.size();
    attrs += m.node->attrs().size();
  }
  Reserve(g.members.size(), in, out, after, attrs);
  for (const PartGraph::Member& m : g.members) {
    Add(*m.node);
    for (const WorkEdge& e : m.in) {
      const tw_part_edge from{e.node, uint32_t(e.port)};
      if (e.node >= 0) {
        AddIn(from, g.members[size_t(e.node)].shapes[size_t(e.port)].c(), nullptr);
        continue;
      }
      const PartGraph::Input& input = g.inputs[size_t(e.port)];
      AddIn(from, input.shape.c(), input.value && input.dtype != TW_RESOURCE ? &input.value.view() : nullptr);
    }
    for (const Shape& s : m.shapes) AddOut(s.c());
    for (int32_t a : m.after) AddAfter(a);
  }
  for (const PartGraph::Input& input : g.inputs) AddInput(input.dtype, input.shape.c());
  for (const WorkEdge& e : g.out) AddOutput({e.node, uint32_t(e.port)});
  Finish();
}

ShownNodes::ShownNodes(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work) : w_(w), work_(work) {
  std::vector<int32_t> member_of(w.nodes.size(), -1), input_of(readers.n_slots(), -1);
  size_t in = 0, out = 0, after = 0, attrs = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkNode& n = w.nodes[size_t(work[i])];
    member_of[size_t(work[i])] = int32_t(i);
    in += n.in.size();
    out += n.shapes.size();
    after += n.controls.size();
    attrs += n.node->attrs().size();
  }
  Reserve(work.size(), in, out, after, attrs);
  int32_t n_inputs = 0;
  for (int32_t at : work) {
    const WorkNode& n = w.nodes[size_t(at)];
    Add(*n.node);
    for (const WorkEdge& e : n.in) {
      const WorkNode& from = w.nodes[size_t(e.node)];
      const tw_shape shape = from.shapes[size_t(e.port)].c();
      if (const int32_t member = member_of[size_t(e.node)]; member >= 0) {
        AddIn({member, uint32_t(e.port)}, shape, nullptr);
        continue;
      }
      int32_t& input = input_of[readers.slot(e)];
      if (input < 0) {
        input = n_inputs++;
        AddInput(from.out_types[size_t(e.port)], shape);
      }
      const Tensor& value = from.values[size_t(e.port)];
      AddIn({-1, uint32_t(input)}, shape, value && !from.varies && value.dtype() != TW_RESOURCE ? &value.view() : nullptr);
    }
    for (const Shape& s : n.shapes) AddOut(s.c());
    for (int32_t c : n.controls) {
      if (member_of[size_t(c)] >= 0) AddAfter(member_of[size_t(c)]);
    }
  }
  for (size_t i = 0; i < work.size(); ++i) {
    for (int32_t o = 0; o < int32_t(w.nodes[size_t(work[i])].shapes.size()); ++o) {
      const std::span<const int32_t> all = readers.of({work[i], o});
      if (std::any_of(all.begin(), all.end(), [&](int32_t r) { return r < 0 || member_of[size_t(r)] < 0; })) {
        AddOutput({int32_t(i), uint32_t(o)});
      }
    }
  }
  Finish();
}

std::string DescribePart(const PartGraph& g) {
  std::string text;
  auto content = [](const Tensor& t) {
    const DTypeInfo* info = FindDType(t.dtype());
    std::string bytes;
    if (info && info->plain) {
      bytes.assign(static_cast<const char*>(t.data()), t.bytes());
    } else if (t.dtype() == TW_STRING) {
      for (uint64_t i = 0; i < t.count(); ++i)
        bytes += StrCat(t.as<tw_string>()[i].size, ":", std::string_view(t.as<tw_string>()[i].data, t.as<tw_string>()[i].size));
    }
    return Sha256(bytes);
  };
  for (const PartGraph::Input& in : g.inputs) {
    text += StrCat("in ", in.dtype, in.shape.text(), in.value && in.dtype != TW_RESOURCE ? content(in.value) : "", "\n");
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
        for (const Tensor& t : v.tensors()) text += t ? content(t) : "-";
      }
    }
    text += "\n";
  }
  for (const WorkEdge& e : g.out) text += StrCat("out ", e.node, ".", e.port, "\n");
  return text;
}

// ---- Part ----

Part::Part(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device)
    : role_(std::move(role)), graph_(std::move(graph)), device_(device) {
  op_.name = role_->name;
  op_.rule = this;
  op_.plugin = role_->plugin;
  op_.inputs.resize(graph_.inputs.size());
  op_.outputs.resize(graph_.out.size());
  op_.host = role_->host;
  for (const PartGraph::Member& m : graph_.members) op_.stateful |= m.node->op().stateful;
  node_ = Node::StandIn(&op_, NameOf(graph_), EdgesOf(graph_), TypesOf(graph_), OutShapes(graph_));
}

Part::~Part() {
  if (!made_) return;
  try {
    role_->def.destroy(role_->host, state_);
  } catch (...) {  // it may not throw; what it did not free is lost
  }
}

StatusOr<std::shared_ptr<const Part>> Part::Make(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device,
                                                 ArtefactCache* cache, bool* loaded) {
  std::shared_ptr<Part> part(new Part(std::move(role), std::move(graph), device));
  RETURN_IF_ERROR(part->Arrange());
  RETURN_IF_ERROR(part->Compile(cache, loaded));
  part->AskInPlace();
  return part;
}

void Part::AskInPlace() {
  const tw_compiler_def& def = role_->def;
  for (size_t o = 0; o < graph_.out.size(); ++o) {
    const uint32_t type = graph_.members[size_t(graph_.out[o].node)].node->out_type(graph_.out[o].port);
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (graph_.inputs[i].dtype != type || kernel_.host_in[i] != kernel_.host_out[o]) continue;
      uint32_t yes = 0;
      const Status s = Ask([&]() -> tw_status* {
        yes = def.inplace(role_->host, state_, uint32_t(o), uint32_t(i));
        return nullptr;
      });
      if (s.ok() && yes == 1) kernel_.inplace[o].push_back(int32_t(i));
    }
  }
}

// The kernel that stands for the members: each input and output lies where their kernels want it.
Status Part::Arrange() {
  KernelDef& k = kernel_;
  k.spec.op = op_.name;
  k.spec.kind = role_->kind;
  k.spec.text = StrCat(op_.name, " @", role_->kind, " (graph compiler of '", role_->plugin, "')");
  k.op = &op_;
  k.host = role_->host;
  k.plugin = role_->plugin;
  k.def.size = sizeof k.def;
  k.def.user = this;
  k.def.execute = role_->def.execute;
  k.def.prepare = role_->def.prepare ? &Prepare : nullptr;
  k.spec.capture_safe =
      std::all_of(graph_.members.begin(), graph_.members.end(), [](const auto& m) { return m.kernel->spec.capture_safe; });
  const size_t n_in = graph_.inputs.size(), n_out = graph_.out.size();
  std::vector<int> in_host(n_in, -1);
  k.keep.assign(n_in, 0);
  k.read.assign(n_in, 0);
  k.update.assign(n_in, 0);
  k.replace.assign(n_in, 0);
  for (const PartGraph::Member& m : graph_.members) {
    for (size_t i = 0; i < m.in.size(); ++i) {
      if (m.in[i].node >= 0) continue;
      const size_t a = ArgumentOf(m.node->in_at(), i), to = size_t(m.in[i].port);
      const DTypeInfo* info = FindDType(graph_.inputs[to].dtype);
      const int host = m.kernel->host_in[a] || !info || !info->plain;
      if (in_host[to] >= 0 && in_host[to] != host && !device_->host_memory()) {
        return InvalidArgument("'", graph_.inputs[to].edge ? graph_.inputs[to].edge.text() : "a feed",
                               "' is wanted both in host memory and on the device");
      }
      in_host[to] = host;
      k.keep[to] |= m.kernel->keep[a];
      k.read[to] |= m.kernel->read[a];
      k.update[to] |= m.kernel->update[a];
    }
  }
  for (size_t i = 0; i < n_in; ++i) {
    k.host_in.push_back(in_host[i] > 0);
    if (k.update[i]) k.read[i] = 0;
  }
  for (const WorkEdge& e : graph_.out) {
    const PartGraph::Member& m = graph_.members[size_t(e.node)];
    k.host_out.push_back(m.kernel->host_out[ArgumentOf(m.node->out_at(), size_t(e.port))]);
  }
  k.inplace.resize(n_out);
  k.view.assign(n_out, -1);
  // Two handles of one variable cannot both be opened where one writes.
  std::map<const void*, std::pair<size_t, bool>> seen;
  for (size_t i = 0; i < n_in; ++i) {
    if (!k.read[i] && !k.update[i]) continue;
    const Tensor& handle = graph_.inputs[i].value;
    if (!handle || handle.count() != 1) continue;
    auto [it, is_new] = seen.try_emplace(handle.as<const void*>()[0], i, k.update[i] != 0);
    if (!is_new && (it->second.second || k.update[i])) {
      return InvalidArgument("'", graph_.inputs[it->second.first].edge.text(), "' and '", graph_.inputs[i].edge.text(),
                             "' are the same resource, and one of them is to be updated");
    }
  }
  return Status();
}

tw_compile_call Part::Call(const tw_part* part) const {
  tw_compile_call c{};
  c.size = sizeof c;
  c.host = role_->host;
  c.user = role_->def.user;
  c.device = device_->self();
  c.part = part;
  return c;
}

bool Part::Load(ArtefactCache* cache, const std::string& tag) {
  const tw_compiler_def& def = role_->def;
  const ArtefactKey key{StrCat(role_->plugin, "/", role_->name), DescribePart(graph_), tag};
  auto usable = [&](std::string_view other) {
    uint32_t yes = 0;
    Status s = Ask([&]() -> tw_status* {
      yes = def.usable(role_->host, def.user, device_->self(), other.data(), other.size());
      return nullptr;
    });
    return s.ok() && yes == 1;
  };
  auto bytes = cache->Read(key, usable);
  if (!bytes.ok()) return false;
  const PartView view(graph_);
  const tw_compile_call call = Call(view.c());
  BytesSource from(*bytes);
  return Ask([&] { return def.load(&call, &from.c, &state_); }).ok();
}

Status Part::Compile(ArtefactCache* cache, bool* loaded) {
  const tw_compiler_def& def = role_->def;
  *loaded = false;
  BytesSink tag;
  const bool stores =
      cache && def.serialize && Ask([&] { return def.tag(role_->host, def.user, device_->self(), &tag.c); }).ok() && tag.Whole().ok();
  if (stores) made_ = *loaded = Load(cache, tag.bytes);
  if (made_) {
    if (CheckPrepare().ok()) return Status();
    made_ = *loaded = false;  // an artefact that does not serve is made anew
    def.destroy(role_->host, state_);
  }
  state_ = nullptr;
  const PartView view(graph_);
  const tw_compile_call call = Call(view.c());
  RETURN_IF_ERROR(Ask([&] { return def.compile(&call, &state_); }));
  made_ = true;
  RETURN_IF_ERROR(CheckPrepare());
  if (!stores) return Status();
  BytesSink to;
  if (Ask([&] { return def.serialize(role_->host, state_, &to.c); }).ok() && to.Whole().ok()) {
    cache->Write({StrCat(role_->plugin, "/", role_->name), DescribePart(graph_), tag.bytes}, to.bytes).IgnoreError();
  }
  return Status();  // without an artefact the next process compiles again
}

// A state that cannot serve the shapes that it was made for is none.
Status Part::CheckPrepare() {
  bool known = true;
  for (const PartGraph::Input& in : graph_.inputs) known = known && (in.shape.known() || in.dtype == TW_RESOURCE);
  for (const Shape& s : OutShapes(graph_)) known = known && s.known();
  if (!known || !kernel_.def.prepare) return Status();
  const PartView view(graph_);
  const tw_compile_call call = Call(view.c());
  uint64_t scratch = 0;
  return Prefix(Ask([&] { return role_->def.prepare(&call, state_, &scratch); }), "prepare:");
}

Status Part::InferAll(const std::vector<tw_shape>& in, const std::vector<const tw_view*>& values,
                      const std::vector<const HandleInfo*>& handles, std::vector<ShapeAnswer>* out) const {
  out->resize(graph_.members.size());
  for (size_t i = 0; i < graph_.members.size(); ++i) {
    const PartGraph::Member& m = graph_.members[i];
    std::vector<tw_shape> shapes;
    std::vector<const tw_view*> known;
    std::vector<const HandleInfo*> infos;
    for (const WorkEdge& e : m.in) {
      const size_t p = size_t(e.port);
      shapes.push_back(e.node < 0 ? in[p] : (*out)[size_t(e.node)].shapes[p].c());
      known.push_back(e.node < 0 ? values[p] : nullptr);
      infos.push_back(e.node < 0 ? handles[p] : &(*out)[size_t(e.node)].handles[p]);
    }
    CAttrs attrs;
    m.node->FillC(&attrs);
    ShapeQuery q;
    q.op = &m.node->op();
    q.node = m.node->name();
    q.attrs = &attrs;
    q.types = m.node->types().data();
    q.in_at = m.node->in_at().data();
    q.out_at = m.node->out_at().data();
    q.n_in = uint32_t(m.in.size());
    q.n_out = uint32_t(m.shapes.size());
    q.in = shapes.data();
    q.values = known.data();
    q.handles = infos.data();
    Status s = InferShapes(q, &(*out)[i]);
    if (!s.ok()) return Prefix(s, m.node->title() + ":");
  }
  return Status();
}

Status Part::Infer(const ShapeQuery& q, ShapeAnswer* out) const {
  std::vector<tw_shape> in;
  std::vector<const tw_view*> values;
  std::vector<const HandleInfo*> handles;
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const PartGraph::Input& input = graph_.inputs[i];
    in.push_back(q.in[i]);
    values.push_back(q.values && q.values[i] ? q.values[i] : input.value ? &input.value.view() : nullptr);
    handles.push_back(q.handles && q.handles[i] && q.handles[i]->dtype ? q.handles[i] : &input.handle);
  }
  std::vector<ShapeAnswer> all;
  RETURN_IF_ERROR(InferAll(in, values, handles, &all));
  for (size_t o = 0; o < graph_.out.size(); ++o) {
    const WorkEdge& e = graph_.out[o];
    out->shapes[o] = all[size_t(e.node)].shapes[size_t(e.port)];
    out->handles[o] = all[size_t(e.node)].handles[size_t(e.port)];
  }
  return Status();
}

// As of a kernel, for the shapes of a step or a plan: `user` is the part.
tw_status* Part::Prepare(const tw_node* n, void* state, uint64_t* out_scratch) {
  return Guard([&]() -> Status {
    const Part& part = *static_cast<const Part*>(n->user);
    PartGraph g = part.graph_;
    std::vector<tw_shape> in;
    std::vector<const tw_view*> values;
    std::vector<const HandleInfo*> handles;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      g.inputs[i].shape = Shape(n->shapes[i]);
      in.push_back(n->shapes[i]);
      values.push_back(g.inputs[i].value ? &g.inputs[i].value.view() : nullptr);
      handles.push_back(&g.inputs[i].handle);
    }
    std::vector<ShapeAnswer> all;
    RETURN_IF_ERROR(part.InferAll(in, values, handles, &all));
    for (size_t i = 0; i < g.members.size(); ++i) g.members[i].shapes = std::move(all[i].shapes);
    const PartView view(g);
    const tw_compile_call call = part.Call(view.c());
    return FromC(part.role_->def.prepare(&call, state, out_scratch));
  });
}

}  // namespace thalweg
