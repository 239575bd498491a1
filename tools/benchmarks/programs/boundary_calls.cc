// Calls a plugin's kernels on frames laid out as the executor keeps them, without a runtime, and
// virtual calls that do the same work.
#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "boundary_worker.h"
#include "thalweg/plugin/plugin.h"

namespace {

constexpr int kWarmCalls = 10000;
constexpr uint32_t kFirst[] = {0, 1};  // an op with one input and one output, one entry each

using Execute = tw_status* (*)(const tw_frame*);

Execute bare, sugar;
float x = 1, y;  // shared by all nodes; the way to a kernel is what differs

// ---- The least of a host that init needs ----

tw_status* IgnoreOp(tw_registrar*, const tw_op_def*) { return nullptr; }

tw_status* KeepKernel(tw_registrar*, const tw_kernel_def* d) {
  const std::string_view spec(d->spec, d->spec_len);
  if (spec.starts_with("IncrementBare")) bare = d->execute;
  if (spec.starts_with("Increment(")) sugar = d->execute;
  return nullptr;
}

// ---- A node and its frame ----

struct Call {
  Execute execute;
  tw_frame frame;
  tw_view in, out;
  const tw_view *ins[1], *outs[1];
};

tw_view ScalarView(float* data) {
  tw_view v{};
  v.size = sizeof v;
  v.data = data;
  v.dtype = TW_FLOAT;
  v.count = 1;
  v.bytes = sizeof *data;
  return v;
}

void Fill(Call* c, Execute execute) {
  *c = {};
  c->execute = execute;
  c->in = ScalarView(&x);
  c->out = ScalarView(&y);
  c->ins[0] = &c->in;
  c->outs[0] = &c->out;
  c->frame.size = sizeof c->frame;
  c->frame.in = c->ins;
  c->frame.out = c->outs;
  c->frame.in_at = c->frame.out_at = kFirst;
  c->frame.n_in = c->frame.n_out = 1;
}

[[gnu::noinline]] void RunCalls(void* user) {
  for (Call& c : *static_cast<std::vector<Call>*>(user)) {
    if (c.execute(&c.frame)) worker_fail("a kernel failed");
  }
}

[[gnu::noinline]] void RunOneCall(void* user) {
  Call* c = static_cast<Call*>(user);
  for (int i = 0; i < kWarmCalls; ++i) {
    if (c->execute(&c->frame)) worker_fail("the kernel failed");
    asm volatile("" : : : "memory");
  }
}

// ---- The same without a boundary ----

class Step {
 public:
  virtual ~Step() = default;
  virtual const char* Run() = 0;  // nullptr: fine
};

// As large as the record of a node above, so that a loop over many steps touches memory at the same
// distances.
class IncrementStep final : public Step {
 public:
  IncrementStep(const float* in, float* out) : in_(in), out_(out) {}
  const char* Run() override {
    *out_ = *in_ + 1;
    return nullptr;
  }

 private:
  const float* in_;
  float* out_;
  [[maybe_unused]] char rest_[sizeof(Call) - sizeof(Step) - 2 * sizeof(float*)];
};

// With only one class, the compiler could devirtualise the call.
class EmptyStep final : public Step {
 public:
  const char* Run() override { return nullptr; }
};

[[gnu::noipa]] std::unique_ptr<Step> MakeStep(bool empty) {
  if (empty) return std::make_unique<EmptyStep>();
  return std::make_unique<IncrementStep>(&x, &y);
}

[[gnu::noinline]] void RunSteps(void* user) {
  for (const auto& s : *static_cast<std::vector<std::unique_ptr<Step>>*>(user)) {
    if (s->Run()) worker_fail("a step failed");
  }
}

[[gnu::noinline]] void RunOneStep(void* user) {
  Step* s = static_cast<Step*>(user);
  for (int i = 0; i < kWarmCalls; ++i) {
    if (s->Run()) worker_fail("the step failed");
    asm volatile("" : : : "memory");
  }
}

void ReplyCall(Execute execute, const char* argument) {
  if (!execute) worker_fail("load comes first");
  Call c;
  Fill(&c, execute);
  worker_reply_time(RunOneCall, &c, worker_number(argument), 1, kWarmCalls);
}

void ReplyCalls(Execute execute, const char* argument) {
  if (!execute) worker_fail("load comes first");
  std::vector<Call> calls(kNodes);
  for (Call& c : calls) Fill(&c, execute);
  worker_reply_time(RunCalls, &calls, worker_number(argument), 1, kNodes);
}

}  // namespace

void LoadKernels(const char* plugin) {
  void* file = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  auto query = file ? reinterpret_cast<tw_query_fn>(dlsym(file, "tw_plugin_query_v0")) : nullptr;
  if (!query) worker_fail("cannot open '%s': %s", plugin, dlerror());
  tw_host host{};
  host.size = sizeof host;
  tw_registrar registrar{};
  registrar.size = sizeof registrar;
  registrar.op = IgnoreOp;
  registrar.kernel = KeepKernel;
  const tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("boundary_worker")};
  void* instance = nullptr;
  if (query(&info)->init(&host, &registrar, &instance) || !bare || !sugar) worker_fail("'%s' does not register its kernels", plugin);
  for (Execute execute : {bare, sugar}) {
    Call c;
    Fill(&c, execute);
    y = 0;
    if (execute(&c.frame) || y != x + 1) worker_fail("a kernel computes %g instead of %g", double(y), double(x + 1));
  }
}

void AnswerBareCall(const char* argument) { ReplyCall(bare, argument); }
void AnswerSugarCall(const char* argument) { ReplyCall(sugar, argument); }
void AnswerVirtualCall(const char* argument) {
  const auto step = MakeStep(false);
  worker_reply_time(RunOneStep, step.get(), worker_number(argument), 1, kWarmCalls);
}

void AnswerBareCalls(const char* argument) { ReplyCalls(bare, argument); }
void AnswerSugarCalls(const char* argument) { ReplyCalls(sugar, argument); }
void AnswerVirtualCalls(const char* argument) {
  std::vector<std::unique_ptr<Step>> steps;
  for (int i = 0; i < kNodes; ++i) steps.push_back(MakeStep(false));
  worker_reply_time(RunSteps, &steps, worker_number(argument), 1, kNodes);
}
