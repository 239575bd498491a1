package thalweg

import (
	"runtime"

	"thalweg.org/go/low"
)

// Gradient is the gradient for one value: Values has its shape, or, if Rows is not 0, the gradients of those rows. Values is 0 if nothing
// depends on it.
type Gradient struct{ Values, Rows Output }

// Gradients adds the gradients of a scalar loss for values or variables.
func (s *Scope) Gradients(loss Output, xs ...Output) []Gradient {
	out := make([]low.Gradient, len(xs))
	if s.at() && len(xs) > 0 {
		defer runtime.KeepAlive(s)
		low.ScopeGradients(s.object, uint64(loss), (*uint64)(first(xs)), uint32(len(xs)), first(out))
	}
	gradients := make([]Gradient, len(xs))
	for i, g := range out {
		gradients[i] = Gradient{Output(g.Values), Output(g.Rows)}
	}
	return gradients
}

// Optimizer adds the operation that updates variables by their gradients.
type Optimizer interface {
	apply(s *low.Scope, variables *uint64, gradients *low.Gradient, n uint32, rate uint64) *low.Operation
	rate() (float64, Output)
}

// Rate is the learning rate of an optimizer: a number, or a value that a schedule computes. Neither: the optimizer's default.
type Rate struct {
	LearningRate float64
	Schedule     Output
}

func (r Rate) rate() (float64, Output) { return r.LearningRate, r.Schedule }

// The optimizers. Fields that are 0 have the defaults of train.h.
type (
	// SGD is gradient descent.
	SGD struct{ Rate }
	// Momentum is gradient descent with momentum, by default 0.9.
	Momentum struct {
		Rate
		Momentum float64
		Nesterov bool
	}
	// Adam is by Kingma and Ba, arXiv:1412.6980.
	Adam struct {
		Rate
		Beta1, Beta2, Epsilon float64
	}
	// Adagrad is by Duchi, Hazan and Singer, 2011.
	Adagrad struct {
		Rate
		InitialAccumulator float64
	}
	// RMSProp is by Tieleman and Hinton, 2012.
	RMSProp struct {
		Rate
		Rho, Momentum, Epsilon float64
		Centered               bool
	}
)

func set(field *float64, value float64) {
	if value != 0 {
		*field = value
	}
}

func (o SGD) apply(s *low.Scope, v *uint64, g *low.Gradient, n uint32, rate uint64) *low.Operation {
	r := &low.Sgd{}
	low.SgdInit(r)
	r.LearningRate = rate
	return low.TrainSgd(s, v, g, n, r)
}

func (o Momentum) apply(s *low.Scope, v *uint64, g *low.Gradient, n uint32, rate uint64) *low.Operation {
	r := &low.Momentum{}
	low.MomentumInit(r)
	r.LearningRate, r.Nesterov = rate, flag(o.Nesterov)
	set(&r.Momentum, o.Momentum)
	return low.TrainMomentum(s, v, g, n, r)
}

func (o Adam) apply(s *low.Scope, v *uint64, g *low.Gradient, n uint32, rate uint64) *low.Operation {
	r := &low.Adam{}
	low.AdamInit(r)
	r.LearningRate = rate
	set(&r.Beta1, o.Beta1)
	set(&r.Beta2, o.Beta2)
	set(&r.Epsilon, o.Epsilon)
	return low.TrainAdam(s, v, g, n, r)
}

func (o Adagrad) apply(s *low.Scope, v *uint64, g *low.Gradient, n uint32, rate uint64) *low.Operation {
	r := &low.Adagrad{}
	low.AdagradInit(r)
	r.LearningRate = rate
	set(&r.InitialAccumulator, o.InitialAccumulator)
	return low.TrainAdagrad(s, v, g, n, r)
}

func (o RMSProp) apply(s *low.Scope, v *uint64, g *low.Gradient, n uint32, rate uint64) *low.Operation {
	r := &low.Rmsprop{}
	low.RmspropInit(r)
	r.LearningRate, r.Centered = rate, flag(o.Centered)
	set(&r.Rho, o.Rho)
	set(&r.Momentum, o.Momentum)
	set(&r.Epsilon, o.Epsilon)
	return low.TrainRmsprop(s, v, g, n, r)
}

// Apply adds one update of variables by gradients, which may have been clipped or scaled.
func (s *Scope) Apply(optimizer Optimizer, variables []Output, gradients []Gradient) *Operation {
	if !s.at() {
		return nil
	}
	defer runtime.KeepAlive(s)
	if optimizer == nil || len(variables) != len(gradients) {
		s.Fail(failure(InvalidArgument, "Apply: %d gradients for %d variables, by optimizer %v", len(gradients), len(variables), optimizer))
		return nil
	}
	pairs := make([]low.Gradient, len(gradients))
	for i, g := range gradients {
		pairs[i] = low.Gradient{Values: uint64(g.Values), Rows: uint64(g.Rows)}
	}
	number, rate := optimizer.rate()
	if number != 0 {
		rate = s.Scalar(Float, number)
	}
	return s.operation(optimizer.apply(s.object, (*uint64)(first(variables)), first(pairs), uint32(len(pairs)), uint64(rate)))
}

// ClipByGlobalNorm scales gradients so that the norm of all together is at most max.
func (s *Scope) ClipByGlobalNorm(gradients []Gradient, max float64) []Gradient {
	if !s.at() {
		return gradients
	}
	defer runtime.KeepAlive(s)
	pairs := make([]low.Gradient, len(gradients))
	for i, g := range gradients {
		pairs[i] = low.Gradient{Values: uint64(g.Values), Rows: uint64(g.Rows)}
	}
	low.ClipByGlobalNorm(s.object, first(pairs), uint32(len(pairs)), max)
	clipped := make([]Gradient, len(gradients))
	for i, g := range pairs {
		clipped[i] = Gradient{Output(g.Values), Output(g.Rows)}
	}
	return clipped
}

// Minimize adds one update of all variables of the graph that hold real numbers and that the loss depends on.
func (s *Scope) Minimize(loss Output, optimizer Optimizer) *Operation {
	if !s.at() {
		return nil
	}
	defer runtime.KeepAlive(s)
	all, err := s.graph.Variables()
	if err != nil {
		s.Fail(err)
		return nil
	}
	var variables []Output
	for _, v := range all {
		switch v.DType {
		case Float, Double, Half, Bfloat16:
			variables = append(variables, v.Handle)
		}
	}
	if len(variables) == 0 {
		s.Fail(failure(InvalidArgument, "Minimize: the graph has no variables of real numbers"))
		return nil
	}
	return s.Apply(optimizer, variables, s.Gradients(loss, variables...))
}

// Metric is a measure over many batches.
type Metric struct {
	Name          string
	Value         Output
	Update, Reset *Operation
}

func (s *Scope) metric(name string, add func(*low.Metric)) Metric {
	if !s.at() {
		return Metric{Name: name}
	}
	defer runtime.KeepAlive(s)
	m := &low.Metric{}
	m.Size = size(m)
	add(m)
	return Metric{name, Output(m.Value), s.operation(m.Update), s.operation(m.Reset)}
}

// Accuracy is the share of examples whose class is the label. predictions: scores [batch, classes], or classes.
func (s *Scope) Accuracy(name string, predictions, labels Output) Metric {
	return s.metric(name, func(m *low.Metric) {
		low.MetricAccuracy(s.object, text(name), uint64(predictions), uint64(labels), 0, m)
	})
}

// MeanMetric is the mean of values.
func (s *Scope) MeanMetric(name string, values Output) Metric {
	return s.metric(name, func(m *low.Metric) { low.MetricMean(s.object, text(name), uint64(values), 0, m) })
}
