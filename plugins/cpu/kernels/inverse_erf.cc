// Erfinv and Ndtri: the inverse error function and the normal quantile. Float, half and bfloat16
// run in loops of the instruction set (functions_isa.cc); double is here. Both use two
// approximations: erfinv(x) / x near 0, and elsewhere the argument at which erfc is q. The error is
// at most 3 units in the last place of a double.
#include <cmath>
#include <limits>

#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Chebyshev interpolations, computed with 60 digits, as polynomials with the highest power first.
constexpr double kCentral[] = {0.12003690619362008,  -0.09642274527103643, 0.08722866446698135, -0.0014607021070302691,
                               0.030910158235606017, 0.026969129751201436, 0.03181283844468519, 0.03645513184554066,
                               0.042837381929296245, 0.05173125434128652,  0.06495961849686033, 0.08655212922928228,
                               0.1275561753057025,   0.23201366653465413,  0.886226925452758};

// erfcinv(exp(-w w)) / w in powers of w - middle, for w up to `end`.
constexpr double kTail0[] = {-0.00010267896445165165, 0.00011225846212652126, 1.3222899475507545e-05, -0.00022589933578522512,
                             0.0005264803674981305,   -0.0008027810252392802, 0.0007570803266652138,  5.642094742529711e-05,
                             -0.002069703614935137,   0.005290390999963877,   -0.00857359480743032,   0.008650100550488232,
                             0.0007447794490952365,   -0.028850947795703588,  0.08554223212674929,    -0.17431130577641313,
                             0.2762786067265163,      0.6874532682634031};
constexpr double kTail1[] = {5.536081828785496e-10,   -1.3142386879816757e-09, 9.781857556126223e-10,  -2.764327046092996e-10,
                             -2.7370707490390694e-09, 2.0484985909620926e-08,  -8.236428975246869e-08, 2.5803348681416276e-07,
                             -7.008704024370255e-07,  1.6778224504151408e-06,  -3.44092731104995e-06,  5.362608443482347e-06,
                             -2.421733634177476e-06,  -2.6592282090797775e-05, 0.00015439161580613637, -0.0006019407903874108,
                             0.001982177563752768,    -0.005856363085047456,   0.015825194057835626,   -0.03900420420565311,
                             0.08485156622832149,     0.8580170499169126};
constexpr double kTail2[] = {-7.177243801920445e-16, 2.9383065389761852e-15,  -2.3028382157639866e-15, 1.361153295597348e-15,
                             -6.178391362019765e-15, -2.337693753326593e-13,  2.53624049847989e-12,    -1.8048916887784168e-11,
                             1.1314912429644697e-10, -6.617964677984235e-10,  3.6837411652747485e-09,  -1.9747172734908867e-08,
                             1.0265163657035326e-07, -5.194284521750393e-07,  2.5631144183412747e-06,  -1.2335575487631488e-05,
                             5.780935299370705e-05,  -0.00026273322734242713, 0.0011483752160339296,   -0.004743563826778168,
                             0.01774638837445494,    0.9480609104437537};
constexpr double kTail3[] = {1.950139558225771e-24,  -2.044963742760651e-23,  6.911401578338814e-23,  -6.857504825509027e-22,
                             1.1374372595820053e-20, -1.146944782258439e-19,  1.064181051030069e-18,  -1.0554702781852564e-17,
                             1.0506522678493168e-16, -1.0304733234762889e-15, 1.0037835331633304e-14, -9.722975190915314e-14,
                             9.355259873493615e-13,  -8.935710060725659e-12,  8.466175722528083e-11,  -7.947702138056646e-10,
                             7.380603648990262e-09,  -6.764184564349958e-08,  6.096211564732889e-07,  -5.372046763021109e-06,
                             4.583069006732815e-05,  -0.0003713457009983829,  0.0027325129540725582,  0.9842895522720851};
constexpr double kTail4[] = {5.387698092305861e-32,  -1.0925675130908664e-30, 5.360972885616953e-30,  -1.071710334282935e-28,
                             4.4172801471711434e-27, -8.872901332814337e-26,  1.5999389491417348e-24, -3.19330733864161e-23,
                             6.4435995673326335e-22, -1.2786959610972794e-20, 2.5256363417214333e-19, -4.974082634528908e-18,
                             9.751661189785717e-17,  -1.9014324884809972e-15, 3.683949962362084e-14,  -7.082754218363362e-13,
                             1.3488169921395578e-11, -2.537695134004324e-10,  4.69878598226451e-09,   -8.510391312291866e-08,
                             1.4921730745585266e-06, -2.4828015789900485e-05, 0.0003743890855264763,  0.9956098120792857};
struct Piece {
  double end, middle;
  const double* coefficients;
  int count;
};
constexpr Piece kTail[] = {{1.5, 1.165, kTail0, int(std::size(kTail0))},
                           {3, 2.25, kTail1, int(std::size(kTail1))},
                           {6, 4.5, kTail2, int(std::size(kTail2))},
                           {13, 9.5, kTail3, int(std::size(kTail3))},
                           {27.4, 20.2, kTail4, int(std::size(kTail4))}};

// Sums even and odd powers separately: the two chains run in parallel.
double Polynomial(const double* coefficients, int count, double x) {
  const double square = x * x;
  double last = coefficients[0], other = coefficients[1];
  int i = 2;
  for (; i + 1 < count; i += 2) {
    last = last * square + coefficients[i];
    other = other * square + coefficients[i + 1];
  }
  return i < count ? other * x + (last * square + coefficients[i]) : last * x + other;
}

// REQUIRES: |x| <= 1/2.
double ErfInverseNearZero(double x) { return x * Polynomial(kCentral, int(std::size(kCentral)), x * x); }

// Returns y with erfc(y) = q. REQUIRES: 0 < q <= 1/2.
double ErfcInverse(double q) {
  const double w = std::sqrt(-std::log(q));
  const Piece* piece = kTail;
  while (w > piece->end) ++piece;
  return w * Polynomial(piece->coefficients, piece->count, w - piece->middle);
}

double ErfInverse(double x) {
  const double size = std::fabs(x);
  if (size <= 0.5) return ErfInverseNearZero(x);
  if (size < 1) return std::copysign(ErfcInverse(1 - size), x);
  return size == 1 ? std::copysign(HUGE_VAL, x) : std::numeric_limits<double>::quiet_NaN();
}

// Returns the x below which the normal probability is p.
double NormalQuantile(double p) {
  constexpr double kRoot2 = 1.4142135623730951;
  if (0.25 <= p && p <= 0.75) return kRoot2 * ErfInverseNearZero(2 * (p - 0.5));
  if (0 < p && p < 0.25) return -kRoot2 * ErfcInverse(2 * p);
  if (0.75 < p && p < 1) return kRoot2 * ErfcInverse(2 * (1 - p));
  if (p == 0 || p == 1) return p == 0 ? -HUGE_VAL : HUGE_VAL;
  return std::numeric_limits<double>::quiet_NaN();
}

template <double (*kFunction)(double)>
void Add(tw::Plugin& p, const char* op, const UnaryKernel UnaryKernels::* member) {
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  AddUnary(p, op, "float", "float", t.unary_float.*member);
  AddUnary(p, op, "half", "half", t.unary_half.*member);
  AddUnary(p, op, "bfloat16", "bfloat16", t.unary_bfloat16.*member);
  AddMap<kFunction, 60, double>(p, op);
}

}  // namespace

void register_inverse_erf(tw::Plugin& p) {
  Add<ErfInverse>(p, "Erfinv", &UnaryKernels::erfinv);
  Add<NormalQuantile>(p, "Ndtri", &UnaryKernels::ndtri);
}

}  // namespace thalweg::cpu
