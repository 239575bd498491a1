/* A backward step of LSTM cells. All values are float; matrices are [batch, cell], peepholes
 * [cell]. Gradients arrive at the state and the output from outside (cs_grad, h_grad) and from the
 * following step (dcs, dh). Results: the gradient at the gates, in `gates` [batch, 4 cell], with
 * the input gate first, the output gate last, and those of `forget` and `content` at offsets
 * counted in cells; and in dcs the gradient of the previous state. */
KERNEL(lstm_back)(IN(float, i), IN(float, f), IN(float, o), IN(float, ci), IN(float, co), IN(float, cs_prev), IN(float, cs_grad),
                  IN(float, h_grad), IN(float, wci), IN(float, wcf), IN(float, wco), IN(float, dh), OUT(float, dcs), OUT(float, gates),
                  Size batch, Size cell, Size forget, Size content, Size peephole) {
  BEGIN(i), BEGIN(f), BEGIN(o), BEGIN(ci), BEGIN(co), BEGIN(cs_prev), BEGIN(cs_grad), BEGIN(h_grad);
  BEGIN(wci), BEGIN(wcf), BEGIN(wco), BEGIN(dh), BEGIN(dcs), BEGIN(gates);
  FOR_EACH(e, batch * cell) {
    const Size row = e / cell, c = e - row * cell;
    GLOBAL float* to = gates + row * 4 * cell + c;
    const float h = h_grad[e] + dh[e], at_o = o[e] * (1 - o[e]) * h * co[e];
    float state = cs_grad[e] + dcs[e] + (1 - co[e] * co[e]) * h * o[e];
    if (peephole) state += at_o * wco[c];
    const float at_i = i[e] * (1 - i[e]) * state * ci[e], at_f = f[e] * (1 - f[e]) * state * cs_prev[e];
    to[0] = at_i;
    to[forget * cell] = at_f;
    to[content * cell] = (1 - ci[e] * ci[e]) * state * i[e];
    to[3 * cell] = at_o;
    dcs[e] = state * f[e] + (peephole ? at_i * wci[c] + at_f * wcf[c] : 0);
  }
}
