// Runs a model file on zeros.
const tw = require("thalweg");
const model = tw.load(process.argv[2]);
const inputs = Object.fromEntries(model.signatures[0].inputs.map(({ name, dtype, shape }) => [name, tw.Tensor.zeros(shape, dtype)]));
for (const [name, tensor] of Object.entries(model.run(inputs))) console.log(name, tensor.shape, String(tensor));
