// Prints what two calls cost, the best of many rounds.
"use strict";
const tw = require("thalweg");

const graph = new tw.Graph(), s = graph.scope();
const x = s.placeholder("x", tw.DType.float, []), y = s.op("Add", x, x);
const step = new tw.Session(graph, { threads: 1 }).callable([x], [y]), one = new tw.Tensor(1);
const best = [1e9, 1e9];
const least = (i, call) => {
  const began = process.hrtime.bigint();
  for (let k = 0; k < 5000; ++k) call();
  best[i] = Math.min(best[i], Number(process.hrtime.bigint() - began) / 5000);
};
for (let r = 0; r < 40; ++r) {
  least(0, () => one.length);
  least(1, () => step.run(one)[0].close());
}
console.log(`cost rank ${Math.round(best[0])} run ${Math.round(best[1])}`);
