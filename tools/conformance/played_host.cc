#include "tools/conformance/played_host.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <sys/mman.h>

#include "framework/base/dtype.h"
#include "framework/graph/op_schema.h"
#include "framework/registry/role.h"
#include "framework/runtime/step/one_call_step.h"
#include "thalweg/plugin/timeline.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/place.h"

namespace thalweg::conformance {
namespace {

struct Real {
  const tw_status_api* status;
  const tw_tensor_api* tensor;
  const tw_resource_api* resource;
  const tw_timeline_api* timeline;
  const tw_graph_api* graph;
  const tw_run_api* run;
  tw_status* (*setting)(const tw_host* h, const char* key, uint64_t len, tw_sink* to);
  const void* (*query)(const tw_host* h, const char* set, uint64_t len, uint32_t version);
} real;

struct Subject {
  tw_plugin played{};
  const tw_plugin* plugin = nullptr;
  Play play;
  uint32_t sets = 0;
  std::map<std::string, uint32_t, std::less<>> role_floors;
  pid_t process = 0;
} subject;

// Allocates memory that is never freed. It is outside the heap, so that heap growth is the plugin's.
char* Lasting(uint64_t bytes) {
  constexpr uint64_t kAtOnce = 1 << 20;
  static char* next = nullptr;
  static uint64_t left = 0;
  if (left < bytes) {
    void* p = mmap(nullptr, kAtOnce, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    next = static_cast<char*>(p);
    left = kAtOnce;
  }
  left -= bytes;
  return std::exchange(next, next + bytes);
}

// Copies a record to lasting memory, with poison behind it and the size that the play gives it.
template <class T>
T* Stage(const T& record) {
  constexpr uint64_t kBytes = (sizeof(T) + 15) / 16 * 16 + 2 * kTail;
  char* bytes = Lasting(kBytes);
  std::memset(bytes, kPoison, kBytes);
  T* out = new (bytes) T(record);
  out->size = RecordSize<T>();
  if (out->size < sizeof(T)) std::memset(bytes + out->size, kPoison, sizeof(T) - out->size);
  return out;
}

// Counts a call. Returns an error if this call is the one to fail, else NULL.
tw_status* Injected() {
  Ledger& l = TheLedger();
  const int64_t n = l.calls.fetch_add(1) + 1;
  if (n != l.fail_at.load()) return nullptr;
  l.failed.fetch_add(1);
  return ToC(ResourceExhausted("the host was made to fail here"));
}
#define FAIL_IF_INJECTED() \
  if (tw_status* injected_ = Injected()) return injected_

tw_status* Taken(tw_status* s) {
  if (!s) TheLedger().tensors.fetch_add(1);
  return s;
}

// ---- tensors ----
tw_status* Make(const tw_host* h, const tw_tensor_config* c, tw_tensor** out) {
  FAIL_IF_INJECTED();
  return Taken(real.tensor->make(h, c, out));
}
tw_status* Reshape(const tw_host* h, tw_tensor* t, const int64_t* dims, uint32_t rank, tw_tensor** out) {
  FAIL_IF_INJECTED();
  return Taken(real.tensor->reshape(h, t, dims, rank, out));
}
void Retain(tw_tensor* t) {
  TheLedger().tensors.fetch_add(1);
  real.tensor->retain(t);
}
void Release(tw_tensor* t) {
  if (t) TheLedger().tensors.fetch_sub(1);
  real.tensor->release(t);
}
tw_status* SetStringOf(tw_tensor* t, uint64_t i, const char* data, uint64_t len) {
  FAIL_IF_INJECTED();
  return real.tensor->set_string(t, i, data, len);
}
// Replaces the memory of an output that was allocated in a call of the kit by memory between red zones.
void Wall(KernelFrame* f, uint32_t o) {
  const tw_view& v = f->out(o)->view;
  const DTypeInfo* info = FindDType(v.dtype);
  if (!info || !info->plain || v.bytes == 0 || !dynamic_cast<OneCallStep*>(f->step)) return;
  auto place = Place::Make(*f->run->device, f->run->host_out[o], v.bytes);
  if (!place.ok()) return;
  auto shared = std::make_shared<Place>(*std::move(place));
  auto t = TensorIn(shared, v.dtype, v.dims, v.rank);
  if (!t.ok()) return;
  {
    std::lock_guard lock(TheLedger().mu);
    TheLedger().walls[t->get()] = shared;
  }
  f->out(o)->Hold(*std::move(t));
}
tw_status* Allocate(const tw_frame* f, uint32_t o, const int64_t* dims, uint32_t rank) {
  FAIL_IF_INJECTED();
  tw_status* s = real.tensor->allocate(f, o, dims, rank);
  if (!s) Wall(KernelFrame::Of(f), o);
  return s;
}
tw_status* Give(const tw_frame* f, uint32_t o, tw_tensor* t) {
  FAIL_IF_INJECTED();
  return real.tensor->give(f, o, t);
}
tw_status* Forward(const tw_frame* f, uint32_t i, uint32_t o, const int64_t* dims, uint32_t rank) {
  FAIL_IF_INJECTED();
  return real.tensor->forward(f, i, o, dims, rank);
}
tw_status* ForwardPart(const tw_frame* f, uint32_t i, uint64_t first, uint32_t o, const int64_t* dims, uint32_t rank) {
  FAIL_IF_INJECTED();
  return real.tensor->forward_part(f, i, first, o, dims, rank);
}
tw_status* Keep(const tw_frame* f, uint32_t i, tw_tensor** out) {
  FAIL_IF_INJECTED();
  return Taken(real.tensor->keep(f, i, out));
}

// ---- resources ----
tw_status* Open(const tw_frame* f, const tw_resource_key* k, tw_status* (*make)(const tw_host* h, void* arg, void** out), void* arg,
                uint32_t o) {
  FAIL_IF_INJECTED();
  return real.resource->open(f, k, make, arg, o);
}
tw_status* Drop(const tw_frame* f, uint32_t i) {
  FAIL_IF_INJECTED();
  return real.resource->drop(f, i);
}
tw_status* Swap(const tw_frame* f, uint32_t i, void* object) {
  FAIL_IF_INJECTED();
  return real.resource->swap(f, i, object);
}
tw_status* Assign(const tw_frame* f, uint32_t i, tw_tensor* value) {
  FAIL_IF_INJECTED();
  return real.resource->assign(f, i, value);
}

// ---- the rest ----
tw_status* DescribeEdge(tw_builder* b, tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) {
  FAIL_IF_INJECTED();
  return real.graph->describe(b, e, out_dtype, out_shape);
}
void Complete(const tw_host* h, tw_token t, tw_status* s) {
  {
    std::lock_guard lock(TheLedger().mu);
    ++TheLedger().completed[t];
  }
  real.run->complete(h, t, s);
}

// Ends of calls by a timeline are counted, too.
struct CallToEnd {
  const tw_host* host;
  tw_token token;
};
const tw_timeline_set* RealTimelines(const tw_host* h) {
  return static_cast<const tw_timeline_set*>(real.query(h, TW_S(TW_TIMELINE_SET), 1));
}
tw_status* MakeTimeline(const tw_host* h, tw_timeline** out) {
  FAIL_IF_INJECTED();
  return RealTimelines(h)->create(h, out);
}
void EndCall(void* arg, const tw_status* why) {
  const std::unique_ptr<CallToEnd> call(static_cast<CallToEnd*>(arg));
  Complete(call->host, call->token, why ? ToC(why->status) : nullptr);
}
tw_status* CompleteAt(const tw_frame* f, tw_timeline* line, uint64_t value) {
  FAIL_IF_INJECTED();
  if (!f->token || !line) return RealTimelines(f->host)->complete_at(f, line, value);
  real.timeline->when(line, value, EndCall, new CallToEnd{f->host, f->token});
  return nullptr;
}
const void* Query(const tw_host* h, const char* set, uint64_t len, uint32_t version) {
  static const tw_timeline_set timelines = {TW_SIZED(tw_timeline_set), MakeTimeline, CompleteAt};
  const void* found = real.query(h, set, len, version);
  return found && std::string_view(set, len) == TW_TIMELINE_SET ? &timelines : found;
}

tw_status* Cancelled(const tw_frame* f) {
  FAIL_IF_INJECTED();
  return real.run->cancelled(f);
}
void Log(const tw_host* h, uint32_t level, const char* text, uint64_t len) {
  if (!TheLedger().quiet) real.run->log(h, level, text, len);
}
tw_status* Setting(const tw_host* h, const char* key, uint64_t len, tw_sink* to) {
  FAIL_IF_INJECTED();
  return real.setting(h, key, len, to);
}

// Changes the host table in place, because every call of this plugin and runtime passes that table.
void PlayHost(tw_host* h) {
  real = {h->status, h->tensor, h->resource, h->timeline, h->graph, h->run, h->setting, h->query};
  tw_tensor_api* tensor = Stage(*real.tensor);
  tensor->make = Make;
  tensor->reshape = Reshape;
  tensor->retain = Retain;
  tensor->release = Release;
  tensor->set_string = SetStringOf;
  tensor->allocate = Allocate;
  tensor->give = Give;
  tensor->forward = Forward;
  tensor->keep = Keep;
  tensor->forward_part = ForwardPart;
  tw_resource_api* resource = Stage(*real.resource);
  resource->open = Open;
  resource->drop = Drop;
  resource->swap = Swap;
  resource->assign = Assign;
  tw_graph_api* graph = Stage(*real.graph);
  graph->describe = DescribeEdge;
  tw_run_api* run = Stage(*real.run);
  run->complete = Complete;
  run->cancelled = Cancelled;
  run->log = Log;
  h->status = Stage(*real.status);
  h->tensor = tensor;
  h->resource = resource;
  h->timeline = Stage(*real.timeline);
  h->graph = graph;
  h->run = run;
  h->setting = Setting;
  h->query = Query;
  h->size = RecordSize<tw_host>();
  if (subject.play.older) h->minor = subject.plugin->floor;
}

// ---- ops: shape rules and gradient builders get their records in guarded memory ----

struct PlayedOp {
  tw_op_def def{};
  uint32_t n_in_at = 0;  // entries of in_at; 0: not known
  bool hasty = false;
};

const tw_view* const* CopyViews(Guarded* g, const tw_view* const* views, uint32_t n) {
  if (!views) return nullptr;
  const tw_view** out = g->Array(const_cast<const tw_view**>(views), n);
  for (uint32_t i = 0; i < n; ++i) {
    if (!views[i]) continue;
    tw_view* v = g->New(*views[i]);
    if (v->rank > 0) v->dims = g->Array(views[i]->dims, uint64_t(v->rank));
    out[i] = v;
  }
  return out;
}

tw_status* CallShape(const tw_shape_call* c) {
  const auto* op = static_cast<const PlayedOp*>(c->user);
  Guarded g(op->hasty);
  tw_shape_call* copy = g.New(*c);
  copy->user = op->def.user;
  copy->node = g.Text({c->node, c->node_len});
  copy->in = g.Shapes(c->in, c->n_in);
  copy->value = CopyViews(&g, c->value, c->n_in);
  copy->attrs = g.Attrs(c->attrs, c->n_attrs);
  copy->types = g.Array(c->types, c->n_in + c->n_out);
  if (op->n_in_at) copy->in_at = g.Array(c->in_at, op->n_in_at);
  return op->def.shape(copy);
}

tw_status* CallGradient(const tw_grad_call* c) {
  const auto* op = static_cast<const PlayedOp*>(c->user);
  Guarded g(op->hasty);
  tw_grad_call* copy = g.New(*c);
  copy->user = op->def.user;
  copy->node = g.Text({c->node, c->node_len});
  copy->shapes = g.Shapes(c->shapes, c->n_in + c->n_out);
  copy->value = CopyViews(&g, c->value, c->n_in);
  copy->attrs = g.Attrs(c->attrs, c->n_attrs);
  copy->types = g.Array(c->types, c->n_in + c->n_out);
  if (op->n_in_at) copy->in_at = g.Array(c->in_at, op->n_in_at);
  return op->def.gradient(copy);
}

template <class T>
T Sealed(const T* d) {
  T out{};
  std::memcpy(static_cast<void*>(&out), d, std::min(size_t{d->size} / 8 * 8, sizeof(T)));
  out.size = uint32_t(std::min<size_t>(d->size, sizeof(T)));
  return out;
}

// ---- the registrar ----

struct PlayedRegistrar {
  tw_registrar c;
  unsigned char tail[kTail];
  tw_registrar* to;
};
tw_registrar* To(tw_registrar* r) { return reinterpret_cast<PlayedRegistrar*>(r)->to; }

// Passes a definition on in place of the plugin's own, with the role and version that the plugin gave.
tw_status* PassOn(tw_registrar* r, const tw_role& role, const void* definition) {
  tw_role passed = role;
  passed.definition = definition;
  if (subject.play.older) passed.minor = role.floor;  // the host then ignores entries of later minors
  uint32_t& floor = subject.role_floors[std::string(role.name, role.name_len)];
  floor = std::max(floor, role.floor);
  return To(r)->role(To(r), &passed);
}

tw_status* AddOp(tw_registrar* r, const tw_role& role) {
  const auto* d = static_cast<const tw_op_def*>(role.definition);
  if (!d || d->size < 2 * sizeof(uint32_t)) return PassOn(r, role, d);
  PlayedOp& op = *new (Lasting(sizeof(PlayedOp))) PlayedOp;
  op.def = Sealed(d);
  op.hasty = subject.play.hasty;
  auto schema = ParseOpSchema({op.def.schema ? op.def.schema : "", op.def.schema ? op.def.schema_len : 0});
  if (schema.ok()) op.n_in_at = uint32_t(schema->inputs.size()) + 1;
  tw_op_def played = op.def;
  played.user = &op;
  if (op.def.shape) played.shape = CallShape;
  if (op.def.gradient) played.gradient = CallGradient;
  return PassOn(r, role, &played);
}

tw_status* AddDevice(tw_registrar* r, const tw_role& role) {
  const auto* d = static_cast<const tw_device_def*>(role.definition);
  if (!d || d->size < 2 * sizeof(uint32_t)) return PassOn(r, role, d);
  tw_device_def played = Sealed(d);
  const void* const sets[] = {played.streams,    played.pinned,  played.peer,    played.events,
                              played.statistics, played.capture, played.profile, played.dlpack};
  for (uint32_t i = 0; i < std::size(sets); ++i) subject.sets |= sets[i] ? 1u << i : 0;
  const uint32_t strip = subject.play.stripped;
  if (strip & kStreams) played.streams = nullptr;
  if (strip & kPinned) played.pinned = nullptr;
  if (strip & kPeer) played.peer = nullptr;
  if (strip & kEvents) played.events = nullptr;
  if (strip & kStatistics) played.statistics = nullptr;
  if (strip & kCapture) played.capture = nullptr;
  if (strip & kProfile) played.profile = nullptr;
  if (strip & kDlpack) played.dlpack = nullptr;
  return PassOn(r, role, &played);
}

tw_status* AddRole(tw_registrar* r, const tw_role* d) {
  FAIL_IF_INJECTED();
  if (!d || d->size < sizeof(tw_role) || !d->name) return To(r)->role(To(r), d);
  const std::string_view name(d->name, d->name_len);
  std::string fix;
  if (!CheckRoleVersion(name, d->major, d->floor, &fix).ok()) return To(r)->role(To(r), d);
  if (name == "op") return AddOp(r, *d);
  if (name == "device") return AddDevice(r, *d);
  return PassOn(r, *d, d->definition);
}

uint32_t Offers(tw_registrar* r, const char* role, uint64_t len, uint32_t major, uint32_t minor) {
  if (subject.play.older && minor > 0) return 0;
  return To(r)->offers(To(r), role, len, major, minor);
}

tw_status* PlayedInit(const tw_host* h, tw_registrar* r, void** out_instance) {
  if (!subject.plugin || !TW_HAS(subject.plugin, init) || !subject.plugin->init) {
    return tw_fail(h, TW_FAILED_PRECONDITION, TW_S("the descriptor of the plugin has no init; see rule 006"));
  }
  PlayHost(const_cast<tw_host*>(h));
  auto* played = new (Lasting(sizeof(PlayedRegistrar))) PlayedRegistrar{};
  std::memset(played->tail, kPoison, kTail);
  played->to = r;
  played->c = {RecordSize<tw_registrar>(), 0, AddRole, Offers};
  tw_status* s = subject.plugin->init(h, &played->c, out_instance);
  if (getpid() != subject.process) _exit(0);  // init forked this process; it must not continue as the parent
  if (!s) TheLedger().inits.fetch_add(1);
  return s;
}

void PlayedShutdown(const tw_host* h, void* instance) {
  TheLedger().shutdowns.fetch_add(1);
  if (TW_HAS(subject.plugin, shutdown) && subject.plugin->shutdown) subject.plugin->shutdown(h, instance);
}

}  // namespace

Ledger& TheLedger() {
  static auto* it = new Ledger;
  return *it;
}

void Ledger::FailAt(int64_t n) {
  calls = 0;
  failed = 0;
  fail_at = n;
}

std::shared_ptr<Place> Ledger::TakeWall(const tw_tensor* t) {
  std::lock_guard lock(mu);
  const auto at = walls.find(t);
  if (at == walls.end()) return nullptr;
  std::shared_ptr<Place> place = at->second.lock();
  walls.erase(at);
  return place;
}

void SetSubject(const tw_plugin* plugin, const Play& play) {
  subject.plugin = plugin;
  subject.process = getpid();
  subject.play = play;
  subject.played = Sealed(plugin);
  subject.played.init = PlayedInit;
  subject.played.shutdown = PlayedShutdown;
  subject.played.size = sizeof subject.played;
}

const tw_plugin* PlayedQuery(const tw_host_info*) { return &subject.played; }

uint32_t PlayedSize(uint32_t now, uint32_t at_floor) {
  if (subject.play.older) return at_floor;
  return now + (subject.play.newer ? kTail : 0);
}

uint32_t PlayedRoleFloor(std::string_view role) {
  const auto at = subject.role_floors.find(role);
  return at == subject.role_floors.end() ? 0 : at->second;
}

uint32_t PlayedFloor() { return subject.plugin ? subject.plugin->floor : 0; }

bool UsesLaterMinors() { return subject.plugin && subject.plugin->target > subject.plugin->floor; }

uint32_t SetsBrought() { return subject.sets; }

}  // namespace thalweg::conformance
