#include "framework/registry/plugin_manifest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/sha256.h"

namespace thalweg {
namespace {

PluginManifest Sample() {
  PluginManifest m;
  m.id = "org.test.m";
  m.version = "1.0 \n with 100% surprise";
  m.build = "compiler=x; cpu=y";
  m.epoch = 3;
  m.target = 7;
  m.ops = {"A", "B"};
  m.op_roles = {"const"};
  m.kernels = {{"A", "CPU", 12}, {"MatMul", "TOY", 1}};
  m.resources = {"bloom filter"};
  m.devices = {{"TOY", true}};
  m.roles = {{"file_system mem", ""}, {"compiler of chains", "TOY"}};
  m.left_out = {"op 'C': 'float6' is no element type; upgrade"};
  return m;
}

TEST(PluginManifestTest, ComesBackFromText) {
  const std::string text = ManifestText(Sample()) + "more\n";
  std::string_view rest = text;
  PluginManifest m;
  ASSERT_TRUE(TakeManifest(&rest, &m));
  EXPECT_EQ(rest, "more\n");
  EXPECT_EQ(ManifestText(m), ManifestText(Sample()));
  EXPECT_EQ(m.version, Sample().version);
  EXPECT_EQ(m.kernels[0].op, "A");
  EXPECT_EQ(m.kernels[0].kind, "CPU");
  EXPECT_EQ(m.kernels[0].count, 12u);
  ASSERT_EQ(m.roles.size(), 2u);
  EXPECT_EQ(m.roles[0].name + m.roles[0].kind, "file_system mem");
  EXPECT_EQ(m.roles[1].name, "compiler of chains");
  EXPECT_EQ(m.roles[1].kind, "TOY");
  EXPECT_TRUE(m.devices[0].has_streams);
  EXPECT_EQ(m.left_out, Sample().left_out);
}

TEST(PluginManifestTest, TakesNoDamagedOnes) {
  const std::string whole = ManifestText(Sample());
  for (size_t n = 0; n < whole.size(); ++n) {
    std::string_view cut = std::string_view(whole).substr(0, n);
    PluginManifest m;
    EXPECT_FALSE(TakeManifest(&cut, &m)) << n;
  }
  for (const char* bad : {"end\n", "id x\nend of it\nwhat\n", "id x\nepoch -1\nend\n", "id x\nkernels CPU A\nend\n",
                          "id x\nkernels 1 A\nend\n", "id x\ndevice 2 TOY\nend\n", "id x\nrole_for TOY\nend\n",
                          "id x\nrole_for %zz x\nend\n", "id %4\nend\n", "id %zz\nend\n", "id x\nfuture thing\nend\n"}) {
    std::string_view text = bad;
    PluginManifest m;
    EXPECT_FALSE(TakeManifest(&text, &m)) << bad;
  }
}

// The test vectors of FIPS 180-4 and its example files.
TEST(PluginDigestTest, IsSha256) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace thalweg
