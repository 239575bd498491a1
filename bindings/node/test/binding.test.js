// The tests of the package, under node --expose-gc --test. The environment has THALWEG_TEST_MODEL, an ONNX file that adds two values.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const test = require("node:test");
const tw = require("thalweg");

const { DType, Tensor, ThalwegError, low, ops } = tw;

// A graph with y = x + x, and a session of one thread.
function doubling() {
  const graph = new tw.Graph(), s = graph.scope();
  const x = s.placeholder("x", DType.float, []), y = s.name("y", s.op("Add", x, x));
  return { graph, session: new tw.Session(graph, { threads: 1 }), x, y };
}

// A session with an operation that waits at an empty queue.
function waiting() {
  const graph = new tw.Graph(), s = graph.scope();
  const queue = ops.fifoQueueV2(s, [DType.float]);
  const [get] = ops.queueDequeueV2(s, queue, [DType.float]);
  return { session: new tw.Session(graph), get };
}

if (!isMainThread) {
  const { session, x, y } = doubling();
  for (let k = 0; k < 100; ++k) assert.equal(session.run([[x, new Tensor(k)]], [y])[0].item(), 2 * k);
  parentPort.postMessage("done");
  return;
}

test("every function is linked", () => {
  const { count, structs } = require("thalweg/lib/layouts.js");
  const all = Object.keys(low).filter((name) => name.startsWith("tw_") && typeof low[name] === "function");
  assert.equal(all.length, count);
  assert.ok(Object.keys(structs).length > 60);
});

test("tensors are typed arrays", () => {
  const a = new Tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, -1]);
  assert.equal(`${a.shape} ${a.dtype} ${a}`, "2,3 1 [[1, 2, 3], [4, 5, 6]]");
  assert.deepEqual(new Tensor([[1, 2], [3, 4]]).shape, [2, 2]);
  const z = Tensor.zeros([3], DType.int64);
  z.data[1] = 7n; // no copy
  assert.equal(String(z), "[0, 7, 0]");
  assert.deepEqual(new Tensor(["", "any\0bytes"]).data, ["", "any\0bytes"]);
  assert.equal(new Tensor(true).item(), true);
  assert.equal(new Tensor(2.5, [], DType.double).item(), 2.5);
  const view = new Tensor(Float32Array.of(5, 6)).data; // keeps the memory of a tensor that nobody has
  global.gc();
  assert.deepEqual([...view], [5, 6]);
});

test("errors name the line", () => {
  const s = new tw.Graph().scope("head");
  const a = s.placeholder("a", DType.float, [2, 3]), b = s.placeholder("b", DType.float, [4, 5]);
  let line;
  try {
    line = Number(/:(\d+):\d+\)?$/.exec(new Error().stack.split("\n")[1])[1]) + 1;
    s.op("MatMul", a, b);
    assert.fail();
  } catch (e) {
    assert.ok(e instanceof ThalwegError && e.code === "INVALID_ARGUMENT" && e.operation === "head/MatMul", e);
    assert.equal(e.place, `binding.test.js:${line}`);
    assert.ok(e.message.includes(e.place));
  }
  assert.throws(() => ops.matMul(s, a, b, { transposeB: true }), { code: "INVALID_ARGUMENT" }); // and the scope goes on
  assert.equal(typeof s.op("Shape", a), "bigint");
});

test("ops take attributes", () => {
  const graph = new tw.Graph(), s = graph.scope();
  const a = s.constant([[1, 2]]), b = s.constant([[3, 4]]);
  const [x, y] = [ops.matMul(s, a, b, { transposeB: true }), ops.matMul(s, a, b, { transposeA: true })];
  const parts = ops.split(s, s.scalar(1, DType.int32), s.constant([[1, 2, 3, 4]]), 2);
  const found = new tw.Session(graph).run(null, [x, y, ...parts]);
  assert.deepEqual(found.map(String), ["[[11]]", "[[3, 4], [6, 8]]", "[[1, 2]]", "[[3, 4]]"]);
});

test("training saves and goes on", () => {
  const graph = new tw.Graph(), s = graph.scope();
  const x = s.placeholder("x", DType.float, [-1, 2]), y = s.placeholder("y", DType.float, [-1, 1]);
  const z = s.dense("layer", x, 1, null, { seed: 3 }), d = s.op("Sub", z, y), square = s.op("Mul", d, d);
  const loss = s.mean(square), step = s.minimize(loss, tw.momentum(0.05)), metrics = [s.meanMetric("square", square)], init = s.initializer();
  const session = new tw.Session(graph, { threads: 1 });
  session.run(null, [], [init]);
  const trainer = new tw.Trainer(session, { feeds: [x, y], inputs: 1, loss, step, metrics, predictions: [z] });
  const xs = Float32Array.from({ length: 200 }, (_, i) => (i % 2 ? (((i - 1) / 2) % 5) / 5 : ((i / 2) % 7) / 7));
  const ys = Float32Array.from({ length: 100 }, (_, i) => 2 * xs[2 * i] - xs[2 * i + 1]);
  const data = tw.Batches.of([new Tensor(xs, [-1, 2]), new Tensor(ys, [-1, 1])], { size: 10, shuffle: true });
  let epochs = 0;
  const report = trainer.fit(data, { epochs: 40, epochEnd: (p) => ++epochs === 30 && p.values.square < 1 });
  const values = trainer.evaluate(data);
  assert.ok(report.stopped && report.steps === 300 && values.loss < 1e-3 && Math.abs(values.loss - values.square) < 1e-6, JSON.stringify([report, values]));
  assert.deepEqual(trainer.predict(data)[0].shape, [100, 1]);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "thalweg-node-")), prefix = path.join(folder, "model");
  const saver = new tw.Saver(graph);
  saver.save(session, prefix);
  const checkpoint = new tw.Checkpoint(prefix);
  assert.ok(checkpoint.names.length >= 2 && Math.abs(checkpoint.read("layer/kernel").data[0] - 2) < 0.2);
  session.run(null, [], [init]);
  saver.restore(session, prefix);
  assert.deepEqual(trainer.evaluate(data), values);
  assert.equal(tw.Graph.import(graph.export()).length, graph.length);
  fs.rmSync(folder, { recursive: true });
});

test("datasets are iterables", () => {
  const graph = new tw.Graph(), s = graph.scope();
  const d = s.range(0, 10).filter((t, e) => t.op("Greater", e, t.scalar(3, DType.int64))).map((t, e) => t.op("Mul", e, e)).batch(4);
  assert.deepEqual([...d.batches()].map(([b]) => String(b)), ["[16, 25, 36, 49]", "[64, 81]"]);
});

test("a model file runs by its names", (t) => {
  const file = process.env.THALWEG_TEST_MODEL || "";
  if (!fs.existsSync(file)) return t.skip("no model file");
  const model = tw.load(file, { session: { threads: 1 } });
  const x = new Tensor(Float32Array.from({ length: 60 }, (_, i) => i), [3, 4, 5]);
  assert.equal(model.signatures[0].inputs[0].name, "x");
  assert.equal(model.run({ x, y: x }).sum.data[59], 118);
  assert.throws(() => model.run({ x, z: x }), (e) => e instanceof ThalwegError && e.message.includes("'z'"));
});

// A graph with a variable of 3, its initialisation and its read.
function counting() {
  const graph = new tw.Graph(), s = graph.scope(), v = s.variable("v", s.scalar(3));
  return { graph, init: s.initializer(), read: s.read(v) };
}

// Initialises the variable, empties the container with the function, and looks at what is left.
function resets(session, { init, read }, reset) {
  for (let i = 0; i < 2; ++i) {
    session.run(null, [], [init]);
    assert.equal(session.run(null, [read])[0].item(), 3);
    assert.equal(reset(), 1);
    assert.throws(() => session.run(null, [read]), (e) => e instanceof ThalwegError && e.code === "FAILED_PRECONDITION");
  }
}

test("containers are reset", () => {
  const c = counting(), session = new tw.Session(c.graph), named = new tw.Session(c.graph, { container: "reset" });
  resets(session, c, () => session.reset());
  resets(named, c, () => session.reset("reset"));
  resets(named, c, () => tw.resetContainer("reset"));
  assert.equal(tw.resetContainer("nothing"), 0);
  for (const wrong of [() => tw.resetContainer("<graph"), () => session.reset(5), () => tw.resetContainer("a\0b"), () => tw.resetCluster(5),
    () => tw.resetCluster("", "", { timeout: -1 })]) {
    assert.throws(wrong, (e) => e instanceof ThalwegError && e.code === "INVALID_ARGUMENT");
  }
});

test("a server runs a session", () => {
  const server = new tw.Server({ worker: ["grpc:127.0.0.1:0"] }, "worker", 0, { insecure: true });
  server.start();
  const { graph, x, y } = doubling();
  const session = new tw.Session(graph, { target: server.target, insecure: true });
  assert.equal(session.run([[x, new Tensor(4)]], [y])[0].item(), 8);
  session.close();
  const c = counting(), remote = new tw.Session(c.graph, { target: server.target, insecure: true, container: "reset" });
  resets(remote, c, () => tw.resetCluster(server.target, "reset", { insecure: true, timeout: 60000 }));
  remote.close();
  server.stop();
});

test("promises, and signals that cancel", async () => {
  const { session, x, y } = doubling();
  const found = await Promise.all(Array.from({ length: 50 }, (_, k) => session.runAsync([[x, new Tensor(k)]], [y])));
  assert.deepEqual(found.map(([t]) => t.item()), Array.from({ length: 50 }, (_, k) => 2 * k));
  await assert.rejects(session.runAsync([[x, new Tensor(["a"])]], [y]), (e) => e instanceof ThalwegError && e.code === "INVALID_ARGUMENT");
  const wait = waiting(), controller = new AbortController();
  const run = wait.session.runAsync(null, [wait.get], [], { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(run, (e) => e instanceof ThalwegError && e.code === "CANCELLED" && e.cause.message === "enough");
  await assert.rejects(wait.session.runAsync(null, [wait.get], [], { timeout: 1 }), { code: "DEADLINE_EXCEEDED" });
  assert.throws(() => wait.session.run(null, [wait.get], [], { timeout: 1 }), { code: "DEADLINE_EXCEEDED" });
  const late = wait.session.runAsync(null, [wait.get], [], { timeout: 5 });
  wait.session.close(); // while a run is in progress
  global.gc();
  await assert.rejects(late, ThalwegError);
  assert.throws(() => wait.session.run(null, [wait.get]), { code: "FAILED_PRECONDITION" });
});

test("callbacks that throw end the loop with what they threw", () => {
  const { graph, session, x, y } = doubling(), s = graph.scope("more");
  const v = s.variable("v", s.scalar(1)), loss = s.op("Mul", y, s.read(v)), step = s.minimize(loss, tw.sgd());
  session.run(null, [], [s.initializer("more")]);
  const trainer = new tw.Trainer(session, { feeds: [x], loss, step });
  const own = new Error("mine"), one = new Tensor(1);
  const endless = tw.Batches.from(1, () => (global.gc(), [one]));
  assert.throws(() => trainer.fit(endless, { afterStep: () => { throw own; } }), (e) => e === own);
  assert.throws(() => trainer.fit(endless, { afterStep: () => { throw "a text"; } }), (e) => e === "a text");
  let n = 0;
  assert.equal(trainer.fit(endless, { afterStep: () => ++n === 3 }).stopped, true);
  for (const [next, what] of [[() => { throw own; }, /mine/], [() => [one, one], /2 tensors/], [() => [null], /must be a Tensor/], [() => 7, /must be an array/]]) {
    const bad = tw.Batches.from(1, next);
    assert.throws(() => bad.next(), what);
    assert.throws(() => trainer.fit(tw.Batches.from(1, next, () => {})), what);
  }
  assert.equal(tw.Batches.from(1, () => null).next(), null);
  assert.throws(() => graph.scope("f").range(0, 3).map(() => { throw own; }), (e) => e === own);
  assert.throws(() => tw.Batches.from(1, () => null, () => { throw own; }).reset(0), (e) => e === own);
});

test("misuse is a ThalwegError", () => {
  const { graph, session, x, y } = doubling(), other = new tw.Graph(), foreign = other.scope().scalar(1);
  const one = new Tensor(1), ints = new Tensor(Int32Array.of(1, 2)), words = new Tensor(["a"]);
  const closed = { tensor: new Tensor(1), graph: new tw.Graph(), session: new tw.Session(graph), step: session.callable([x], [y]), data: tw.Batches.of([ints]) };
  const orphan = closed.session.callable([x], [y]), step = session.callable([x], [y]), operation = graph.operation("y");
  const shut = closed.graph.scope();
  for (const one of [...Object.values(closed), ...Object.values(closed)]) one.close(); // twice is fine
  const s = graph.scope("wrong"), data = tw.Batches.of([ints]);
  const calls = [
    () => new Tensor(Float32Array.of(1, 2, 3), [2, 2]), () => new Tensor(Float32Array.of(1), [-1, -1]), () => new Tensor(Float32Array.of(1), [-2]),
    () => new Tensor(Float32Array.of(1), [2 ** 52, 2 ** 52]), () => new Tensor(Float32Array.of(1), [1.5]), () => new Tensor(Float32Array.of(1), "abc"),
    () => new Tensor(null), () => new Tensor(undefined), () => new Tensor({}), () => new Tensor(Symbol("a")), () => new Tensor([[1], [2, 3]]), () => new Tensor([1, [2]]),
    () => new Tensor([1, "a"]), () => new Tensor([1], [1], 999), () => new Tensor([1.5], [1], DType.int64), () => new Tensor(one), () => new Tensor(["a"], [2]),
    () => new Tensor(Float32Array.of(1), [1], DType.int32), () => Tensor.zeros([2 ** 40, 2 ** 40]), () => Tensor.zeros([1], "float"), () => Tensor.zeros(7),
    () => closed.tensor.data, () => closed.tensor.shape, () => closed.tensor.reshape([1]), () => ints.item(), () => ints.reshape([3]), () => ints.reshape("x"),
    () => session.run([[x, closed.tensor]], [y]), () => session.run([[x, null]], [y]), () => session.run([[x, 1]], [y]), () => session.run([[x, words]], [y]),
    () => session.run([[x, ints]], [y]), () => session.run(null, [y]), () => session.run(null, [0n]), () => session.run(null, [foreign]), () => session.run(null, [1]),
    () => session.run(null, ["y"]), () => session.run(5, [y]), () => session.run(null, y), () => session.run(null, [], [null]), () => session.run(null, [], [y]),
    () => session.run([[x, one]], [y], [], { timeout: -1 }), () => session.run([[x, one]], [y], [], { signal: 1 }),
    () => closed.session.run(null, []), () => step.run(), () => step.run(one, one), () => step.run(null), () => step.run(words), () => closed.step.run(one), () => orphan.run(one),
    () => session.callable([x, x], [y]), () => session.callable("x", [y]), () => new tw.Session(graph, { no_such_option: 1 }), () => new tw.Session(graph, { threads: "many" }),
    () => new tw.Session(graph, "threads=1"), () => new tw.Session(graph, { threads: "1\0" }), () => new tw.Session(null), () => new tw.Session({ address: 4 }), () => new tw.Session(closed.graph),
    () => closed.graph.export(), () => closed.graph.scope(), () => shut.scalar(1), () => graph.operation("nothing"), () => graph.operation(5), () => graph.output("y:7"),
    () => graph.output("y\0:"), () => graph.describe(0n), () => graph.describe("y"), () => tw.Graph.import(Buffer.from("no graph")), () => tw.Graph.import("text"),
    () => s.op("NoSuchOp"), () => s.op("Add", x), () => s.op("Add", 1, 2), () => s.op("Add", 0n, 0n), () => s.op("Add", foreign, foreign), () => s.op(7), () => s.constant(closed.tensor),
    () => s.constant(null), () => s.scalar("a"), () => s.scalar(1, 999), () => s.scalar(1, -1), () => s.dense("d", x, 3), () => s.dense(5, x, 3), () => s.activation("loud", x), () => s.flatten(0n),
    () => s.minimize(y, tw.sgd()), () => s.apply(tw.sgd(), [x], []), () => s.apply({}, [], []), () => s.apply(tw.adam(0.1, { betta: 1 }), [x], [{ values: x, rows: 0n }]), () => tw.adam("fast"),
    () => s.group("g", null), () => s.placeholder("p", DType.float, [1.5]), () => s.range(0, 3).map(5), () => s.range(0, 3).map(() => []), () => s.range(0, 3).map((t, e) => [e, 1]),
    () => ops.matMul(null, x, x), () => ops.matMul(s, x), () => ops.matMul(s, x, x, { transpose: 1 }), () => ops.matMul(s, x, x, 5), () => ops.pack(s, x),
    () => tw.Batches.of([one]), () => tw.Batches.of([]), () => tw.Batches.of(5), () => tw.Batches.of([ints], { size: -1 }), () => tw.Batches.of([ints], { size: "x" }),
    () => tw.Batches.from(0, () => null), () => tw.Batches.from(1, null), () => closed.data.next(), () => closed.data.reset(0), () => data.reset(-1), () => data.reset("x"),
    () => new tw.Trainer(session, { feeds: [] }), () => new tw.Trainer(session, { feeds: [x], metrics: [{}] }), () => new tw.Trainer(null, { feeds: [] }),
    () => new tw.Saver(graph, [foreign]), () => new tw.Checkpoint("/no/such/place"), () => new tw.Checkpoint(5), () => tw.Checkpoint.write("/no/such/place", { a: closed.tensor }),
    () => tw.load("/no/such/file.onnx"), () => tw.load(5), () => tw.load("x", { session: 5 }), () => new tw.Server("no json"), () => tw.loadPlugin("/no/such/plugin.so"), () => tw.loadPlugin({}),
  ];
  calls.forEach((call, i) => {
    let thrown = null;
    try {
      call();
    } catch (e) {
      thrown = e;
    }
    assert.ok(thrown instanceof ThalwegError && thrown.code && thrown.message, `call ${i}, ${call}: ${thrown && thrown.stack}`);
    if (i % 20 === 0) global.gc();
  });
  assert.ok(calls.length >= 50);
  assert.equal(operation.name, "y");
  graph.close();
  assert.throws(() => operation.name, ThalwegError);
  assert.equal(step.run(one)[0].item(), 2); // sessions go on
  assert.throws(() => low.tw_tensor_rank("x"), TypeError); // the low level checks types of values
  assert.throws(() => low.tw_tensor_create(-1, null, 0, null), TypeError);
});

test("threads have the package, each for itself", async () => {
  const done = await Promise.all(Array.from({ length: 4 }, () => new Promise((resolve, reject) => {
    new Worker(__filename).on("message", resolve).on("error", reject);
  })));
  assert.equal(done.length, 4);
});

test("nothing leaks", async () => {
  const { session, x, y } = doubling(), big = new Float32Array(1 << 16);
  const round = async () => {
    for (let i = 0; i < 50; ++i) { // nobody closes anything
      const view = new Tensor(big).reshape([2, -1]).data;
      assert.equal(view.length, big.length);
      session.run([[x, new Tensor(1)]], [y]);
      await session.runAsync([[x, new Tensor(1)]], [y]);
      new tw.Graph().scope().scalar(1);
      try { new tw.Graph().operation("nothing"); } catch { /* as it should */ }
    }
    for (let i = 0; i < 3; ++i) {
      global.gc();
      await new Promise(setImmediate);
    }
  };
  await round();
  await round();
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 20; ++i) await round(); // 1,000 tensors of 256 KiB
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 64 << 20, `${grown >> 20} MiB more`);
});

test("handles are disposable", { skip: !Symbol.dispose }, () => {
  const tensor = new Tensor(1);
  tensor[Symbol.dispose]();
  assert.ok(tensor.closed);
});
