#include "framework/eager/tape.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/base/dtype.h"
#include "framework/runtime/resource.h"

namespace thalweg {
namespace {

// Returns the variable of a handle; NULL for other values.
const Resource* VariableOf(const Tensor& value) {
  if (value.dtype() != TW_RESOURCE || value.count() != 1) return nullptr;
  const auto* r = dynamic_cast<const Resource*>(value.as<Handle*>()[0]);
  return r && r->is_variable() ? r : nullptr;
}

// Returns true if an output of the type can have an incoming gradient. Handles that an op makes have
// none.
bool HasOwnGradient(uint32_t dtype) { return dtype != TW_RESOURCE && HasGradients(dtype); }

// Stops a tape while it computes gradients, so that it does not note them itself.
class Pause {
 public:
  explicit Pause(bool* stopped) : stopped_(stopped), before_(std::exchange(*stopped, true)) {}
  ~Pause() { *stopped_ = before_; }

 private:
  bool* stopped_;
  bool before_;
};

}  // namespace

Tape::Tape(std::shared_ptr<Eager> eager) : eager_(std::move(eager)), thread_(__builtin_thread_pointer()) { eager_->Add(this); }
Tape::~Tape() { eager_->Remove(this); }

void Tape::Arriving::Add(TapeGradient g) {
  if (g.rows) {
    sparse.push_back(std::move(g));
  } else {
    dense.push_back(std::move(g.values));
  }
}

Tape::Id Tape::IdOf(const Tensor& value) {
  if (const Resource* variable = VariableOf(value)) return variable;
  return value.get();
}

Status Tape::Watch(const Tensor& value) {
  if (!HasGradients(value.dtype())) {
    return InvalidArgument("a value of ", DTypeName(value.dtype()),
                           " cannot be watched; only floating-point and complex values have gradients");
  }
  kept_.push_back(value);
  watched_.insert(IdOf(value));
  return Status();
}

void Tape::Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, const Tensor* out) {
  const bool gives = std::any_of(out, out + op->n_out(), [](const Tensor& t) { return HasOwnGradient(t.dtype()); });
  const bool reads =
      gives && std::any_of(in, in + op->n_in(), [this](const Tensor& t) { return VariableOf(t) || watched_.count(t.get()); });
  if (!reads) return;
  noted_.push_back({entry, op, {in, in + op->n_in()}, {out, out + op->n_out()}});
  for (size_t o = 0; o < op->n_out(); ++o) {
    if (HasOwnGradient(out[o].dtype())) watched_.insert(out[o].get());
  }
}

Status Tape::Seed(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, All* arriving) {
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tensor& y = targets[i];
    if (!HasOwnGradient(y.dtype())) {
      return InvalidArgument("target ", i, " is ", DTypeName(y.dtype()), "; only floating-point and complex values have gradients");
    }
    Tensor dy = i < dys.size() ? dys[i] : Tensor();
    if (dy && (dy.dtype() != y.dtype() || dy.shape() != y.shape())) {
      return InvalidArgument("the gradient given for target ", i, " is ", DTypeName(dy.dtype()), " ", dy.shape().text(),
                             ", but the target is ", DTypeName(y.dtype()), " ", y.shape().text());
    }
    if (!dy) {
      std::string key = StrCat("\1ones", y.dtype());
      ASSIGN_OR_RETURN(auto ones, eager_->Find(key, [&y](Graph* graph, Prepared::Parts* parts) -> Status {
        ASSIGN_OR_RETURN(const OpSchema* op, graph->runtime().registry().FindRole("ones_like"));
        return BuildCall({op->name, {}, {&y, 1}, {}}, graph, parts);
      }));
      RETURN_IF_ERROR(eager_->Run(ones, &ones->op(), &y, &dy));
    }
    (*arriving)[IdOf(y)].dense.push_back(std::move(dy));
  }
  return Status();
}

// Sums as a graph would in which all these gradients arrive at one value.
StatusOr<TapeGradient> Tape::Sum(const Arriving& a) {
  const Tensor& like = a.dense.empty() ? a.sparse[0].values : a.dense[0];
  std::string key = StrCat("\1sum", like.dtype(), ":", a.dense.size());
  std::vector<Tensor> in = {like};
  for (const Tensor& t : a.dense) in.push_back(t);
  for (const TapeGradient& g : a.sparse) {
    key += StrCat(":", g.rows.dtype());
    in.push_back(g.values);
    in.push_back(g.rows);
  }
  const auto build = [&](Graph* graph, Prepared::Parts* parts) -> Status {
    for (size_t i = 0; i < in.size(); ++i) {
      ASSIGN_OR_RETURN(const Edge input, AddInput(graph, in[i].dtype(), i));
      parts->in.push_back(input);
    }
    std::vector<thalweg::Gradient> dys, sum;
    for (size_t i = 0; i < a.dense.size(); ++i) dys.push_back({parts->in[1 + i], {}});
    for (size_t i = 1 + a.dense.size(); i < in.size(); i += 2) dys.push_back({parts->in[i], parts->in[i + 1]});
    RETURN_IF_ERROR(AddGradientsGiven(graph, std::vector<Edge>(dys.size(), parts->in[0]), dys, {parts->in[0]}, &sum));
    parts->out.push_back(sum[0].values);
    if (sum[0].sparse()) parts->out.push_back(sum[0].rows);
    return Status();
  };
  ASSIGN_OR_RETURN(auto entry, eager_->Find(key, build));
  std::array<Tensor, 2> out;
  RETURN_IF_ERROR(eager_->Run(entry, &entry->op(), in.data(), out.data()));
  return TapeGradient{std::move(out[0]), std::move(out[1])};
}

StatusOr<const TapeGradient*> Tape::Collect(Id id, All* arriving, TapeGradient* sum) {
  auto it = arriving->find(id);
  if (it == arriving->end() || (it->second.dense.empty() && it->second.sparse.empty())) return static_cast<const TapeGradient*>(nullptr);
  Arriving& a = it->second;
  if (a.dense.size() + a.sparse.size() > 1) {
    ASSIGN_OR_RETURN(TapeGradient all, Sum(a));
    a = Arriving();
    a.Add(std::move(all));
  }
  *sum = a.dense.empty() ? a.sparse[0] : TapeGradient{a.dense[0], {}};
  return const_cast<const TapeGradient*>(sum);
}

Status Tape::PassBack(const Noted& noted, const std::unordered_set<Id>& useful, All* arriving) {
  GradientForm form;
  std::vector<Tensor> in = noted.in;
  in.insert(in.end(), noted.out.begin(), noted.out.end());
  bool any = false;
  for (const Tensor& y : noted.out) {
    form.dy.push_back(0);
    if (!useful.count(IdOf(y))) continue;
    TapeGradient dy;
    ASSIGN_OR_RETURN(const TapeGradient* arrived, Collect(IdOf(y), arriving, &dy));
    if (!arrived) continue;
    any = true;
    form.dy.back() = dy.rows ? dy.rows.dtype() : GradientForm::kDense;
    in.push_back(dy.values);
    if (dy.rows) in.push_back(dy.rows);
  }
  if (!any) return Status();
  std::vector<Id> wanted;
  for (const Tensor& x : noted.in) {
    form.wanted.push_back(HasGradients(x.dtype()) && useful.count(IdOf(x)));
    if (form.wanted.back()) wanted.push_back(IdOf(x));
  }
  ASSIGN_OR_RETURN(PreparedGradient * gradient, noted.op->Gradient(form, noted.in.data()));
  if (!gradient->run) return Status();
  std::vector<Tensor> out(gradient->run->n_out());
  RETURN_IF_ERROR(eager_->Run(noted.entry, gradient->run.get(), in.data(), out.data()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const PreparedGradient::Result& r = gradient->dx[i];
    if (r.values < 0) continue;
    (*arriving)[wanted[i]].Add({out[size_t(r.values)], r.rows < 0 ? Tensor() : out[size_t(r.rows)]});
  }
  return Status();
}

Status Tape::Gradient(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, const std::vector<Tensor>& sources,
                      std::vector<TapeGradient>* out) {
  const Pause pause(&stopped_);
  out->assign(sources.size(), {});
  // Forward: find the values that depend on a source.
  std::unordered_set<Id> useful;
  for (const Tensor& x : sources) useful.insert(IdOf(x));
  std::vector<const Noted*> between;
  for (const Noted& n : noted_) {
    if (std::none_of(n.in.begin(), n.in.end(), [&](const Tensor& x) { return useful.count(IdOf(x)) > 0; })) continue;
    between.push_back(&n);
    for (const Tensor& y : n.out) {
      if (HasOwnGradient(y.dtype())) useful.insert(IdOf(y));
    }
  }
  All arriving;
  RETURN_IF_ERROR(Seed(targets, dys, &arriving));
  for (auto n = between.rbegin(); n != between.rend(); ++n) RETURN_IF_ERROR(PassBack(**n, useful, &arriving));
  for (size_t i = 0; i < sources.size(); ++i) RETURN_IF_ERROR(Collect(IdOf(sources[i]), &arriving, &(*out)[i]).status());
  return Status();
}

}  // namespace thalweg
