#include "framework/registry/role.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/strings.h"
#include "framework/registry/registrar.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/profiler.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing_support::FakeHost;
using testing_support::TakeText;

tw_compiler_def Compiler(const char* name, uint64_t len) {
  tw_compiler_def d{};
  d.size = sizeof d;
  d.name = name;
  d.name_len = len;
  d.kind = "cpu";
  d.kind_len = 3;
  d.claim = [](const tw_host*, void*, void*, const tw_part*, tw_claims*) -> tw_status* { return nullptr; };
  d.compile = [](const tw_compile_call*, void**) -> tw_status* { return nullptr; };
  d.execute = [](const tw_frame*) -> tw_status* { return nullptr; };
  d.destroy = [](const tw_host*, void*) {};
  return d;
}

tw_file_system_def FileSystem(const char* scheme, uint64_t len) {
  tw_file_system_def d{};
  d.size = sizeof d;
  d.scheme = scheme;
  d.scheme_len = len;
  d.create = [](const tw_host*, void*, const tw_file_request*, void**) -> tw_status* { return nullptr; };
  d.append = [](const tw_host*, void*, const void*, uint64_t) -> tw_status* { return nullptr; };
  d.sync = [](const tw_host*, void*) -> tw_status* { return nullptr; };
  d.close = d.sync;
  d.open = [](const tw_host*, void*, const tw_file_request*, void**, uint64_t*) -> tw_status* { return nullptr; };
  d.read = [](const tw_host*, void*, uint64_t, void*, uint64_t) -> tw_status* { return nullptr; };
  d.release = [](const tw_host*, void*) {};
  d.rename = [](const tw_host*, void*, const char*, uint64_t, const char*, uint64_t) -> tw_status* { return nullptr; };
  d.remove = [](const tw_host*, void*, const char*, uint64_t) -> tw_status* { return nullptr; };
  d.list = [](const tw_host*, void*, const char*, uint64_t, tw_sink*) -> tw_status* { return nullptr; };
  return d;
}

// Stands for one plugin's init.
struct Init {
  explicit Init(std::string plugin) : registrar(&host.c, std::move(plugin), &registration) {}
  std::string Add(const tw_compiler_def& d) { return TakeText(tw_add_compiler(registrar.c(), &d)); }
  std::string Add(const tw_file_system_def& d) { return TakeText(tw_add_file_system(registrar.c(), &d)); }
  std::string Add(const tw_rewriter_def& d) { return TakeText(tw_add_rewriter(registrar.c(), &d)); }
  std::string Add(const tw_profiler_def& d) { return TakeText(tw_add_profiler(registrar.c(), &d)); }
  Status Commit(Registry* to) { return to->Commit(std::move(registration)); }
  FakeHost host;
  Registration registration;
  Registrar registrar;
};

TEST(RoleTest, IsFoundByNameUntilItsPluginGoes) {
  Registry registry;
  Init init("org.a");
  std::string name = "chain";
  EXPECT_EQ(init.Add(Compiler(name.data(), name.size())), "");
  name = "#####";  // the registrar has a copy
  EXPECT_EQ(init.Add(FileSystem(TW_S("mem"))), "");
  ASSERT_TRUE(init.Commit(&registry).ok());
  auto compilers = registry.RolesOf<CompilerRole>();
  ASSERT_THAT(compilers, SizeIs(1));
  EXPECT_EQ(compilers[0]->name, "chain");
  EXPECT_EQ(compilers[0]->kind, "CPU");
  EXPECT_THAT(registry.RolesOf<FileSystemRole>("mem"), SizeIs(1));
  EXPECT_THAT(registry.RolesOf<FileSystemRole>("disk"), SizeIs(0));
  registry.Remove("org.a");
  EXPECT_THAT(registry.Roles(), SizeIs(0));
  EXPECT_EQ(compilers[0]->plugin, "org.a");  // a user of the role keeps it alive
}

TEST(RoleTest, FillsOptionalEntries) {
  Registry registry;
  Init init("org.a");
  init.Add(Compiler(TW_S("chain")));
  init.Add(FileSystem(TW_S("mem")));
  ASSERT_TRUE(init.Commit(&registry).ok());
  auto compiler = registry.RolesOf<CompilerRole>()[0];
  EXPECT_EQ(compiler->def.prepare, nullptr);  // without it, a state serves the shapes that it was compiled for
  EXPECT_EQ(compiler->def.usable(nullptr, nullptr, nullptr, "x", 1), 0u);
  EXPECT_EQ(registry.RolesOf<FileSystemRole>()[0]->def.make_folder(nullptr, nullptr, "x", 1), nullptr);
}

TEST(RoleTest, RefusesWhatIsNotWhole) {
  Init init("org.a");
  tw_compiler_def c = Compiler(TW_S("chain"));
  c.destroy = nullptr;
  EXPECT_EQ(init.Add(c), "compiler 'chain': required entry 'destroy' is missing");
  c = Compiler(TW_S("chain"));
  c.serialize = [](const tw_host*, const void*, tw_sink*) -> tw_status* { return nullptr; };
  EXPECT_THAT(init.Add(c), HasSubstr("serialize, load and tag only make sense together"));
  c = Compiler(TW_S("chain"));
  c.size = offsetof(tw_compiler_def, execute);  // an older plugin that does not know execute
  EXPECT_EQ(init.Add(c), "compiler 'chain': required entry 'execute' is missing");
  tw_file_system_def f = FileSystem(TW_S("mem"));
  f.unlock = [](const tw_host*, void*) {};
  EXPECT_THAT(init.Add(f), HasSubstr("lock_folder_of and unlock"));
  EXPECT_THAT(init.Add(FileSystem(TW_S("Mem"))), HasSubstr("a scheme is a lower-case letter"));
  EXPECT_EQ(init.Add(FileSystem("", 0)), "file_system definition: name is missing");
  const tw_rewriter_def empty = {TW_SIZED(tw_rewriter_def), TW_S("rules"), nullptr, nullptr};
  EXPECT_EQ(init.Add(empty), "rewriter 'rules': required entry 'rewrite' is missing");
  tw_profiler_def p = {TW_SIZED(tw_profiler_def), TW_S("trace"), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(init.Add(p), "profiler 'trace': required entry 'start' is missing");
  p.name = "Trace";
  EXPECT_THAT(init.Add(p), HasSubstr("a name is made of lower-case letters, digits and _"));
}

TEST(RoleTest, ASchemeLeadsToOnePluginANameIsThePluginsOwn) {
  Registry registry;
  Init a("org.a"), b("org.b"), c("org.c");
  a.Add(FileSystem(TW_S("mem")));
  a.Add(Compiler(TW_S("chain")));
  ASSERT_TRUE(a.Commit(&registry).ok());
  b.Add(Compiler(TW_S("chain")));
  EXPECT_TRUE(b.Commit(&registry).ok());
  EXPECT_THAT(registry.RolesOf<CompilerRole>("chain"), SizeIs(2));
  c.Add(FileSystem(TW_S("mem")));
  Status s = c.Commit(&registry);
  EXPECT_THAT(Message(s), HasSubstr("file_system 'mem' of plugin 'org.c' is already registered by plugin 'org.a'"));
  Init d("org.d");
  d.Add(Compiler(TW_S("chain")));
  d.Add(Compiler(TW_S("chain")));
  EXPECT_THAT(Message(d.Commit(&registry)), HasSubstr("twice by plugin 'org.d'"));
}

tw_role Definition(std::string_view role, uint32_t major, uint32_t minor, uint32_t floor, const void* definition) {
  return {TW_SIZED(tw_role), role.data(), role.size(), major, minor, floor, 0, definition};
}

TEST(RoleTest, HasAVersionForEveryRole) {
  EXPECT_THAT(RoleVersions(), SizeIs(12));
  Init init("org.a");
  tw_registrar* r = init.registrar.c();
  for (const RoleVersion& v : RoleVersions()) {
    EXPECT_EQ(r->offers(r, v.name.data(), v.name.size(), v.major, v.minor), 1u) << v.name;
    EXPECT_EQ(r->offers(r, v.name.data(), v.name.size(), v.major, v.minor + 1), 0u) << v.name;
    EXPECT_EQ(r->offers(r, v.name.data(), v.name.size(), v.major + 1, 0), 0u) << v.name;
    // Each role has a function that takes its definitions, which tells their rules from a missing one.
    const tw_role none = Definition(v.name, v.major, v.minor, v.minor, nullptr);
    EXPECT_THAT(TakeText(r->role(r, &none)), HasSubstr("is NULL")) << v.name;
  }
  EXPECT_EQ(r->offers(r, TW_S("teleport"), 1, 0), 0u);
}

TEST(RoleTest, LeavesOutDefinitionsOfOtherVersionsAndKeepsTheRest) {
  Registry registry;
  Init init("org.a");
  tw_registrar* r = init.registrar.c();
  const tw_compiler_def c = Compiler(TW_S("chain"));
  const tw_file_system_def f = FileSystem(TW_S("mem"));
  const tw_role others[] = {Definition("teleport", 1, 0, 0, &c), Definition("compiler", TW_COMPILER_MAJOR + 1, 0, 0, &c),
                            Definition("compiler", TW_COMPILER_MAJOR, TW_COMPILER_MINOR + 2, TW_COMPILER_MINOR + 1, &c),
                            Definition("compiler", TW_COMPILER_MAJOR, TW_COMPILER_MINOR + 2, TW_COMPILER_MINOR + 1, &c)};
  for (const tw_role& other : others) EXPECT_EQ(TakeText(r->role(r, &other)), "");
  // A newer minor with a floor that is offered is taken.
  const tw_role newer = Definition("file_system", TW_FILE_SYSTEM_MAJOR, TW_FILE_SYSTEM_MINOR + 5, 0, &f);
  EXPECT_EQ(TakeText(r->role(r, &newer)), "");
  const auto& left = init.registration.left_out;
  ASSERT_THAT(left, SizeIs(3));
  EXPECT_EQ(left[0].why, "definitions of role 'teleport': this runtime does not know the role");
  EXPECT_THAT(left[1].why, HasSubstr(StrCat("need version ", TW_COMPILER_MAJOR + 1, ".0, this runtime has ", TW_COMPILER_MAJOR, ".")));
  EXPECT_EQ(left[1].fix, "upgrade the runtime, or rebuild the plugin against its headers");
  EXPECT_EQ(left[2].count, 2u);
  ASSERT_TRUE(init.Commit(&registry).ok());
  EXPECT_THAT(registry.RolesOf<FileSystemRole>("mem"), SizeIs(1));
  EXPECT_THAT(registry.RolesOf<CompilerRole>(), SizeIs(0));
}

// The record is as long as the headers have it; what a definition of minor 0 has behind its end is not an entry.
TEST(RoleTest, ADefinitionOfMinor0IsCutWhereMinor0Ended) {
  static int called = 0;
  tw_file_system_def f = FileSystem(TW_S("mem"));
  f.identify = [](const tw_host*, void*, tw_sink*) -> tw_status* {
    ++called;
    return nullptr;
  };
  for (uint32_t minor : {0u, 1u, 9u}) {  // 9: of a plugin for later hosts
    Registry registry;
    Init init("org.a");
    tw_registrar* r = init.registrar.c();
    const tw_role d = Definition("file_system", TW_FILE_SYSTEM_MAJOR, minor, 0, &f);
    EXPECT_EQ(TakeText(r->role(r, &d)), "");
    ASSERT_TRUE(init.Commit(&registry).ok());
    EXPECT_EQ(registry.RolesOf<FileSystemRole>("mem")[0]->def.identify != nullptr, minor >= 1) << minor;
  }
  EXPECT_EQ(called, 0);
}

TEST(RoleTest, AShorterDefinitionOfMinor1LacksItsEntry) {
  Registry registry;
  Init init("org.a");
  tw_file_system_def f = FileSystem(TW_S("mem"));
  f.identify = [](const tw_host*, void*, tw_sink*) -> tw_status* { return nullptr; };
  f.size = offsetof(tw_file_system_def, identify);
  tw_registrar* r = init.registrar.c();
  const tw_role d = Definition("file_system", TW_FILE_SYSTEM_MAJOR, 1, 0, &f);
  EXPECT_EQ(TakeText(r->role(r, &d)), "");
  ASSERT_TRUE(init.Commit(&registry).ok());
  EXPECT_EQ(registry.RolesOf<FileSystemRole>("mem")[0]->def.identify, nullptr);
}

TEST(RoleTest, NamesTheWayBackForAnOlderMajor) {
  std::string fix;
  EXPECT_FALSE(CheckRoleVersion("op", TW_OP_MAJOR - 1, 0, &fix).ok());
  EXPECT_EQ(fix, "rebuild the plugin against this runtime's headers");
}

TEST(RoleTest, RefusesRegistrationsThatCannotBeTrue) {
  Init init("org.a");
  tw_registrar* r = init.registrar.c();
  const tw_compiler_def c = Compiler(TW_S("chain"));
  const tw_role above = Definition("compiler", TW_COMPILER_MAJOR, 0, 1, &c), nameless = Definition("", 1, 0, 0, &c);
  EXPECT_EQ(TakeText(r->role(r, &above)), "registration of role 'compiler': floor 1 is above minor 0");
  EXPECT_THAT(TakeText(r->role(r, &nameless)), HasSubstr("name of the role is missing"));
  EXPECT_THAT(TakeText(r->role(r, nullptr)), HasSubstr("registration is NULL"));
  EXPECT_FALSE(init.registration.status.ok());  // such a plugin is refused even if it ignores the error
}

TEST(RoleTest, AnUnknownElementTypeCostsItsDefinition) {
  Registry registry;
  Init init("org.a");
  tw_registrar* r = init.registrar.c();
  const auto op = [&](std::string_view schema) {
    const tw_op_def d = {TW_SIZED(tw_op_def), schema.data(), schema.size(), nullptr, nullptr, nullptr};
    return TakeText(tw_add_op(r, &d));
  };
  const auto kernel = [&](std::string_view spec) {
    const tw_kernel_def d = {TW_SIZED(tw_kernel_def),
                             spec.data(),
                             spec.size(),
                             nullptr,
                             nullptr,
                             [](const tw_frame*) -> tw_status* { return nullptr; },
                             nullptr,
                             nullptr,
                             nullptr};
    return TakeText(tw_add_kernel(r, &d));
  };
  EXPECT_EQ(op("F(x: float) -> (y: float)"), "");
  EXPECT_EQ(op("G(x: float6) -> (y: float6)"), "");
  EXPECT_EQ(op("H(x: T) -> (y: T); T: {float, float6}"), "");
  EXPECT_EQ(kernel("F(float) @CPU"), "");
  EXPECT_EQ(kernel("F(float6) @CPU"), "");
  EXPECT_EQ(kernel("G @CPU"), "");
  EXPECT_THAT(op("I(x: float) -> (y: float); sometimes"), HasSubstr("unknown clause"));  // other words stay errors
  init.registration.status = Status();
  registry.LeaveOutOrphans(&init.registration);
  std::vector<std::string> why;
  for (const auto& l : init.registration.left_out) why.push_back(l.why);
  EXPECT_THAT(why, testing::ElementsAre(HasSubstr("op 'G': "), AllOf(HasSubstr("op 'H': "), HasSubstr("'float6' is no element type")),
                                        HasSubstr("kernel 'F(float6) @CPU': "), "kernels of op 'G': there is no such op"));
  ASSERT_TRUE(init.Commit(&registry).ok());
  EXPECT_THAT(registry.Kernels("F"), SizeIs(1));
  EXPECT_EQ(registry.FindOp("G"), nullptr);
}

TEST(RoleTest, TakesADevicesSetsWholeOrNotAtAll) {
  Registry registry;
  Init init("org.a");
  tw_device_def d{};
  d.size = sizeof d;
  d.kind = "TOY";
  d.kind_len = 3;
  d.enumerate = [](const tw_host*, void*, tw_device_list*) -> tw_status* { return nullptr; };
  d.allocate = [](const tw_host*, void*, const tw_allocation*, void**) -> tw_status* { return nullptr; };
  d.release = [](const tw_host*, void*, void*, uint64_t) {};
  d.copy = [](const tw_host*, void*, const tw_copy*) -> tw_status* { return nullptr; };
  tw_statistics_set statistics = {TW_SIZED(tw_statistics_set), nullptr};
  d.statistics = &statistics;
  EXPECT_EQ(TakeText(tw_add_device(init.registrar.c(), &d)), "device kind 'TOY': required entry 'statistics.read' is missing");
  Init again("org.a");
  statistics.read = [](const tw_host*, void*, tw_number_list*) -> tw_status* { return nullptr; };
  EXPECT_EQ(TakeText(tw_add_device(again.registrar.c(), &d)), "");
  ASSERT_TRUE(again.Commit(&registry).ok());
  const DeviceKind* kind = registry.DeviceKinds()[0];
  EXPECT_TRUE(kind->statistics);
  EXPECT_FALSE(kind->peer);
  EXPECT_NE(kind->def.statistics, &statistics);  // a copy
}

}  // namespace
}  // namespace thalweg
