package thalweg

import (
	"runtime"
	"unsafe"

	"thalweg.org/go/low"
)

// Activation is a function that a layer applies to its results.
type Activation uint32

// The activations of layers; low.TW_ACTIVATION_... has all.
const (
	Linear  Activation = low.TW_ACTIVATION_NONE
	Relu    Activation = low.TW_ACTIVATION_RELU
	Gelu    Activation = low.TW_ACTIVATION_GELU
	Sigmoid Activation = low.TW_ACTIVATION_SIGMOID
	Tanh    Activation = low.TW_ACTIVATION_TANH
	Softmax Activation = low.TW_ACTIVATION_SOFTMAX
)

// LayerOptions are options of layers that make variables.
type LayerOptions struct {
	Seed              int64  // 0: other first weights in each session
	DType             DType  // 0: Float
	NoBias            bool   //
	KernelInitializer uint32 // low.TW_INITIALIZER_...; 0: the layer's own
	KernelScale       float64
}

func layerOptions(given []LayerOptions) *low.LayerOptions {
	options := &low.LayerOptions{}
	low.LayerOptionsInit(options)
	for _, o := range given {
		options.Seed, options.NoBias, options.KernelInitializer = o.Seed, flag(o.NoBias), o.KernelInitializer
		if o.DType != 0 {
			options.Dtype = uint32(o.DType)
		}
		if o.KernelScale != 0 {
			options.KernelScale = o.KernelScale
		}
	}
	return options
}

func size[T any](record *T) uint32 { return uint32(unsafe.Sizeof(*record)) }

// last is the size of a value's last axis.
func (s *Scope) last(what string, x Output) int64 {
	graph := low.ScopeGraph(s.object)
	if graph == nil {
		return 0
	}
	_, shape, err := describe(graph, x)
	if err == nil && (len(shape) == 0 || shape[len(shape)-1] < 0) {
		err = failure(InvalidArgument, "%s: the last size of %v must be known", what, shape)
	}
	if err != nil {
		s.Fail(err)
		return 0
	}
	return shape[len(shape)-1]
}

// Activation applies a function to each element.
func (s *Scope) Activation(kind Activation, x Output) Output {
	if kind == Linear || !s.at() {
		return x
	}
	defer runtime.KeepAlive(s)
	return Output(low.Activation(s.object, uint32(kind), uint64(x)))
}

// Dense is activation(x kernel + bias), with variables name/kernel and name/bias. x: [.., inputs]; the result: [.., units].
func (s *Scope) Dense(name string, x Output, units int64, activation Activation, options ...LayerOptions) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	layer := &low.Dense{}
	layer.Size = size(layer)
	low.DenseCreate(s.object, text(name), layerOptions(options), s.last("Dense '"+name+"'", x), units, layer)
	return s.Activation(activation, Output(low.DenseApply(s.object, layer, uint64(x))))
}

// Conv2D is a convolution with a square window over [batch, height, width, channels] that keeps height and width.
func (s *Scope) Conv2D(name string, x Output, filters, window int64, activation Activation, options ...LayerOptions) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	layer, sizes := &low.Convolution{}, &low.ConvolutionSizes{}
	low.ConvolutionInit(layer)
	low.ConvolutionSizesInit(sizes)
	sizes.Window1, sizes.Window2, sizes.Channels, sizes.Filters = window, window, s.last("Conv2D '"+name+"'", x), filters
	like := *layer
	low.ConvolutionCreate(s.object, text(name), layerOptions(options), &like, sizes, layer)
	return s.Activation(activation, Output(low.ConvolutionApply(s.object, layer, uint64(x))))
}

// MaxPool2D keeps the largest of each window of size x size elements.
func (s *Scope) MaxPool2D(x Output, window int64) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	pool := &low.Pool{}
	low.PoolInit(pool)
	pool.Kind, pool.Rank, pool.Padding = low.TW_POOL_MAX, 2, low.TW_PADDING_VALID
	pool.Window1, pool.Window2, pool.Stride1, pool.Stride2 = window, window, window, window
	return Output(low.PoolApply(s.object, pool, uint64(x)))
}

// Flatten makes a row of each example.
func (s *Scope) Flatten(x Output) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	n := int64(1)
	if graph := low.ScopeGraph(s.object); graph != nil {
		_, shape, err := describe(graph, x)
		for i := 1; i < len(shape); i++ {
			n *= shape[i]
			if shape[i] < 0 {
				err = failure(InvalidArgument, "Flatten: the sizes of %v behind the first must be known", shape)
			}
		}
		s.Fail(err)
	}
	return s.Reshape(x, -1, int32(n))
}

// Dropout sets elements to 0 at that rate while training, a bool scalar, is true.
func (s *Scope) Dropout(x Output, rate float64, training Output, seed int64) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.Dropout(s.object, uint64(x), rate, uint64(training), seed))
}

// SparseSoftmaxCrossEntropy is the mean cross-entropy of logits [batch, classes] for labels [batch].
func (s *Scope) SparseSoftmaxCrossEntropy(logits, labels Output) Output {
	return s.Op("Mean", s.Op("SparseSoftmaxCrossEntropyWithLogits", logits, labels), s.Ints(0))
}
