#include "framework/planner/compilers/part.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/base/sink.h"
#include "framework/graph/shape_inference.h"
#include "framework/planner/compilers/artefacts.h"
#include "framework/planner/compilers/part_records.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr size_t kMostNames = 8;  // of members, in the name of a part

// "a+b+c": the members' names, for messages.
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

// Returns the argument that flat input or output i belongs to.
size_t ArgumentOf(const std::vector<uint32_t>& at, size_t i) {
  return size_t(std::upper_bound(at.begin(), at.end(), uint32_t(i)) - at.begin()) - 1;
}

// Calls the plugin and converts an exception to a status.
template <class F>
Status Ask(F&& f) {
  try {
    return FromC(f());
  } catch (...) {
    return Thrown();
  }
}

}  // namespace

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
  } catch (...) {  // it must not throw; memory that it did not free is leaked
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

// Describes the kernel that stands for the members: each input and output lies where their kernels
// want it.
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
  // Two handles of one variable cannot both be opened if one of them writes.
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
  const bool ok = Ask([&] { return def.load(&call, &from.c, &state_); }).ok();
  limited_ = view.asked();
  return ok;
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
    made_ = *loaded = false;  // an artefact that does not serve is compiled anew
    def.destroy(role_->host, state_);
  }
  state_ = nullptr;
  const PartView view(graph_);
  const tw_compile_call call = Call(view.c());
  RETURN_IF_ERROR(Ask([&] { return def.compile(&call, &state_); }));
  limited_ = view.asked();
  made_ = true;
  RETURN_IF_ERROR(CheckPrepare());
  if (!stores) return Status();
  BytesSink to;
  if (Ask([&] { return def.serialize(role_->host, state_, &to.c); }).ok() && to.Whole().ok()) {
    cache->Write({StrCat(role_->plugin, "/", role_->name), DescribePart(graph_), tag.bytes}, to.bytes).IgnoreError();
  }
  return Status();  // without an artefact the next process compiles again
}

// A state is rejected if it cannot serve the shapes that it was compiled for.
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

// Prepares as a kernel does, for the shapes of a step or a plan; `user` is the part.
tw_status* Part::Prepare(const tw_node* n, void* state, uint64_t* out_scratch) {
  return Guard([&]() -> Status {
    const Part& part = *static_cast<const Part*>(n->user);
    PartGraph g = part.graph_;
    std::vector<tw_shape> in;
    std::vector<const tw_view*> values;
    std::vector<const HandleInfo*> handles;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      g.inputs[i].shape = g.inputs[i].limit = Shape(n->shapes[i]);
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
