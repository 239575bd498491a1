/* Functions that neither OpenCL C nor CUDA has, in float arithmetic, accurate to some units in the
 * last place, for half and bfloat16 too. The constants are Chebyshev interpolations computed with
 * 40 digits and more, as polynomials around the middle of a range, highest power first. */

/* The logarithm, also of subnormal numbers. */
FUNCTION float log_of_tiny(float v) { return v < 1e-30f ? log(v * 18446744073709551616.0f) - 44.3614195558364998f : log(v); }

/* y / odd, where erf(y) = odd and rest = 1 - odd * odd > 0. */
FUNCTION float erf_inverse_ratio(float rest) {
  const float w = -log_of_tiny(rest), s = sqrt(w);
  if (w < 6.25f) {
    const float t = w - 3.125f;
    float y = -1.257081441e-11f;
    y = y * t + 5.688216479e-12f;
    y = y * t + 1.036388234e-9f;
    y = y * t - 4.752745619e-9f;
    y = y * t - 2.895896038e-8f;
    y = y * t + 4.26985139e-7f;
    y = y * t - 1.365821751e-6f;
    y = y * t - 1.389214125e-5f;
    y = y * t + 0.0001867346605f;
    y = y * t - 0.0007406910325f;
    y = y * t - 0.006033671032f;
    y = y * t + 0.2401581784f;
    return y * t + 1.653654563f;
  }
  if (w < 16) {
    const float t = s - 3.375f;
    float y = -0.0002529185423f;
    y = y * t + 0.0007243318742f;
    y = y * t - 0.001111727963f;
    y = y * t + 0.001613365709f;
    y = y * t - 0.002730839244f;
    y = y * t + 0.004171122582f;
    y = y * t + 1.006443327f;
    return y * t + 3.209620065f;
  }
  const float t = 1 / s - 0.1730769231f;
  float y = 40.41594574f;
  y = y * t - 10.04973735f;
  y = y * t + 2.94940821f;
  y = y * t - 1.5358486f;
  y = y * t + 0.9058684879f;
  y = y * t - 0.08433090414f;
  y = y * t - 0.198912013f;
  return s * (y * t + 0.9753808209f);
}

FUNCTION float erf_inverse(float odd, float rest) {
  if (rest > 0) return odd * erf_inverse_ratio(rest);
  return rest == 0 ? copysign(INFINITY, odd) : NAN;
}
FUNCTION float Erfinv_of(float x) { return erf_inverse(x, (1 - x) * (1 + x)); }
/* Returns the argument below which the normal distribution has probability p. */
FUNCTION float Ndtri_of(float p) { return 1.41421356237f * erf_inverse(2 * p - 1, 4 * p * (1 - p)); }

/* The only zero above 0 is a separate factor, in two parts. */
FUNCTION float digamma_from_1_to_2(float x) {
  const float t = x - 1.5f;
  float y = -0.007476843099f;
  y = y * t + 0.01122315638f;
  y = y * t - 0.01124703733f;
  y = y * t + 0.01691522374f;
  y = y * t - 0.0270642588f;
  y = y * t + 0.04089356066f;
  y = y * t - 0.06191686333f;
  y = y * t + 0.09498081755f;
  y = y * t - 0.1484050369f;
  y = y * t + 0.240542655f;
  y = y * t - 0.4236274209f;
  y = y * t + 0.9510558754f;
  return y * (x - 1.4616321325302124f - 1.243814994e-8f);
}
FUNCTION float digamma_above_0(float x) {
  if (x >= 8) {
    const float square = 1 / (x * x);
    return log(x) - 0.5f / x - square * (0.0833333333f - square * (0.00833333333f - square * 0.00396825397f));
  }
  if (x < 1) return digamma_from_1_to_2(x + 1) - 1 / x;
  float sum = 0;
  for (; x > 2; x -= 1) sum += 1 / (x - 1);
  return sum + digamma_from_1_to_2(x);
}
FUNCTION float Digamma_of(float x) {
  if (x > 0) return digamma_above_0(x);
  const float from_pole = x - rint(x);
  if (from_pole == 0 || isinf(x)) return NAN;
  return digamma_above_0(1 - x) - 3.14159265359f / tan(3.14159265359f * from_pole);
}
