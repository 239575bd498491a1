#include "module_reader.h"

#include <array>
#include <optional>

#include "cursor.h"
#include "encodings.h"
#include "properties.h"

namespace thalweg::stablehlo {
namespace {

constexpr std::string_view kMagic = "ML\xefR";
constexpr uint64_t kNewestFormat = 6;
constexpr int kNewestMajor = 1, kNewestMinor = 20;
constexpr int kMostNested = 64;      // regions in regions
constexpr size_t kMostFields = 256;  // of the dictionary of an operation, in which each attribute is searched

// Sections, by their numbers in the file.
enum Section {
  kStrings,
  kDialects,
  kAttributes,
  kAttributeSizes,
  kOperations,
  kResources,
  kResourceSizes,
  kDialectVersion,
  kProperties,
  kSections
};

// What an operation has, as bits of its mask.
enum Has : uint8_t { kFields = 1, kResults = 2, kOperands = 4, kSuccessors = 8, kRegions = 16, kUses = 32, kOwnFields = 64 };

// Versions of the bytecode from which on something is encoded in another way.
constexpr uint64_t kDialectVersions = 1, kSectionRegions = 2, kUseOrders = 3, kShortArguments = 4, kNativeProperties = 5;

// A name in a message.
std::string Shown(std::string_view name) { return std::string(name.substr(0, 200)); }

struct OpName {
  std::string_view dialect, name;  // "vhlo", "add_v1"
  std::string_view plain;          // "stablehlo.add"
};

// "add_v1" is "stablehlo.add".
std::string PlainName(std::string_view dialect, std::string_view name) {
  if (dialect != "vhlo") return std::string(dialect) + "." + std::string(name);
  const size_t v = name.rfind("_v");
  if (v != std::string_view::npos && v + 2 < name.size() && name.find_first_not_of("0123456789", v + 2) == std::string_view::npos) {
    name = name.substr(0, v);
  }
  return (name == "call" || name == "func" ? "func." : "stablehlo.") + std::string(name);
}

class Reader {
 public:
  Reader(std::string_view bytes, Module* module) : bytes_(bytes), module_(module), encodings_(strings_, module) {}

  void Read() {
    Cursor c(bytes_, 0);
    if (c.take(std::min<uint64_t>(kMagic.size(), bytes_.size())) != kMagic) c.fail("it is no MLIR bytecode");
    format_ = module_->format = c.varint();
    if (format_ > kNewestFormat) {
      throw Error{TW_UNIMPLEMENTED, "the module is MLIR bytecode of version " + std::to_string(format_) + "; versions 0 to " +
                                        std::to_string(kNewestFormat) +
                                        " are supported; write it as a portable artifact for StableHLO 1.20 or earlier"};
    }
    module_->producer = Printable(c.text().substr(0, 200));
    ReadVersion();
    ReadSections(c);
    ReadStrings();
    ReadDialects();
    ReadTables();
    ReadProperties();
    Cursor operations = Need(kOperations);
    ReadTop(operations);
  }

 private:
  // The version stands in the producer: "StableHLO_v1.9.0".
  void ReadVersion() {
    const std::string prefix = "StableHLO_v";
    if (module_->producer.compare(0, prefix.size(), prefix) != 0) {
      throw Error{TW_UNIMPLEMENTED, "the module was written by '" + module_->producer +
                                        "' and is no portable artifact of StableHLO, whose encoding is stable; write one with "
                                        "stablehlo.serialize_portable_artifact or jax.export"};
    }
    module_->version = module_->producer.substr(prefix.size());
    const size_t dot = module_->version.find('.');
    const auto number = [&](size_t begin) {
      int n = 0;
      for (size_t i = begin; i < module_->version.size() && i < begin + 6 && isdigit(static_cast<unsigned char>(module_->version[i]));
           ++i) {
        n = n * 10 + (module_->version[i] - '0');
      }
      return n;
    };
    const int major = number(0), minor = dot == std::string::npos ? 0 : number(dot + 1);
    if (major > kNewestMajor || (major == kNewestMajor && minor > kNewestMinor)) {
      throw Error{TW_UNIMPLEMENTED, "the module has version " + module_->version + " of StableHLO; versions up to " +
                                        std::to_string(kNewestMajor) + "." + std::to_string(kNewestMinor) +
                                        " are supported; write it for one of these (jax.export writes for versions of some weeks ago)"};
    }
  }

  // Reads a section's header and returns its number.
  uint64_t ReadSection(Cursor& c, Cursor* inside) {
    const uint8_t head = c.byte();
    const uint64_t length = c.varint();
    if (head & 0x80) c.align(c.varint());
    const uint64_t at = c.offset();
    *inside = Cursor(c.take(length), at);
    if ((head & 0x7f) >= kSections) c.fail("there is no section of number " + std::to_string(head & 0x7f));
    return head & 0x7f;
  }

  void ReadSections(Cursor& c) {
    while (!c.empty()) {
      Cursor inside;
      const uint64_t number = ReadSection(c, &inside);
      if (sections_[number]) c.fail("section " + std::to_string(number) + " comes twice");
      sections_[number] = inside;
    }
  }

  Cursor Need(Section number) {
    if (!sections_[number]) {
      throw Error{TW_INVALID_ARGUMENT, "the StableHLO module is damaged: section " + std::to_string(number) + " is missing"};
    }
    return *sections_[number];
  }

  // The lengths stand in reverse order in front of the texts, each of which ends with a zero byte.
  void ReadStrings() {
    Cursor c = Need(kStrings);
    strings_.resize(c.count("strings"));
    std::vector<uint64_t> lengths(strings_.size());
    for (size_t i = lengths.size(); i-- > 0;) lengths[i] = c.varint();
    for (size_t i = 0; i < strings_.size(); ++i) {
      if (lengths[i] == 0) c.fail("a string does not end");
      strings_[i] = c.take(lengths[i]).substr(0, lengths[i] - 1);
    }
    if (!c.empty()) c.fail(std::to_string(c.left()) + " bytes are left behind the strings");
  }

  std::string_view String(Cursor& c) { return encodings_.string(c, c.varint()); }

  void ReadDialects() {
    Cursor c = Need(kDialects);
    dialects_.resize(c.count("dialects"));
    for (std::string_view& d : dialects_) {
      if (format_ < kDialectVersions) {
        d = String(c);
        continue;
      }
      bool versioned = false;
      const uint64_t name = c.flagged(&versioned);
      d = encodings_.string(c, name);
      Cursor version;
      if (versioned && ReadSection(c, &version) != kDialectVersion) c.fail("the version of a dialect is missing");
    }
    if (format_ >= kShortArguments) c.varint();  // how many names follow
    while (!c.empty()) {
      const std::string_view dialect = Dialect(c);
      const uint64_t n = c.count("op names");
      for (uint64_t i = 0; i < n; ++i) {
        bool registered = false;
        const uint64_t name = format_ < kNativeProperties ? c.varint() : c.flagged(&registered);
        ops_.push_back({dialect, encodings_.string(c, name), {}});
      }
    }
  }

  std::string_view Dialect(Cursor& c) {
    const uint64_t i = c.varint();
    if (i >= dialects_.size()) c.fail("there is no dialect " + std::to_string(i));
    return dialects_[i];
  }

  void ReadTables() {
    Cursor sizes = Need(kAttributeSizes), data = Need(kAttributes);
    const uint64_t attributes = sizes.count("attributes"), types = sizes.count("types");
    const auto read = [&](uint64_t all, bool type) {
      for (uint64_t done = 0; done < all;) {
        const std::string_view dialect = Dialect(sizes);
        const uint64_t n = sizes.count("entries");
        if (n == 0 || n > all - done)
          sizes.fail("a group has " + std::to_string(n) + " entries, but " + std::to_string(all - done) + " are left");
        for (uint64_t i = 0; i < n; ++i, ++done) {
          bool binary = false;
          const uint64_t size = sizes.flagged(&binary), at = data.offset();
          const Cursor entry(data.take(size), at);
          if (type) {
            encodings_.AddType(entry, dialect, binary);
          } else {
            encodings_.AddAttribute(entry, dialect, binary);
          }
        }
      }
    };
    read(attributes, false);
    read(types, true);
  }

  void ReadProperties() {
    if (!sections_[kProperties]) return;
    Cursor c = *sections_[kProperties];
    const uint64_t n = c.count("properties");
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t size = c.varint(), at = c.offset();
      properties_.emplace_back(c.take(size), at);
    }
  }

  // ---- Operations ----

  // Ids of values: those of a region follow those of the region around, and are free again behind it.
  struct Scope {
    uint64_t first = 0, size = 0;
    std::vector<Id> made;
  };

  Id Define(const Cursor& c, const Type* type) {
    if (scopes_.empty() || scopes_.back().made.size() >= scopes_.back().size) c.fail("a region makes more values than it has");
    if (!function_) c.fail("an operation outside of functions makes a value");
    const auto id = static_cast<Id>(function_->values.size());
    function_->values.push_back(type);
    scopes_.back().made.push_back(id);
    return id;
  }

  Id Use(Cursor& c) {
    const uint64_t index = c.varint();
    for (size_t i = scopes_.size(); i-- > isolated_;) {
      const Scope& s = scopes_[i];
      if (index < s.first) continue;
      if (index - s.first < s.made.size()) return s.made[index - s.first];
      break;
    }
    c.fail("value " + std::to_string(index) + " is used, but no operation before makes it");
  }

  void SkipUseOrder(Cursor& c, uint64_t values) {
    const uint64_t n = values > 1 ? c.count("orders of uses") : 1;
    for (uint64_t i = 0; i < n; ++i) {
      if (values > 1) c.varint();
      bool pairs = false;
      const uint64_t uses = c.flagged(&pairs);
      if (uses > c.left()) c.fail("an order of uses has " + std::to_string(uses) + " entries");
      for (uint64_t k = 0; k < uses; ++k) c.varint();
    }
  }

  void ReadFields(Cursor& c, const OpName& name, Operation* op, uint8_t mask) {
    if (mask & kFields) {
      const Attribute* all = encodings_.attribute(c, c.varint());
      if (all->kind != Attribute::Kind::kDictionary) c.fail("the attributes of " + std::string(name.plain) + " are no dictionary");
      if (all->fields.size() > kMostFields) {
        c.fail(std::string(name.plain) + " has " + std::to_string(all->fields.size()) + " attributes; at most " +
               std::to_string(kMostFields) + " are accepted");
      }
      op->dictionary = all;
    }
    if (!(mask & kOwnFields)) return;
    const uint64_t index = c.varint();
    if (index >= properties_.size()) c.fail("there are no properties " + std::to_string(index));
    if (name.dialect == "builtin") return;  // the name of the module
    Cursor p = properties_[index];
    std::string_view names = name.dialect == "vhlo" ? PropertiesOf(name.name) : "";
    if (names.empty()) {
      throw Error{TW_UNIMPLEMENTED, "the op " + std::string(name.dialect) + "." + std::string(name.name) +
                                        " is unknown; versions up to 1.20 of StableHLO are supported, export the model for one of them"};
    }
    while (!names.empty()) {
      const std::string_view one = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(names.size(), one.size() + 1));
      op->attributes.push_back({one, encodings_.attribute(p, p.varint())});
    }
    if (!p.empty()) p.fail(std::to_string(p.left()) + " bytes are left behind the properties of " + std::string(name.plain));
  }

  const OpName& Name(Cursor& c) {
    const uint64_t i = c.varint();
    if (i >= ops_.size()) c.fail("there is no op name " + std::to_string(i));
    OpName& name = ops_[i];
    if (name.plain.empty()) name.plain = module_->names.emplace_back(PlainName(name.dialect, name.name));
    return name;
  }

  // Reads an operation without its regions.
  uint64_t ReadHead(Cursor& c, Operation* op, bool* isolated) {
    op->offset = c.offset();
    const OpName& name = Name(c);
    op->name = name.plain;
    const uint8_t mask = c.byte();
    op->location = encodings_.location(c, c.varint());
    ReadFields(c, name, op, mask);
    std::vector<const Type*> results;
    if (mask & kResults) {
      results.resize(c.count("results"));
      for (const Type*& t : results) t = encodings_.type(c, c.varint());
    }
    if (mask & kOperands) {
      op->operands.resize(c.count("operands"));
      for (Id& id : op->operands) id = Use(c);
    }
    if (mask & kSuccessors) c.fail(std::string(name.plain) + " jumps to blocks; StableHLO has none");
    if (format_ >= kUseOrders && (mask & kUses)) SkipUseOrder(c, results.size());
    const uint64_t regions = mask & kRegions ? c.flagged(isolated) : 0;
    if (regions > c.left()) c.fail("an operation has " + std::to_string(regions) + " regions");
    for (const Type* t : results) op->results.push_back(Define(c, t));
    return regions;
  }

  // Reads the blocks of a region, of which there is at most one. `each` reads an operation.
  template <class Each>
  void ReadRegion(Cursor& c, Block* block, std::vector<std::string>* names, Each each) {
    const uint64_t blocks = c.varint();
    if (blocks == 0) return;
    if (blocks > 1) c.fail("a region has " + std::to_string(blocks) + " blocks; those of StableHLO have one");
    const uint64_t values = c.varint();
    uint64_t first = 0;
    if (scopes_.size() > isolated_) first = scopes_.back().first + scopes_.back().size;
    if (first + values < first) c.fail("a region has " + std::to_string(values) + " values");
    scopes_.push_back({first, values, {}});
    ReadBlock(c, block, names, each);
    scopes_.pop_back();
  }

  template <class Each>
  void ReadBlock(Cursor& c, Block* block, std::vector<std::string>* names, Each each) {
    bool arguments = false;
    const uint64_t operations = c.flagged(&arguments);
    if (arguments) ReadArguments(c, block, names);
    if (operations > c.left()) c.fail("a block has " + std::to_string(operations) + " operations");
    for (uint64_t i = 0; i < operations; ++i) each(c);
  }

  void ReadArguments(Cursor& c, Block* block, std::vector<std::string>* names) {
    const uint64_t n = c.count("arguments");
    for (uint64_t i = 0; i < n; ++i) {
      bool located = true;
      const uint64_t type = format_ >= kShortArguments ? c.flagged(&located) : c.varint();
      const Type* t = encodings_.type(c, type);
      const std::string_view place = located ? encodings_.location(c, c.varint()) : std::string_view();
      block->arguments.push_back(Define(c, t));
      if (names) names->emplace_back(place);
    }
    if (format_ >= kUseOrders && c.byte()) SkipUseOrder(c, n);
  }

  // Reads the regions of an operation; those that see no values around are a section of their own in newer versions.
  template <class Each>
  void InRegions(Cursor& c, uint64_t regions, bool isolated, Each each) {
    if (++depth_ > kMostNested) c.fail("regions are nested more than " + std::to_string(kMostNested) + " deep");
    const size_t isolated_before = isolated_;
    Cursor own;
    const bool section = isolated && format_ >= kSectionRegions && regions;
    if (section && ReadSection(c, &own) != kOperations) c.fail("the section of a region is missing");
    if (isolated) isolated_ = scopes_.size();
    for (uint64_t i = 0; i < regions; ++i) each(section ? own : c);
    if (section && !own.empty()) own.fail(std::to_string(own.left()) + " bytes are left behind a region");
    isolated_ = isolated_before;
    --depth_;
  }

  void ReadOperation(Cursor& c, Block* into) {
    Operation op;
    bool isolated = false;
    const uint64_t regions = ReadHead(c, &op, &isolated);
    InRegions(c, regions, isolated, [&](Cursor& inside) {
      Block& block = op.regions.emplace_back();
      ReadRegion(inside, &block, nullptr, [&](Cursor& at) { ReadOperation(at, &block); });
    });
    into->operations.push_back(std::move(op));
  }

  // ---- The module and its functions ----

  void ReadTop(Cursor& c) {
    bool found = false;
    ReadBlock(c, nullptr, nullptr, [&](Cursor& at) {
      Operation op;
      bool isolated = false;
      const uint64_t regions = ReadHead(at, &op, &isolated);
      if (op.name != "builtin.module" || regions != 1 || found)
        at.fail("the file holds " + std::string(op.name) + " instead of one module");
      found = true;
      InRegions(at, regions, isolated, [&](Cursor& inside) {
        Block none;
        ReadRegion(inside, &none, nullptr, [&](Cursor& f) { ReadFunction(f); });
      });
    });
    if (!found) c.fail("there is no module");
    for (const Function& f : module_->functions) {
      if (!module_->named.emplace(f.name, &f).second) {
        throw Error{TW_INVALID_ARGUMENT, "the StableHLO module is damaged: there are two functions '" + Shown(f.name) + "'"};
      }
    }
  }

  std::string_view TextOf(const Cursor& c, const Operation& op, std::string_view name) {
    const Attribute* a = op.attribute(name);
    if (!a || a->kind != Attribute::Kind::kString) c.fail("a function has no '" + std::string(name) + "'");
    return a->text;
  }

  const Attribute* DictionariesOf(const Cursor& c, const Operation& op, std::string_view name, size_t count) {
    const Attribute* a = op.attribute(name);
    if (!a || (a->kind == Attribute::Kind::kArray && a->array.empty())) return nullptr;
    if (a->kind != Attribute::Kind::kArray || a->array.size() != count)
      c.fail("'" + std::string(name) + "' of a function has other counts");
    return a;
  }

  void ReadFunction(Cursor& c) {
    Operation op;
    bool isolated = false;
    const uint64_t regions = ReadHead(c, &op, &isolated);
    if (op.name != "func.func") {
      throw Error{TW_UNIMPLEMENTED, "the module holds " + std::string(op.name) + " beside its functions, which is not supported"};
    }
    Function f;
    f.name = TextOf(c, op, "sym_name");
    const Attribute* type = op.attribute("function_type");
    if (!type || type->kind != Attribute::Kind::kType || type->type->kind != Type::Kind::kFunction) {
      c.fail("function '" + Shown(f.name) + "' has no type");
    }
    f.type = type->type;
    f.is_private = TextOf(c, op, "sym_visibility") == "private";
    f.argument_attributes = DictionariesOf(c, op, "arg_attrs", f.arguments().size());
    f.result_attributes = DictionariesOf(c, op, "res_attrs", f.results().size());
    if (regions > 1 || op.results.size() || op.operands.size()) c.fail("function '" + Shown(f.name) + "' has no single body");
    function_ = &f;
    InRegions(c, regions, isolated,
              [&](Cursor& inside) { ReadRegion(inside, &f.body, &f.argument_names, [&](Cursor& at) { ReadOperation(at, &f.body); }); });
    function_ = nullptr;
    f.has_body = !f.body.operations.empty();
    if (f.has_body) f.argument_names.resize(f.arguments().size());
    if (f.has_body && f.body.arguments.size() != f.arguments().size())
      c.fail("function '" + Shown(f.name) + "' has other numbers of arguments");
    module_->functions.push_back(std::move(f));
  }

  const std::string_view bytes_;
  Module* module_;
  uint64_t format_ = 0;
  std::array<std::optional<Cursor>, kSections> sections_;
  std::vector<std::string_view> strings_, dialects_;
  std::vector<OpName> ops_;
  Encodings encodings_;
  std::vector<Cursor> properties_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  size_t isolated_ = 0;  // scopes in front of this one are not seen
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Module> ReadModule(std::string_view bytes, std::shared_ptr<const void> keep) {
  auto module = std::make_unique<Module>();
  module->bytes = std::move(keep);
  Reader(bytes, module.get()).Read();
  return module;
}

bool IsBytecode(std::string_view bytes) { return bytes.substr(0, kMagic.size()) == kMagic; }

}  // namespace thalweg::stablehlo
