// Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others.
"use strict";
const tw = require("thalweg");

const rows = tw.readCsv(process.argv[2]);
const data = (test) => {
  const chosen = rows.filter((_, i) => (i % 5 === 0) === test);
  const images = new tw.Tensor(Float32Array.from(chosen.flatMap((row) => [...row.subarray(0, 64)])), [-1, 64]);
  const labels = new tw.Tensor(Int32Array.from(chosen, (row) => row[64]));
  return tw.Batches.of([images, labels], { shuffle: !test, seed: 1 });
};

const graph = new tw.Graph(), s = graph.scope(), seed = { seed: 1 };
const image = s.placeholder("image", tw.DType.float, [-1, 64]), label = s.placeholder("label", tw.DType.int32, [-1]);
let x = s.reshape(s.op("Mul", image, s.scalar(1 / 16)), [-1, 8, 8, 1]);
x = s.conv2d("conv2", s.conv2d("conv1", x, 16, 3, "relu", seed), 32, 3, "relu", seed);
const logits = s.dense("out", s.flatten(s.maxPool2d(x, 2)), 10, null, seed);
const loss = s.sparseSoftmaxCrossEntropy(logits, label);
const step = s.minimize(loss, tw.adam(0.001));
const metrics = [s.accuracy("accuracy", logits, label)];
const init = s.initializer();

const session = new tw.Session(graph);
session.run(null, [], [init]);
const trainer = new tw.Trainer(session, { feeds: [image, label], loss, step, metrics });
trainer.fit(data(false), { epochs: 10, progress: true });
console.log(`test accuracy ${(100 * trainer.evaluate(data(true)).accuracy).toFixed(2)} %`);
