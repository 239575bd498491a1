#include "framework/graph/op_schema.h"

#include <algorithm>
#include <numeric>

#include "framework/base/dtype.h"
#include "framework/base/scanner.h"
#include "framework/graph/attr_spec.h"
#include "framework/graph/size_limits.h"

namespace thalweg {
namespace {

struct TouchesName {
  std::string_view name;
  uint32_t bit;
};
constexpr TouchesName kTouches[] = {{"files", kTouchesFiles}, {"network", kTouchesNetwork}, {"system", kTouchesSystem}};

template <class T>
int IndexByName(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return int(i);
  }
  return -1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text, "op schema") { out_.text = text; }

  StatusOr<OpSchema> Parse() {
    out_.name = in_.ExpectWord("the op's name", ".>");
    if (in_.ok()) in_.set_what(StrCat("schema of op '", out_.name, "'"));
    Args(&out_.inputs, "inputs");
    in_.Expect("->", "between inputs and outputs (an op without outputs says `-> ()`)");
    Args(&out_.outputs, "outputs");
    while (in_.ok() && in_.Take(";")) Clause();
    if (in_.ok() && !in_.AtEnd()) in_.Fail(in_.column(), "expected ';' before the next clause");
    if (in_.ok() && out_.touches && (!out_.stateful || out_.once)) {
      in_.Fail(touches_column_, "an op that touches something runs in every step that wants it: make it stateful, and not once");
    }
    out_.shape_only.resize(out_.inputs.size(), 0);
    out_.unopened.resize(out_.inputs.size(), 0);
    out_.data.resize(out_.inputs.size(), 0);
    ResolveTypes();
    CheckDims();
    CheckHandles();
    CheckAlgebra();
    ResolveAxes();
    CheckReferences();
    if (!in_.ok()) return in_.status();
    CountSingles(out_.inputs, &out_.in_at);
    CountSingles(out_.outputs, &out_.out_at);
    return std::move(out_);
  }

 private:
  // An argument's references to attributes, which may be declared later.
  struct Pending {
    bool output;
    size_t arg;
    std::string type, number;
    size_t type_column, number_column, column;
  };

  void NewName(std::string_view name, size_t column) {
    if (!in_.ok()) return;
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
      in_.Fail(column, StrCat("the name '", name, "' is taken; inputs, outputs and attributes need names of their own"));
    }
    names_.emplace_back(name);
  }

  void Args(std::vector<ArgSpec>* to, std::string_view what) {
    in_.Expect("(", StrCat("before the ", what));
    if (!in_.ok() || in_.Take(")")) return;
    do {
      Arg(to);
    } while (in_.ok() && in_.Take(","));
    in_.Expect(")", StrCat("or ',' after the ", what));
  }

  // Parses "name: type [dims] [* N]".
  void Arg(std::vector<ArgSpec>* to) {
    Pending p{to == &out_.outputs, to->size(), {}, {}, 0, 0, in_.column()};
    ArgSpec arg;
    arg.name = in_.ExpectWord("the name of an argument");
    NewName(arg.name, p.column);
    in_.Expect(":", "after the argument's name");
    p.type_column = in_.column();
    p.type = in_.ExpectWord("an element type or a type attribute");
    if (p.type == "ref" && in_.Take("(")) {
      arg.ref = true;
      p.type_column = in_.column();
      p.type = in_.ExpectWord("an element type or a type attribute");
      in_.Expect(")", "after the type of a reference");
    }
    if (in_.Take("[")) Dims(&arg);
    if (in_.Take("*")) {
      p.number_column = in_.column();
      p.number = in_.ExpectWord("the int attribute that says how many");
    }
    to->push_back(std::move(arg));
    pending_.push_back(std::move(p));
  }

  // Parses dims: numbers, names, *name or _, separated by commas.
  void Dims(ArgSpec* arg) {
    arg->has_dims = true;
    if (in_.Take("]")) return;
    do {
      DimPattern d;
      size_t column = in_.column();
      if (in_.PeekNumber()) {
        d.kind = DimPattern::kSize;
        d.size = in_.ExpectInt("a size");
        if (d.size < 0) in_.Fail(column, StrCat("size ", d.size, " is negative; write _ for an unknown one"));
      } else {
        bool star = in_.Take("*");
        d.name = in_.ExpectWord("a size, a name, *name or _");
        d.kind = star ? DimPattern::kStar : d.name == "_" ? DimPattern::kAny : DimPattern::kName;
        if (star && d.name == "_") in_.Fail(column, "axes that a star stands for need a name");
        if (d.kind == DimPattern::kAny) d.name.clear();
      }
      dim_columns_.push_back(column);
      arg->dims.push_back(std::move(d));
    } while (in_.ok() && in_.Take(","));
    in_.Expect("]", "or ',' after a size");
  }

  void Clause() {
    if (in_.Take("?")) {
      Hint();
      return;
    }
    size_t column = in_.column();
    std::string word(in_.ExpectWord("a clause"));
    if (!in_.ok()) return;
    if (in_.Peek() == ':') {
      NewName(word, column);
      AttrSpec attr = ReadAttrSpec(std::move(word), &in_);
      if (in_.ok()) out_.attrs.push_back(std::move(attr));
      return;
    }
    if (std::find(clauses_.begin(), clauses_.end(), word) != clauses_.end())
      in_.Fail(column, StrCat("clause '", word, "' stands here twice"));
    clauses_.push_back(word);
    if (word == "stateful") {
      out_.stateful = true;
    } else if (word == "once") {
      out_.once = true;
    } else if (word == "commutative") {
      out_.commutative = true;
    } else if (word == "touches") {
      touches_column_ = column;
      TouchesWords();
    } else if (word == "role") {
      out_.role = in_.ExpectWord("the role");
    } else if (word == "no_gradient") {
      out_.no_gradient = in_.ExpectQuoted("why the op has no gradient");
      if (in_.ok() && out_.no_gradient.empty()) in_.Fail(column, "no_gradient needs a reason");
    } else if (word == "doc") {
      out_.doc = in_.ExpectQuoted("the manual's line");
    } else if (word == "shape_only") {
      MarkInputs(&out_.shape_only);
    } else if (word == "unopened") {
      unopened_column_ = column;
      MarkInputs(&out_.unopened);
    } else if (word == "resource") {
      Resources();
    } else if (word == "runs_as") {
      runs_as_column_ = column;
      out_.runs_as = in_.ExpectWord("the op that runs in its place", ".>");
    } else if (Algebra(word)) {
      algebra_column_ = column;
      out_.algebra.said = true;
    } else {
      in_.Fail(column, StrCat("unknown clause '", word, "'; a hint that hosts may skip starts with '?'"));
    }
  }

  // Parses a hint. Known hints are parsed like clauses; unknown ones may contain anything.
  void Hint() {
    OpAxes& a = out_.axes;
    if (in_.TakeKeyword("elementwise")) {
      a.elementwise = true;
    } else if (in_.TakeKeyword("axes")) {
      a.ordered = true;
      axes_column_ = in_.column();
      do {
        axes_.emplace_back(in_.ExpectWord("the name of what has these axes"));
      } while (in_.ok() && in_.Peek() != ';' && in_.Peek() != 0);
    } else if (in_.TakeKeyword("axis_numbers")) {
      axes_column_ = in_.column();
      a.numbers = InputName();
    } else if (in_.TakeKeyword("reduces")) {
      axes_column_ = in_.column();
      keep_ = in_.ExpectWord("the attribute that says whether reduced axes stay");
    } else if (in_.TakeKeyword("data")) {
      MarkInputs(&out_.data);
    } else if (in_.TakeKeyword("limits")) {
      limits_column_ = in_.column();
      limits_.push_back(ReadSizeLimit(out_, &in_));  // LimitOutputs reads it again when somebody asks
    } else if (in_.TakeKeyword("grows")) {
    } else {
      in_.SkipClause();
    }
  }

  // Resolves the names of the hints, since attributes may be declared behind the hints.
  void ResolveAxes() {
    OpAxes& a = out_.axes;
    if (!in_.ok()) return;
    for (const SizeLimit& l : limits_) {
      for (const ArgSpec* arg : {&out_.outputs[size_t(l.output)], &out_.inputs[size_t(l.input)]}) {
        if (Many(*arg)) in_.Fail(limits_column_, StrCat("'", arg->name, "' is a list of values; limits are for single ones"));
      }
    }
    if (a.ordered) {
      a.in.assign(out_.inputs.size(), 0);
      a.out.assign(out_.outputs.size(), 0);
    }
    for (const std::string& name : axes_) {
      const int i = out_.FindInput(name), o = out_.FindOutput(name), at = out_.FindAttr(name);
      const AttrSpec* spec = at < 0 ? nullptr : &out_.attrs[size_t(at)];
      if (i >= 0) {
        a.in[size_t(i)] = 1;
      } else if (o >= 0) {
        a.out[size_t(o)] = 1;
      } else if (spec && spec->list && spec->kind == TW_ATTR_INT) {
        a.lists.push_back(at);
      } else if (spec && !spec->list && spec->kind == TW_ATTR_STRING && a.format < 0) {
        a.format = at;
      } else {
        in_.Fail(axes_column_,
                 StrCat("'", name, "' is neither an argument, nor an attribute of kind list(int), nor the only one of kind string"));
      }
    }
    if (in_.ok() && a.numbers >= 0 && Many(out_.inputs[size_t(a.numbers)])) {
      in_.Fail(axes_column_, StrCat("'", out_.inputs[size_t(a.numbers)].name, "' is a list of values; numbers of axes are one"));
    }
    if (keep_.empty()) return;
    a.keep = out_.FindAttr(keep_);
    const bool is_bool = a.keep >= 0 && out_.attrs[size_t(a.keep)].kind == TW_ATTR_BOOL && !out_.attrs[size_t(a.keep)].list;
    if (!is_bool || a.numbers < 0) {
      in_.Fail(axes_column_, StrCat("'", keep_, "' must be an attribute of kind bool, of an op that says `axis_numbers`"));
    }
  }

  void MarkInputs(std::vector<uint8_t>* marks) {
    marks->resize(out_.inputs.size(), 0);
    do {
      const int32_t i = InputName();
      if (in_.ok()) (*marks)[size_t(i)] = 1;
    } while (in_.ok() && in_.Peek() != ';' && in_.Peek() != 0);
  }

  // Parses "x TYPE ...".
  void Resources() {
    do {
      const size_t column = in_.column();
      const std::string_view name = in_.ExpectWord("the name of a handle");
      const int i = out_.FindInput(name), o = out_.FindOutput(name);
      if (in_.ok() && i < 0 && o < 0) in_.Fail(column, StrCat("'", name, "' is neither an input nor an output of the op"));
      const std::string_view type = in_.ExpectWord("the type of resource", ".-");
      if (!in_.ok()) return;
      ArgSpec& arg = i >= 0 ? out_.inputs[size_t(i)] : out_.outputs[size_t(o)];
      if (!arg.resource.empty()) in_.Fail(column, StrCat("'", name, "' stands here twice"));
      arg.resource = type;
      resource_columns_.emplace_back(&arg, column);
    } while (in_.ok() && in_.Peek() != ';' && in_.Peek() != 0);
  }

  void CheckHandles() {
    for (const auto& [arg, column] : resource_columns_) {
      if (arg->dtype != TW_RESOURCE) in_.Fail(column, StrCat("'", arg->name, "' is no handle; its type must be resource"));
    }
    for (size_t i = 0; i < out_.inputs.size(); ++i) {
      if (out_.unopened[i] && out_.inputs[i].dtype != TW_RESOURCE) {
        in_.Fail(unopened_column_, StrCat("'", out_.inputs[i].name, "' is no handle; its type must be resource"));
      }
    }
  }

  // References refer to variables, which only ops with handles can use.
  void CheckReferences() {
    const auto is_ref = [](const ArgSpec& arg) { return arg.ref; };
    const bool refs =
        std::any_of(out_.inputs.begin(), out_.inputs.end(), is_ref) || std::any_of(out_.outputs.begin(), out_.outputs.end(), is_ref);
    if (!in_.ok() || refs != out_.runs_as.empty()) return;
    if (refs) {
      in_.Fail(in_.column(), "an op with references says which op with handles runs in its place: runs_as OP");
    } else {
      in_.Fail(runs_as_column_, "the op has no references, so nothing runs in its place");
    }
  }

  // Parses the clauses that declare how the output follows from the inputs. Returns false if `word`
  // is none of them.
  bool Algebra(std::string_view word) {
    OpAlgebra& a = out_.algebra;
    if (word == "passes") {
      a.passes = InputName();
    } else if (word == "renames") {
      a.renames = InputName();
    } else if (word == "converts") {
      a.converts = InputName();
    } else if (word == "permutes") {
      a.permuted = InputName();
      a.permutation = InputName();
    } else if (word == "chooses") {
      a.condition = InputName();
      a.if_true = InputName();
      a.if_false = InputName();
    } else if (word == "neutral") {
      do {
        const int32_t input = InputName();
        a.neutral.emplace_back(input, in_.ExpectFloat("the number that changes nothing"));
      } while (in_.ok() && in_.Peek() != ';' && in_.Peek() != 0);
    } else if (word == "involution") {
      a.involution = true;
    } else if (word == "idempotent") {
      a.idempotent = true;
    } else {
      return false;
    }
    return true;
  }

  int32_t InputName() {
    const size_t column = in_.column();
    const std::string_view name = in_.ExpectWord("the name of an input");
    const int i = out_.FindInput(name);
    if (in_.ok() && i < 0) in_.Fail(column, StrCat("'", name, "' is no input of the op"));
    return i;
  }

  static bool Many(const ArgSpec& arg) { return !arg.list_attr.empty() || !arg.number_attr.empty(); }

  static void CountSingles(const std::vector<ArgSpec>& args, std::vector<uint32_t>* at) {
    if (std::any_of(args.begin(), args.end(), Many)) return;
    at->resize(args.size() + 1);
    std::iota(at->begin(), at->end(), 0u);
  }

  // Checks that clauses about algebra belong to an op with single values.
  void CheckAlgebra() {
    const OpAlgebra& a = out_.algebra;
    if (!a.said || !in_.ok()) return;
    const bool single = out_.outputs.size() == 1 && std::none_of(out_.inputs.begin(), out_.inputs.end(), Many) && !Many(out_.outputs[0]);
    if (!single || out_.stateful || out_.once) {
      in_.Fail(algebra_column_,
               "only an op without state, with one output, all arguments being single values, says how its output follows");
    } else if ((a.involution || a.idempotent) && out_.inputs.size() != 1) {
      in_.Fail(algebra_column_, "only an op of one input is applied to its own output");
    } else if (!a.neutral.empty() && out_.inputs.size() != 2) {
      in_.Fail(algebra_column_, "only an op of two inputs has numbers that change nothing");
    }
  }

  void TouchesWords() {
    do {
      const size_t column = in_.column();
      const std::string_view word = in_.ExpectWord("what the op touches");
      uint32_t bit = 0;
      for (const TouchesName& t : kTouches) {
        if (t.name == word) bit = t.bit;
      }
      if (in_.ok() && !bit) in_.Fail(column, StrCat("'", word, "' is nothing to touch; there are files, network and system"));
      out_.touches |= bit;
    } while (in_.ok() && in_.Peek() != ';' && in_.Peek() != 0);
  }

  // Resolves the words for argument types and counts to element types and attributes.
  void ResolveTypes() {
    for (const Pending& p : pending_) {
      if (!in_.ok()) return;
      ArgSpec& arg = (p.output ? out_.outputs : out_.inputs)[p.arg];
      uint32_t dtype = DTypeByName(p.type);
      int attr = out_.FindAttr(p.type);
      const AttrSpec* spec = attr < 0 ? nullptr : &out_.attrs[size_t(attr)];
      if (dtype != TW_INVALID_TYPE && !IsRef(dtype)) {
        arg.dtype = dtype;
      } else if (spec && spec->kind == TW_ATTR_TYPE) {
        (spec->list ? arg.list_attr : arg.type_attr) = p.type;
      } else if (!spec && !IsRef(dtype)) {
        in_.FailUnknown(p.type_column, StrCat("'", p.type, "' is neither an element type nor an attribute of kind type"));
      } else {
        in_.Fail(p.type_column, StrCat("'", p.type, "' is neither an element type nor an attribute of kind type",
                                       IsRef(dtype) ? "; references are written ref(type)" : ""));
      }
      if (p.number.empty()) continue;
      if (!arg.list_attr.empty()) in_.Fail(p.number_column, StrCat("list attribute '", p.type, "' already says how many values there are"));
      int number = out_.FindAttr(p.number);
      if (number < 0 || out_.attrs[size_t(number)].kind != TW_ATTR_INT || out_.attrs[size_t(number)].list) {
        in_.Fail(p.number_column, StrCat("'", p.number, "' is no int attribute of the op"));
      }
      arg.number_attr = p.number;
    }
  }

  // A name must stand for one axis everywhere, or for several axes everywhere.
  void CheckDims() {
    std::vector<const DimPattern*> seen;
    size_t at = 0;
    for (const auto* args : {&out_.inputs, &out_.outputs}) {
      for (const ArgSpec& arg : *args) {
        for (const DimPattern& d : arg.dims) {
          size_t column = at < dim_columns_.size() ? dim_columns_[at++] : 0;
          if (d.name.empty()) continue;
          for (const DimPattern* s : seen) {
            if (s->name == d.name && s->kind != d.kind) {
              in_.Fail(column, StrCat("'", d.name, "' stands for one axis in one place and, with a star, for several in another"));
            }
          }
          seen.push_back(&d);
        }
      }
    }
  }

  Scanner in_;
  OpSchema out_;
  std::vector<std::string> names_, clauses_;
  std::vector<Pending> pending_;
  std::vector<std::string> axes_;  // names in the hint
  std::string keep_;
  std::vector<SizeLimit> limits_;
  size_t axes_column_ = 0, limits_column_ = 0;
  size_t touches_column_ = 0, algebra_column_ = 0, unopened_column_ = 0, runs_as_column_ = 0;
  std::vector<std::pair<const ArgSpec*, size_t>> resource_columns_;
  std::vector<size_t> dim_columns_;  // in the order of the patterns
};

}  // namespace

int OpSchema::FindAttr(std::string_view attr_name) const { return IndexByName(attrs, attr_name); }
int OpSchema::FindInput(std::string_view arg) const { return IndexByName(inputs, arg); }
int OpSchema::FindOutput(std::string_view arg) const { return IndexByName(outputs, arg); }

std::string TouchesText(uint32_t touches) {
  std::string s;
  for (const TouchesName& t : kTouches) {
    if (touches & t.bit) s += StrCat(s.empty() ? "" : " and ", t.name);
  }
  return s;
}

StatusOr<OpSchema> ParseOpSchema(std::string_view text) { return Parser(text).Parse(); }

Status ReadOpSchema(OpSchema* op) {
  if (!op->unread) return Status();
  ASSIGN_OR_RETURN(OpSchema read, ParseOpSchema(op->text));
  if (!read.no_gradient.empty() && op->def.gradient) {
    return InvalidArgument("op '", read.name, "' says no_gradient but has a gradient callback; leave one of them out");
  }
  read.def = op->def;
  read.host = op->host;
  read.plugin = std::move(op->plugin);
  read.in_graphs = std::move(op->in_graphs);
  *op = std::move(read);
  op->def.schema = op->text.data();
  return Status();
}

}  // namespace thalweg
