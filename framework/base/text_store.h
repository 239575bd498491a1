// TextStore: stores texts at fixed addresses for the life of the store, many in one block. Threads:
// one at a time may add.
#pragma once
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace thalweg {

class TextStore {
 public:
  std::string_view Keep(std::string_view text) {
    if (text.size() > left_) {
      left_ = text.size() > kPiece ? text.size() : kPiece;
      at_ = pieces_.emplace_back(std::make_unique_for_overwrite<char[]>(left_)).get();
    }
    char* const to = at_;
    std::memcpy(to, text.data(), text.size());
    at_ += text.size();
    left_ -= text.size();
    return {to, text.size()};
  }

 private:
  static constexpr size_t kPiece = 1 << 16;
  std::vector<std::unique_ptr<char[]>> pieces_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace thalweg
