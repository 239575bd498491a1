// The host's part of L-BFGS: direction and line search, arithmetic on vectors of doubles between runs of the graph's part (lbfgs.cc).
#include <algorithm>
#include <cmath>
#include <new>

#include "ops/library/lbfgs_parts.h"
#include "ops/library/options.h"
#include "ops/library/signature.h"
#include "thalweg/tensor.h"

using namespace thalweg::library;

namespace {

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
void AddTo(Vector* y, double a, const Vector& x) {
  for (size_t i = 0; i < x.size(); ++i) (*y)[i] += a * x[i];
}
Vector Minus(const Vector& a, const Vector& b) {
  Vector c = a;
  AddTo(&c, -1, b);
  return c;
}
double Largest(const Vector& a) {
  double most = 0;
  for (const double x : a) most = std::isfinite(x) ? std::max(most, std::fabs(x)) : INFINITY;
  return most;
}

// A position, with the loss and gradient there.
struct Point {
  Vector x, gradient;
  double loss = 0;
};

// A point of a line search: distance, loss, slope.
struct Trial {
  double t, loss, slope;
};

// Returns the minimum of a cubic through both ends, at least a tenth of the interval away from
// either.
double Between(const Trial& lo, const Trial& hi) {
  const double width = hi.t - lo.t;
  const double a = lo.slope + hi.slope - 3 * (lo.loss - hi.loss) / (lo.t - hi.t);
  const double b = std::copysign(std::sqrt(a * a - lo.slope * hi.slope), width);
  const double part = 1 - (hi.slope + b - a) / (hi.slope - lo.slope + 2 * b);
  return lo.t + width * (std::isfinite(part) ? std::clamp(part, 0.1, 0.9) : 0.5);
}

class Run {
 public:
  Run(tw_lbfgs* lbfgs, tw_session* session, const tw_output* feeds, tw_tensor* const* values, uint32_t n_feeds)
      : l_(*lbfgs), session_(session), feeds_(feeds), values_(values), n_feeds_(n_feeds) {}

  tw_status* Minimise(uint32_t max_iterations) {
    if (tw_status* failed = Evaluate(&at_)) return failed;
    if (!std::isfinite(at_.loss) || !std::isfinite(Largest(at_.gradient))) {
      return tw_status_create(
          TW_FAILED_PRECONDITION,
          ("tw_lbfgs_run: the loss is " + Text(at_.loss) + " and its gradient not finite at the start; start from other values").c_str());
    }
    tw_status* failed = nullptr;
    while (!why_ && !failed) failed = Step(max_iterations);
    if (failed) tw_status_release(Set(at_.x));
    return failed;
  }

  void Report(tw_lbfgs_report* out) const {
    out->iterations = iterations_;
    out->evaluations = evaluations_;
    out->loss = at_.loss;
    out->gradient = Largest(at_.gradient);
    out->why = why_;
  }

 private:
  // Computes loss and gradient at the variables' position.
  tw_status* Evaluate(Point* out) {
    const tw_output fetches[] = {l_.loss, l_.gradient, l_.position};
    tw_tensor* got[3] = {};
    const tw_signature what = SignatureOf({feeds_, n_feeds_}, fetches);
    if (tw_status* failed = tw_session_run(session_, &what, values_, nullptr, got)) return failed;
    const OwnedTensor owned[] = {OwnedTensor(got[0]), OwnedTensor(got[1]), OwnedTensor(got[2])};
    ++evaluations_;
    const auto data = [&](int i) { return static_cast<const double*>(tw_tensor_data(got[i])); };
    if (tw_tensor_count(got[0]) != 1) {
      return Refuse("the loss has " + std::to_string(tw_tensor_count(got[0])) + " elements; it must be a scalar");
    }
    out->loss = *data(0);
    out->gradient.assign(data(1), data(1) + tw_tensor_count(got[1]));
    out->x.assign(data(2), data(2) + tw_tensor_count(got[2]));
    return nullptr;
  }

  tw_status* Set(const Vector& x) {
    tw_tensor* tensor = nullptr;
    if (tw_status* failed = tw_tensor_create_copy(TW_DOUBLE, &l_.size, 1, x.data(), x.size() * sizeof(double), &tensor)) return failed;
    const tw_signature what = SignatureOf({&l_.target, 1}, {}, {&l_.set, 1});
    tw_status* failed = tw_session_run(session_, &what, &tensor, nullptr, nullptr);
    tw_tensor_release(tensor);
    return failed;
  }

  // Returns minus the gradient times the inverse curvature of the history.
  Vector Direction() const {
    Vector d = at_.gradient;
    std::vector<double> alphas(l_.history.size());
    for (size_t k = l_.history.size(); k-- > 0;) {
      const Pair& p = l_.history[k];
      alphas[k] = Dot(p.step, d) / p.product;
      AddTo(&d, -alphas[k], p.change);
    }
    double scale = -1;
    if (!l_.history.empty()) scale = -l_.history.back().product / Dot(l_.history.back().change, l_.history.back().change);
    for (double& x : d) x *= scale;
    for (size_t k = 0; k < l_.history.size(); ++k) {
      const Pair& p = l_.history[k];
      AddTo(&d, -alphas[k] - Dot(p.change, d) / p.product, p.step);
    }
    return d;
  }

  // Searches from at_ along d, with t as the first distance. *to meets the strong Wolfe conditions
  // or, if the evaluations ran out, at least has a lower loss. *found: whether there is such a
  // point. Invariant: one lies between lo, the best so far, and hi, once that is known.
  tw_status* Search(const Vector& d, double t, Point* to, bool* found) {
    const double slope = Dot(at_.gradient, d);
    Trial lo = {0, at_.loss, slope}, hi = lo;
    bool bracketed = false;
    *found = true;
    for (uint32_t i = 0; i < l_.options.max_evaluations; ++i) {
      Point p;
      Vector x = at_.x;
      AddTo(&x, t, d);
      if (tw_status* failed = Set(x)) return failed;
      if (tw_status* failed = Evaluate(&p)) return failed;
      const Trial trial = {t, p.loss, Dot(p.gradient, d)};
      const bool finite = std::isfinite(trial.loss) && std::isfinite(trial.slope);
      const bool level = finite && std::fabs(trial.slope) <= -l_.options.curvature * slope;
      if (level && std::fabs(trial.loss - at_.loss) <= l_.rounding * std::fabs(at_.loss)) {  // the slope is more precise than the loss here
        *to = std::move(p);
        return nullptr;
      }
      if (finite && trial.loss <= at_.loss + l_.options.decrease * t * slope && trial.loss < lo.loss) {
        *to = std::move(p);
        if (level) return nullptr;
        if (bracketed ? trial.slope * (hi.t - lo.t) >= 0 : trial.slope >= 0) {
          hi = lo;
          bracketed = true;
        }
        lo = trial;
      } else {
        hi = trial;
        bracketed = true;
      }
      t = bracketed ? Between(lo, hi) : 2 * t;
    }
    *found = lo.t > 0;
    return Set(*found ? to->x : at_.x);
  }

  void Remember(const Point& next) {
    Pair p = {Minus(next.x, at_.x), Minus(next.gradient, at_.gradient), 0};
    p.product = Dot(p.step, p.change);
    if (!(p.product > 1e-12 * Dot(p.change, p.change))) return;  // no usable curvature
    l_.history.push_back(std::move(p));
    if (l_.history.size() > l_.options.history) l_.history.pop_front();
  }

  // Runs one iteration; sets why_ if it was the last.
  tw_status* Step(uint32_t max_iterations) {
    if (Largest(at_.gradient) <= l_.options.gradient_tolerance) return End(TW_LBFGS_GRADIENT);
    if (iterations_ == max_iterations) return End(TW_LBFGS_ITERATIONS);
    Vector d = Direction();
    if (!(Dot(d, at_.gradient) < 0)) {  // rounding errors made d an uphill direction
      l_.history.clear();
      d = Direction();
    }
    const bool fresh = l_.history.empty();
    double sum = 0;
    for (const double x : at_.gradient) sum += std::fabs(x);
    Point next;
    bool found = false;
    if (tw_status* failed = Search(d, fresh ? std::min(1.0, 1 / sum) : 1, &next, &found)) return failed;
    if (!found) {
      if (fresh) return End(TW_LBFGS_STUCK);
      l_.history.clear();  // then try again along the gradient
      return nullptr;
    }
    Remember(next);
    const double change = at_.loss - next.loss;
    at_ = std::move(next);
    ++iterations_;
    if (change <= l_.options.change_tolerance * std::max(1.0, std::fabs(at_.loss))) {
      return End(Largest(at_.gradient) <= l_.options.gradient_tolerance ? TW_LBFGS_GRADIENT : TW_LBFGS_CHANGE);
    }
    return nullptr;
  }

  tw_status* End(uint32_t why) {
    why_ = why;
    return nullptr;
  }

  tw_lbfgs& l_;
  tw_session* session_;
  const tw_output* feeds_;
  tw_tensor* const* values_;
  uint32_t n_feeds_;
  Point at_;
  uint32_t iterations_ = 0, evaluations_ = 0, why_ = 0;
};

}  // namespace

tw_status* tw_lbfgs_run(tw_lbfgs* lbfgs, tw_session* session, const tw_output* feeds, tw_tensor* const* values, uint32_t n_feeds,
                        uint32_t max_iterations, tw_lbfgs_report* out_report) {
  try {
    if (!lbfgs || !session || (n_feeds > 0 && (!feeds || !values))) return Refuse("lbfgs, session, feeds or values is NULL");
    if (max_iterations < 1) return Refuse("max_iterations is 0; it must be at least 1");
    if (out_report && out_report->size < sizeof(tw_lbfgs_report)) return Refuse("set the size of the report to sizeof(tw_lbfgs_report)");
    Run run(lbfgs, session, feeds, values, n_feeds);
    tw_status* failed = run.Minimise(max_iterations);
    if (out_report) run.Report(out_report);
    return failed;
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for L-BFGS");
  }
}
