/* One step of an optimizer on one element: the change of a variable and its slots for a gradient.
 *
 * X(rule, slots, factors, statements): `v` is the variable; s1 to s3 are the slots, `slots` of them
 * in use; `g` is the gradient; k0 to k4 are the factors. All are of type C. The lines are used like
 * those of functions.h. */
#ifndef THALWEG_DEVICE_UPDATES_H
#define THALWEG_DEVICE_UPDATES_H

/* clang-format off */
#define DEVICE_UPDATES(X) \
  X(gradient_descent, 0, 1, v -= k0 * g) \
  X(momentum, 1, 2, s1 = s1 * k1 + g; v -= s1 * k0) \
  X(momentum_nesterov, 1, 2, s1 = s1 * k1 + g; v -= g * k0 + s1 * k1 * k0) \
  X(keras_momentum, 1, 2, s1 = s1 * k1 - g * k0; v += s1) \
  X(keras_momentum_nesterov, 1, 2, s1 = s1 * k1 - g * k0; v += s1 * k1 - g * k0) \
  X(adam, 2, 4, s1 += (g - s1) * (1 - k1); s2 += (g * g - s2) * (1 - k2); v -= s1 * k0 / (sqrt(s2) + k3)) \
  X(adam_nesterov, 2, 4, \
    s1 += (g - s1) * (1 - k1); s2 += (g * g - s2) * (1 - k2); v -= (k1 * s1 + (1 - k1) * g) * k0 / (sqrt(s2) + k3)) \
  X(amsgrad, 3, 4, \
    s1 += (g - s1) * (1 - k1); s2 += (g * g - s2) * (1 - k2); s3 = s3 > s2 ? s3 : s2; v -= s1 * k0 / (sqrt(s3) + k3)) \
  X(ada_max, 2, 4, \
    s1 += (g - s1) * (1 - k1); s2 = k2 * s2 > fabs(g) ? k2 * s2 : fabs(g); v -= k0 * (s1 / (s2 + k3))) \
  X(adagrad, 1, 2, s1 += g * g; v -= g * k0 / (sqrt(s1) + k1)) \
  X(adagrad_kept, 1, 2, v -= g * k0 / (sqrt(s1) + k1)) \
  X(adadelta, 2, 3, \
    s1 = s1 * k1 + g * g * (1 - k1); const C step = sqrt(s2 + k2) / sqrt(s1 + k2) * g; v -= step * k0; \
    s2 = s2 * k1 + step * step * (1 - k1)) \
  X(rmsprop, 2, 4, s1 += (g * g - s1) * (1 - k1); s2 = s2 * k2 + g * k0 / sqrt(s1 + k3); v -= s2) \
  X(centered_rmsprop, 3, 4, \
    s2 += (g * g - s2) * (1 - k1); s1 += (g - s1) * (1 - k1); s3 = s3 * k2 + g * k0 / sqrt(s2 - s1 * s1 + k3); v -= s3) \
  X(ftrl, 2, 5, \
    const C now = s1 + g * g; const C root = pow(now, -k4); \
    s2 += g + 2 * k3 * v - (root - pow(s1, -k4)) / k0 * v; s1 = now; \
    v = fabs(s2) <= k1 ? 0 : (copysign(k1, s2) - s2) / (root / k0 + 2 * k2)) \
  X(ftrl_scaled, 2, 5, \
    const C now = s1 + g * g; const C root = pow(now, -k4); \
    s2 += (g + 2 * k3 * v) * k0 - (root - pow(s1, -k4)) * v; s1 = now; \
    v = fabs(s2) <= k1 * k0 ? 0 : (copysign(k1 * k0, s2) - s2) / (root + 2 * k2 * k0))
/* clang-format on */

#endif
