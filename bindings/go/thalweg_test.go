package thalweg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tw "thalweg.org/go"
	"thalweg.org/go/low"
)

var ctx = context.Background()

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// doubling is a graph with y = x + x, and a session of one thread.
func doubling(t *testing.T) (*tw.Graph, *tw.Session, tw.Output, tw.Output) {
	t.Helper()
	g := must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("")
	x := s.Placeholder("x", tw.Float)
	y := s.Name("y", s.Add(x, x))
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	return g, must[*tw.Session](t)(g.NewSession("threads=1")), x, y
}

func TestEveryFunctionIsLinked(t *testing.T) {
	all := low.Every()
	seen := map[uintptr]bool{}
	for _, address := range all {
		seen[address] = address != 0
	}
	if len(all) != low.Count || len(seen) != low.Count || seen[0] {
		t.Fatalf("%d functions, %d different ones, of %d", len(all), len(seen), low.Count)
	}
}

func TestTensors(t *testing.T) {
	a := must[*tw.Tensor](t)(tw.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, -1))
	if got := fmt.Sprint(a.Shape(), a.DType(), a.Len(), a); got != "[2 3] float 6 [[1, 2, 3], [4, 5, 6]]" {
		t.Fatal(got)
	}
	z := must[*tw.Tensor](t)(tw.Zeros[int64](3))
	data := must[[]int64](t)(tw.Data[int64](z))
	data[1] = 7 // no copy
	if got := must[[]int64](t)(tw.Values[int64](z)); got[1] != 7 {
		t.Fatal(got)
	}
	words := must[*tw.Tensor](t)(tw.Strings([]string{"", "any\x00bytes"}))
	if got := must[[]string](t)(words.StringValues()); got[1] != "any\x00bytes" || got[0] != "" {
		t.Fatal(got)
	}
	if got := must[float32](t)(tw.Item[float32](must[*tw.Tensor](t)(tw.Scalar(float32(2.5))))); got != 2.5 {
		t.Fatal(got)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	g := must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("head")
	a, b := s.Placeholder("a", tw.Float, 2, 3), s.Placeholder("b", tw.Float, 4, 5)
	_, _, line, _ := runtime.Caller(0)
	s.MatMul(a, b)
	s.Add(a, b) // nothing, after a failure
	err := s.Finish()
	var e *tw.Error
	if !errors.As(err, &e) || !errors.Is(err, tw.InvalidArgument) || errors.Is(err, tw.NotFound) {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("thalweg_test.go:%d", line+1); e.Place != want || !strings.Contains(e.Message, want) {
		t.Fatalf("place '%s', not '%s': %v", e.Place, want, err)
	}
}

func TestTrainingSavesAndGoesOn(t *testing.T) {
	g := must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("")
	x, y := s.Placeholder("x", tw.Float, -1, 2), s.Placeholder("y", tw.Float, -1, 1)
	z := s.Dense("layer", x, 1, tw.Linear, tw.LayerOptions{Seed: 3})
	d := s.Sub(z, y)
	loss := s.Mean(s.Mul(d, d))
	step := s.Minimize(loss, tw.Momentum{Rate: tw.Rate{LearningRate: 0.05}})
	metric := s.MeanMetric("square", s.Mul(d, d))
	init := s.Initializer("init")
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	session := must[*tw.Session](t)(g.NewSession("threads=1"))
	trainer := must[*tw.Trainer](t)(session.NewTrainer(tw.TrainerModel{Feeds: []tw.Output{x, y}, Inputs: 1, Loss: loss, Step: step,
		Metrics: []tw.Metric{metric}, Predictions: []tw.Output{z}}))
	must[[]*tw.Tensor](t)(session.Run(ctx, nil, nil, init))
	xs, ys := make([]float32, 200), make([]float32, 100)
	for i := range ys {
		xs[2*i], xs[2*i+1] = float32(i%7)/7, float32(i%5)/5
		ys[i] = 2*xs[2*i] - xs[2*i+1]
	}
	data := must[*tw.Iterator](t)(tw.Batches(tw.BatchOptions{Size: 10, Shuffle: true}, must[*tw.Tensor](t)(tw.NewTensor(xs, -1, 2)),
		must[*tw.Tensor](t)(tw.NewTensor(ys, -1, 1))))
	epochs := 0
	report := must[tw.FitReport](t)(trainer.Fit(ctx, data, tw.FitOptions{Epochs: 40, EpochEnd: func(p tw.Progress) (bool, error) {
		epochs++
		return epochs == 30, nil
	}}))
	values := must[map[string]float64](t)(trainer.Evaluate(ctx, data))
	if !report.Stopped || report.Steps != 300 || values["loss"] > 1e-3 || values["loss"]-values["square"] > 1e-6 {
		t.Fatal(report, values)
	}
	if p := must[[]*tw.Tensor](t)(trainer.Predict(ctx, data)); p[0].Shape()[0] != 100 {
		t.Fatal(p[0].Shape())
	}
	prefix := filepath.Join(t.TempDir(), "model")
	saver := must[*tw.Saver](t)(g.NewSaver())
	if err := saver.Save(session, prefix); err != nil {
		t.Fatal(err)
	}
	c := must[*tw.Checkpoint](t)(tw.OpenCheckpoint(prefix))
	kernel := must[[]float32](t)(tw.Values[float32](must[*tw.Tensor](t)(c.Read("layer/kernel"))))
	if len(c.Names()) < 2 || kernel[0] < 1.8 || kernel[0] > 2.2 {
		t.Fatal(c.Names(), kernel)
	}
	must[[]*tw.Tensor](t)(session.Run(ctx, nil, nil, init))
	if err := saver.Restore(session, prefix); err != nil {
		t.Fatal(err)
	}
	if again := must[map[string]float64](t)(trainer.Evaluate(ctx, data)); again["loss"] != values["loss"] {
		t.Fatal(again, values)
	}
	bytes := must[[]byte](t)(g.Export())
	if other := must[*tw.Graph](t)(tw.ImportGraph(bytes)); other.Len() != g.Len() {
		t.Fatal(other.Len(), g.Len())
	}
}

func TestDatasets(t *testing.T) {
	g := must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("")
	d := s.Range(0, 10, 1).Filter(func(s *tw.Scope, e []tw.Output) tw.Output {
		return s.Op("Greater", e[0], s.Scalar(tw.Int64, 3))
	}).Map(func(s *tw.Scope, e []tw.Output) []tw.Output {
		return []tw.Output{s.Mul(e[0], e[0])}
	}).Batch(4)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	batches := must[*tw.Iterator](t)(d.Iterator())
	defer batches.Close()
	if got := must[[]*tw.Tensor](t)(batches.Next()); got[0].String() != "[16, 25, 36, 49]" {
		t.Fatal(got[0])
	}
	if got := must[[]*tw.Tensor](t)(batches.Next()); got[0].String() != "[64, 81]" {
		t.Fatal(got[0])
	}
	if _, err := batches.Next(); err != io.EOF {
		t.Fatal(err)
	}
}

func TestModelFile(t *testing.T) {
	path := os.Getenv("THALWEG_TEST_MODEL")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no model file: ", path)
	}
	m := must[*tw.Model](t)(tw.Load(path, tw.LoadOptions{Session: []string{"threads=1"}}))
	defer m.Close()
	x := must[*tw.Tensor](t)(tw.Zeros[float32](3, 4, 5))
	data, _ := tw.Data[float32](x)
	for i := range data {
		data[i] = float32(i)
	}
	out := must[map[string]*tw.Tensor](t)(m.Run(ctx, map[string]*tw.Tensor{"x": x, "y": x}))
	if sum := must[[]float32](t)(tw.Values[float32](out["sum"])); sum[59] != 118 {
		t.Fatal(sum)
	}
	if _, err := m.Run(ctx, map[string]*tw.Tensor{"x": x, "z": x}); !errors.Is(err, tw.InvalidArgument) || !strings.Contains(err.Error(), "'z'") {
		t.Fatal(err)
	}
}

// counting is a graph with a variable v of 3 and what its reset needs.
func counting(t *testing.T) (g *tw.Graph, init *tw.Operation, read tw.Output) {
	t.Helper()
	g = must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("")
	v := s.Variable("v", s.Scalar(tw.Float, 3))
	read, init = s.Read(v), s.Initializer("init")
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	return g, init, read
}

// resets initialises the variable, empties the container with the function, and looks at what is left.
func resets(t *testing.T, session *tw.Session, init *tw.Operation, read tw.Output, reset func() (uint64, error)) {
	t.Helper()
	for i := 0; i < 2; i++ {
		must[[]*tw.Tensor](t)(session.Run(ctx, nil, nil, init))
		if got := must[float32](t)(tw.Item[float32](must[[]*tw.Tensor](t)(session.Run(ctx, nil, []tw.Output{read}))[0])); got != 3 {
			t.Fatal(got)
		}
		if n := must[uint64](t)(reset()); n != 1 {
			t.Fatal(n)
		}
		if _, err := session.Run(ctx, nil, []tw.Output{read}); !errors.Is(err, tw.FailedPrecondition) {
			t.Fatal(err)
		}
	}
}

func TestResets(t *testing.T) {
	g, init, read := counting(t)
	session := must[*tw.Session](t)(g.NewSession())
	resets(t, session, init, read, func() (uint64, error) { return session.Reset("") })
	named := must[*tw.Session](t)(g.NewSession("container=reset"))
	resets(t, named, init, read, func() (uint64, error) { return session.Reset("reset") })
	resets(t, named, init, read, func() (uint64, error) { return tw.ResetContainer("reset") })
	if n := must[uint64](t)(tw.ResetContainer("nothing")); n != 0 {
		t.Fatal(n)
	}
	if _, err := tw.ResetContainer("<graph"); !errors.Is(err, tw.InvalidArgument) {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	server := must[*tw.Server](t)(tw.NewServer(`{"worker": ["grpc:127.0.0.1:0"]}`, "worker", 0, "insecure=true"))
	defer server.Close()
	if err := server.Start(); err != nil {
		if errors.Is(err, tw.NotFound) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	address := must[string](t)(server.Address())
	g, _, x, y := doubling(t)
	session := must[*tw.Session](t)(g.NewSession("target="+address, "insecure=true"))
	out := must[[]*tw.Tensor](t)(session.Run(ctx, tw.Feeds{x: must[*tw.Tensor](t)(tw.Scalar(float32(4)))}, []tw.Output{y}))
	if got := must[float32](t)(tw.Item[float32](out[0])); got != 8 {
		t.Fatal(got)
	}
	session.Close()
	g, init, read := counting(t)
	session = must[*tw.Session](t)(g.NewSession("target="+address, "insecure=true", "container=reset"))
	resets(t, session, init, read, func() (uint64, error) { return tw.ResetCluster(address, "reset", time.Minute, "insecure=true") })
	session.Close()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := server.Join(time.Minute); err != nil {
		t.Fatal(err)
	}
}

// waiting is a session with an operation that waits at an empty queue.
func waiting(t *testing.T) (*tw.Session, tw.Output) {
	t.Helper()
	g := must[*tw.Graph](t)(tw.NewGraph())
	s := g.Scope("")
	b := s.Begin("FIFOQueueV2", tw.OpOptions{})
	b.SetTypes("component_types", []tw.DType{tw.Float})
	queue := b.End().Output(0)
	b = s.Begin("QueueDequeueV2", tw.OpOptions{Name: "get"})
	b.Input(queue)
	b.SetTypes("component_types", []tw.DType{tw.Float})
	get := b.End().Output(0)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	return must[*tw.Session](t)(g.NewSession()), get
}

func TestContexts(t *testing.T) {
	session, get := waiting(t)
	cancelled, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	go func() {
		_, err := session.Run(cancelled, nil, []tw.Output{get})
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, tw.Cancelled) {
		t.Fatal(err)
	}
	late, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	if _, err := session.Run(late, nil, []tw.Output{get}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tw.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestCallbacksThatFail(t *testing.T) {
	g, session, x, y := doubling(t)
	s := g.Scope("more")
	v := s.Variable("v", s.Scalar(tw.Float, 1))
	loss := s.Mul(y, s.Read(v))
	step, init := s.Minimize(loss, tw.SGD{}), s.Initializer("init")
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	trainer := must[*tw.Trainer](t)(session.NewTrainer(tw.TrainerModel{Feeds: []tw.Output{x}, Loss: loss, Step: step}))
	must[[]*tw.Tensor](t)(session.Run(ctx, nil, nil, init))
	one := must[*tw.Tensor](t)(tw.Scalar(float32(1)))
	own := errors.New("mine")
	n := 0
	endless := func() ([]*tw.Tensor, error) {
		runtime.GC()
		return []*tw.Tensor{one}, nil
	}
	data := must[*tw.Iterator](t)(tw.NewIterator(1, endless, nil))
	if _, err := trainer.Fit(ctx, data, tw.FitOptions{AfterStep: func(tw.Progress) (bool, error) { n++; return false, own }}); err != own || n != 1 {
		t.Fatal(err, n)
	}
	if _, err := trainer.Fit(ctx, data, tw.FitOptions{AfterStep: func(tw.Progress) (bool, error) { panic("out of cheese") }}); err == nil ||
		!strings.Contains(err.Error(), "out of cheese") {
		t.Fatal(err)
	}
	for what, next := range map[string]func() ([]*tw.Tensor, error){
		"out of cheese": func() ([]*tw.Tensor, error) { panic("out of cheese") },
		"mine":          func() ([]*tw.Tensor, error) { return nil, own },
		"2 tensors":     func() ([]*tw.Tensor, error) { return []*tw.Tensor{one, one}, nil },
		"is nil":        func() ([]*tw.Tensor, error) { return []*tw.Tensor{nil}, nil },
	} {
		bad := must[*tw.Iterator](t)(tw.NewIterator(1, next, nil))
		if _, err := trainer.Fit(ctx, bad, tw.FitOptions{}); err == nil || !strings.Contains(err.Error(), what) {
			t.Fatal(what, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	if _, err := trainer.Fit(cancelled, data, tw.FitOptions{AfterStep: func(p tw.Progress) (bool, error) {
		if p.Batch > 3 {
			cancel()
		}
		return false, nil
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	cancel()
}

// Each call is wrong; each must be an *Error with a code, and nothing may crash.
func TestMisuse(t *testing.T) {
	g, session, x, y := doubling(t)
	other := must[*tw.Graph](t)(tw.NewGraph())
	one, text := must[*tw.Tensor](t)(tw.Scalar(float32(1))), must[*tw.Tensor](t)(tw.Strings([]string{"a"}))
	ints := must[*tw.Tensor](t)(tw.NewTensor([]int32{1, 2}))
	closed, closedGraph, closedSession := must[*tw.Tensor](t)(tw.Scalar(float32(1))), must[*tw.Graph](t)(tw.NewGraph()), must[*tw.Session](t)(g.NewSession())
	step := must[*tw.Callable](t)(session.Callable([]tw.Output{x}, []tw.Output{y}))
	closedStep := must[*tw.Callable](t)(session.Callable([]tw.Output{x}, []tw.Output{y}))
	orphan := must[*tw.Callable](t)(closedSession.Callable([]tw.Output{x}, []tw.Output{y}))
	data := must[*tw.Iterator](t)(tw.Batches(tw.BatchOptions{}, ints))
	closedData := must[*tw.Iterator](t)(tw.Batches(tw.BatchOptions{}, ints))
	operation := must[*tw.Operation](t)(g.Operation("y"))
	closedSaver := func() *tw.Saver {
		s := other.Scope("")
		s.Variable("v", s.Scalar(tw.Float, 1))
		_ = s.Finish()
		return must[*tw.Saver](t)(other.NewSaver())
	}()
	for i := 0; i < 2; i++ { // closing twice is fine
		closed.Close()
		closedGraph.Close()
		closedSession.Close()
		closedStep.Close()
		closedData.Close()
		closedSaver.Close()
	}
	scoped := func(f func(*tw.Scope)) error {
		s := g.Scope("wrong")
		f(s)
		return s.Finish()
	}
	finished := g.Scope("")
	_ = finished.Finish()
	err1 := func(_ interface{}, err error) error { return err }
	var nobody *tw.Tensor
	calls := []func() error{
		func() error { return err1(tw.NewTensor([]float32{1, 2, 3}, 2, 2)) },
		func() error { return err1(tw.NewTensor([]float32{1, 2, 3}, -1, -1)) },
		func() error { return err1(tw.NewTensor([]float32{1, 2, 3}, -2)) },
		func() error { return err1(tw.NewTensor([]float32{1, 2, 3}, 1<<62, 1<<62)) },
		func() error { return err1(tw.NewTensor([]float32{}, 0, -1)) },
		func() error { return err1(tw.Zeros[float64](1<<40, 1<<40)) },
		func() error { return err1(tw.Zeros[float64](-1)) },
		func() error { return err1(tw.Strings([]string{"a"}, 2)) },
		func() error { return err1(tw.Data[float64](one)) },
		func() error { return err1(tw.Data[float32](text)) },
		func() error { return err1(tw.Values[int32](closed)) },
		func() error { return err1(tw.Data[int32](nobody)) },
		func() error { return err1(tw.Item[int32](ints)) },
		func() error { return err1(ints.StringValues()) },
		func() error { return err1(ints.Reshape(3)) },
		func() error { return err1(closed.Reshape(1)) },
		func() error { return err1(nobody.Host()) },
		func() error { return err1(session.Run(ctx, tw.Feeds{x: closed}, []tw.Output{y})) },
		func() error { return err1(session.Run(ctx, tw.Feeds{x: nil}, []tw.Output{y})) },
		func() error { return err1(session.Run(ctx, tw.Feeds{x: text}, []tw.Output{y})) },
		func() error { return err1(session.Run(ctx, tw.Feeds{x: ints}, []tw.Output{y})) },
		func() error { return err1(session.Run(ctx, nil, []tw.Output{y})) },
		func() error { return err1(session.Run(ctx, nil, []tw.Output{0})) },
		func() error { return err1(session.Run(ctx, nil, []tw.Output{12345678901234567890})) },
		func() error { return err1(session.Run(ctx, nil, nil, nil)) },
		func() error { return err1(session.Run(nil, nil, []tw.Output{y})) },
		func() error { return err1(closedSession.Run(ctx, nil, nil)) },
		func() error { return err1((*tw.Session)(nil).Run(ctx, nil, nil)) },
		func() error { return err1(step.Run(ctx)) },
		func() error { return err1(step.Run(ctx, one, one)) },
		func() error { return err1(step.Run(ctx, nil)) },
		func() error { return err1(step.Run(ctx, text)) },
		func() error { return err1(closedStep.Run(ctx, one)) },
		func() error { return err1(orphan.Run(ctx, one)) },
		func() error { return err1((*tw.Callable)(nil).Run(ctx)) },
		func() error { return err1(session.Callable([]tw.Output{x, x}, []tw.Output{y})) },
		func() error { return err1(g.NewSession("no_such_option=1")) },
		func() error { return err1(g.NewSession("threads=many")) },
		func() error { return err1(closedGraph.NewSession()) },
		func() error { return err1(closedGraph.Export()) },
		func() error { return closedGraph.Scope("x").Finish() },
		func() error { return finished.Finish() },
		func() error { return err1(g.Operation("nothing")) },
		func() error { return err1(g.Output("y:7")) },
		func() error { return err1(g.Output("y\x00z:")) },
		func() error { _, _, err := g.Describe(0); return err },
		func() error { return err1(tw.ImportGraph([]byte("no graph"))) },
		func() error { return scoped(func(s *tw.Scope) { s.Op("NoSuchOp") }) },
		func() error { return scoped(func(s *tw.Scope) { s.Op("Add", x) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Add(0, 0) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Constant(closed) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Constant(nil) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Scalar(tw.DType(999), 1) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Dense("d", x, 3, tw.Relu) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Minimize(y, tw.SGD{}) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Apply(nil, nil, nil) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Group("g", nil) }) },
		func() error { return scoped(func(s *tw.Scope) { s.Begin("Add", tw.OpOptions{Name: "y"}).End() }) },
		func() error {
			return scoped(func(s *tw.Scope) { s.Range(0, 3, 1).Map(func(*tw.Scope, []tw.Output) []tw.Output { return nil }) })
		},
		func() error { return err1(tw.Batches(tw.BatchOptions{}, one)) },
		func() error { return err1(tw.Batches(tw.BatchOptions{})) },
		func() error { return err1(tw.Batches(tw.BatchOptions{Size: -1}, ints)) },
		func() error { return err1(tw.NewIterator(0, nil, nil)) },
		func() error { return err1(closedData.Next()) },
		func() error { return closedData.Reset(0) },
		func() error { return data.Reset(-1) },
		func() error { return err1(tw.Dataset{}.Iterator()) },
		func() error { return err1(session.NewTrainer(tw.TrainerModel{})) },
		func() error {
			return err1(session.NewTrainer(tw.TrainerModel{Feeds: []tw.Output{x}, Metrics: []tw.Metric{{Name: "m"}}}))
		},
		func() error { return err1(closedSession.NewTrainer(tw.TrainerModel{})) },
		func() error { return err1((*tw.Trainer)(nil).Fit(ctx, data, tw.FitOptions{})) },
		func() error { return closedSaver.Save(session, "x") },
		func() error { return (*tw.Saver)(nil).Restore(session, "x") },
		func() error { return err1(tw.OpenCheckpoint("/no/such/place")) },
		func() error { return tw.WriteCheckpoint("/no/such/place", map[string]*tw.Tensor{"a": closed}) },
		func() error { return err1(tw.Load("/no/such/file.onnx")) },
		func() error { return err1((*tw.Model)(nil).Run(ctx, nil)) },
		func() error { return err1(tw.NewServer("no json", "", 0)) },
		func() error { return (*tw.Server)(nil).Start() },
		func() error { return err1((*tw.Session)(nil).Reset("")) },
		func() error { return err1(tw.ResetCluster("", "", 0)) },
		func() error { return tw.LoadPlugin("/no/such/plugin.so") },
	}
	for i, call := range calls {
		err := call()
		var e *tw.Error
		if !errors.As(err, &e) || e.Code == 0 || e.Message == "" {
			t.Errorf("call %d: %v", i, err)
		}
		if i%10 == 0 {
			runtime.GC()
		}
	}
	if len(calls) < 50 {
		t.Fatal(len(calls))
	}
	if operation.Name() != "y" || nobody.Len() != 0 || nobody.Shape() != nil || closed.DType() != 0 {
		t.Fatal("looking at what is closed gives nothing")
	}
	nobody.Close()
	g.Close()
	if operation.Name() != "" {
		t.Fatal("an operation of a closed graph has no name")
	}
	if out, err := step.Run(ctx, one); err != nil || out[0].Len() != 1 { // sessions go on
		t.Fatal(err)
	}
}

func TestThreads(t *testing.T) {
	_, session, x, y := doubling(t)
	step := must[*tw.Callable](t)(session.Callable([]tw.Output{x}, []tw.Output{y}))
	var wait sync.WaitGroup
	for i := 0; i < 8; i++ {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			for k := 0; k < 200; k++ {
				in, err := tw.Scalar(float32(i*1000 + k))
				if err != nil {
					t.Error(err)
					return
				}
				out, err := step.Run(ctx, in)
				if err != nil {
					if !errors.Is(err, tw.FailedPrecondition) {
						t.Error(err)
					}
					return // closed by another goroutine
				}
				if got, err := tw.Item[float32](out[0]); err != nil || got != 2*float32(i*1000+k) {
					t.Error(got, err)
				}
				if i == 7 && k == 150 {
					session.Close() // while the others run
				}
			}
		}(i)
	}
	wait.Wait()
}

func resident(t *testing.T) int {
	text := must[[]byte](t)(os.ReadFile("/proc/self/statm"))
	var size, pages int
	fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize()
}

func TestNothingLeaks(t *testing.T) {
	_, session, x, y := doubling(t)
	big := make([]float32, 1<<16)
	round := func() {
		for i := 0; i < 50; i++ { // nobody closes anything
			tensor := must[*tw.Tensor](t)(tw.NewTensor(big))
			_ = must[*tw.Tensor](t)(tensor.Reshape(2, -1))
			must[[]*tw.Tensor](t)(session.Run(ctx, tw.Feeds{x: must[*tw.Tensor](t)(tw.Scalar(float32(1)))}, []tw.Output{y}))
			g := must[*tw.Graph](t)(tw.NewGraph())
			g.Scope("").Scalar(tw.Float, 1) // never finished
			_, _ = g.Operation("nothing")
		}
		for i := 0; i < 3; i++ {
			runtime.GC()
			time.Sleep(time.Millisecond) // lets the finalizers run, which nothing waits for
		}
	}
	round()
	round()
	before := resident(t)
	for i := 0; i < 20; i++ { // 1,000 tensors of 256 KiB
		round()
	}
	if grown := resident(t) - before; grown > 32<<20 {
		t.Fatalf("%d MiB more", grown>>20)
	}
}

func TestCost(t *testing.T) {
	if os.Getenv("THALWEG_TEST_COST") == "" {
		t.Skip("is run alone")
	}
	_, session, x, y := doubling(t)
	step := must[*tw.Callable](t)(session.Callable([]tw.Output{x}, []tw.Output{y}))
	one := must[*tw.Tensor](t)(tw.Scalar(float32(1)))
	rank, run := time.Hour, time.Hour
	least := func(best *time.Duration, call func()) {
		began := time.Now()
		for i := 0; i < 5000; i++ {
			call()
		}
		if took := time.Since(began) / 5000; took < *best {
			*best = took
		}
	}
	for r := 0; r < 40; r++ {
		least(&rank, func() { one.Len() })
		least(&run, func() {
			out, _ := step.Run(ctx, one)
			out[0].Close()
		})
	}
	fmt.Printf("cost rank %d run %d\n", rank.Nanoseconds(), run.Nanoseconds())
}
