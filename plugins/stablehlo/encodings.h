// Attributes and types of a module: the tables that operations refer to by index. Entries are read when they are first used, each once.
// Knows the encodings of MLIR's builtin dialect, as far as portable StableHLO uses them, and of VHLO. Threads: one thread at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cursor.h"
#include "module.h"

namespace thalweg::stablehlo {

class Encodings {
 public:
  // strings: those of the module. made: receives the attributes and types, and lives at least as long.
  Encodings(const std::vector<std::string_view>& strings, Module* made) : strings_(strings), made_(made) {}

  // An entry of the table: its encoding, the dialect, whether it has a binary encoding (else text).
  void AddAttribute(Cursor bytes, std::string_view dialect, bool binary) { attributes_.emplace_back(bytes, dialect, binary); }
  void AddType(Cursor bytes, std::string_view dialect, bool binary) { types_.emplace_back(bytes, dialect, binary); }

  const Attribute* attribute(const Cursor& at, uint64_t index);
  const Type* type(const Cursor& at, uint64_t index);
  // The text of a location: the name, or file and line. Empty if it is unknown or has another form.
  std::string_view location(const Cursor& at, uint64_t index);
  std::string_view string(const Cursor& at, uint64_t index) const;

 private:
  template <class T>
  struct Entry {
    Entry(Cursor c, std::string_view d, bool b) : bytes(c), dialect(d), binary(b) {}
    Cursor bytes;
    std::string_view dialect;
    bool binary;
    bool open = false;  // is being read: an entry that refers to itself is refused
    const T* made = nullptr;
    bool located = false;
    std::string_view place;
  };

  const Attribute* attribute(Cursor& c) { return attribute(c, c.varint()); }
  const Type* type(Cursor& c) { return type(c, c.varint()); }
  std::vector<const Attribute*> attributes(Cursor& c);
  std::vector<const Type*> types(Cursor& c);
  Dims dims(Cursor& c);
  void Builtin(Cursor& c, Attribute* a);
  void Vhlo(Cursor& c, Attribute* a);
  void Builtin(Cursor& c, Type* t);
  void Vhlo(Cursor& c, Type* t);
  void Number(Cursor& c, Attribute* a, bool real);
  void Constant(Cursor& c, Attribute* a);
  void Fields(Cursor& c, Attribute* a);
  void Quantise(Cursor& c, Type* t, bool per_axis);
  void Enum(Cursor& c, Attribute* a, std::initializer_list<const char*> cases);
  void Tensor(Cursor& c, Type* t);
  std::string Place(const Cursor& at, uint64_t index, int depth);

  const std::vector<std::string_view>& strings_;
  Module* made_;
  std::vector<Entry<Attribute>> attributes_;
  std::vector<Entry<Type>> types_;
  int depth_ = 0;
};

}  // namespace thalweg::stablehlo
