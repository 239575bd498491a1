// Calls of functions outside StableHLO: those that JAX's exports for processors make. Shardings leave values as they are, shape
// assertions become checks that every run makes, and LAPACK's functions become our ops of linear algebra.
#include <algorithm>
#include <iterator>
#include <string>

#include "common.h"
#include "linear_algebra.h"

namespace thalweg::stablehlo {
namespace {

constexpr size_t kMostMessage = 1000;  // bytes of the text of an assertion

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
  if (RankOf(op, op.in(0)) < 2) op.fail("the operand must have rank 2 or more");
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
  if (mode == 'N') WantStatic(op, x, "a call for singular values alone");
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

// Reflections that make a real matrix upper triangular, one column after the other. Column k keeps, below the diagonal, the vector v of
// reflection k, whose element k is 1; the reflection is 1 - tau v v'.
struct Householder {
  int64_t batch, m, n, steps;
};

Householder HouseholderOf(const Op& op, const Value& x, int64_t steps) {
  WantStatic(op, x, "a factorization");
  if (x.rank() < 2) op.fail("the operand must have rank 2 or more");
  if (!IsReal(x)) op.unsupported("reflections of complex matrices");
  if (x.count() == 0) op.unsupported("a matrix without elements cannot be factored");
  const int64_t m = x.dim(-2), n = x.dim(-1);
  return {x.count() / (m * n), m, n, steps < 0 ? std::min(m, n) : steps};
}

Value Rows(Translation& b, int64_t count) {
  return b.op("Range", {b.scalar(TW_INT32, 0), b.scalar(TW_INT32, static_cast<double>(count)), b.scalar(TW_INT32, 1)});
}

// v of reflection k, [batch, m, 1], from column k.
Value Reflector(Translation& b, const Householder& h, const Value& a, const Value& k) {
  const Value column = b.op("GatherV2", {a, k, b.scalar(TW_INT32, 2)}), rows = Rows(b, h.m);
  const Value below = b.op("SelectV2", {b.op("Greater", {rows, k}), column, Like(b, a, 0)});
  return b.reshape(b.op("SelectV2", {b.op("Equal", {rows, k}), Like(b, a, 1), below}), Dims{h.batch, h.m, 1});
}

// (1 - tau v v') times `to`. tau: [batch, 1, 1].
Value Reflected(Translation& b, const Value& v, const Value& tau, const Value& to) {
  const Value along = b.op("BatchMatMulV2", {v, to}, {{"adj_x", true}});
  return b.op("Sub", {to, b.op("Mul", {tau, b.op("BatchMatMulV2", {v, along})})});
}

void Geqrf(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const Householder h = HouseholderOf(op, x, -1);
  const Value a = t.reshape(x, Dims{h.batch, h.m, h.n}), taus = BroadcastTo(t, Like(t, x, 0), {Known(t, h.batch), Known(t, h.steps)});
  const std::vector<Value> last = t.run_while(
      {t.scalar(TW_INT32, 0), a, taus},
      [&](Translation& b, const std::vector<Value>& v) {
        return std::vector<Value>{b.op("Less", {v[0], b.scalar(TW_INT32, static_cast<double>(h.steps))})};
      },
      [&](Translation& b, const std::vector<Value>& v) {
        const Value k = v[0], zero = Like(b, x, 0), one = Like(b, x, 1), rows = Rows(b, h.m), columns = Rows(b, h.n);
        const Value column = b.op("GatherV2", {v[1], k, b.scalar(TW_INT32, 2)});
        const Value lower = b.op("SelectV2", {b.op("Greater", {rows, k}), column, zero});
        const auto sum = [&](const Value& of) { return b.op("Sum", {of, b.ints({1})}, {{"keep_dims", true}}); };  // [batch, 1]
        const Value alpha = sum(b.op("SelectV2", {b.op("Equal", {rows, k}), column, zero}));
        const Value rest = sum(b.op("Mul", {lower, lower}));
        const Value norm = b.op("Sqrt", {b.op("AddV2", {rest, b.op("Mul", {alpha, alpha})})});
        const Value flat = b.op("Equal", {rest, zero});  // nothing stands below the diagonal: no reflection
        const Value negative = b.op("Less", {alpha, zero});
        const Value reflected = b.op("SelectV2", {negative, norm, b.op("Neg", {norm})});
        const Value beta = b.op("SelectV2", {flat, alpha, reflected});
        const Value tau =
            b.op("SelectV2", {flat, zero, b.op("RealDiv", {b.op("Sub", {beta, alpha}), b.op("SelectV2", {flat, one, beta})})});
        const Value scaled = b.op("RealDiv", {lower, b.op("SelectV2", {flat, one, b.op("Sub", {alpha, beta})})});
        const Value vector = b.reshape(b.op("SelectV2", {b.op("Equal", {rows, k}), one, scaled}), Dims{h.batch, h.m, 1});
        const Value next = Reflected(b, vector, b.reshape(tau, Dims{h.batch, 1, 1}), v[1]);
        // Columns before k keep what they have; column k takes beta and the vector.
        const Value above = b.op("SelectV2", {b.op("Less", {rows, k}), column, scaled});
        const Value stored = b.reshape(b.op("SelectV2", {b.op("Equal", {rows, k}), beta, above}), Dims{h.batch, h.m, 1});
        const Value kept = b.op("SelectV2", {b.op("Less", {columns, k}), v[1], next});
        const Value made = b.op("SelectV2", {b.op("Equal", {columns, k}), stored, kept});
        const Value noted = b.op("SelectV2", {b.op("Equal", {Rows(b, h.steps), k}), tau, v[2]});
        return std::vector<Value>{b.op("AddV2", {k, b.scalar(TW_INT32, 1)}), made, noted};
      });
  op.out(0, t.reshape(last[1], x.dims()));
  op.out(1, t.reshape(last[2], op.out_shape(1).dims));
}

// The first columns of the product of the reflections.
void Orgqr(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const Householder h = HouseholderOf(op, x, op.in(1).dim(-1));
  const Value a = t.reshape(x, Dims{h.batch, h.m, h.n}), taus = t.reshape(op.in(1), Dims{h.batch, h.steps});
  const Value row = t.reshape(Rows(t, h.m), Dims{h.m, 1});
  const Value unit = t.op("SelectV2", {t.op("Equal", {row, Rows(t, h.n)}), Like(t, x, 1), Like(t, x, 0)});
  const std::vector<Value> last = t.run_while(
      {t.scalar(TW_INT32, static_cast<double>(h.steps - 1)), BroadcastTo(t, unit, {Known(t, h.batch), Known(t, h.m), Known(t, h.n)})},
      [&](Translation& b, const std::vector<Value>& v) { return std::vector<Value>{b.op("GreaterEqual", {v[0], b.scalar(TW_INT32, 0)})}; },
      [&](Translation& b, const std::vector<Value>& v) {
        const Value tau = b.reshape(b.op("GatherV2", {taus, v[0], b.scalar(TW_INT32, 1)}), Dims{h.batch, 1, 1});
        return std::vector<Value>{b.op("Sub", {v[0], b.scalar(TW_INT32, 1)}), Reflected(b, Reflector(b, h, a, v[0]), tau, v[1])};
      });
  op.out(0, t.reshape(last[1], x.dims()));
}

void Identity(Translation&, Op& op) {
  for (size_t i = 0; i < op.outputs(); ++i) op.out(i, op.in(i));
}

// The message has places {0}, {1}, ... for the operands behind the condition.
void ShapeAssertion(Translation& t, Op& op) {
  if (op.outputs() != 0) op.unsupported("a shape assertion has no results");
  const std::string message = Printable(op.s("error_message", "a shape does not fit the exported program").substr(0, kMostMessage));
  std::vector<Value> data;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) data.push_back(t.constant(Tensor::String({}, {text})));
  };
  size_t begin = 0;
  for (size_t at = 0; at < message.size(); ++at) {
    const size_t end = message[at] == '{' ? message.find('}', at) : std::string::npos;
    if (end == std::string::npos || end == at + 1 || end > at + 3) continue;
    const std::string number = message.substr(at + 1, end - at - 1);
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    const size_t operand = static_cast<size_t>(std::stoul(number)) + 1;
    if (operand >= op.inputs()) continue;
    add(message.substr(begin, at - begin));
    data.push_back(op.in(operand));
    begin = end + 1;
    at = end;
  }
  add(message.substr(begin));
  const Value& holds = op.in(0);
  if (holds.dtype() != TW_BOOL) op.fail("the condition is " + std::string(importer::DtypeName(holds.dtype())) + ", not bool");
  if (holds.known()) {
    if (holds.integers().at(0) == 0) op.fail("the shapes never fit: " + message);
    return;
  }
  t.check(holds, data);
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
    {"lapack_dgeqrf_ffi", &Geqrf},
    {"lapack_dgesdd_ffi", &Gesdd},
    {"lapack_dgetrf_ffi", &Getrf},
    {"lapack_dorgqr_ffi", &Orgqr},
    {"lapack_dpotrf_ffi", &Potrf},
    {"lapack_dsyevd_ffi", &Syevd},
    {"lapack_dtrsm_ffi", &Trsm},
    {"lapack_sgeqrf_ffi", &Geqrf},
    {"lapack_sgesdd_ffi", &Gesdd},
    {"lapack_sgetrf_ffi", &Getrf},
    {"lapack_sorgqr_ffi", &Orgqr},
    {"lapack_spotrf_ffi", &Potrf},
    {"lapack_ssyevd_ffi", &Syevd},
    {"lapack_strsm_ffi", &Trsm},
    {"lapack_zgesdd_ffi", &Gesdd},
    {"lapack_zgetrf_ffi", &Getrf},
    {"lapack_zheevd_ffi", &Syevd},
    {"lapack_zpotrf_ffi", &Potrf},
    {"lapack_ztrsm_ffi", &Trsm},
    {"shape_assertion", &ShapeAssertion},
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
