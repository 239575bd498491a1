#include "tools/conformance/kernel_call.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "framework/base/dtype.h"
#include "framework/graph/shape_inference.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/evaluate.h"
#include "framework/runtime/step/one_call_step.h"
#include "tools/conformance/gate.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/held.h"
#include "tools/conformance/place.h"

namespace thalweg::conformance {
namespace {

// Makes the record for fits, create and prepare.
tw_node* NodeRecord(const NodeRun& run, const std::vector<tw_shape>& shapes, Guarded* g) {
  const Node& n = *run.node;
  CAttrs attrs;
  n.FillC(&attrs);
  const auto n_in = uint32_t(n.n_in()), n_out = uint32_t(n.n_out());
  tw_node c{};
  c.size = RecordSize<std::remove_reference_t<decltype(c)>>();
  c.host = run.kernel->host;
  c.user = run.kernel->def.user;
  c.name = g->Text(n.name());
  c.name_len = n.name().size();
  c.op = g->Text(n.op().name);
  c.op_len = n.op().name.size();
  c.attrs = g->Attrs(attrs.data(), attrs.size());
  c.types = g->Array(n.types());
  c.shapes = g->Shapes(shapes.data(), shapes.size());
  c.in_at = g->Array(n.in_at());
  c.n_attrs = attrs.size();
  c.n_in = n_in;
  c.n_out = n_out;
  c.device = run.device->self();
  return g->New(c);
}

// Runs `f`; under the hasty host on a new thread, so that no two calls come on the same thread.
template <class F>
void OnSomeThread(bool hasty, F&& f) {
  if (!hasty) return f();
  std::thread(std::forward<F>(f)).join();
}

std::vector<tw_shape> AllShapes(const std::vector<Tensor>& inputs, const std::vector<Shape>& outputs) {
  std::vector<tw_shape> all;
  for (const Tensor& t : inputs) all.push_back({t.view().dims, t.rank(), 0});
  for (const Shape& s : outputs) all.push_back(s.c());
  return all;
}

// One execution: its values, its frame, and its results.
class Call {
 public:
  Call(World* world, const NodeRun& run, const CallSetting& how) : world_(*world), run_(run), how_(how), memory_(world->play().hasty) {
    step_.runtime = &world->runtime();
    step_.pool = &world->runtime().pool();
    step_.cancel = how.cancel;
    step_.container = &no_container_;
  }
  CallResult Execute(const std::vector<Tensor>& inputs, const std::vector<Shape>& outputs, uint64_t scratch) {
    CallResult r;
    promised_ = &outputs;
    r.status = Fill(inputs, outputs, scratch);
    if (!r.status.ok()) return r;
    const tw_token token = frame_->c.token;
    if (run_.opens()) r.status = OpenResources(frame_, shown_);
    if (r.status.ok()) {
      for (uint32_t i = 0; i < n_slots_ - uint32_t(outputs.size()); ++i) {
        if (opened_[i]) ShowDims(&shown_[i].view, shown_[i].view.dims, shown_[i].view.rank);
      }
      r.status = Enter(&r);
    } else if (run_.kernel->spec.async) {
      AsyncCalls::Get().Cancel(token);
    }
    TakeHeld();
    memory_.Close();
    if (stream_) {
      Status over = stream_->Drain();
      if (r.status.ok()) r.status = over;
    }
    Close();
    r.completion = CheckToken(token, r.status.ok());
    Collect(inputs, &r);
    return r;
  }

 private:
  Status Fill(const std::vector<Tensor>& inputs, const std::vector<Shape>& outputs, uint64_t scratch) {
    const Node& n = *run_.node;
    const auto n_in = uint32_t(n.n_in()), n_out = uint32_t(n.n_out());
    n_slots_ = n_in + n_out;
    slots_ = static_cast<Slot*>(memory_.Bytes((n_slots_ + n_in) * sizeof(Slot)));
    shown_ = slots_ + n_slots_;
    opened_.assign(n_in, nullptr);
    for (uint32_t i = 0; i < n_slots_ + n_in; ++i) {
      new (&slots_[i]) Slot{};
      slots_[i].view.size = sizeof(tw_view);
      slots_[i].view.dtype = n.types()[i < n_slots_ ? i : i - n_slots_];
    }
    for (uint32_t i = 0; i < n_in; ++i) RETURN_IF_ERROR(FillInput(i, inputs[i]));
    for (uint32_t o = 0; o < n_out; ++o) RETURN_IF_ERROR(FillOutput(n_in, o, outputs[o]));
    if (run_.device->has_streams()) {
      ASSIGN_OR_RETURN(stream_, Stream::Create(run_.device));
    }
    return MakeFrame(n_in, n_out, scratch);
  }

  Status FillInput(uint32_t i, const Tensor& t) {
    Slot& s = slots_[i];
    const DTypeInfo* info = FindDType(t.dtype());
    places_.emplace_back();
    if (!info || !info->plain || Keeps(i)) {
      Tensor value = t;
      if (!run_.host_in[i]) {
        ASSIGN_OR_RETURN(value, run_.device->FromHost(t));
      }
      s.Hold(std::move(value));
      ShowDims(&s.view, s.view.dims, s.view.rank);
      return Status();
    }
    ASSIGN_OR_RETURN(places_.back(), Place::Make(*run_.device, run_.host_in[i], t.bytes(), how_.inputs));
    RETURN_IF_ERROR(places_.back().Fill(t.data()));
    places_.back().Show(&s.view);
    ShowDims(&s.view, t.view().dims, t.rank());
    s.view.count = t.count();
    return Status();
  }

  Status FillOutput(uint32_t n_in, uint32_t o, const Shape& shape) {
    Slot& s = slots_[n_in + o];
    places_.emplace_back();
    s.view.rank = -1;
    if (!shape.known()) return Status();
    const DTypeInfo* info = FindDType(s.view.dtype);
    if (!info || !info->plain) {
      ASSIGN_OR_RETURN(Tensor t, Tensor::Make(s.view.dtype, shape));
      s.Hold(std::move(t));
      return Status();
    }
    ShowDims(&s.view, shape.dims().data(), shape.rank());
    if (Given(o)) return Status();
    uint64_t count = 1;
    for (int64_t d : shape.dims()) count *= uint64_t(d);
    s.view.count = count;
    if (const int32_t i = how_.inplace ? Overwritten(o, count * info->bytes) : -1; i >= 0) {
      shared_[n_in + o] = uint32_t(i);
      places_[size_t(i)].Show(&s.view);
      return Status();
    }
    ASSIGN_OR_RETURN(places_.back(), Place::Make(*run_.device, run_.host_out[o], count * info->bytes, how_.outputs));
    places_.back().Show(&s.view);
    return Status();
  }

  // Returns the flat input whose memory flat output o may reuse by the spec; -1: none.
  int32_t Overwritten(uint32_t o, uint64_t bytes) const {
    const std::vector<uint32_t>&in_at = run_.node->in_at(), &out_at = run_.node->out_at();
    for (size_t a = 0; a < run_.kernel->inplace.size(); ++a) {
      if (out_at[a] != o || out_at[a + 1] != o + 1) continue;
      for (int32_t arg : run_.kernel->inplace[a]) {
        const uint32_t i = in_at[size_t(arg)];
        const bool one = in_at[size_t(arg) + 1] == i + 1,
                   taken = std::any_of(shared_.begin(), shared_.end(), [&](auto& s) { return s.second == i; });
        if (one && !taken && bytes > 0 && places_[i].bytes() == bytes && run_.host_in[i] == run_.host_out[o]) return int32_t(i);
      }
    }
    return -1;
  }

  void ShowDims(tw_view* v, const int64_t* dims, int32_t rank) {
    v->rank = rank;
    v->dims = rank > 0 ? memory_.Array(dims, uint64_t(rank)) : nullptr;
  }

  // Keeps returns true if the kernel keeps the argument of flat input i; Given, if the kernel
  // forwards an input to that of flat output o.
  bool Keeps(uint32_t i) const {
    return Of(run_.node->in_at(), i, [&](size_t a) { return run_.kernel->keep[a] != 0; });
  }
  bool Given(uint32_t o) const {
    return Of(run_.node->out_at(), o, [&](size_t a) { return run_.kernel->view[a] >= 0; });
  }
  template <class F>
  static bool Of(const std::vector<uint32_t>& at, uint32_t flat, F&& is) {
    for (size_t a = 0; a + 1 < at.size(); ++a) {
      if (flat >= at[a] && flat < at[a + 1]) return is(a);
    }
    return false;
  }

  Status MakeFrame(uint32_t n_in, uint32_t n_out, uint64_t scratch) {
    std::vector<const tw_view*> views;
    for (uint32_t i = 0; i < n_slots_; ++i) views.push_back(&slots_[i].view);
    for (uint32_t i : run_.open_read) views[i] = &shown_[i].view;
    for (uint32_t i : run_.open_update) views[i] = &shown_[i].view;
    std::vector<Slot*> source;
    for (uint32_t i = 0; i < n_in; ++i) source.push_back(&slots_[i]);
    frame_ = memory_.New(KernelFrame{});
    tw_frame& f = frame_->c;
    f.size = RecordSize<std::remove_reference_t<decltype(f)>>();
    f.host = run_.kernel->host;
    f.state = run_.state;
    f.in = memory_.Array(views.data(), n_in);
    f.out = memory_.Array(views.data() + n_in, n_out);
    f.in_at = memory_.Array(run_.node->in_at());
    f.out_at = memory_.Array(run_.node->out_at());
    f.n_in = n_in;
    f.n_out = n_out;
    f.stream = stream_ ? stream_->c() : nullptr;
    f.step = 1;
    f.device = run_.device->self();
    frame_->run = &run_;
    frame_->step = &step_;
    frame_->source = memory_.Array(source);
    frame_->opened = opened_.data();
    if (scratch) {
      ASSIGN_OR_RETURN(scratch_, Place::Make(*run_.device, false, scratch, how_.outputs));
      tw_view v{};
      scratch_.Show(&v);
      f.scratch = v.data;
      f.scratch_offset = v.offset;
    }
    if (run_.kernel->spec.async) f.token = AsyncCalls::Get().Begin(&step_, 0);
    return Status();
  }

  Status Enter(CallResult* r) {
    std::optional<Gate> gate;
    if (how_.forget_host && stream_ && run_.device->def().streams.wait) RETURN_IF_ERROR(gate.emplace().Hold(stream_.get()));
    Status s;
    {
      std::unique_lock<std::mutex> lock;
      if (stream_) lock = std::unique_lock(stream_->mutex());
      OnSomeThread(world_.play().hasty, [&] {
        const SleepMeter meter(how_.watch);
        s = FromC(run_.kernel->def.execute(&frame_->c));
        r->slept = meter.Stop();
      });
    }
    for (uint32_t i = 0; how_.forget_host && stream_ && i < frame_->c.n_in; ++i) {
      if (run_.host_in[i] && places_[i].bytes()) RETURN_IF_ERROR(places_[i].Forget());
    }
    gate.reset();
    if (!run_.kernel->spec.async) return s;
    failed_at_once_ = !s.ok();
    if (s.ok() || !AsyncCalls::Get().Cancel(frame_->c.token)) s = step_.Wait();
    return s;
  }

  // Takes the tensors that the kernel put into slots, and destroys the slots, before memory_ is closed.
  void TakeHeld() {
    for (uint32_t i = 0; i < n_slots_; ++i) held_.push_back(std::move(slots_[i].held));
    for (uint32_t i = 0; i < n_slots_; ++i) slots_[i].~Slot();
    for (uint32_t i = 0; i < opened_.size(); ++i) shown_[i].~Slot();
  }

  // Releases the locks. memory_, and the frame in it, are closed by now.
  void Close() {
    KernelFrame f{};
    f.run = &run_;
    f.opened = opened_.data();
    CloseResources(&f);
  }

  std::string CheckToken(tw_token token, bool ok) const {
    if (!run_.kernel->spec.async) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time for a second completion
    std::lock_guard lock(TheLedger().mu);
    const int times = TheLedger().completed[token];
    TheLedger().completed.erase(token);
    if (times > 0 && failed_at_once_) return "the token was completed, and execute returned an error";
    if (times > 1) return StrCat("the token was completed ", times, " times");
    return ok && times == 0 ? "the token was not completed" : "";
  }

  void Collect(const std::vector<Tensor>& inputs, CallResult* r) {
    const auto n_in = uint32_t(inputs.size());
    const std::vector<uint32_t>& types = run_.node->types();
    r->shared = uint32_t(shared_.size());
    for (uint32_t i = 0; i < n_slots_; ++i) {
      const auto shares = shared_.find(i);
      const Place& place = places_[shares != shared_.end() ? shares->second : i];
      auto now = place.Get();
      if (!now.ok()) {
        if (r->status.ok()) r->status = now.status();
        return;
      }
      const bool overwritten = std::any_of(shared_.begin(), shared_.end(), [&](auto& s) { return s.second == i; });
      if (std::string changed = place.Changed(*now, i < n_in && !overwritten); !changed.empty() && r->breach.empty()) r->breach = changed;
      if (i >= n_in) CheckWall(held_[i], r);
      if (i < n_in || !r->status.ok()) continue;
      const bool fixed = !held_[i] && shares == shared_.end();
      r->untouched.push_back(fixed ? place.Untouched(*now, DTypeBytes(types[i])) : std::vector<bool>());
      auto out = Output(i, types[i], *now);
      if (!out.ok()) {
        r->status = out.status();
        r->outputs.clear();
        return;
      }
      r->outputs.push_back(*std::move(out));
    }
    auto scratch = scratch_.Get();
    if (scratch.ok() && r->breach.empty()) r->breach = scratch_.Changed(*scratch, false);
  }

  // Sets r->breach if the kernel wrote outside an output that it allocated.
  static void CheckWall(const Tensor& held, CallResult* r) {
    const std::shared_ptr<Place> wall = held ? TheLedger().TakeWall(held.get()) : nullptr;
    if (!wall || !r->breach.empty()) return;
    auto now = wall->Get();
    if (!now.ok()) return;
    if (std::string changed = wall->Changed(*now, false); !changed.empty()) r->breach = changed + " that the kernel allocated";
  }

  StatusOr<Tensor> Output(uint32_t i, uint32_t dtype, const Bytes& bytes) {
    const uint32_t o = i - uint32_t(run_.node->n_in());
    if (held_[i]) {
      const DTypeInfo* info = FindDType(dtype);
      if (!(*promised_)[o].Admits(held_[i].shape())) {
        return Internal("output ", o, " has shape ", held_[i].shape().text(), "; the shape rule promised ", (*promised_)[o].text());
      }
      if (!info || !info->plain || run_.host_out[o]) return held_[i];
      return run_.device->ToHost(held_[i]);
    }
    if (!(*promised_)[o].known() || bytes.empty()) return Internal("output ", o, " was left without a value");
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, (*promised_)[o]));
    if (t.bytes()) std::memcpy(t.data(), Place::ValueIn(bytes), t.bytes());
    return t;
  }

  World& world_;
  const NodeRun& run_;
  const CallSetting& how_;
  Guarded memory_;
  OneCallStep step_;
  const std::string no_container_;
  std::unique_ptr<Stream> stream_;
  const std::vector<Shape>* promised_ = nullptr;  // shapes of outputs by the shape rule
  Slot* slots_ = nullptr;
  Slot* shown_ = nullptr;  // per flat input; used for opened resources
  uint32_t n_slots_ = 0;
  std::vector<Resource*> opened_;  // per flat input; not in memory_, which is closed before Close
  KernelFrame* frame_ = nullptr;
  std::vector<Place> places_;            // per slot
  std::map<uint32_t, uint32_t> shared_;  // slot of an output -> input whose memory it shares
  bool failed_at_once_ = false;          // execute of an asynchronous kernel returned an error
  std::vector<Tensor> held_;             // per slot: the tensor that it held after the call
  Place scratch_;
};

}  // namespace

PreparedKernel::PreparedKernel(World* world, const Node* node, const KernelDef* kernel, Device* device) : world_(world) {
  run_.node = node;
  run_.kernel = kernel;
  run_.device = device;
  run_.types = node->types().data();
  ResolveArguments(&run_);
}

StatusOr<std::unique_ptr<PreparedKernel>> PreparedKernel::Make(World* world, const Node* node, const KernelDef* kernel, Device* device,
                                                               const std::vector<Tensor>& inputs, const HeldBy& held) {
  std::unique_ptr<PreparedKernel> p(new PreparedKernel(world, node, kernel, device));
  p->held_ = held;
  RETURN_IF_ERROR(p->Prepare(inputs));
  return p;
}

std::unique_ptr<PreparedKernel> PreparedKernel::Around(World* world, const Node* node, const KernelDef* kernel, Device* device, void* state,
                                                       std::vector<Shape> output_shapes, uint64_t scratch) {
  std::unique_ptr<PreparedKernel> p(new PreparedKernel(world, node, kernel, device));
  p->run_.state = state;
  p->shapes_ = std::move(output_shapes);
  p->scratch_ = scratch;
  p->owned_ = false;
  return p;
}

Status PreparedKernel::Prepare(const std::vector<Tensor>& inputs) {
  const bool hasty = world_->play().hasty;
  std::vector<Tensor> values;
  for (uint32_t i = 0; i < inputs.size(); ++i) values.push_back(run_.host_in[i] && !held_.count(i) ? inputs[i] : Tensor());
  std::vector<HandleInfo> infos;
  ShapeAnswer answer;
  RETURN_IF_ERROR(InferShapes(*run_.node, AllShapes(inputs, {}), values, InfosOf(held_, inputs.size(), &infos), &answer));
  shapes_ = answer.shapes;
  const std::vector<tw_shape> shapes = AllShapes(inputs, shapes_);
  const tw_kernel_def& def = run_.kernel->def;
  run_.state = def.user;
  if (def.fits) {
    Guarded g(hasty);
    tw_node* record = NodeRecord(run_, shapes, &g);
    tw_status* s = nullptr;
    OnSomeThread(hasty, [&] { s = def.fits(record); });
    if (s) {
      run_.kernel = nullptr;  // nothing to destroy
      return FromC(s);
    }
  }
  if (def.create) {
    run_.state = nullptr;
    Guarded g(hasty);
    tw_node* record = NodeRecord(run_, shapes, &g);
    tw_status* s = nullptr;
    void* state = nullptr;
    OnSomeThread(hasty, [&] { s = def.create(record, &state); });
    if (s) {
      run_.kernel = nullptr;  // nothing to destroy
      return FromC(s);
    }
    run_.state = state;
  }
  bool known = def.prepare != nullptr;
  for (const Shape& s : shapes_) known = known && s.known();
  if (!known) return Status();
  Guarded g(hasty);
  tw_node* record = NodeRecord(run_, shapes, &g);
  Status s;
  OnSomeThread(hasty, [&] { s = FromC(def.prepare(record, run_.state, &scratch_)); });
  return s;
}

PreparedKernel::~PreparedKernel() {
  if (!owned_ || !run_.kernel) return;
  const tw_kernel_def& def = run_.kernel->def;
  if (def.create && def.destroy) def.destroy(run_.kernel->host, run_.state);
}

CallResult PreparedKernel::Execute(const std::vector<Tensor>& inputs, const CallSetting& how) const {
  if (!held_.empty()) {
    auto state = State::Make(world_, run_.device, held_);
    CallResult r;
    r.status = state.status();
    return state.ok() ? ExecuteOn(**state, inputs, how) : r;
  }
  Call call(world_, run_, how);
  return call.Execute(inputs, shapes_, scratch_);
}

CallResult PreparedKernel::ExecuteOn(const State& state, const std::vector<Tensor>& inputs, const CallSetting& how) const {
  CallResult r;
  {
    Call call(world_, run_, how);
    r = call.Execute(state.WithHandles(inputs), shapes_, scratch_);
  }
  if (r.breach.empty()) r.breach = state.Breach(run_.open_update);
  if (!r.status.ok()) return r;
  auto contents = state.Contents();
  if (!contents.ok()) {
    r.status = contents.status();
    return r;
  }
  for (Tensor& t : *contents) r.outputs.push_back(std::move(t));
  return r;
}

CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const std::vector<Tensor>& inputs,
                      const HeldBy& held, const CallSetting& how) {
  auto prepared = PreparedKernel::Make(world, node, kernel, device, inputs, held);
  if (prepared.ok()) return (*prepared)->Execute(inputs, how);
  CallResult r;
  r.status = prepared.status();
  return r;
}

}  // namespace thalweg::conformance
