#include "feed.h"

#include <charconv>
#include <cstring>

#include "csv.h"
#include "npy.h"

namespace thalweg::cli {
namespace {

// A value spelled out: nested lists of words.
class Literal {
 public:
  explicit Literal(const std::string& text) : text_(text) {
    Element(0);
    Blanks();
    if (at_ != text_.size()) Wrong("something follows the value");
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  const std::vector<std::string>& words() const { return words_; }
  bool quoted() const { return quoted_; }

 private:
  [[noreturn]] void Wrong(const std::string& why) const {
    throw std::runtime_error("'" + text_ + "': " + why + " (column " + std::to_string(at_ + 1) + ")");
  }
  void Blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // dims_ grows while the first path down is read; from then on every list must repeat what it says.
  void Element(size_t depth) {
    Blanks();
    if (at_ < text_.size() && text_[at_] == '[') return List(depth);
    if (depth != dims_.size()) Wrong("the lists are not equally deep");
    depth_known_ = true;
    Word();
  }
  void List(size_t depth) {
    if (depth == dims_.size()) {
      if (depth_known_) Wrong("the lists are not equally deep");
      dims_.push_back(-1);
    }
    int64_t n = 0;
    ++at_;
    for (Blanks(); at_ < text_.size() && text_[at_] != ']'; Blanks(), ++n) {
      if (n > 0 && text_[at_++] != ',') Wrong("expected a comma or ]");
      Element(depth + 1);
    }
    if (at_ == text_.size()) Wrong("a list is not closed");
    ++at_;
    depth_known_ = true;
    if (dims_[depth] < 0) dims_[depth] = n;
    if (dims_[depth] != n) Wrong("lists of " + std::to_string(dims_[depth]) + " and of " + std::to_string(n) + " elements side by side");
  }
  void Word() {
    std::string word;
    if (at_ < text_.size() && text_[at_] == '"') {
      quoted_ = true;
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        word += text_[at_];
      }
      if (at_ == text_.size()) Wrong("a text is not closed");
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']' && text_[at_] != ' ') word += text_[at_++];
      if (word.empty()) Wrong("expected a value");
    }
    words_.push_back(word);
  }

  const std::string text_;
  size_t at_ = 0;
  bool depth_known_ = false, quoted_ = false;
  std::vector<int64_t> dims_;
  std::vector<std::string> words_;
};

tw::Tensor Strings(const std::vector<int64_t>& dims, const std::vector<std::string>& words) {
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(TW_STRING, dims.data(), uint32_t(dims.size()), &made));
  tw::Tensor tensor = tw::Tensor::adopt(made);
  for (size_t i = 0; i < words.size(); ++i) tw::raise(tw_tensor_set_string(made, i, words[i].data(), words[i].size()));
  return tensor;
}

template <class T>
bool ToNumber(const std::string& word, T* out) {
  const char* begin = word.data() + (word[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, word.data() + word.size(), *out);
  return error == std::errc() && end == word.data() + word.size();
}

tw::Tensor ReadLiteral(const std::string& text, uint32_t dtype) {
  if (dtype == TW_STRING && (text.empty() || (text[0] != '[' && text[0] != '"'))) return Strings({}, {text});
  const Literal literal(text);
  if (dtype == TW_STRING || literal.quoted()) return Strings(literal.dims(), literal.words());
  // Whole numbers stay exact: as doubles, large ones would not.
  std::vector<int64_t> integers;
  std::vector<double> reals;
  for (const std::string& word : literal.words()) {
    int64_t integer = word == "true";
    double real = 0;
    if (word == "true" || word == "false" || ToNumber(word, &integer)) {
      integers.push_back(integer);
      real = double(integer);
    } else if (!ToNumber(word, &real)) {
      throw std::runtime_error("'" + word + "' is not a number");
    }
    reals.push_back(real);
  }
  return integers.size() == reals.size() ? tw::Tensor(literal.dims(), integers) : tw::Tensor(literal.dims(), reals);
}

bool EndsWith(const std::string& text, const char* end) {
  const size_t n = std::strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

}  // namespace

tw::Tensor Cast(const tw::Runtime& runtime, const tw::Tensor& tensor, uint32_t dtype) {
  if (tensor.dtype() == dtype) return tensor;
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", tensor.dtype(), tensor.dims());
  const tw_output y = s.op("Cast", {x}, [&](tw_op* op) { tw_op_set_type(op, "DstT", dtype); });
  s.finish();
  tw::Session session(graph);
  return session.run({{x, tensor}}, {y})[0];
}

tw::Tensor ReadFeed(const tw::Runtime& runtime, const std::string& text, uint32_t dtype) {
  const size_t bracket = text.find(".csv[");
  tw::Tensor tensor;
  if (EndsWith(text, ".npy"))
    tensor = ReadNpy(text);
  else if (EndsWith(text, ".csv"))
    tensor = ReadCsv(text, "");
  else if (bracket != text.npos && EndsWith(text, "]")) {
    tensor = ReadCsv(text.substr(0, bracket + 4), text.substr(bracket + 5, text.size() - bracket - 6));
  } else {
    tensor = ReadLiteral(text, dtype);
  }
  return Cast(runtime, tensor, dtype);
}

}  // namespace thalweg::cli
