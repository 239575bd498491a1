// Runs nodes in the order of axes that their kernels prefer: channels last if the graph says
// channels first, on devices whose kernels state this preference (`?prefers` in plugin/kernel.h).
// LayoutChoice selects the nodes. This pass sets the attributes, lists and axis numbers that go
// with the order, transposes values where turned nodes meet others, and drops transposes of the
// program that undo this. Feeds, fetches, names and messages stay as the graph says.
#include <algorithm>
#include <functional>
#include <utility>

#include "framework/base/checked.h"
#include "framework/planner/axes/layout_choice.h"
#include "framework/planner/axes/layout_form.h"
#include "framework/planner/renumber.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

std::string TextOf(const AxisOrder& order) {
  std::string s;
  for (int32_t axis : order) s += StrCat(axis, " ");
  return s;
}

uint64_t ContentOf(const Tensor& t) { return std::hash<std::string_view>()({t.as<char>(), size_t(t.bytes())}); }

class Turner {
 public:
  Turner(WorkGraph* w, const LayoutChoice& choice) : w_(*w), c_(choice), old_(w->nodes), back_(Inverse(choice.order)) {}

  // Turns all chosen nodes or changes nothing.
  Status Run() {
    plain_.resize(old_.size());
    turned_.resize(old_.size());
    for (size_t i = 0; i < old_.size(); ++i) {
      plain_[i].resize(old_[i].out_types.size());
      turned_[i].resize(old_[i].out_types.size());
      RETURN_IF_ERROR(Place(int32_t(i)));
    }
    for (const WorkEdge& e : w_.fetches) RETURN_IF_ERROR(Plain(e).status());
    std::vector<std::pair<WorkEdge, WorkEdge>> equal;
    for (const auto& [a, b] : w_.equal_shapes) {
      ASSIGN_OR_RETURN(const WorkEdge first, Plain(a));
      ASSIGN_OR_RETURN(const WorkEdge second, Plain(b));
      equal.emplace_back(first, second);
    }
    std::swap(w_.nodes, nodes_);
    Renumber(
        &w_, now_, [&](const WorkEdge& e) { return plain_[size_t(e.node)][size_t(e.port)]; }, [&](int32_t t) { return now_[size_t(t)]; });
    w_.equal_shapes = std::move(equal);
    RETURN_IF_ERROR(PrunePass(&w_));
    Note();
    return Status();
  }

 private:
  size_t rank() const { return c_.order.size(); }
  const WorkNode& Maker(const WorkEdge& e) const { return old_[size_t(e.node)]; }

  Status Place(int32_t i) {
    const WorkNode& n = old_[size_t(i)];
    WorkNode x = n;
    const LayoutChoice::Form& form = c_.forms[size_t(i)];
    const AxisOrder given = form.turned ? AxisOrder() : OrderGiven(w_, n);
    if (form.turned) {
      RETURN_IF_ERROR(Turn(n, form, &x));
    } else if (given.size() == rank() && IsOnlyTurned(n.in[size_t(n.node->op().algebra.permuted)])) {
      return Reorder(i, given);
    } else {
      for (WorkEdge& e : x.in) {
        ASSIGN_OR_RETURN(e, (n.constant || n.dead) && !n.varies ? AsMade(e) : Plain(e));
      }
    }
    for (int32_t& c : x.controls) c = now_[size_t(c)];
    now_.push_back(Push(std::move(x)));
    for (int32_t o = 0; o < int32_t(n.out_types.size()); ++o) {
      const bool turns = form.turned && TurnsOutput(n, o, rank());
      (turns ? turned_ : plain_)[size_t(i)][size_t(o)] = {now_.back(), o};
    }
    return Status();
  }
  int32_t Push(WorkNode x) {
    nodes_.push_back(std::move(x));
    return int32_t(nodes_.size()) - 1;
  }

  Status Turn(const WorkNode& n, const LayoutChoice::Form& form, WorkNode* x) {
    x->kernel = form.kernel;
    if (!form.attrs.empty()) {
      const std::vector<uint32_t> in_types(n.node->types().begin(), n.node->types().begin() + n.node->n_in());
      ASSIGN_OR_RETURN(x->node, w_.graph->Beside(*n.node, "in " + c_.to, n.node->op(), n.node->inputs(), in_types, form.attrs));
    }
    for (size_t k = 0; k < n.in.size(); ++k) {
      ASSIGN_OR_RETURN(x->in[k], Input(n, k, form.in[k]));
    }
    for (int32_t o = 0; o < n.node->n_out(); ++o) {
      if (TurnsOutput(n, o, rank())) x->shapes[size_t(o)] = Turned(n.shapes[size_t(o)], c_.order);
    }
    return Status();
  }

  StatusOr<WorkEdge> Input(const WorkNode& n, size_t k, AxisUse use) {
    const WorkEdge& e = n.in[k];
    const std::string key = StrCat(k, " ", TextOf(c_.order));
    switch (use) {
      case AxisUse::kTurned: return TurnedValue(e, n);
      case AxisUse::kWidened: return Widened(e, n, key);
      case AxisUse::kRows: {
        if (const Tensor* rows = SureValue(w_, e)) {
          ASSIGN_OR_RETURN(Tensor turned, TurnedRows(*rows, c_.order));
          return Constant(n, "rows " + key, turned);
        }
        return Sizes(e, n);
      }
      case AxisUse::kNumbers: {
        ASSIGN_OR_RETURN(Tensor turned, TurnedNumbers(*SureValue(w_, e), c_.order));
        return Constant(n, "numbers " + key, turned);
      }
      default: return Plain(e);
    }
  }

  // ---- Values ----

  bool IsOnlyTurned(const WorkEdge& e) const {
    return turned_[size_t(e.node)][size_t(e.port)].node >= 0 && plain_[size_t(e.node)][size_t(e.port)].node < 0;
  }
  // Returns the value in either order, for a node that neither runs any more nor is evaluated again
  // for other feeds.
  StatusOr<WorkEdge> AsMade(const WorkEdge& e) {
    return IsOnlyTurned(e) && !Maker(e).varies ? turned_[size_t(e.node)][size_t(e.port)] : Plain(e);
  }

  StatusOr<WorkEdge> Plain(const WorkEdge& e) {
    WorkEdge& plain = plain_[size_t(e.node)][size_t(e.port)];
    if (plain.node >= 0) return plain;
    const WorkEdge from = turned_[size_t(e.node)][size_t(e.port)];
    const WorkNode& maker = Maker(e);
    ASSIGN_OR_RETURN(plain, Moved(from, back_, *maker.node, StrCat("out ", e.port, " "), maker.device));
    return plain;
  }

  // reader: the first node that wants the value; its device transposes the value if the maker's
  // cannot.
  StatusOr<WorkEdge> TurnedValue(const WorkEdge& e, const WorkNode& reader) {
    WorkEdge& turned = turned_[size_t(e.node)][size_t(e.port)];
    if (turned.node >= 0) return turned;
    const WorkNode& maker = Maker(e);
    const Node& origin = maker.node ? *maker.node : *reader.node;
    // A node may be the first reader of several feeds.
    const std::string key = maker.node ? StrCat("made ", e.port, " ") : StrCat("fed ", w_.signature->feeds[size_t(maker.feed)].text(), " ");
    Device* device = maker.node ? DeviceToTurn(maker.out_types[size_t(e.port)], maker.device, reader.device) : reader.device;
    const AxisOrder given = OrderGiven(w_, maker);
    const Tensor* sure = SureValue(w_, e);
    if (maker.constant && sure) {
      ASSIGN_OR_RETURN(Tensor value, Turned(*sure, c_.order));
      ASSIGN_OR_RETURN(turned, Constant(maker, StrCat("turned ", e.port, " ", TextOf(c_.order)), value));
    } else if (given.size() == rank()) {
      const AxisOrder both = Composed(given, c_.order);
      ASSIGN_OR_RETURN(const WorkEdge from, Plain(maker.in[size_t(maker.node->op().algebra.permuted)]));
      if (IsInOrder(both)) return turned = from;
      ASSIGN_OR_RETURN(turned, Moved(from, both, origin, key, device));
    } else {
      ASSIGN_OR_RETURN(turned, Moved(plain_[size_t(e.node)][size_t(e.port)], c_.order, origin, key, device));
    }
    return turned;
  }

  // For a transpose of the program that reads a turned value: merges both transposes, or removes
  // them if nothing remains.
  Status Reorder(int32_t i, const AxisOrder& given) {
    const WorkNode& n = old_[size_t(i)];
    const WorkEdge& e = n.in[size_t(n.node->op().algebra.permuted)];
    const WorkEdge from = turned_[size_t(e.node)][size_t(e.port)];
    const AxisOrder both = Composed(back_, given);
    WorkEdge& to = plain_[size_t(i)][0];
    to = from;
    if (!IsInOrder(both)) {
      Device* device = DeviceToTurn(n.out_types[0], n.device, Maker(e).device);
      ASSIGN_OR_RETURN(to, Moved(from, both, *n.node, "again ", device));
    }
    now_.push_back(to.node);
    return Status();
  }

  // ---- Nodes that no graph has ----

  // Returns the first device if it can transpose such values, else the second. NULL stands for
  // values known at planning time.
  Device* DeviceToTurn(uint32_t dtype, Device* first, Device* second) const {
    return !first || TurningKernel(w_, *c_.transpose, dtype, *first) ? first : second;
  }
  bool CanView(uint32_t dtype, const Device* device) const {
    auto op = w_.runtime().registry().FindRole("reshape");
    return op.ok() && (!device || TurningKernel(w_, **op, dtype, *device));
  }

  // Returns a transpose; if the elements lie the same either way, a view.
  StatusOr<WorkEdge> Moved(const WorkEdge& from, const AxisOrder& order, const Node& origin, const std::string& key, Device* device) {
    const WorkNode& p = nodes_[size_t(from.node)];
    const Shape shape = Turned(p.shapes[size_t(from.port)], order);
    const uint32_t dtype = p.out_types[size_t(from.port)];
    if (!p.varies && LiesTheSame(shape) && CanView(dtype, device)) return Viewed(from, shape, origin, key + TextOf(order), device);
    ASSIGN_OR_RETURN(const Tensor perm, TensorOf(order));
    ASSIGN_OR_RETURN(const WorkEdge by, Constant(origin, "order " + TextOf(order), perm));
    ASSIGN_OR_RETURN(const WorkEdge moved, Two(*c_.transpose, from, by, shape, origin, StrCat("transpose ", key, TextOf(order)), device));
    if (nodes_[size_t(from.node)].constant) {  // constant for these feeds only: no device holds it, and other feeds compute it again
      WorkNode& x = nodes_[size_t(moved.node)];
      ASSIGN_OR_RETURN(x.values[0], Turned(nodes_[size_t(from.node)].values[size_t(from.port)], order));
      x.constant = true;
      return moved;
    }
    transposes_.push_back({moved.node, dtype});
    return moved;
  }

  StatusOr<WorkEdge> Viewed(const WorkEdge& from, const Shape& shape, const Node& origin, const std::string& key, Device* device) {
    ASSIGN_OR_RETURN(const OpSchema* op, w_.runtime().registry().FindRole("reshape"));
    ASSIGN_OR_RETURN(const Tensor dims, Tensor::Vector<int32_t>(TW_INT32, {shape.dims().begin(), shape.dims().end()}));
    const std::string text = StrCat(key, " ", shape.text());
    ASSIGN_OR_RETURN(const WorkEdge to, Constant(origin, "dims " + text, dims));
    return Two(*op, from, to, shape, origin, "view " + text, device);
  }

  // Adds a node of two inputs, one of which is a constant of whole numbers.
  StatusOr<WorkEdge> Two(const OpSchema& op, const WorkEdge& a, const WorkEdge& b, const Shape& shape, const Node& origin, std::string key,
                         Device* device) {
    const uint32_t dtype = nodes_[size_t(a.node)].out_types[size_t(a.port)];
    WorkNode x;
    ASSIGN_OR_RETURN(x.node, w_.graph->Beside(origin, std::move(key), op, {EdgeOf(a, origin), EdgeOf(b, origin)}, {dtype, TW_INT32},
                                              std::vector<AttrValue>(op.attrs.size())));
    x.in = {a, b};
    x.out_types = {dtype};
    x.shapes = {shape};
    x.values.resize(1);
    x.varies = nodes_[size_t(a.node)].varies;
    x.ordered = nodes_[size_t(a.node)].ordered;
    if (device) {
      x.device = device;
      x.kernel = TurningKernel(w_, op, dtype, *device);
      if (!x.kernel) return NotFound("no kernel of ", op.name, " to turn a value with");
    }
    return WorkEdge{Push(std::move(x)), 0};
  }
  // Returns the edge in the graph; for a feed, the fed edge.
  Edge EdgeOf(const WorkEdge& e, const Node& origin) const {
    const WorkNode& n = nodes_[size_t(e.node)];
    if (n.node) return {n.node, e.port};
    return n.feed >= 0 ? w_.signature->feeds[size_t(n.feed)] : Edge{&origin, 0};
  }

  StatusOr<WorkEdge> Constant(const WorkNode& of, const std::string& key, const Tensor& value) { return Constant(*of.node, key, value); }
  StatusOr<WorkEdge> Constant(const Node& origin, const std::string& key, const Tensor& value) {
    ASSIGN_OR_RETURN(const OpSchema* op, w_.runtime().registry().FindRole("const"));
    std::vector<AttrValue> attrs(op->attrs.size());
    attrs[size_t(op->FindAttr("value"))] = AttrValue::OfTensor(value);
    attrs[size_t(op->FindAttr("dtype"))] = AttrValue::Type(value.dtype());
    WorkNode x;
    // A function that was inlined twice has each node twice, perhaps with other values.
    const std::string content = StrCat(key, " ", value.shape().text(), " ", ContentOf(value));
    ASSIGN_OR_RETURN(x.node, w_.graph->Beside(origin, content, *op, {}, {}, std::move(attrs)));
    x.out_types = {value.dtype()};
    x.values = {value};
    x.shapes = {value.shape()};
    x.constant = true;
    return WorkEdge{Push(std::move(x)), 0};
  }

  // Returns an operand of fewer axes, widened to as many axes as the others and turned.
  StatusOr<WorkEdge> Widened(const WorkEdge& e, const WorkNode& reader, const std::string& key) {
    const Shape& s = Maker(e).shapes[size_t(e.port)];
    std::vector<int64_t> dims(rank() - size_t(s.rank()), 1);
    dims.insert(dims.end(), s.dims().begin(), s.dims().end());
    const Tensor* sure = SureValue(w_, e);
    if (sure && Maker(e).constant) {
      ASSIGN_OR_RETURN(const Tensor wide, sure->Reshape(dims.data(), int32_t(dims.size())));
      ASSIGN_OR_RETURN(const Tensor turned, Turned(wide, c_.order));
      return Constant(reader, "wide " + key, turned);
    }
    ASSIGN_OR_RETURN(const WorkEdge from, Plain(e));
    return Viewed(from, Turned(Shape(dims), c_.order), *reader.node, "wide " + key, reader.device);
  }

  // Returns the sizes of a value in the turned order. They are computed from the turned value, so
  // they are right for other feeds too.
  StatusOr<WorkEdge> Sizes(const WorkEdge& e, const WorkNode& reader) {
    const WorkNode& n = Maker(e);
    WorkNode x = n;
    ASSIGN_OR_RETURN(x.in[0], TurnedValue(n.in[0], reader));
    x.controls.clear();
    for (Tensor& value : x.values) {
      ASSIGN_OR_RETURN(value, TurnedRows(value, c_.order));
    }
    return WorkEdge{Push(std::move(x)), e.port};
  }

  void Note() {
    LayoutNote note;
    note.order = c_.to;
    for (size_t i = 0; i < c_.forms.size(); ++i) {
      if (c_.forms[i].turned) note.nodes.push_back(nodes_[i].node);
    }
    for (const auto& [node, dtype] : transposes_) {
      const WorkNode& n = w_.nodes[size_t(node)];
      auto bytes = CountBytes(n.shapes[0].dims().data(), n.shapes[0].rank(), dtype);
      if (n.dead || !bytes.ok()) continue;
      ++note.transposes;
      note.bytes = int64_t(std::min(uint64_t(note.bytes) + uint64_t(*bytes), uint64_t{INT64_MAX}));
    }
    w_.notes.layouts.push_back(std::move(note));
  }

  WorkGraph& w_;
  const LayoutChoice& c_;
  const std::vector<WorkNode>& old_;  // the nodes of the work graph until the pass is done
  const AxisOrder back_;
  std::vector<WorkNode> nodes_;                           // the new nodes, which replace the old ones at the end
  std::vector<int32_t> now_;                              // per old node
  std::vector<std::vector<WorkEdge>> plain_, turned_;     // per old output; node -1: not there yet
  std::vector<std::pair<int32_t, uint32_t>> transposes_;  // nodes, with their types
};

}  // namespace

Status LayoutPass(WorkGraph* w) {
  if (w->flow) return Status();  // values decide which nodes run, and so which values may be read
  const auto orders = PreferredOrders(*w);
  if (orders.empty()) return Status();
  const auto transpose = w->runtime().registry().FindRole("transpose");
  if (!transpose.ok()) return Status();  // no op to transpose with
  for (const auto& [from, to] : orders) {
    const LayoutChoice choice = ChooseLayout(*w, from, to, **transpose);
    Status s = choice.any ? Turner(w, choice).Run() : Status();
    // NOT_FOUND means that a kernel to transpose some value is missing. The graph is unchanged, and
    // runs so.
    if (!s.ok() && s.code() != absl::StatusCode::kNotFound) return s;
  }
  return Status();
}

}  // namespace thalweg
