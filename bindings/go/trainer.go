package thalweg

import (
	"context"
	"unsafe"

	"thalweg.org/go/low"
)

// TrainerModel is what a trainer trains.
type TrainerModel struct {
	Feeds       []Output   // tensor i of a batch is fed to Feeds[i]
	Inputs      int        // predictions need only the first so many of them; 0: all
	Loss        Output     // the mean loss of a batch
	Step        *Operation // one update; nil: the trainer does not fit
	Training    Output     // a bool scalar that is true in training steps; 0: none
	Metrics     []Metric
	Predictions []Output
}

// Trainer runs the training loop. One goroutine at a time.
type Trainer struct {
	h           *handle[low.Trainer]
	names       []string
	predictions int
}

func (t *Trainer) use() (*low.Trainer, error) {
	if t == nil {
		return nil, failure(InvalidArgument, "the trainer is nil; make one with Session.NewTrainer")
	}
	return t.h.use()
}

// NewTrainer makes a trainer for the session's graph.
func (s *Session) NewTrainer(m TrainerModel) (*Trainer, error) {
	session, err := s.use()
	if err != nil {
		return nil, err
	}
	graph, err := s.graph.use()
	if err != nil {
		s.h.leave()
		return nil, err
	}
	leave := func() {
		s.graph.h.leave()
		s.h.leave()
	}
	var a arena
	defer a.free()
	model := record[low.TrainerModel](&a)
	low.TrainerModelInit(model)
	model.Graph, model.Session = graph, session
	model.Feeds, model.NFeeds, model.NInputs = (*uint64)(list(&a, m.Feeds)), uint32(len(m.Feeds)), uint32(m.Inputs)
	model.Loss, model.Training = uint64(m.Loss), uint64(m.Training)
	if m.Step != nil {
		model.Step = m.Step.object
	}
	metrics, names := make([]low.Metric, len(m.Metrics)), make([]string, len(m.Metrics))
	for i, metric := range m.Metrics {
		if metric.Update == nil || metric.Reset == nil {
			leave()
			return nil, failure(InvalidArgument, "metric '%s' is empty; what made it has failed", metric.Name)
		}
		metrics[i] = low.Metric{Size: size(&metrics[i]), Value: uint64(metric.Value), Update: metric.Update.object, Reset: metric.Reset.object}
		names[i] = metric.Name
	}
	model.Metrics, model.MetricNames, model.NMetrics = list(&a, metrics), a.texts(names), uint32(len(metrics))
	model.Predictions, model.NPredictions = (*uint64)(list(&a, m.Predictions)), uint32(len(m.Predictions))
	var out *low.Trainer
	if err := check(low.TrainerCreate(model, &out)); err != nil {
		leave()
		return nil, err
	}
	t := &Trainer{predictions: len(m.Predictions)}
	t.h = newHandle(out, "trainer", func(object *low.Trainer) { // graph and session outlive the trainer
		low.TrainerDestroy(object)
		leave()
	})
	for i := uint32(0); i < low.TrainerValueCount(out); i++ {
		t.names = append(t.names, low.Text(low.TrainerValueName(out, i)))
	}
	return t, nil
}

// Close ends the trainer.
func (t *Trainer) Close() {
	if t != nil {
		t.h.close()
	}
}

// Progress is the place of a loop.
type Progress struct {
	Epoch, Epochs, Step, Batch int64
	Values, Validation         map[string]float64
	Improved                   bool
	Seconds                    float64
}

// FitOptions are options of Fit.
type FitOptions struct {
	Epochs       int64 // 0: 1
	Validation   *Iterator
	Watch        string // the watched value; "": the loss
	Patience     int64  // epochs without a better value after which training stops; 0: never
	KeepBest     bool
	LargerBetter bool
	Progress     bool   // a line for each epoch on standard error
	Folder       string // for checkpoints, from which a training goes on; "": none
	EverySteps   int64
	// Functions that the loop calls. An error, or a panic, ends the loop with it; stop ends it as if all were done.
	AfterStep func(Progress) (stop bool, err error)
	EpochEnd  func(Progress) (stop bool, err error)
}

// FitReport is the result of Fit.
type FitReport struct {
	Epochs, Steps, ResumedAt, BestEpoch int64
	Best                                float64
	Stopped                             bool // a function, or patience, ended it
}

type fitCallback struct {
	options *FitOptions
	err     error // what a function of the program returned, kept with its type
}

func valuesOf(names **byte, values *float64, n uint32) map[string]float64 {
	if values == nil {
		return nil
	}
	all := make(map[string]float64, n)
	for i, v := range unsafe.Slice(values, n) {
		all[low.Text(unsafe.Slice(names, n)[i])] = v
	}
	return all
}

func progressOf(at *low.FitProgress) Progress {
	return Progress{at.Epoch, at.Epochs, at.Step, at.Batch, valuesOf(at.Names, at.Values, at.NValues),
		valuesOf(at.Names, at.Validation, at.NValues), at.Improved != 0, at.Seconds}
}

func (c *fitCallback) call(f func(Progress) (bool, error), at *low.FitProgress) (bool, error) {
	stop, err := f(progressOf(at))
	if err != nil {
		c.err = err
	}
	return stop, err
}

func (c *fitCallback) BeforeStep(*low.FitProgress) error { return nil }
func (c *fitCallback) AfterStep(at *low.FitProgress) (bool, error) {
	return c.call(c.options.AfterStep, at)
}
func (c *fitCallback) EpochEnd(at *low.FitProgress) (bool, error) {
	return c.call(c.options.EpochEnd, at)
}

// Fit trains over the batches of `data`. It ends early when the context is done. An error that a function of the options returned comes
// back as it is.
func (t *Trainer) Fit(ctx context.Context, data *Iterator, o FitOptions) (FitReport, error) {
	object, err := t.use()
	if err != nil {
		return FitReport{}, err
	}
	defer t.h.leave()
	batches, err := data.use()
	if err != nil {
		return FitReport{}, err
	}
	defer data.h.leave()
	var a arena
	defer a.free()
	options := record[low.FitOptions](&a)
	low.FitOptionsInit(options)
	if o.Epochs != 0 {
		options.Epochs = o.Epochs
	}
	if o.Validation != nil {
		validation, err := o.Validation.use()
		if err != nil {
			return FitReport{}, err
		}
		defer o.Validation.h.leave()
		options.Validation = validation
	}
	options.Watch, options.Patience, options.Folder, options.EverySteps = a.optional(o.Watch), o.Patience, a.optional(o.Folder), o.EverySteps
	options.Flags = low.TW_FIT_KEEP_BEST*flag(o.KeepBest) | low.TW_FIT_LARGER_IS_BETTER*flag(o.LargerBetter) | low.TW_FIT_PROGRESS*flag(o.Progress)
	called := &fitCallback{options: &o}
	if o.AfterStep != nil || o.EpochEnd != nil {
		callback := record[low.FitCallback](&a)
		callback.Size, callback.User = size(callback), low.Register(called)
		defer low.Unregister(callback.User)
		if o.AfterStep != nil {
			callback.AfterStep = low.CallAfterStep
		}
		if o.EpochEnd != nil {
			callback.EpochEnd = low.CallEpochEnd
		}
		options.Callbacks, options.NCallbacks = callback, 1
	}
	report := &low.FitReport{}
	report.Size = size(report)
	err = cancelling(ctx, func(token *low.CancelToken) *low.Status {
		options.Cancel = token
		return low.TrainerFit(object, batches, options, report)
	})
	if called.err != nil {
		err = called.err
	}
	return FitReport{report.Epochs, report.Steps, report.ResumedAt, report.BestEpoch, report.Best, report.Why != low.TW_FIT_COMPLETE}, err
}

// Evaluate returns the loss and the metrics over one epoch, by their names.
func (t *Trainer) Evaluate(ctx context.Context, data *Iterator) (map[string]float64, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	batches, err := data.use()
	if err != nil {
		return nil, err
	}
	defer data.h.leave()
	values := make([]float64, len(t.names))
	if err := cancelling(ctx, func(token *low.CancelToken) *low.Status {
		return low.TrainerEvaluate(object, batches, token, first(values))
	}); err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for i, name := range t.names {
		all[name] = values[i]
	}
	return all, nil
}

// Predict returns the predictions for one epoch, with the rows of all batches.
func (t *Trainer) Predict(ctx context.Context, data *Iterator) ([]*Tensor, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	batches, err := data.use()
	if err != nil {
		return nil, err
	}
	defer data.h.leave()
	out := make([]*low.Tensor, t.predictions)
	if err := cancelling(ctx, func(token *low.CancelToken) *low.Status {
		return low.TrainerPredict(object, batches, token, first(out))
	}); err != nil {
		return nil, err
	}
	return tensorsOf(out), nil
}
