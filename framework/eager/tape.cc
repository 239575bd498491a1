#include "framework/eager/tape.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/base/dtype.h"
#include "framework/eager/eager.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/step/step.h"

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
  noted_.push_back({entry, op, {in, in + op->n_in()}, {out, out + op->n_out()}, nullptr});
  for (size_t o = 0; o < op->n_out(); ++o) {
    if (HasOwnGradient(out[o].dtype())) watched_.insert(out[o].get());
  }
}

bool Tape::CountHeld(uint64_t part, Counts* held) const {
  const auto begun = std::find_if(begun_.begin(), begun_.end(), [part](const auto& b) { return b.first == part; });
  if (begun == begun_.end()) return false;
  for (size_t i = begun->second; i < noted_.size(); ++i) {
    for (const auto* values : {&noted_[i].in, &noted_[i].out}) {
      for (const Tensor& t : *values) ++(*held)[t.get()];
    }
  }
  return true;
}

void Tape::Fold(uint64_t part, const Tensors& used, std::vector<Noted>* dropped) {
  const auto begun = std::find_if(begun_.begin(), begun_.end(), [part](const auto& b) { return b.first == part; });
  const auto first = noted_.begin() + std::ptrdiff_t(begun->second);
  begun_.erase(begun, begun_.end());  // with inner parts that did not end
  std::vector<Noted> all(std::make_move_iterator(first), std::make_move_iterator(noted_.end()));
  noted_.erase(first, noted_.end());
  Counts reads;
  for (const Noted& n : all) {
    for (const Tensor& x : n.in) ++reads[x.get()];
  }
  std::vector<Noted> run;
  Tensors made;  // outputs of the run
  for (Noted& n : all) {
    const bool repeats = n.MayRepeat();
    const auto ends_run = [&](const Tensor& x) { return made.count(x.get()) > 0 && (!repeats || used.count(x.get()) > 0); };
    if (std::any_of(n.in.begin(), n.in.end(), ends_run)) {
      FoldRun(&run, reads, used, dropped);
      made.clear();
    }
    if (!repeats) {
      noted_.push_back(std::move(n));
      continue;
    }
    for (const Tensor& y : n.out) made.insert(y.get());
    run.push_back(std::move(n));
  }
  FoldRun(&run, reads, used, dropped);
}

void Tape::FoldRun(std::vector<Noted>* run, const Counts& reads, const Tensors& used, std::vector<Noted>* dropped) {
  if (run->size() < 2) {  // there is nothing between
    for (Noted& n : *run) noted_.push_back(std::move(n));
    run->clear();
    return;
  }
  auto part = std::make_shared<TapePart>();
  Noted folded;
  Tensors made;
  std::unordered_map<const tw_tensor*, size_t> number;  // of values
  Counts reads_inside;
  for (const Noted& n : *run) {
    for (const Tensor& x : n.in) {
      ++reads_inside[x.get()];
      if (made.count(x.get()) || !number.emplace(x.get(), folded.in.size()).second) continue;
      folded.in.push_back(x);
    }
    for (const Tensor& y : n.out) made.insert(y.get());
  }
  part->n_values = folded.in.size();
  for (const Noted& n : *run) {
    TapePart::Step step{n.entry, n.op, n.part, {}, {}};
    for (const Tensor& x : n.in) step.in.push_back(number.at(x.get()));
    for (const Tensor& y : n.out) {
      number[y.get()] = part->n_values;
      step.out.push_back(part->n_values);
      const auto read = reads.find(y.get());
      if (used.count(y.get()) > 0 || (read != reads.end() && read->second > reads_inside[y.get()])) {
        part->out.push_back(part->n_values);
        folded.out.push_back(y);
      } else {
        watched_.erase(y.get());
      }
      ++part->n_values;
    }
    part->steps.push_back(std::move(step));
  }
  folded.part = std::move(part);
  noted_.push_back(std::move(folded));
  dropped->insert(dropped->end(), std::make_move_iterator(run->begin()), std::make_move_iterator(run->end()));
  run->clear();
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
        ASSIGN_OR_RETURN(const OpSchema* op, graph->host().FindRole("ones_like"));
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

Status Tape::PassBack(const Noted& noted, const Ids& useful, All* arriving) {
  return noted.part ? PassBackPart(noted, useful, arriving) : PassBackOp(noted, useful, arriving);
}

Status Tape::RunPart(const TapePart& part, std::vector<Tensor>* values) {
  values->resize(part.n_values);
  std::vector<Tensor> in, out;
  for (const TapePart::Step& step : part.steps) {
    if (std::all_of(step.out.begin(), step.out.end(), [&](size_t o) { return bool((*values)[o]); })) continue;
    in.clear();
    for (size_t i : step.in) in.push_back((*values)[i]);
    out.assign(step.out.size(), Tensor());
    if (step.part) {
      std::vector<Tensor> inner = in;
      RETURN_IF_ERROR(RunPart(*step.part, &inner));
      for (size_t o = 0; o < out.size(); ++o) out[o] = inner[step.part->out[o]];
    } else {
      RETURN_IF_ERROR(eager_->RunApart(step.entry, step.op, in.data(), out.data()));
    }
    for (size_t o = 0; o < out.size(); ++o) {
      if (!(*values)[step.out[o]]) (*values)[step.out[o]] = std::move(out[o]);
    }
  }
  return Status();
}

// To outer tapes, the second run of the part and its gradient are one part, too.
Status Tape::PassBackPart(const Noted& noted, const Ids& useful, All* arriving) {
  const uint64_t part = eager_->BeginPart();
  Status s = DifferentiateAgain(noted, useful, arriving);
  eager_->EndPart(part);
  return s;
}

Status Tape::DifferentiateAgain(const Noted& noted, const Ids& useful, All* arriving) {
  std::vector<std::pair<size_t, TapeGradient>> dys;  // by output
  for (size_t o = 0; o < noted.out.size(); ++o) {
    if (!useful.count(IdOf(noted.out[o]))) continue;
    TapeGradient dy;
    ASSIGN_OR_RETURN(const TapeGradient* arrived, Collect(IdOf(noted.out[o]), arriving, &dy));
    if (arrived) dys.emplace_back(o, std::move(dy));
  }
  if (dys.empty()) return Status();
  const TapePart& part = *noted.part;
  std::vector<Tensor> values = noted.in;
  values.resize(part.n_values);
  // Outer tapes must see the gradient read the values that the program knows, as without a part.
  for (size_t o = 0; o < part.out.size(); ++o) values[part.out[o]] = noted.out[o];
  RETURN_IF_ERROR(RunPart(part, &values));
  Ids inner_useful;
  for (const Tensor& x : noted.in) {
    if (useful.count(IdOf(x))) inner_useful.insert(IdOf(x));
  }
  All inner;
  for (auto& [o, dy] : dys) inner[IdOf(values[part.out[o]])].Add(std::move(dy));
  dys.clear();
  std::vector<Noted> steps;
  for (const TapePart::Step& step : part.steps) {
    Noted& n = steps.emplace_back(Noted{step.entry, step.op, {}, {}, step.part});
    for (size_t i : step.in) n.in.push_back(values[i]);
    for (size_t o : step.out) n.out.push_back(values[o]);
    if (std::none_of(n.in.begin(), n.in.end(), [&](const Tensor& x) { return inner_useful.count(IdOf(x)) > 0; })) continue;
    for (const Tensor& y : n.out) {
      if (HasOwnGradient(y.dtype())) inner_useful.insert(IdOf(y));
    }
  }
  values.clear();
  for (; !steps.empty(); steps.pop_back()) {  // a value lives until the op that made it is passed
    RETURN_IF_ERROR(PassBack(steps.back(), inner_useful, &inner));
    for (const Tensor& y : steps.back().out) inner.erase(IdOf(y));
  }
  Ids passed;
  for (const Tensor& x : noted.in) {
    if (!useful.count(IdOf(x)) || !passed.insert(IdOf(x)).second) continue;
    TapeGradient dx;
    ASSIGN_OR_RETURN(const TapeGradient* arrived, Collect(IdOf(x), &inner, &dx));
    if (arrived) (*arriving)[IdOf(x)].Add(std::move(dx));
  }
  return Status();
}

Status Tape::PassBackOp(const Noted& noted, const Ids& useful, All* arriving) {
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
  Ids useful, asked;
  for (const Tensor& x : sources) asked.insert(IdOf(x));
  useful = asked;
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
  for (auto n = between.rbegin(); n != between.rend(); ++n) {
    RETURN_IF_ERROR(PassBack(**n, useful, &arriving));
    for (const Tensor& y : (*n)->out) {  // nothing before it reads these gradients
      if (!asked.count(IdOf(y))) arriving.erase(IdOf(y));
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) RETURN_IF_ERROR(Collect(IdOf(sources[i]), &arriving, &(*out)[i]).status());
  return Status();
}

}  // namespace thalweg
