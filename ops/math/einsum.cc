// Einsum computes sums of products, given by labels of axes as in "ij,jk->ik". Labels are letters
// and digits; blanks are ignored. A label that occurs twice in an input takes its diagonal; twice
// in the output, it fills the diagonal. Labels that are not in the output are summed over. "..."
// stands for any axes, which broadcast. Without "->" the output has the ellipsis, then, sorted, the
// labels that occur exactly once in the inputs.
#include <algorithm>

#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr size_t kNoDots = std::string::npos;

// The labels of one tensor; the ellipsis follows the first `dots` of them.
struct Term {
  std::string labels;
  size_t dots = kNoDots;
  bool has_dots() const { return dots != kNoDots; }
  bool has(char label) const { return labels.find(label) != std::string::npos; }
  std::string text() const { return has_dots() ? labels.substr(0, dots) + "..." + labels.substr(dots) : labels; }
};

struct Equation {
  std::vector<Term> in;
  Term out;
};

std::string Quoted(std::string_view equation) { return "equation '" + std::string(equation) + "'"; }

[[noreturn]] void Refuse(std::string_view equation, size_t at, const std::string& what) {
  Fail(Quoted(equation) + ", position " + std::to_string(at) + ": " + what);
}

bool IsLabel(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9'); }

std::vector<Term> Terms(std::string_view equation, size_t begin, size_t end) {
  std::vector<Term> terms(1);
  for (size_t i = begin; i < end; ++i) {
    const char c = equation[i];
    Term& term = terms.back();
    if (IsLabel(c)) {
      term.labels += c;
    } else if (c == ',') {
      terms.emplace_back();
    } else if (c == '.') {
      if (equation.substr(i, 3) != "...") Refuse(equation, i, "an ellipsis is three dots");
      if (term.has_dots()) Refuse(equation, i, "a second ellipsis for one tensor; one stands for all axes without labels");
      term.dots = term.labels.size();
      i += 2;
    } else if (c != ' ') {
      Refuse(equation, i, std::string("'") + c + "' is no label; use letters, digits, ',', '...' and one '->'");
    }
  }
  return terms;
}

Term ImpliedOutput(const std::vector<Term>& in) {
  std::string all;
  Term out;
  for (const Term& term : in) {
    all += term.labels;
    if (term.has_dots()) out.dots = 0;
  }
  for (char label : all)
    if (std::count(all.begin(), all.end(), label) == 1) out.labels += label;
  std::sort(out.labels.begin(), out.labels.end());
  return out;
}

Equation Parse(std::string_view equation, size_t inputs) {
  const size_t arrow = equation.find("->");
  Equation e;
  e.in = Terms(equation, 0, std::min(arrow, equation.size()));
  if (e.in.size() != inputs)
    Fail(Quoted(equation) + " is about " + std::to_string(e.in.size()) + " tensors, but there are " + std::to_string(inputs) + " inputs");
  if (arrow == std::string_view::npos) {
    e.out = ImpliedOutput(e.in);
    return e;
  }
  const std::vector<Term> out = Terms(equation, arrow + 2, equation.size());
  if (out.size() != 1) Refuse(equation, equation.find(',', arrow), "there is one output");
  e.out = out[0];
  for (size_t i = arrow + 2; i < equation.size(); ++i) {
    auto has = [&](const Term& term) { return term.has(equation[i]); };
    if (IsLabel(equation[i]) && std::none_of(e.in.begin(), e.in.end(), has))
      Refuse(equation, i, std::string("label '") + equation[i] + "' of the output stands in no input");
  }
  return e;
}

// Shape.

// The known sizes of labels, and of the axes that ellipses stand for.
struct Sizes {
  int64_t of[128];
  int input[128];  // the input where each size was found first
  MaybeDims dots = Dims{};
};

void CheckRank(const Term& term, int i, const Dims& dims) {
  const size_t labels = term.labels.size();
  if (term.has_dots() ? dims.size() >= labels : dims.size() == labels) return;
  Fail("input " + std::to_string(i) + " is " + Text(dims) + ", but '" + term.text() + "' has " + std::to_string(labels) + " labels" +
       (term.has_dots() ? "" : "; '...' stands for more axes"));
}

void AddSize(const tw::Shape& s, Sizes* sizes, char label, int i, int64_t size) {
  int64_t& known = sizes->of[size_t(label)];
  int& first = sizes->input[size_t(label)];
  if (first >= 0 && Known(known) && Known(size) && known != size)
    Fail("label '" + std::string(1, label) + "' is " + tw::text(known) + " in input " + std::to_string(first) + " and " + tw::text(size) +
         " in input " + std::to_string(i) + "; one label in 'inputs' is one size");
  known = first < 0 ? size : s.calc('=', known, size);
  first = i;
}

void AddInput(const tw::Shape& s, const Term& term, int i, Sizes* sizes) {
  const MaybeDims dims = In(s, uint32_t(i));
  if (!dims) {
    if (term.has_dots()) sizes->dots = std::nullopt;
    return;
  }
  CheckRank(term, i, *dims);
  const size_t labels = term.labels.size(), extra = dims->size() - labels;
  for (size_t k = 0; k < labels; ++k) AddSize(s, sizes, term.labels[k], i, (*dims)[k < term.dots ? k : k + extra]);
  if (term.has_dots()) sizes->dots = Broadcast(sizes->dots, Sub(*dims, term.dots, term.dots + extra));
}

void Rule(const tw::Shape& s) {
  const std::string_view equation = s.s("equation");
  const Equation e = Parse(equation, s.c->n_in);
  Sizes sizes;
  std::fill_n(sizes.of, 128, -1);
  std::fill_n(sizes.input, 128, -1);
  for (size_t i = 0; i < e.in.size(); ++i) AddInput(s, e.in[i], int(i), &sizes);
  if (sizes.dots && !sizes.dots->empty() && !e.out.has_dots())
    Fail(Quoted(equation) + ": '...' stands for axes " + Text(sizes.dots) + ", but the output has no '...'; add it, or label these axes");
  if (e.out.has_dots() && !sizes.dots) return;
  Dims out;
  for (size_t k = 0; k <= e.out.labels.size(); ++k) {
    if (k == e.out.dots) out = Join(out, *sizes.dots);
    if (k < e.out.labels.size()) out.push_back(sizes.of[size_t(e.out.labels[k])]);
  }
  Product(s, out);
  s.out(0, out);
}

// Gradient.

// Parts of the shape of input i, as int32 vectors.
tw_edge DotsShape(const tw::Grad& g, uint32_t i, const Term& term) {
  const int64_t after = int64_t(term.labels.size() - term.dots);
  const tw_edge rest = Tail(g, g.shape(i), int64_t(term.dots));
  return after ? Head(g, rest, -after) : rest;
}
tw_edge LabelSize(const tw::Grad& g, uint32_t i, const Term& term, char label) {
  const size_t k = term.labels.find(label);
  const tw_edge shape = g.shape(i);
  const tw_edge from = k < term.dots ? shape : Tail(g, shape, int64_t(k) - int64_t(term.labels.size()));
  return g.op("Slice", {from, Ints(g, {k < term.dots ? int64_t(k) : 0}), Ints(g, {1})});
}

std::string Distinct(const std::string& labels) {
  std::string distinct;
  for (char label : labels)
    if (distinct.find(label) == std::string::npos) distinct += label;
  return distinct;
}

// A product under construction.
struct Factors {
  std::vector<tw_edge> in;
  std::vector<Term> terms;
  bool has(char label) const {
    return std::any_of(terms.begin(), terms.end(), [label](const Term& t) { return t.has(label); });
  }
  bool has_dots() const {
    return std::any_of(terms.begin(), terms.end(), [](const Term& t) { return t.has_dots(); });
  }
  void Add(tw_edge e, const Term& term) {
    in.push_back(e);
    terms.push_back(term);
  }
  tw_edge Emit(const tw::Grad& g, const Term& out) const {
    std::string equation;
    for (const Term& term : terms) equation += (equation.empty() && &term == &terms[0] ? "" : ",") + term.text();
    equation += "->" + out.text();
    return g.op("Einsum", in, {{"equation", std::string_view(equation)}});
  }
};

// Adds a factor of ones along the axes that only input i has. It broadcasts the gradient over axes
// that were summed.
void AddOnes(const tw::Grad& g, uint32_t i, const Term& x, Factors* product) {
  Term ones;
  for (char label : Distinct(x.labels))
    if (!product->has(label)) ones.labels += label;
  if (x.has_dots() && !product->has_dots()) ones.dots = 0;
  if (ones.labels.empty() && !ones.has_dots()) return;
  std::vector<tw_edge> shape;
  if (ones.has_dots()) shape.push_back(DotsShape(g, i, x));
  for (char label : ones.labels) shape.push_back(LabelSize(g, i, x, label));
  tw_edge sizes = shape[0];
  for (size_t k = 1; k < shape.size(); ++k) sizes = Concat(g, {sizes, shape[k]});
  product->Add(g.op("Fill", {sizes, g.scalar(1, TypeOf(g, product->in[0]))}), ones);
}

// `e` has broadcast axes, then `labels` axes of labels. Sums the former to the axes that input i
// has in their place.
tw_edge SumDots(const tw::Grad& g, tw_edge e, uint32_t i, const Term& x, int64_t labels) {
  const MaybeDims dims = ShapeIn(g, i), all = DimsOf(g, e);
  if (x.has_dots() && dims && all) {
    const size_t extra = dims->size() - x.labels.size();
    if (SameShape(Sub(*dims, x.dots, x.dots + extra), Sub(*all, 0, all->size() - size_t(labels)))) return e;
  }
  const tw_edge shape = ShapeOf(g, e), own = x.has_dots() ? DotsShape(g, i, x) : Ints(g, {});
  const tw_edge axes = g.op("BroadcastGradientArgs", {own, labels ? Head(g, shape, -labels) : shape});
  const tw_edge kept = labels ? Concat(g, {own, Tail(g, shape, -labels)}) : own;
  return g.op("Reshape", {g.op("Sum", {e, axes}), kept});
}

// The gradient of a factor is the product of dy and the other factors. The labels say which axes
// are summed and which broadcast.
void Gradient(const tw::Grad& g) {
  const Equation e = Parse(g.s("equation"), g.inputs());
  for (uint32_t i = 0; i < g.inputs(); ++i) {
    const Term& x = e.in[i];
    Factors product;
    product.Add(g.dy(), e.out);
    for (uint32_t j = 0; j < g.inputs(); ++j)
      if (j != i) product.Add(Conj(g, g.x(j)), e.in[j]);
    AddOnes(g, i, x, &product);
    Term out;
    out.labels = Distinct(x.labels);
    if (product.has_dots()) out.dots = 0;
    tw_edge dx = product.Emit(g, out);
    if (out.has_dots()) dx = SumDots(g, dx, i, x, int64_t(out.labels.size()));
    out.dots = x.has_dots() ? 0 : kNoDots;
    if (out.text() != x.text()) {
      Factors turn;
      turn.Add(dx, out);
      dx = turn.Emit(g, x);
    }
    g.dx(i, dx);
  }
}

}  // namespace

void register_einsum(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "Einsum(inputs: T * N) -> (output: T); equation: string; N: int >= 1; T: type; "
      "?data inputs; doc \"sums of products of tensors whose axes are labelled, as in 'ij,jk->ik'; labels that the output lacks are summed "
      "over\"");
}

}  // namespace thalweg::ops
