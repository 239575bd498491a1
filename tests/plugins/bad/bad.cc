// Plugins that each do one thing wrong: -DBAD_<NAME>. bad_plugins_test.c checks the outcome of
// each.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "thalweg/plugin/plugin.h"

#if defined(BAD_NO_ENTRY)

extern "C" __attribute__((visibility("default"))) int tw_bad_without_entry() { return 1; }

#else

namespace {

tw_status* Double(const tw_frame* f) {
  for (uint64_t i = 0; i < f->in[0]->count; ++i) {
    static_cast<float*>(f->out[0]->data)[i] = 2 * static_cast<const float*>(f->in[0]->data)[i];
  }
  return nullptr;
}
#if defined(BAD_ALLOCATE_ANSWERS_NOTHING) || defined(BAD_UNLOADED_IN_USE)
tw_status* Enumerate(const tw_host*, void*, tw_device_list* to) {
  tw_device_info d = {TW_SIZED(tw_device_info), TW_S("bad-0"), TW_S("a bad device"), nullptr, 0, 0};
  return to->add(to, &d);
}
tw_status* Allocate(const tw_host* h, void*, const tw_allocation* a, void** out_memory) {
#if defined(BAD_ALLOCATE_ANSWERS_NOTHING)
  (void)h, (void)a, (void)out_memory;
  return nullptr;
#else
  *out_memory = std::aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  return *out_memory ? nullptr : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory"));
#endif
}
void Release(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }
tw_status* Copy(const tw_host*, void*, const tw_copy* c) {
  std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
  return nullptr;
}
#endif
#if defined(BAD_KERNEL_CRASHES)
tw_status* Crash(const tw_frame*) {
  raise(SIGKILL);
  return nullptr;
}
#endif
#if defined(BAD_KERNEL_SETS_NO_OUTPUT)
tw_status* Nothing(const tw_frame*) { return nullptr; }
#endif
#if defined(BAD_NEEDS_A_LIBRARY)
extern "C" int tw_test_needed();
#endif
#if defined(BAD_UNRESOLVED)
extern "C" void tw_symbol_that_nobody_has();
#endif

tw_status* Init(const tw_host* h, tw_registrar* r, void**) {
  tw_op_def op = {TW_SIZED(tw_op_def), TW_S("BadOp(x: float[*s]) -> (y: float[*s])"), nullptr, nullptr, nullptr};
  tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("BadOp(float) @CPU"), nullptr, nullptr, Double, nullptr, nullptr};
  (void)h;
#if defined(BAD_UNRESOLVED)
  tw_symbol_that_nobody_has();
#elif defined(BAD_NEEDS_A_LIBRARY)
  if (tw_test_needed() != 1) return tw_fail(h, TW_INTERNAL, TW_S("the library is another one"));
#elif defined(BAD_SIZE_ZERO)
  op.size = 0;
#elif defined(BAD_SIZE_SMALLER)
  kernel.size = 16;
#elif defined(BAD_SIZE_LARGER)
  op.size = 4096;  // a later runtime's record: only the known part is read
#elif defined(BAD_NULL_CALLBACK)
  kernel.execute = nullptr;
#elif defined(BAD_KERNEL_OF_NOTHING)
  kernel.spec = "NoSuchOp(float) @CPU";
  kernel.spec_len = std::strlen(kernel.spec);
#elif defined(BAD_TYPE)
  op.schema = "BadOp(x: T) -> (y: T); T: {float, floaty}";
  op.schema_len = std::strlen(op.schema);
#elif defined(BAD_INIT_FAILS)
  return tw_fail(h, TW_UNAVAILABLE, TW_S("the licence has ended"));
#elif defined(BAD_INIT_THROWS)
  throw std::runtime_error("surprise");
#elif defined(BAD_INIT_BLOCKS)
  sleep(60);
#elif defined(BAD_INIT_EXITS)
  std::_Exit(0);
#elif defined(BAD_FREES_THE_HOST)
  for (int i = 0; i < 2; ++i) {
    void* volatile theirs = const_cast<tw_host*>(h);
    std::free(theirs);
  }
#elif defined(BAD_KERNEL_CRASHES)
  kernel.execute = Crash;
#elif defined(BAD_KERNEL_SETS_NO_OUTPUT)
  op.schema = "BadOp(x: float) -> (y: float)";
  op.schema_len = std::strlen(op.schema);
  kernel.execute = Nothing;
#elif defined(BAD_ALLOCATE_ANSWERS_NOTHING) || defined(BAD_UNLOADED_IN_USE)
  kernel.spec = "BadOp(float) @BAD";
  kernel.spec_len = std::strlen(kernel.spec);
  tw_device_def device = {};
  device.size = sizeof device;
  device.kind = "BAD";
  device.kind_len = 3;
  device.enumerate = Enumerate;
  device.allocate = Allocate;
  device.release = Release;
  device.copy = Copy;
  TW_TRY(tw_add_device(r, &device));
#endif
  TW_TRY(tw_add_op(r, &op));
  TW_TRY(tw_add_kernel(r, &kernel));
#if defined(BAD_KERNEL_TWICE)
  TW_TRY(tw_add_kernel(r, &kernel));
#endif
  return nullptr;
}

#if defined(BAD_TOO_NEW)
constexpr uint32_t kEpoch = TW_EPOCH + 1;
#elif defined(BAD_TOO_OLD)
constexpr uint32_t kEpoch = TW_EPOCH - 1;
#else
constexpr uint32_t kEpoch = TW_EPOCH;
#endif
#if defined(BAD_DESCRIPTOR_SHORT)
constexpr uint32_t kSize = 40;
#else
constexpr uint32_t kSize = sizeof(tw_plugin);
#endif
#if defined(BAD_SAME_OP)
#define BAD_ID "org.test.same_op"
#else
#define BAD_ID "org.test.bad"
#endif
constexpr tw_plugin kPlugin = {kSize, 0, kEpoch, 0, 0, 0, TW_S(BAD_ID), TW_S("1"), TW_S("the test"), TW_S(TW_BUILD), Init, nullptr};

}  // namespace

TW_ENTRY TW_QUERY(const tw_host_info*);
TW_ENTRY TW_QUERY(const tw_host_info*) { return &kPlugin; }

#endif
