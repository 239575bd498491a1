/** Thalweg runs and trains machine-learning models. All failures are `ThalwegError`s. */
import * as ops from "./ops";
import * as low from "./low";
export { ops, low };

/** A value of a graph. */
export type Output = bigint;
/** An element type, by its number; `DType` has the names. */
export type DType = number;
export const DType: Readonly<Record<"float" | "double" | "int32" | "uint8" | "int16" | "int8" | "string" | "complex64" | "int64" | "bool" |
  "bfloat16" | "uint16" | "complex128" | "half" | "uint32" | "uint64" | "resource" | "variant", DType>>;
/** Sizes; -1 is an unknown one. */
export type Shape = number[];
export type TypedArray = Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint8ClampedArray |
  Uint16Array | Uint32Array | BigUint64Array;
export type Nested = number | boolean | string | bigint | Nested[];
export type Options = { [key: string]: string | number | boolean | string[] };

export class ThalwegError extends Error {
  /** The name of the status's code, such as "INVALID_ARGUMENT". */
  readonly code: string;
  /** The name of the operation that failed. */
  readonly operation: string | null;
  /** The line of the program that made the operation, such as "train.js:18". */
  readonly place: string | null;
}

/** An object of the library. The garbage collector ends what nobody has closed. */
declare class Handle {
  /** Ends the object; a later use is a ThalwegError. Where the engine has Symbol.dispose, `using` closes it. */
  close(): void;
  readonly closed: boolean;
}

export class Tensor extends Handle {
  /** Copies a typed array, or takes numbers, booleans, texts: one, or nested arrays. One size of the shape may be -1. */
  constructor(data: TypedArray | Nested, shape?: Shape, dtype?: DType);
  static zeros(shape: Shape, dtype?: DType): Tensor;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly length: number;
  /** The elements, over the tensor's own memory. Write to them only before anybody else has the tensor. */
  readonly data: any;
  item(): any;
  reshape(shape: Shape): Tensor;
  toHost(): Tensor;
}

export class Operation {
  readonly name: string;
  readonly type: string;
  readonly outputs: Output[];
}

export interface Variable { handle: Output; name: string; dtype: DType; shape: Shape | null }

export class Graph extends Handle {
  constructor();
  static import(bytes: Uint8Array): Graph;
  export(): Buffer;
  readonly length: number;
  operation(name: string): Operation;
  output(name: string): Output;
  describe(value: Output): { dtype: DType; shape: Shape | null };
  variables(): Variable[];
  scope(prefix?: string): Scope;
}

export interface LayerOptions { seed?: number | bigint; bias?: boolean; dtype?: DType; kernelInitializer?: number }
export interface Gradient { values: Output; rows: Output }
export interface Metric { name: string; value: Output; update: Operation; reset: Operation }
export type Activation = "relu" | "relu6" | "leaky_relu" | "elu" | "selu" | "gelu" | "gelu_tanh" | "silu" | "mish" | "sigmoid" | "hard_sigmoid" |
  "hard_swish" | "tanh" | "softplus" | "softsign" | "softmax" | "log_softmax";

export class Optimizer { private constructor(); }
type MakeOptimizer = (learningRate?: number | Output, options?: { [option: string]: number | boolean }) => Optimizer;
export const sgd: MakeOptimizer, momentum: MakeOptimizer, adam: MakeOptimizer, adamax: MakeOptimizer, adagrad: MakeOptimizer,
  adadelta: MakeOptimizer, rmsprop: MakeOptimizer, ftrl: MakeOptimizer;

/** Adds operations to a graph. A failure is thrown where the wrong operation is added. */
export class Scope {
  private constructor();
  readonly graph: Graph;
  setDevice(device: string): void;
  op(type: string, ...inputs: Output[]): Output;
  placeholder(name: string, dtype: DType, shape?: Shape | null): Output;
  constant(value: Tensor | TypedArray | Nested): Output;
  scalar(value: number, dtype?: DType): Output;
  ints(...values: number[]): Output;
  name(name: string, value: Output): Output;
  group(name: string | null, ...operations: Operation[]): Operation;
  variable(name: string, initial: Output): Output;
  read(variable: Output): Output;
  assign(variable: Output, value: Output): Operation;
  initializer(name?: string): Operation;
  sum(x: Output): Output;
  mean(x: Output): Output;
  reshape(x: Output, shape: Shape): Output;
  activation(kind: Activation | null, x: Output): Output;
  dense(name: string, x: Output, units: number, activation?: Activation | null, options?: LayerOptions): Output;
  conv2d(name: string, x: Output, filters: number, window: number, activation?: Activation | null, options?: LayerOptions): Output;
  maxPool2d(x: Output, window: number): Output;
  flatten(x: Output): Output;
  dropout(x: Output, rate: number, training: Output, seed?: number): Output;
  sparseSoftmaxCrossEntropy(logits: Output, labels: Output): Output;
  gradients(loss: Output, xs: Output[]): Gradient[];
  clipByGlobalNorm(gradients: Gradient[], max: number): Gradient[];
  apply(optimizer: Optimizer, variables: Output[], gradients: Gradient[]): Operation;
  minimize(loss: Output, optimizer: Optimizer): Operation;
  accuracy(name: string, predictions: Output, labels: Output): Metric;
  meanMetric(name: string, values: Output): Metric;
  rows(...components: Output[]): Dataset;
  range(start: number, stop: number, step?: number): Dataset;
  lines(files: Output): Dataset;
  records(files: Output): Dataset;
}

export class Dataset {
  private constructor();
  readonly value: Output;
  take(n: number): Dataset;
  skip(n: number): Dataset;
  shard(shards: number, index: number): Dataset;
  repeat(n?: number): Dataset;
  shuffle(buffer: number, seed?: number): Dataset;
  batch(n: number): Dataset;
  prefetch(n: number): Dataset;
  map(callee: (scope: Scope, ...element: Output[]) => Output | Output[]): Dataset;
  filter(callee: (scope: Scope, ...element: Output[]) => Output): Dataset;
  batches(session?: Options): Batches;
}

export interface RunOptions { signal?: AbortSignal; /** in milliseconds */ timeout?: number }
export type Feeds = Map<Output, Tensor> | [Output, Tensor][] | null;

export class Session extends Handle {
  constructor(graph: Graph, options?: Options);
  readonly graph: Graph;
  run(feeds: Feeds, fetches?: Output[], targets?: Operation[], options?: RunOptions): Tensor[];
  runAsync(feeds: Feeds, fetches?: Output[], targets?: Operation[], options?: RunOptions): Promise<Tensor[]>;
  callable(feeds: Output[], fetches: Output[], targets?: Operation[]): Callable;
  /** Empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on; its
   * variables can be initialised again. container "": the session's default one, which is its graph's own unless the session has a
   * target or the option `container`. With a target, the container is emptied on every task. Returns how many objects it held. */
  reset(container?: string): number;
}

export class Callable extends Handle {
  private constructor();
  run(...tensors: Tensor[]): Tensor[];
  runAsync(tensors: Tensor[], options?: RunOptions): Promise<Tensor[]>;
}

export class Batches extends Handle implements Iterable<Tensor[]> {
  private constructor();
  static of(tensors: Tensor[], options?: { size?: number; seed?: number; shuffle?: boolean; dropRemainder?: boolean }): Batches;
  static from(n: number, next: () => Tensor[] | null, reset?: (epoch: number) => void): Batches;
  next(): Tensor[] | null;
  reset(epoch?: number): void;
  [Symbol.iterator](): Iterator<Tensor[]>;
}

export interface Progress {
  epoch: number; epochs: number; step: number; batch: number; values: { [name: string]: number }; validation: { [name: string]: number };
  improved: boolean; seconds: number;
}
export interface FitOptions {
  epochs?: number; validation?: Batches; watch?: string; patience?: number; keepBest?: boolean; largerIsBetter?: boolean; progress?: boolean;
  folder?: string; everySteps?: number;
  /** Called after a step or an epoch; true ends the loop as if all were done. */
  afterStep?: (at: Progress) => boolean | void;
  epochEnd?: (at: Progress) => boolean | void;
}
export interface FitReport { epochs: number; steps: number; resumedAt: number; bestEpoch: number; best: number; stopped: boolean }

export class Trainer extends Handle {
  constructor(session: Session, model: {
    feeds: Output[]; inputs?: number; loss?: Output; step?: Operation; training?: Output; metrics?: Metric[]; predictions?: Output[] });
  fit(data: Batches, options?: FitOptions): FitReport;
  evaluate(data: Batches): { [name: string]: number };
  predict(data: Batches): Tensor[];
}

export class Saver extends Handle {
  constructor(graph: Graph, variables?: Output[]);
  save(session: Session, prefix: string): void;
  restore(session: Session, prefix: string): void;
}

export class Checkpoint extends Handle {
  constructor(prefix: string);
  readonly names: string[];
  read(name: string): Tensor;
  static write(prefix: string, tensors: { [name: string]: Tensor }): void;
}

export interface Value { name: string; dtype: DType; shape: Shape | null; optional: boolean }
export interface Signature { name: string; inputs: Value[]; outputs: Value[] }

export class Model extends Handle {
  private constructor();
  static load(path: string, options?: { importer?: string; options?: Options; session?: Options }): Model;
  readonly signatures: Signature[];
  run(inputs: { [name: string]: Tensor }, signature?: string | null, options?: RunOptions): { [name: string]: Tensor };
}
export const load: typeof Model.load;

export class Server extends Handle {
  constructor(cluster: string | { [job: string]: string[] }, job?: string | null, task?: number, options?: Options);
  start(): void;
  stop(): void;
  /** The address at which the server listens, for the session option `target`. */
  readonly target: string;
}

export function devices(): string[];
export function loadPlugin(path: string): void;
/** Empties a container of this process without a session, as Session.reset does. container "": localhost. */
export function resetContainer(container?: string): number;
/** The same on every task of a cluster. target: the address of any task. timeout: milliseconds within which tasks must answer. options: as
 * of a session. If a task does not answer, the error names it, all others have emptied theirs, and the call may be repeated. */
export function resetCluster(target: string, container?: string, options?: Options & { timeout?: number }): number;
export function readCsv(path: string): Float32Array[];
export const version: string;
