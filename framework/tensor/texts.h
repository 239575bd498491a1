// Texts: where the bytes of a string tensor lie. Strings that are set for the first time share pieces of memory, so that many short ones
// cost few calls of the heap; long ones, and those that outgrow what they replace, have a block of their own. All bits zero is an empty
// one. Threads: strings of different elements may be set at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include "thalweg/plugin/abi.h"

namespace thalweg {

class Texts {
 public:
  // *s, one of `count` elements, becomes the text, which may lie in another of them. False: there is no memory, and *s is as it was.
  bool Set(tw_string* s, std::string_view text, uint64_t count);
  // The last call: all that the elements hold goes.
  void Free(const tw_string* all, uint64_t count);

 private:
  struct Piece;
  static constexpr uint32_t kLists = 4;  // threads spread over them, so that few wait for one another

  char* Place(uint64_t bytes, uint64_t count);
  bool Holds(const char* bytes) const;
  void Drop(const char* bytes);

  std::atomic<Piece*> latest_[kLists];
  std::atomic<uint64_t> own_;  // blocks of their own
};

}  // namespace thalweg
