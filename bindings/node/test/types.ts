// Is compiled by tsc --strict, and not run: the declarations say what programs may do.
import * as tw from "thalweg";

const graph = new tw.Graph();
const s: tw.Scope = graph.scope("a");
const x: tw.Output = s.placeholder("x", tw.DType.float, [-1, 2]);
const y = tw.ops.matMul(s, x, x, { transposeB: true, name: "y" });
const session = new tw.Session(graph, { threads: 1 });
const tensors: tw.Tensor[] = session.run(new Map([[x, new tw.Tensor([[1, 2]])]]), [y]);
const later: Promise<tw.Tensor[]> = session.runAsync([[x, tensors[0]]], [y], [], { timeout: 10 });
const step = s.minimize(s.mean(y), tw.adam(0.1));
new tw.Trainer(session, { feeds: [x], loss: y, step }).fit(tw.Batches.of(tensors), { epochEnd: (p) => p.values.loss < 1 });
const count: number = tw.low.tw_graph_count(null);
// @ts-expect-error a text is no value
s.op("Add", "x");
// @ts-expect-error no such attribute
tw.ops.matMul(s, x, x, { transpose: true });
void [later, count];
