// The bytes of a position: StateWriter writes them, StateReader reads them and trusts nothing.
// Numbers have 8 bytes, lowest first. Threads: one.
#ifndef THALWEG_PLUGINS_DATA_STATE_H_
#define THALWEG_PLUGINS_DATA_STATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset.h"

namespace thalweg::data {

class StateWriter {
 public:
  void Number(uint64_t n);
  void Text(std::string_view s);
  // UNIMPLEMENTED for resources, and for variants other than datasets that are lists of elements.
  void Value(const Ref& value);
  void Values(const Element& e);
  void Elements(const std::vector<Element>& elements);
  const std::string& bytes() const { return bytes_; }
  explicit StateWriter(const tw_host* h) : host_(h) {}

 private:
  void Variant(const tw_view& v, uint64_t i);
  const tw_host* const host_;
  std::string bytes_;
};

// Every function throws DATA_LOSS if the bytes do not fit.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t Number(uint64_t most = UINT64_MAX);
  std::string_view Text();
  Ref Value(Call& c, int depth = 0);
  // Values of these types.
  Element Values(Call& c, const std::vector<uint32_t>& types, int depth = 0);
  std::vector<Element> Elements(Call& c, const std::vector<uint32_t>& types, int depth = 0);
  void WantEnd() const {
    if (!bytes_.empty()) Damaged();
  }
  [[noreturn]] static void Damaged();

 private:
  std::string_view bytes_;
};

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_STATE_H_
