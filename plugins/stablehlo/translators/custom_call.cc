// Calls of functions outside StableHLO: those that JAX's exports for processors make. Shardings and shape assertions leave values as they
// are; LAPACK's functions become our ops of linear algebra.
#include <algorithm>
#include <iterator>
#include <string>

#include "common.h"
#include "linear_algebra.h"

namespace thalweg::stablehlo {
namespace {

// A letter that LAPACK's interface takes as a number: 76 is 'L'.
char Letter(const Op& op, const char* name) {
  const Attribute* config = op.attr("mhlo.backend_config");
  if (!config || config->kind != Attribute::Kind::kDictionary) config = op.attr("backend_config");
  const Attribute* letter = config ? Find(config->fields, name) : nullptr;
  if (!letter || letter->kind != Attribute::Kind::kInteger) op.fail("its backend_config has no number '" + std::string(name) + "'");
  return static_cast<char>(letter->integer);
}

// The status that LAPACK reports for each matrix. Our ops fail with an error instead of reporting one.
void Fine(Translation& t, Op& op, size_t i) {
  if (i >= op.outputs()) return;
  op.out(i, BroadcastTo(t, t.scalar(op.out_dtype(i), 0), [&] {
           std::vector<Value> sizes = SizesOf(t, op.in(0));
           sizes.resize(sizes.size() - 2);
           return sizes;
         }()));
}

void Potrf(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const bool lower = Letter(op, "uplo") == 'L';
  const Value factor = t.op("Cholesky", {lower ? x : Adjoint(t, x)});
  op.out(0, lower ? factor : Adjoint(t, factor));
  Fine(t, op, 1);
}

void Trsm(Translation& t, Op& op) {
  const char turned = Letter(op, "trans_x");
  op.out(SolveTriangular(t, op.in(0), op.in(1), Letter(op, "side") == 'L', Letter(op, "uplo") == 'L', Letter(op, "diag") == 'U',
                         turned == 'T', turned == 'C'));
}

void Syevd(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const bool lower = Letter(op, "uplo") == 'L';
  // Our op reads the lower triangle.
  const std::vector<Value> out = t.ops("SelfAdjointEigV2", {lower ? x : Adjoint(t, x)}, {{"compute_v", true}}, 2);
  op.out(0, out[1]);
  op.out(1, IsComplex(x) ? t.op("Real", {out[0]}, {{"Tout", Dtype{PartOf(x.dtype())}}}) : out[0]);
  Fine(t, op, 2);
}

void Gesdd(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const char mode = Letter(op, "mode");
  const std::vector<Value> out = t.ops("Svd", {x}, {{"compute_uv", true}, {"full_matrices", mode == 'A'}}, 3);
  op.out(0, x);
  op.out(1, IsComplex(x) ? t.op("Real", {out[0]}, {{"Tout", Dtype{PartOf(x.dtype())}}}) : out[0]);
  const auto sized = [&](size_t i, const Value& v) {
    const ShapeAttr declared = op.out_shape(i);
    // Without vectors the results are declared, but nobody reads them.
    op.out(i, mode == 'N' ? BroadcastTo(t, Like(t, x, 0),
                                        [&] {
                                          std::vector<Value> sizes;
                                          for (const int64_t size : declared.dims) sizes.push_back(Known(t, size));
                                          return sizes;
                                        }())
                          : v);
  };
  sized(2, out[1]);
  sized(3, Adjoint(t, out[2]));
  Fine(t, op, 4);
}

// Factors with partial pivoting, one column after the other: L below the diagonal, U on and above it, and with which row each row was
// exchanged, counted from 1.
void Getrf(Translation& t, Op& op) {
  const Value& x = op.in(0);
  WantStatic(op, x, "a factorization");
  const int rank = x.rank();
  if (rank < 2) op.fail("the operand must have rank 2 or more");
  const int64_t m = x.dim(-2), n = x.dim(-1), steps = std::min(m, n);
  const int64_t batch = x.count() / std::max<int64_t>(m * n, 1);
  if (x.count() == 0) op.unsupported("a matrix without elements cannot be factored");
  const uint32_t part = IsComplex(x) ? PartOf(x.dtype()) : x.dtype();
  const Value a = t.reshape(x, Dims{batch, m, n}), pivots = t.fill(Tensor::Scalar(TW_INT32, 0), {batch, steps});
  const std::vector<Value> last = t.run_while(
      {t.scalar(TW_INT32, 0), a, pivots},
      [&](Translation& b, const std::vector<Value>& v) {
        return std::vector<Value>{b.op("Less", {v[0], b.scalar(TW_INT32, static_cast<double>(steps))})};
      },
      [&](Translation& b, const std::vector<Value>& v) {
        const Value k = v[0], none = b.scalar(TW_INT32, 0);
        const auto axis = [&](int i) { return b.scalar(TW_INT32, i); };
        const Value rows = b.op("Range", {none, b.scalar(TW_INT32, static_cast<double>(m)), axis(1)});
        const Value columns = b.op("Range", {none, b.scalar(TW_INT32, static_cast<double>(n)), axis(1)});
        const Value column = b.op("GatherV2", {v[1], k, axis(2)});  // [batch, m]
        const Value size = IsComplex(x) ? b.op("ComplexAbs", {column}, {{"Tout", Dtype{part}}}) : b.op("Abs", {column});
        const Value candidates = b.op("SelectV2", {b.op("GreaterEqual", {rows, k}), size, b.scalar(part, -1)});
        const Value p = b.op("ArgMax", {candidates, axis(1)}, {{"output_type", Dtype{TW_INT32}}});  // [batch]
        const Value p_column = b.reshape(p, Dims{batch, 1});
        // Row k and row p change places.
        const Value is_k = b.op("Equal", {rows, k}), is_p = b.op("Equal", {rows, p_column});
        const Value order = b.op("SelectV2", {is_k, p_column, b.op("SelectV2", {is_p, k, rows})});  // [batch, m]
        const Value swapped = b.op("GatherV2", {v[1], order, axis(1)}, {{"batch_dims", 1}});
        const Value top = b.op("GatherV2", {swapped, k, axis(1)});                    // [batch, n]
        const Value pivot = b.op("GatherV2", {top, b.reshape(k, Dims{1}), axis(1)});  // [batch, 1]
        const Value left = b.op("GatherV2", {swapped, k, axis(2)});                   // [batch, m]
        const Value below = b.op("Greater", {rows, k});
        const Value zero = Like(b, x, 0);
        const Value usable = b.op("LogicalAnd", {below, b.op("NotEqual", {pivot, zero})});
        const Value factor = b.op(
            "SelectV2", {usable, b.op("RealDiv", {left, b.op("SelectV2", {b.op("NotEqual", {pivot, zero}), pivot, Like(b, x, 1)})}), zero});
        const Value right = b.op("SelectV2", {b.op("Greater", {columns, k}), top, zero});
        const Value product = b.op("Mul", {b.reshape(factor, Dims{batch, m, 1}), b.reshape(right, Dims{batch, 1, n})});
        const Value cleared = b.op("Sub", {swapped, product});
        const Value in_column = b.op("LogicalAnd", {b.reshape(usable, Dims{batch, m, 1}), b.op("Equal", {columns, k})});
        const Value next = b.op("SelectV2", {in_column, b.reshape(factor, Dims{batch, m, 1}), cleared});
        const Value places = b.op("Range", {none, b.scalar(TW_INT32, static_cast<double>(steps)), axis(1)});
        const Value noted = b.op("SelectV2", {b.op("Equal", {places, k}), b.op("AddV2", {p_column, axis(1)}), v[2]});
        return std::vector<Value>{b.op("AddV2", {k, axis(1)}), next, noted};
      });
  op.out(0, t.reshape(last[1], x.dims()));
  Dims pivot_dims(x.dims().begin(), x.dims().end() - 2);
  pivot_dims.push_back(steps);
  op.out(1, t.reshape(last[2], pivot_dims));
  Fine(t, op, 2);
}

void Identity(Translation&, Op& op) {
  for (size_t i = 0; i < op.outputs(); ++i) op.out(i, op.in(i));
}

void Nothing(Translation&, Op& op) {
  if (op.outputs() != 0) op.unsupported("a shape assertion has no results");
}

struct Target {
  const char* name;
  void (*run)(Translation& t, Op& op);
};

constexpr Target kTargets[] = {
    {"Sharding", &Identity},
    {"SPMDFullToShardShape", &Identity},
    {"SPMDShardToFullShape", &Identity},
    {"annotate_device_placement", &Identity},
    {"lapack_cgesdd_ffi", &Gesdd},
    {"lapack_cgetrf_ffi", &Getrf},
    {"lapack_cheevd_ffi", &Syevd},
    {"lapack_cpotrf_ffi", &Potrf},
    {"lapack_ctrsm_ffi", &Trsm},
    {"lapack_dgesdd_ffi", &Gesdd},
    {"lapack_dgetrf_ffi", &Getrf},
    {"lapack_dpotrf_ffi", &Potrf},
    {"lapack_dsyevd_ffi", &Syevd},
    {"lapack_dtrsm_ffi", &Trsm},
    {"lapack_sgesdd_ffi", &Gesdd},
    {"lapack_sgetrf_ffi", &Getrf},
    {"lapack_spotrf_ffi", &Potrf},
    {"lapack_ssyevd_ffi", &Syevd},
    {"lapack_strsm_ffi", &Trsm},
    {"lapack_zgesdd_ffi", &Gesdd},
    {"lapack_zgetrf_ffi", &Getrf},
    {"lapack_zheevd_ffi", &Syevd},
    {"lapack_zpotrf_ffi", &Potrf},
    {"lapack_ztrsm_ffi", &Trsm},
    {"shape_assertion", &Nothing},
};

void CustomCall(Translation& t, Op& op) {
  const std::string name = op.s("call_target_name");
  for (const Target& target : kTargets) {
    if (name == target.name) return target.run(t, op);
  }
  op.unsupported("the call target '" + name + "' is unknown; export the program for a platform whose lowering does not call it");
}

constexpr Entry kCustomCall[] = {
    {"stablehlo.custom_call", &CustomCall},
};

}  // namespace

Family custom_call_translators() { return {std::begin(kCustomCall), std::end(kCustomCall)}; }

}  // namespace thalweg::stablehlo
