// Qr, Svd and SelfAdjointEigV2.
#include "kernels/matrix_factors.h"

#include <Eigen/Eigenvalues>

#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class Qr {
 public:
  explicit Qr(const tw::Node& n) : full_(n.b("full_matrices")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> q, tw::Out<tw::Any> r) const {
    const MatrixSizes sizes(input.v);
    const int64_t m = sizes.rows, n = sizes.columns, least = std::min(m, n), inner = full_ ? m : least;
    const int64_t count = Product(input.dims(), 0, input.rank() - 2);
    if (q.size() == 0 && r.size() == 0) return;
    InField(input.v->dtype, [&](auto zero) {
      using C = decltype(zero);
      ForMatrices<C>(f.f, count, Cost(m, n, least), uint64_t(m * n + m * inner + inner * n + least), [&](int64_t k, C* room) {
        const MatrixAt<C> a{room, m, n}, columns{room + m * n, m, inner}, above{columns.data + m * inner, inner, n};
        C* factors = above.data + inner * n;
        Load(input.v, k, a);
        const double unit = Unit(a);
        Reflect(a, factors);
        ReflectionsToColumns(a, factors, columns);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < inner; ++i) above(i, j) = i <= j ? a(i, j) * unit : C(0);
        Store(q.v(), k, columns);
        Store(r.v(), k, above);
      });
    });
  }

 private:
  bool full_;
};

class Svd {
 public:
  explicit Svd(const tw::Node& n) : vectors_(n.b("compute_uv")), full_(n.b("full_matrices")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> s, tw::Out<tw::Any> u, tw::Out<tw::Any> v) const {
    const MatrixSizes sizes(input.v);
    if (sizes.size() == 0) return Empty(sizes, u, v);
    const int64_t count = int64_t(input.size()) / sizes.size();
    InField(input.v->dtype, [&](auto zero) { Run<decltype(zero)>(f.f, count, sizes, input.v, s.v(), u.v(), v.v()); });
  }

 private:
  // A matrix without elements has unit matrices, if any, as factors.
  void Empty(const MatrixSizes& sizes, const tw::Out<tw::Any>& u, const tw::Out<tw::Any>& v) const {
    if (!vectors_ || !full_) return;
    for (const auto& [out, n] : {std::pair{&u, sizes.rows}, std::pair{&v, sizes.columns}})
      for (uint64_t i = 0; n > 0 && i < out->size(); ++i) {
        const int64_t at = int64_t(i) % (n * n);
        Write(out->v(), i, at / n == at % n ? 1.0 : 0.0);
      }
  }

  // A = Q R with at least as many rows as columns, for a wide matrix of its adjoint. The adjoint of
  // R has columns that Jacobi's rotations make orthogonal soon: R' = w diag(s) z', so A = Q z diag(s) w'.
  template <class C>
  void Run(const tw_frame* f, int64_t count, const MatrixSizes& sizes, const tw_view* input, const tw_view* s, const tw_view* u,
           const tw_view* v) const {
    const bool wide = sizes.rows < sizes.columns;
    const int64_t m = std::max(sizes.rows, sizes.columns), n = std::min(sizes.rows, sizes.columns), left = full_ ? m : n;
    const uint64_t elements = uint64_t(m * n + m * left + 3 * n * n + m + n * m + n);
    ForMatrices<C>(f, count, Cost(m, n, n) * 8, elements, [&](int64_t k, C* room) {
      const MatrixAt<C> a{room, m, n}, q{a.data + m * n, m, left}, g{q.data + m * left, n, n}, z{g.data + n * n, n, n};
      C* factors = z.data + n * n;
      const MatrixAt<C> rest{factors + m, m, n};
      const TempArray<double> values(f, size_t(n));
      const TempArray<int64_t> order(f, size_t(n));
      Load(input, k, a, wide);
      const double unit = Unit(a);
      Reflect(a, factors);
      ReflectionsToColumns(a, factors, q);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < n; ++i) g(i, j) = j <= i ? Conjugate(a(j, i)) : C(0);
      JacobiFactors(g, z, values.get(), order.get(), MatrixAt<C>{rest.data, n, n});
      for (int64_t i = 0; i < n; ++i) Write(s, uint64_t(k * n + i), C(values[size_t(i)] * unit));
      if (!vectors_) return;
      int64_t rank = n;
      while (rank > 0 && values[size_t(rank - 1)] == 0) --rank;
      const TempArray<C> whole(f, rank < n ? size_t(2 * n * n) : 0);
      Complete(g, rank, factors, MatrixAt<C>{whole.get(), n, 2 * n});
      // The first n columns of q, times z.
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) rest(i, j) = 0;
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < n; ++l) {
          const C factor = z(l, j);
          for (int64_t i = 0; i < m; ++i) rest(i, j) += q(i, l) * factor;
        }
      std::copy_n(rest.data, m * n, q.data);
      Store(wide ? v : u, k, q);
      Store(wide ? u : v, k, g);
    });
  }

  bool vectors_, full_;
};

class SelfAdjoint {
 public:
  explicit SelfAdjoint(const tw::Node& n) : vectors_(n.b("compute_v")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> e, tw::Out<tw::Any> v) const {
    const MatrixSizes sizes(input.v);
    if (input.size() == 0) return;
    const int64_t n = sizes.rows, count = int64_t(input.size()) / sizes.size();
    InField(input.v->dtype, [&](auto zero) {
      using C = decltype(zero);
      using Matrix = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic>;
      ForMatrices<C>(f.f, count, Cost(n, n, n) * 4, uint64_t(n * n), [&](int64_t k, C* room) {
        const tw::Charge copies(f.f, uint64_t(n * n) * sizeof(C));  // which the solver makes
        const MatrixAt<C> a{room, n, n};
        Load(input.v, k, a);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = j; i < n; ++i)
            if (!std::isfinite(std::abs(a(i, j)))) Fails(k, count, "has elements that are not finite");
        const Eigen::SelfAdjointEigenSolver<Matrix> solver(Eigen::Map<Matrix>(a.data, n, n),
                                                           vectors_ ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
        if (solver.info() != Eigen::Success) Fails(k, count, "has no eigenvalues that could be computed");
        for (int64_t i = 0; i < n; ++i) Write(e.v(), uint64_t(k * n + i), C(solver.eigenvalues()[i]));
        if (!vectors_) return;
        Eigen::Map<Matrix>(a.data, n, n) = solver.eigenvectors();
        Store(v.v(), k, a);
      });
    });
  }

 private:
  [[noreturn]] static void Fails(int64_t at, int64_t count, const char* why) {
    Invalid("matrix " + tw::text(at) + " of " + tw::text(count) + " " + why);
  }

  bool vectors_;
};

}  // namespace

void register_matrix_factors(tw::Plugin& p) {
  p.kernel<Qr>("Qr @CPU");
  p.kernel<Svd>("Svd @CPU");
  p.kernel<SelfAdjoint>("SelfAdjointEigV2 @CPU");
}

}  // namespace thalweg::cpu
