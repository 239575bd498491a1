#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/registry/registrar.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::FakeHost;
using testing_support::TakeText;
using testing_support::Text;

tw_status* Nothing(const tw_frame*) { return nullptr; }
tw_status* NoShape(const tw_shape_call*) { return nullptr; }
tw_status* NoGradient(const tw_grad_call*) { return nullptr; }
void DestroyNothing(const tw_host*, void*) {}
tw_status* EnumerateNone(const tw_host*, void*, tw_device_list*) { return nullptr; }
tw_status* AllocateNone(const tw_host*, void*, const tw_allocation*, void**) { return nullptr; }
void ReleaseNone(const tw_host*, void*, void*, uint64_t) {}
tw_status* CopyNone(const tw_host*, void*, const tw_copy*) { return nullptr; }
tw_status* CreateNone(const tw_host*, void*, const tw_stream_config*, void**) { return nullptr; }
tw_status* SignalNone(const tw_host*, void*, uint64_t) { return nullptr; }

// Makes the calls of a plugin's init that tests need.
class Init {
 public:
  explicit Init(std::string plugin) : registrar_(&host_.c, std::move(plugin), &registration_) {}
  tw_registrar* c() { return registrar_.c(); }
  Init& Op(std::string_view schema) {
    tw_op_def d{TW_SIZED(tw_op_def), schema.data(), schema.size(), nullptr, nullptr, nullptr};
    message_ = TakeText(tw_add_op(c(), &d));
    return *this;
  }
  Init& Kernel(std::string_view spec) {
    tw_kernel_def d{TW_SIZED(tw_kernel_def), spec.data(), spec.size(), nullptr, nullptr, Nothing, nullptr, nullptr};
    message_ = TakeText(tw_add_kernel(c(), &d));
    return *this;
  }
  Init& Type(std::string_view type) {
    tw_resource_def d{TW_SIZED(tw_resource_def), type.data(), type.size(), 1, nullptr, DestroyNothing, nullptr, nullptr};
    message_ = TakeText(tw_add_resource(c(), &d));
    return *this;
  }
  Init& Kind(std::string_view kind, const tw_stream_set* streams = nullptr) {
    tw_device_def d{
        TW_SIZED(tw_device_def), kind.data(), kind.size(), nullptr, EnumerateNone, AllocateNone, ReleaseNone, CopyNone, streams};
    message_ = TakeText(tw_add_device(c(), &d));
    return *this;
  }
  const std::string& message() const { return message_; }  // of the last call's error
  Registration& registration() { return registration_; }
  Status Commit(Registry* to) { return to->Commit(std::move(registration_)); }
  const tw_host* host() const { return &host_.c; }
  // Keeps the registrations committed so far, and starts the next ones.
  Init& Later() {
    registration_.read_later = true;
    return *this;
  }
  void set_minor(uint32_t minor) { host_.c.minor = minor; }  // the minor version agreed with this plugin

 private:
  FakeHost host_;
  Registration registration_;
  Registrar registrar_;
  std::string message_;
};

// ---- Sealing ----

TEST(RegistrarTest, KeepsTextsOfItsOwn) {
  Init init("org.a");
  {
    std::string schema = "F(x: float) -> (y: float)", spec = "F(float) @cpu; cheap";
    init.Op(schema).Kernel(spec);
    schema.assign(schema.size(), '#');
    spec.assign(spec.size(), '#');
  }
  ASSERT_EQ(init.registration().ops.size(), 1u);
  const OpSchema& op = *init.registration().ops[0];
  EXPECT_EQ(std::string_view(op.def.schema, op.def.schema_len), "F(x: float) -> (y: float)");
  EXPECT_EQ(op.plugin, "org.a");
  EXPECT_EQ(op.host, init.host());
  const KernelDef& k = *init.registration().kernels[0];
  EXPECT_EQ(std::string_view(k.def.spec, k.def.spec_len), "F(float) @cpu; cheap");
}

TEST(RegistrarTest, LeavesOptionalEntriesWithAHostDefaultEmpty) {
  Init init("org.a");
  init.Op("F() -> ()").Kernel("F @CPU").Kind("GPU");
  EXPECT_EQ(init.registration().ops[0]->def.shape, nullptr);
  EXPECT_EQ(init.registration().ops[0]->def.gradient, nullptr);
  EXPECT_EQ(init.registration().kernels[0]->def.create, nullptr);
  EXPECT_EQ(init.registration().kernels[0]->def.destroy, nullptr);
  EXPECT_EQ(init.registration().kernels[0]->def.prepare, nullptr);
  EXPECT_FALSE(init.registration().devices[0]->has_streams);
}

TEST(RegistrarTest, LetsAbsentCapabilitiesAnswerUnimplemented) {
  Init init("org.a");
  init.Type("org.a.table");
  const tw_resource_def& d = init.registration().resources[0]->def;
  Status save = FromC(d.save(init.host(), nullptr, nullptr));
  Status restore = FromC(d.restore(init.host(), nullptr, 1, nullptr, nullptr));
  EXPECT_EQ(save.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(restore.code(), absl::StatusCode::kUnimplemented);
}

TEST(RegistrarTest, ReadsNoFurtherThanTheSizeSays) {
  // The definition of an older plugin: `gradient` is beyond its size, and the bytes there are not
  // part of it.
  Init init("org.a");
  std::string_view schema = "F() -> ()";
  tw_op_def d{TW_SIZED(tw_op_def), schema.data(), schema.size(), nullptr, NoShape, NoGradient};
  d.size = offsetof(tw_op_def, gradient);
  EXPECT_EQ(TakeText(tw_add_op(init.c(), &d)), "");
  EXPECT_EQ(init.registration().ops[0]->def.shape, &NoShape);
  EXPECT_EQ(init.registration().ops[0]->def.gradient, nullptr);
  EXPECT_EQ(init.registration().ops[0]->def.size, sizeof(tw_op_def));
}

TEST(RegistrarTest, TakesAHalfCoveredFieldForAbsent) {
  Init init("org.a");
  std::string_view schema = "F() -> ()";
  tw_op_def d{TW_SIZED(tw_op_def), schema.data(), schema.size(), nullptr, NoShape, NoGradient};
  d.size = offsetof(tw_op_def, gradient) + 4;
  EXPECT_EQ(TakeText(tw_add_op(init.c(), &d)), "");
  EXPECT_EQ(init.registration().ops[0]->def.gradient, nullptr);
}

TEST(RegistrarTest, AcceptsRecordsOfANewerPlugin) {
  struct Newer {
    tw_op_def d;
    uint64_t more[4];
  } newer{{TW_SIZED(Newer), TW_S("F() -> ()"), nullptr, nullptr, nullptr}, {~0ull, ~0ull, ~0ull, ~0ull}};
  Init init("org.a");
  EXPECT_EQ(TakeText(tw_add_op(init.c(), &newer.d)), "");
}

TEST(RegistrarTest, RefusesUnknownFlags) {
  Init init("org.a");
  tw_op_def d{TW_SIZED(tw_op_def), TW_S("F() -> ()"), nullptr, nullptr, nullptr};
  d.flags = 4;
  EXPECT_EQ(TakeText(tw_add_op(init.c(), &d)), "op definition: flags 4 are unknown to this runtime");
}

TEST(RegistrarTest, RefusesDefinitionsThatLackWhatIsRequired) {
  Init init("org.a");
  tw_registrar* r = init.c();
  EXPECT_EQ(TakeText(tw_add_op(r, nullptr)), "op definition is NULL");
  tw_op_def no_size{};
  EXPECT_THAT(TakeText(tw_add_op(r, &no_size)), HasSubstr("size is 0"));
  tw_op_def no_schema{TW_SIZED(tw_op_def), nullptr, 3, nullptr, nullptr, nullptr};
  EXPECT_EQ(TakeText(tw_add_op(r, &no_schema)), "op definition: schema is missing");
  tw_op_def long_schema{TW_SIZED(tw_op_def), "x", ~0ull, nullptr, nullptr, nullptr};
  EXPECT_THAT(TakeText(tw_add_op(r, &long_schema)), HasSubstr("the most is"));
  tw_kernel_def no_execute{TW_SIZED(tw_kernel_def), TW_S("F @CPU"), nullptr, nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(TakeText(tw_add_kernel(r, &no_execute)), "kernel 'F @CPU': required entry 'execute' is missing");
  tw_resource_def no_destroy{TW_SIZED(tw_resource_def), TW_S("t"), 1, nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(TakeText(tw_add_resource(r, &no_destroy)), "resource type 't': required entry 'destroy' is missing");
  tw_device_def no_copy{TW_SIZED(tw_device_def), TW_S("GPU"), nullptr, EnumerateNone, AllocateNone, ReleaseNone, nullptr, nullptr};
  EXPECT_EQ(TakeText(tw_add_device(r, &no_copy)), "device kind 'GPU': required entry 'copy' is missing");
  tw_stream_set no_signal{TW_SIZED(tw_stream_set), CreateNone, DestroyNothing, nullptr, nullptr};
  EXPECT_EQ(init.Kind("GPU", &no_signal).message(), "device kind 'GPU': required entry 'streams.signal' is missing");
  EXPECT_THAT(init.Kind("GPU:0").message(), HasSubstr("letters, digits and _"));
}

TEST(RegistrarTest, CopiesTheStreamSetToo) {
  Init init("org.a");
  {
    tw_stream_set streams{TW_SIZED(tw_stream_set), CreateNone, DestroyNothing, SignalNone, nullptr};
    init.Kind("gpu", &streams);
    streams = {};
  }
  const DeviceKind& k = *init.registration().devices[0];
  EXPECT_EQ(k.kind, "GPU");
  EXPECT_TRUE(k.has_streams);
  EXPECT_EQ(k.streams.signal, &SignalNone);
  EXPECT_EQ(k.def.streams, &k.streams);
}

TEST(RegistrarTest, RefusesAGradientThatIsSaidNotToBe) {
  Init init("org.a");
  tw_op_def d{TW_SIZED(tw_op_def), TW_S("F() -> (); no_gradient \"why\""), nullptr, nullptr, NoGradient};
  EXPECT_THAT(TakeText(tw_add_op(init.c(), &d)), HasSubstr("says no_gradient but has a gradient callback"));
}

TEST(RegistrarTest, RemembersTheFirstRefusalEvenIfThePluginDoesNot) {
  Registry registry;
  Init init("org.a");
  init.Op("F() -> (); bogus").Op("G() -> ()");
  EXPECT_THAT(Text(init.Commit(&registry)), HasSubstr("unknown clause 'bogus'"));
  EXPECT_THAT(registry.Ops(), IsEmpty());
}

// ---- Commit ----

TEST(RegistryTest, FindsWhatWasCommitted) {
  Registry registry;
  Init init("org.a");
  init.Op("B(x: T) -> (y: T); T: type; role twin").Op("A() -> ()").Kernel("B(float) @CPU").Type("org.a.t").Kind("CPU");
  ASSERT_TRUE(init.Commit(&registry).ok());
  ASSERT_NE(registry.FindOp("B"), nullptr);
  EXPECT_EQ(registry.FindOp("C"), nullptr);
  EXPECT_EQ((*registry.FindRole("twin"))->name, "B");
  EXPECT_EQ(registry.FindRole("sum").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(registry.Ops().size(), 2u);
  EXPECT_EQ(registry.Ops()[0]->name, "A");
  EXPECT_EQ(registry.Kernels("B").size(), 1u);
  EXPECT_NE(registry.FindResourceType("org.a.t"), nullptr);
  EXPECT_EQ(registry.FindResourceType("t"), nullptr);
  EXPECT_EQ(registry.DeviceKinds().size(), 1u);
}

TEST(RegistryTest, TakesAllOfAPluginOrNothing) {
  Registry registry;
  Init init("org.a");
  init.Op("A() -> ()").Kernel("A @CPU").Kernel("Missing @CPU").Kind("CPU");
  Status s = init.Commit(&registry);
  EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Text(s), "kernel 'Missing @CPU' of plugin 'org.a': no op 'Missing' is registered; load the plugin that defines it first");
  EXPECT_EQ(registry.FindOp("A"), nullptr);
  EXPECT_THAT(registry.DeviceKinds(), IsEmpty());
  EXPECT_THAT(registry.Kernels("A"), IsEmpty());
}

TEST(RegistryTest, NamesBothPluginsOfAConflict) {
  Registry registry;
  Init a("org.a"), op("org.b"), role("org.b"), type("org.b"), kind("org.b"), twice("org.b"), variable("org.b");
  ASSERT_TRUE(a.Op("F() -> (); role r").Type("t").Kind("GPU").Commit(&registry).ok());
  Status s = op.Op("F() -> ()").Commit(&registry);
  EXPECT_EQ(s.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Text(s), "op 'F' of plugin 'org.b' is already registered by plugin 'org.a', which was loaded first; disable one of the two");
  EXPECT_THAT(Text(role.Op("G() -> (); role r").Commit(&registry)),
              HasSubstr("role 'r' of plugin 'org.b' is already registered by plugin 'org.a'"));
  EXPECT_THAT(Text(type.Type("t").Commit(&registry)), HasSubstr("resource type 't'"));
  EXPECT_THAT(Text(kind.Kind("gpu").Kind("GPU").Commit(&registry)), HasSubstr("device kind 'GPU' is registered twice by plugin 'org.b'"));
  EXPECT_THAT(Text(twice.Op("H() -> ()").Op("H() -> ()").Commit(&registry)), HasSubstr("registered twice by plugin 'org.b'"));
  EXPECT_THAT(Text(variable.Type(TW_VARIABLE_TYPE).Commit(&registry)), HasSubstr("the runtime itself"));
}

TEST(RegistryTest, ResolvesTheArgumentNamesOfAKernel) {
  Registry registry;
  Init init("org.a");
  init.Op("F(v: resource, x: T, s: Tin) -> (y: T, n: int32); T: type; Tin: list(type)")
      .Kernel("F(resource, float, _ -> float, int32) @GPU; host n x; keep x; update v; inplace y=x y=s; view n=x");
  Status s = init.Commit(&registry);
  ASSERT_TRUE(s.ok()) << s;
  const KernelDef& k = *registry.Kernels("F")[0];
  EXPECT_EQ(k.op, registry.FindOp("F"));
  EXPECT_THAT(k.host_in, ElementsAre(0, 1, 0));
  EXPECT_THAT(k.host_out, ElementsAre(0, 1));
  EXPECT_THAT(k.keep, ElementsAre(0, 1, 0));
  EXPECT_THAT(k.read, ElementsAre(0, 0, 0));
  EXPECT_THAT(k.update, ElementsAre(1, 0, 0));
  EXPECT_THAT(k.inplace, ElementsAre(ElementsAre(1, 2), IsEmpty()));
  EXPECT_THAT(k.view, ElementsAre(-1, 1));
}

TEST(RegistryTest, WhatAKernelReplacesIsOpenForUpdate) {
  Registry registry;
  Init init("org.a");
  init.Op("F(v: resource, w: resource) -> ()").Kernel("F @GPU; update v; replace w");
  Status s = init.Commit(&registry);
  ASSERT_TRUE(s.ok()) << s;
  const KernelDef& k = *registry.Kernels("F")[0];
  EXPECT_THAT(k.update, ElementsAre(1, 1));
  EXPECT_THAT(k.replace, ElementsAre(0, 1));
}

TEST(RegistryTest, AKernelGivesTheMemoryOfAllOutputsOrOfNone) {
  Registry registry;
  Init ops("org.ops");
  ASSERT_TRUE(ops.Op("F(x: float) -> (y: float, z: float)").Commit(&registry).ok());
  for (const char* spec : {"F @A; gives y z", "F @B; gives z; view y=x", "F @C; view y=x", "F @D"}) {
    Init init("org.k");
    const Status s = init.Kernel(spec).Commit(&registry);
    EXPECT_TRUE(s.ok()) << spec << ": " << s;
  }
  Init init("org.k");
  EXPECT_THAT(Text(init.Kernel("F @E; gives y").Commit(&registry)), HasSubstr("clause 'gives' leaves out output 'z' of op 'F'; name it"));
}

TEST(RegistryTest, RefusesKernelsThatDoNotFitTheirOp) {
  Registry registry;
  Init ops("org.ops");
  ASSERT_TRUE(ops.Op("F(v: resource, x: T, s: Tin, i: int32) -> (y: T); T: {float, half}; Tin: list(type)").Commit(&registry).ok());
  auto refusal = [&](std::string_view spec) {
    Init init("org.k");
    Status s = init.Kernel(spec).Commit(&registry);
    EXPECT_FALSE(s.ok()) << spec;
    return Text(s);
  };
  EXPECT_THAT(refusal("F @CPU; host z"), HasSubstr("clause 'host' names 'z', which is no argument of op 'F'"));
  EXPECT_THAT(refusal("F @CPU; keep y"), HasSubstr("clause 'keep' names 'y', which is no input"));
  EXPECT_THAT(refusal("F @CPU; anywhere x"), HasSubstr("clause 'anywhere' names input 'x', which 'keep' does not"));
  EXPECT_THAT(refusal("F @CPU; anywhere y"), HasSubstr("clause 'anywhere' names output 'y', which 'gives' does not"));
  EXPECT_THAT(refusal("F @CPU; gives x"), HasSubstr("clause 'gives' names an input of op 'F'"));
  EXPECT_THAT(refusal("F @CPU; inplace x=y"), HasSubstr("'x', which is no output"));
  EXPECT_THAT(refusal("F @CPU; inplace y=q"), HasSubstr("'q', which is no input"));
  EXPECT_THAT(refusal("F @CPU; view y=x y=i"), HasSubstr("names output 'y' twice"));
  EXPECT_THAT(refusal("F @CPU; read v; update v"), HasSubstr("stands in read and in update"));
  EXPECT_THAT(refusal("F @CPU; update v; replace v"), HasSubstr("stands in replace and in update"));
  EXPECT_THAT(refusal("F @CPU; read v; replace v"), HasSubstr("stands in replace and in read"));
  EXPECT_THAT(refusal("F @CPU; replace i"), HasSubstr("'i' is int32; only resources can be opened"));
  EXPECT_THAT(refusal("F @CPU; read i"), HasSubstr("'i' is int32; only resources can be opened"));
  EXPECT_THAT(refusal("F(resource, float) @CPU"), HasSubstr("has 2 input types but op 'F' has 4 inputs"));
  EXPECT_THAT(refusal("F(_, float, _, _ -> float, float) @CPU"), HasSubstr("has 2 output types but op 'F' has 1 outputs"));
  EXPECT_THAT(refusal("F(_, float, float, _) @CPU"), HasSubstr("the type of 's' must be _"));
  EXPECT_THAT(refusal("F(_, _, _, int64) @CPU"), HasSubstr("'i' is int64 in the spec but int32"));
}

// ---- Choosing kernels ----

TEST(RegistryTest, ChoosesKernelsByKindAndTypes) {
  Registry registry;
  Init init("org.a");
  init.Op("F(x: T * N, l: L) -> (y: U); T: type; N: int; L: list(type); U: type")
      .Kernel("F(float, _ -> int32) @CPU")
      .Kernel("F(float, _ -> int64) @CPU")
      .Kernel("F(half, _) @GPU");
  ASSERT_TRUE(init.Commit(&registry).ok());
  const OpSchema& op = *registry.FindOp("F");
  auto find = [&](std::string_view kind, std::vector<uint32_t> x, std::vector<uint32_t> l, uint32_t y) -> std::string {
    std::vector<uint32_t> types = x;
    types.insert(types.end(), l.begin(), l.end());
    types.push_back(y);
    std::vector<uint32_t> in_at = {0, uint32_t(x.size()), uint32_t(x.size() + l.size())};
    const KernelDef* k = registry.FindKernel(op, kind, types, in_at, {0, 1}, {});
    return k ? k->spec.text : "";
  };
  EXPECT_EQ(find("CPU", {TW_FLOAT, TW_FLOAT}, {TW_STRING, TW_BOOL}, TW_INT64), "F(float, _ -> int64) @CPU");
  EXPECT_EQ(find("CPU", {TW_FLOAT}, {}, TW_INT32), "F(float, _ -> int32) @CPU");
  EXPECT_EQ(find("CPU", {TW_FLOAT}, {}, TW_FLOAT), "");
  EXPECT_EQ(find("CPU", {TW_DOUBLE}, {}, TW_INT32), "");
  EXPECT_EQ(find("GPU", {TW_HALF}, {}, TW_BOOL), "F(half, _) @GPU");
  EXPECT_EQ(find("TPU", {TW_HALF}, {}, TW_BOOL), "");
  EXPECT_EQ(find("CPU", {TW_FLOAT + TW_REF}, {}, TW_INT32), "F(float, _ -> int32) @CPU");
  EXPECT_EQ(find("CPU", {}, {}, TW_INT32), "F(float, _ -> int32) @CPU");  // no entry contradicts
}

TEST(RegistryTest, PrefersPriorityThenPluginIdThenOrder) {
  Registry registry;
  Init ops("org.ops"), b("org.b"), a("org.a");
  ASSERT_TRUE(ops.Op("F() -> ()").Commit(&registry).ok());
  ASSERT_TRUE(b.Kernel("F @CPU; ?b1").Kernel("F @CPU; ?b2; priority 5").Kernel("F @CPU; ?b3").Commit(&registry).ok());
  ASSERT_TRUE(a.Kernel("F @CPU; ?a1").Kernel("F @CPU; ?a2; priority -1").Commit(&registry).ok());
  std::vector<std::string> texts;
  for (const KernelDef* k : registry.Kernels("F")) texts.push_back(k->spec.text);
  EXPECT_THAT(texts, ElementsAre("F @CPU; ?b2; priority 5", "F @CPU; ?a1", "F @CPU; ?b1", "F @CPU; ?b3", "F @CPU; ?a2; priority -1"));
  EXPECT_EQ(registry.FindKernel(*registry.FindOp("F"), "CPU", {}, {0}, {0}, {})->spec.priority, 5);
}

// ---- Specs parsed at their first use ----

TEST(RegistryTest, ReadsOpsAndKernelsLaterAsItDoesAtOnce) {
  Registry registry;
  Init ops("org.ops"), b("org.b"), a("org.a");
  ASSERT_TRUE(ops.Later().Op("\n F(x: float) -> ()").Op("G() -> (); role r").Commit(&registry).ok());
  ASSERT_TRUE(
      b.Later().Kernel("F @CPU; ?b1").Kernel("G @CPU").Kernel("F @CPU; ?b2; priority 5").Kernel("F @CPU; ?b3").Commit(&registry).ok());
  ASSERT_TRUE(a.Kernel("F @CPU; ?a1").Kernel("F @CPU; ?a2; priority -1").Commit(&registry).ok());
  EXPECT_EQ((*registry.FindRole("r"))->name, "G");
  std::vector<std::string> texts;
  for (const KernelDef* k : registry.Kernels("F")) texts.push_back(k->spec.text);
  EXPECT_THAT(texts, ElementsAre("F @CPU; ?b2; priority 5", "F @CPU; ?a1", "F @CPU; ?b1", "F @CPU; ?b3", "F @CPU; ?a2; priority -1"));
  const OpSchema* f = registry.FindOp("F");
  EXPECT_EQ(f->inputs.size(), 1u);
  const KernelDef* best = registry.FindKernel(*f, "CPU", {TW_FLOAT}, {0, 1}, {0}, {});
  EXPECT_EQ(best->op, f);
  EXPECT_EQ(best->plugin, "org.b");
  EXPECT_EQ(best->host, b.host());
  EXPECT_EQ(registry.Ops().size(), 2u);
}

TEST(RegistryTest, LeavesOutWhatIsWrongWhenItIsReadLater) {
  Registry registry;
  std::vector<std::string> warnings;
  registry.SetWarn([&](const std::string& text) { warnings.push_back(text); });
  Init ops("org.ops"), a("org.a");
  ASSERT_TRUE(ops.Later().Op("F() -> ()").Op("G() -> (); bogus").Commit(&registry).ok());
  ASSERT_TRUE(a.Later().Kernel("F @CPU; host x").Kernel("F @CPU").Kernel("G @CPU").Commit(&registry).ok());
  EXPECT_THAT(warnings, IsEmpty());
  ASSERT_EQ(registry.Kernels("F").size(), 1u);
  EXPECT_EQ(registry.Kernels("F")[0]->spec.text, "F @CPU");
  EXPECT_EQ(registry.FindOp("G"), nullptr);
  EXPECT_THAT(registry.Kernels("G"), IsEmpty());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("kernel 'F @CPU; host x' of plugin 'org.a': it is left out: clause 'host' names 'x'"));
  EXPECT_THAT(warnings[1], HasSubstr("op 'G' of plugin 'org.ops' is left out:"));
}

TEST(RegistryTest, RefusesWhatIsReadLaterForOpsThatAreNotThere) {
  Registry registry;
  Init a("org.a");
  EXPECT_EQ(Text(a.Later().Kernel("F(float) @CPU").Commit(&registry)),
            "kernel 'F(float) @CPU' of plugin 'org.a': no op 'F' is registered; load the plugin that defines it first");
}

TEST(RegistryTest, RemovesWhatNobodyHasRead) {
  Registry registry;
  Init ops("org.ops"), a("org.a"), b("org.b"), again("org.a");
  ASSERT_TRUE(ops.Later().Op("F() -> ()").Commit(&registry).ok());
  ASSERT_TRUE(a.Later().Kernel("F @CPU; ?a").Commit(&registry).ok());
  ASSERT_TRUE(b.Later().Kernel("F @CPU; ?b").Commit(&registry).ok());
  EXPECT_THAT(Text(registry.CheckRemovable("org.ops")), HasSubstr("has kernels of its op 'F'"));
  EXPECT_TRUE(registry.CheckRemovable("org.a").ok());
  registry.Remove("org.a");
  ASSERT_EQ(registry.Kernels("F").size(), 1u);
  EXPECT_EQ(registry.Kernels("F")[0]->plugin, "org.b");
  registry.Remove("org.b");
  EXPECT_TRUE(registry.CheckRemovable("org.ops").ok());
  registry.Remove("org.ops");
  EXPECT_EQ(registry.FindOp("F"), nullptr);
  EXPECT_FALSE(again.Later().Kernel("F @CPU").Commit(&registry).ok());
}

TEST(RegistryTest, MakesKernelsForAnyOpOfOpsThatNobodyHasRead) {
  Registry registry;
  Init ops("org.ops"), any("org.any"), other("org.other"), more("org.more");
  ASSERT_TRUE(ops.Later().Op("F() -> ()").Commit(&registry).ok());
  ASSERT_TRUE(any.Later().Kernel("* @CPU").Commit(&registry).ok());
  ASSERT_TRUE(other.Later().Kernel("\n * @GPU").Commit(&registry).ok());
  ASSERT_TRUE(more.Later().Op("AnOpWithALongNameOfItsOwn() -> ()").Op("AnotherOneWithALongName() -> ()").Commit(&registry).ok());
  EXPECT_EQ(registry.Kernels("F").size(), 2u);
  EXPECT_EQ(registry.Kernels("AnOpWithALongNameOfItsOwn").size(), 2u);
  EXPECT_EQ(registry.Kernels("AnotherOneWithALongName").size(), 2u);
}

TEST(RegistryTest, TakesOneDeviceKindFromSeveralPlugins) {
  Registry registry;
  Init b("org.b"), a("org.a");
  ASSERT_TRUE(b.Kind("gpu").Commit(&registry).ok());
  ASSERT_TRUE(a.Kind("GPU").Kind("CPU").Commit(&registry).ok());
  std::vector<std::string> all;
  for (const DeviceKind* k : registry.DeviceKinds()) all.push_back(StrCat(k->kind, " ", k->plugin));
  EXPECT_THAT(all, ElementsAre("CPU org.a", "GPU org.a", "GPU org.b"));
  registry.Remove("org.a");
  ASSERT_EQ(registry.DeviceKinds().size(), 1u);
  EXPECT_EQ(registry.DeviceKinds()[0]->plugin, "org.b");
}

TEST(RegistryTest, OlderKernelsComputeNewAttributesAtTheirDefaultOnly) {
  Registry registry;
  Init ops("org.ops"), older("org.older"), newer("org.newer");
  newer.set_minor(3);
  ASSERT_TRUE(ops.Op("F() -> (); a: int; mode: string = \"x\" since 3").Commit(&registry).ok());
  ASSERT_TRUE(older.Kernel("F @CPU; priority 9").Commit(&registry).ok());
  const OpSchema& op = *registry.FindOp("F");
  auto find = [&](const char* mode) -> std::string {
    const KernelDef* k = registry.FindKernel(op, "CPU", {}, {0}, {0}, {AttrValue::Int(7), AttrValue::String(mode)});
    return k ? k->plugin : "none";
  };
  EXPECT_EQ(find("x"), "org.older");
  EXPECT_EQ(find("y"), "none");
  ASSERT_TRUE(newer.Kernel("F @CPU").Commit(&registry).ok());
  EXPECT_EQ(find("x"), "org.older");
  EXPECT_EQ(find("y"), "org.newer");
}

TEST(RegistryTest, ForgetsAllOfAPlugin) {
  Registry registry;
  Init a("org.a"), b("org.b");
  ASSERT_TRUE(a.Op("F() -> (); role r").Kernel("F @CPU").Type("t").Kind("GPU").Commit(&registry).ok());
  ASSERT_TRUE(b.Op("G() -> ()").Kernel("F @GPU").Kernel("G @GPU").Commit(&registry).ok());
  registry.Remove("org.a");
  EXPECT_EQ(registry.FindOp("F"), nullptr);
  EXPECT_FALSE(registry.FindRole("r").ok());
  EXPECT_THAT(registry.Kernels("F"), IsEmpty());
  EXPECT_EQ(registry.Kernels("G").size(), 1u);
  EXPECT_EQ(registry.FindResourceType("t"), nullptr);
  EXPECT_THAT(registry.DeviceKinds(), IsEmpty());
  Init again("org.a");
  EXPECT_TRUE(again.Op("F() -> (); role r").Commit(&registry).ok());
}

TEST(RegistryTest, AnswersWhilePluginsComeIn) {
  Registry registry;
  Init ops("org.ops");
  ASSERT_TRUE(ops.Op("F() -> ()").Commit(&registry).ok());
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      EXPECT_NE(registry.FindOp("F"), nullptr);
      (void)registry.FindKernel(*registry.FindOp("F"), "CPU", {}, {0}, {0}, {});
    }
  });
  for (int i = 0; i < 200; ++i) {
    Init init(StrCat("org.p", i));
    EXPECT_TRUE(init.Op(StrCat("G", i, "() -> ()")).Kernel("F @CPU").Commit(&registry).ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(registry.Kernels("F").size(), 200u);
}

// ---- Kernels for any op ----

TEST(AnyOpTest, ServesOpsOfBeforeAndAfterAndComesLast) {
  Registry r;
  ASSERT_TRUE(Init("org.a").Op("F(x: float) -> (y: float)").Op("G() -> ()").Kernel("F @N").Commit(&r).ok());
  Init n("org.n");  // its host table is used again for each new op
  ASSERT_TRUE(n.Kernel("* @N; priority 100").Commit(&r).ok());
  ASSERT_TRUE(Init("org.b").Op("H(x: T) -> (y: T); T: type").Commit(&r).ok());
  auto kernel = [&](const char* op, std::string_view kind) {
    const OpSchema* schema = r.FindOp(op);
    const uint32_t args = uint32_t(schema->inputs.size());
    const KernelDef* k = r.FindKernel(*schema, kind, std::vector<uint32_t>(2 * args, TW_FLOAT), {0, args}, {0, args}, {});
    return k ? k->spec.text : "none";
  };
  EXPECT_EQ(kernel("F", "N"), "F @N");  // whatever the priority
  EXPECT_EQ(kernel("H", "N"), "* @N; priority 100");
  EXPECT_EQ(kernel("H", "CPU"), "none");
  ASSERT_EQ(r.Kernels("G").size(), 1u);
  EXPECT_EQ(r.Kernels("G")[0]->op, r.FindOp("G"));
  EXPECT_TRUE(r.CheckRemovable("org.b").ok());  // another plugin may be removed in spite of it
  r.Remove("org.n");
  EXPECT_EQ(kernel("H", "N"), "none");
  EXPECT_EQ(kernel("F", "N"), "F @N");
  ASSERT_TRUE(Init("org.c").Op("K() -> ()").Commit(&r).ok());
  EXPECT_THAT(r.Kernels("K"), IsEmpty());
}

}  // namespace
}  // namespace thalweg
