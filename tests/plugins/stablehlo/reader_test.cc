// The reader of StableHLO's bytecode on bytes written here: numbers of variable length, sizes that lie, tables that refer to themselves,
// nesting without end. stablehlo_test.py reads whole files.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plugins/stablehlo/cursor.h"
#include "plugins/stablehlo/exported.h"
#include "plugins/stablehlo/module_reader.h"

namespace thalweg::stablehlo {
namespace {

std::string Varint(uint64_t v) {
  int more = 0;
  while (more < 8 && (more == 7 ? v >> 56 : v >> (7 * (more + 1)))) ++more;
  std::string bytes;
  if (more == 8) {
    bytes = std::string(1, '\0');
  } else {
    v = ((v << 1) | 1) << more;
  }
  for (int i = 0; i < (more == 8 ? 8 : more + 1); ++i) bytes += static_cast<char>(v >> (8 * i));
  return bytes;
}

std::string Section(int number, const std::string& inside) {
  return std::string(1, static_cast<char>(number)) + Varint(inside.size()) + inside;
}

// A module of format 6 whose only attributes are these builtin ones and whose IR is `ir`. Attribute 0 is an unknown location, string 4 is
// `text`.
std::string Module6(const std::vector<std::string>& attributes, const std::string& ir, const std::string& text = "text") {
  const std::vector<std::string> names = {"builtin", "vhlo", "module", "func_v1", text};
  std::string lengths, texts, data = Varint(15), sizes;
  for (auto n = names.rbegin(); n != names.rend(); ++n) lengths += Varint(n->size() + 1);
  for (const std::string& n : names) texts += n + std::string(1, '\0');
  sizes = Varint(attributes.size() + 1) + Varint(0) + Varint(0) + Varint(attributes.size() + 1) + Varint(data.size() * 2 + 1);
  for (const std::string& a : attributes) {
    data += a;
    sizes += Varint(a.size() * 2 + 1);
  }
  const std::string dialects = Varint(2) + Varint(0 << 1) + Varint(1 << 1) + Varint(2) + Varint(0) + Varint(1) + Varint(2 << 1 | 1) +
                               Varint(1) + Varint(1) + Varint(3 << 1 | 1);
  return std::string("ML\xefR") + Varint(6) + std::string("StableHLO_v1.9.0") + std::string(1, '\0') +
         Section(0, Varint(5) + lengths + texts) + Section(1, dialects) + Section(2, data) + Section(3, sizes) + Section(4, ir);
}

// The block that holds the module: op 0 with the attributes of this index, one region, isolated, in a section of its own.
std::string Top(uint64_t attributes, const std::string& region) {
  return Varint(1 << 1) + Varint(0) + std::string(1, 1 | 16) + Varint(0) + Varint(attributes) + Varint(1 << 1 | 1) + Section(4, region);
}

std::string Failure(const std::string& bytes) {
  const auto keep = std::make_shared<const std::string>(bytes);
  try {
    ReadModule(*keep, keep);
  } catch (const Error& e) {
    return e.text;
  }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

TEST(StableHloCursor, NumbersOfEveryLengthAreRead) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t v : {uint64_t{1} << bits, (uint64_t{1} << bits) - 1, ~uint64_t{0} >> bits}) {
      const std::string bytes = Varint(v);
      Cursor c(bytes, 0);
      EXPECT_EQ(c.varint(), v);
      EXPECT_TRUE(c.empty());
    }
  }
  const std::string odd = Varint(5), even = Varint(6);
  EXPECT_EQ(Cursor(odd, 0).svarint(), -3);
  EXPECT_EQ(Cursor(even, 0).svarint(), 3);
}

TEST(StableHloCursor, WhatLiesBehindTheEndIsRefused) {
  const std::string bytes("\x00\x01\x02", 3);
  Cursor number(bytes, 40), list(bytes, 40);
  EXPECT_THROW(number.varint(), Error);
  try {
    list.take(4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_HAS(e.text, "byte 40");
    EXPECT_HAS(e.text, "needs 4 bytes, but only 3 are left");
  }
  EXPECT_THROW(Cursor(bytes, 1).align(3), Error);
  EXPECT_THROW(Cursor(bytes, 1).align(8), Error);  // the padding is not 0xcb
}

TEST(StableHloReader, AnEmptyModuleIsRead) {
  const auto keep = std::make_shared<const std::string>(Module6({Varint(1) + Varint(0)}, Top(1, Varint(1) + Varint(0) + Varint(0))));
  const std::unique_ptr<Module> m = ReadModule(*keep, keep);
  EXPECT_EQ(m->version, "1.9.0");
  EXPECT_EQ(m->format, 6u);
  EXPECT_TRUE(m->functions.empty());
  EXPECT_EQ(m->find("main"), nullptr);
}

TEST(StableHloReader, EachShorterFileIsRefused) {
  const std::string whole = Module6({Varint(1) + Varint(0)}, Top(1, Varint(1) + Varint(0) + Varint(0)));
  ASSERT_EQ(Failure(whole), "");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(Failure(whole.substr(0, n)), "") << n;
}

TEST(StableHloReader, LargeCountsTakeNoMemory) {
  const std::string many = Varint(uint64_t{1} << 60), region = Varint(1) + Varint(0) + Varint(0);
  EXPECT_HAS(Failure(Module6({Varint(0) + many}, Top(1, region))), "attributes, but only");
  EXPECT_HAS(Failure(Module6({Varint(1) + Varint(0)}, Top(1, Varint(1) + Varint(0) + many))), "operations");
  EXPECT_HAS(Failure(Module6({Varint(1) + Varint(0)}, Top(1, many))), "blocks; those of StableHLO have one");
}

TEST(StableHloReader, AnAttributeInsideItselfIsRefused) {
  EXPECT_HAS(Failure(Module6({Varint(0) + Varint(1) + Varint(1)}, Top(1, Varint(0)))), "attribute 1 refers to itself");
}

TEST(StableHloReader, DeepAttributesAreRefused) {
  std::vector<std::string> chain;
  for (uint64_t i = 0; i < 80; ++i) chain.push_back(Varint(0) + Varint(1) + Varint(i + 2));
  chain.push_back(Varint(1) + Varint(0));
  EXPECT_HAS(Failure(Module6(chain, Top(1, Varint(0)))), "nested more than 64 deep");
}

// A short file can refer to a long text very often.
TEST(StableHloReader, TextsAreNotCopied) {
  constexpr uint64_t kTexts = 3000;
  std::vector<std::string> attributes = {Varint(1) + Varint(1) + Varint(2) + Varint(3), Varint(2) + Varint(0)};
  std::string list = Varint(0) + Varint(kTexts);
  for (uint64_t i = 0; i < kTexts; ++i) list += Varint(4 + i);
  attributes.push_back(list);
  attributes.insert(attributes.end(), kTexts, Varint(2) + Varint(4));
  const auto keep = std::make_shared<const std::string>(
      Module6(attributes, Top(1, Varint(1) + Varint(0) + Varint(0)), std::string(size_t{1} << 20, 'a')));
  const std::unique_ptr<Module> m = ReadModule(*keep, keep);
  uint64_t found = 0;
  for (const Attribute& a : m->owned) {
    if (a.text.size() != size_t{1} << 20) continue;
    ++found;
    EXPECT_TRUE(a.text.data() > keep->data() && a.text.data() < keep->data() + keep->size());
  }
  EXPECT_EQ(found, kTexts);
}

TEST(StableHloReader, LongDictionariesOfOperationsAreRefused) {
  std::string fields;
  for (int i = 0; i < 300; ++i) fields += Varint(2) + Varint(2);
  EXPECT_HAS(Failure(Module6({Varint(1) + Varint(300) + fields, Varint(2) + Varint(0)}, Top(1, Varint(0)))), "at most 256 are accepted");
}

TEST(StableHloReader, OtherFilesAreNamed) {
  EXPECT_HAS(Failure(std::string("ML\xefR") + Varint(7)), "version 7; versions 0 to 6 are supported");
  EXPECT_HAS(Failure(std::string("ML\xefR") + Varint(6) + std::string("MLIR17", 7)), "is no portable artifact of StableHLO");
  EXPECT_HAS(Failure("elf"), "it is no MLIR bytecode");
}

// The files stablehlo_legalize_to_vhlo.*.bc of StableHLO's folder stablehlo/tests/vhlo: all ops of each version since 0.9.0.
TEST(StableHloReader, ArtifactsOfAllVersionsAreRead) {
  const char* folder = std::getenv("THALWEG_STABLEHLO_VHLO");
  if (!folder) GTEST_SKIP() << "THALWEG_STABLEHLO_VHLO does not name a folder with StableHLO's old artifacts";
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind("stablehlo_legalize_to_vhlo", 0) != 0 || entry.path().extension() != ".bc") continue;
    std::stringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const auto keep = std::make_shared<const std::string>(text.str());
    try {
      EXPECT_GT(ReadModule(*keep, keep)->functions.size(), 190u) << name;
      ++read;
    } catch (const Error& e) {
      ADD_FAILURE() << name << ": " << e.text;
    }
  }
  EXPECT_GE(read, 32);
}

TEST(StableHloExport, OffsetsStayInTheFile) {
  EXPECT_FALSE(IsExported("", 0));
  EXPECT_FALSE(IsExported(std::string(64, '\xff'), 64));
  EXPECT_THROW(ReadExported(std::string(64, '\xff')), Error);
  // A root whose list of fields would stand in front of the file.
  EXPECT_THROW(ReadExported(std::string("\x08\0\0\0\0\0\0\0\x7f\0\0\0", 12)), Error);
}

}  // namespace
}  // namespace thalweg::stablehlo
