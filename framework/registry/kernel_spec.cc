#include "framework/registry/kernel_spec.h"

#include <limits>

#include "framework/base/dtype.h"
#include "framework/base/scanner.h"

namespace thalweg {
namespace {

struct Flag {
  std::string_view word;
  bool KernelSpec::* value;
};
constexpr Flag kFlags[] = {{"cheap", &KernelSpec::cheap},
                           {"may_block", &KernelSpec::may_block},
                           {"async", &KernelSpec::async},
                           {"async_calls", &KernelSpec::async_calls},
                           {"capture_safe", &KernelSpec::capture_safe},
                           {"nondeterministic", &KernelSpec::nondeterministic},
                           {"strided", &KernelSpec::strided}};

struct NameList {
  std::string_view word;
  std::vector<std::string> KernelSpec::* names;
};
constexpr NameList kNameLists[] = {{"host", &KernelSpec::host},         {"keep", &KernelSpec::keep}, {"gives", &KernelSpec::gives},
                                   {"anywhere", &KernelSpec::anywhere}, {"read", &KernelSpec::read}, {"update", &KernelSpec::update},
                                   {"replace", &KernelSpec::replace}};

struct PairList {
  std::string_view word;
  std::vector<std::pair<std::string, std::string>> KernelSpec::* pairs;
};
constexpr PairList kPairLists[] = {{"inplace", &KernelSpec::inplace}, {"view", &KernelSpec::view}};

class Parser {
 public:
  Parser(std::string_view text, std::string what) : in_(text, std::move(what)) { out_.text = text; }

  StatusOr<KernelSpec> Parse() {
    out_.any_op = in_.Take("*");
    out_.op = out_.any_op ? "*" : in_.ExpectWord("the op's name", ".>");
    if (!out_.any_op && in_.Take("(")) Types();
    in_.Expect("@", "before the device kind");
    out_.kind = in_.ExpectWord("the device kind");
    // Device kinds are compared without regard to case; see ParseDeviceSpec.
    for (char& c : out_.kind) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    while (in_.ok() && in_.Take(";")) Clause();
    if (in_.ok() && !in_.AtEnd()) in_.Fail(in_.column(), "expected ';' before the next clause");
    if (!in_.ok()) return in_.status();
    return std::move(out_);
  }

  // Returns the op's name, also after Parse failed; "" if it failed before that.
  const std::string& op() const { return out_.op; }

 private:
  // Parses "float, _ -> int32)".
  void Types() {
    out_.has_types = true;
    TypeList(&out_.in_types);
    if (in_.Take("->")) TypeList(&out_.out_types);
    in_.Expect(")", "or ',' after the element types");
  }

  void TypeList(std::vector<uint32_t>* to) {
    if (in_.Peek() == ')' || in_.Peek() == '-') return;
    to->reserve(4);
    do {
      size_t column = in_.column();
      std::string_view word = in_.ExpectWord("an element type or _");
      uint32_t t = word == "_" ? 0 : DTypeByName(word);
      if (in_.ok() && t == TW_INVALID_TYPE && word != "_") in_.FailUnknown(column, StrCat("'", word, "' is no element type"));
      to->push_back(t);
    } while (in_.ok() && in_.Take(","));
  }

  bool ClauseEnds() { return in_.Peek() == ';' || in_.Peek() == 0; }

  void Clause() {
    if (in_.Take("?")) {
      if (!in_.TakeKeyword("prefers")) return in_.SkipClause();
      do {
        out_.prefers.emplace_back(in_.ExpectWord("an order of axes, such as NHWC"));
      } while (in_.ok() && !ClauseEnds());
      return;
    }
    size_t column = in_.column();
    std::string_view word = in_.ExpectWord("a clause");
    if (!in_.ok()) return;
    for (const Flag& f : kFlags) {
      if (f.word != word) continue;
      out_.*f.value = true;
      if (out_.nondeterministic && deterministic_) in_.Fail(column, "a kernel cannot be deterministic and nondeterministic");
      if (out_.cheap && out_.may_block) in_.Fail(column, "a kernel that may block is not cheap");
      return;
    }
    for (const NameList& l : kNameLists) {
      if (l.word == word) return Names(&(out_.*l.names), l.word);
    }
    for (const PairList& l : kPairLists) {
      if (l.word == word) return Pairs(&(out_.*l.pairs));
    }
    if (word == "deterministic") {
      deterministic_ = true;
      if (out_.nondeterministic) in_.Fail(column, "a kernel cannot be deterministic and nondeterministic");
    } else if (word == "priority") {
      column = in_.column();
      int64_t n = in_.ExpectInt("the priority");
      if (n < std::numeric_limits<int32_t>::min() || n > std::numeric_limits<int32_t>::max()) {
        in_.Fail(column, StrCat("priority ", n, " does not fit into 32 bits"));
      }
      out_.priority = int32_t(n);
    } else {
      in_.Fail(column, StrCat("unknown clause '", word, "'; a hint that hosts may skip starts with '?'"));
    }
  }

  void Names(std::vector<std::string>* to, std::string_view clause) {
    RefuseNames();
    do {
      to->emplace_back(in_.ExpectWord(StrCat("the name of an argument after ", clause)));
    } while (in_.ok() && !ClauseEnds());
  }

  void RefuseNames() {
    if (out_.any_op) in_.Fail(in_.column(), "a kernel for any op cannot name arguments");
  }

  // Parses "y=x", with the output first.
  void Pairs(std::vector<std::pair<std::string, std::string>>* to) {
    RefuseNames();
    do {
      std::string y(in_.ExpectWord("the name of an output"));
      in_.Expect("=", "between output and input");
      to->emplace_back(std::move(y), in_.ExpectWord("the name of an input"));
    } while (in_.ok() && !ClauseEnds());
  }

  Scanner in_;
  KernelSpec out_;
  bool deterministic_ = false;  // the spec says so
};

}  // namespace

StatusOr<KernelSpec> ParseKernelSpec(std::string_view text) {
  Parser parser(text, "kernel spec");
  StatusOr<KernelSpec> spec = parser.Parse();
  if (spec.ok() || parser.op().empty()) return spec;
  // Plugins register thousands of specs, so the text that names the op in errors is made only if a
  // spec is wrong.
  return Parser(text, StrCat("spec of a kernel for '", parser.op(), "'")).Parse();
}

}  // namespace thalweg
