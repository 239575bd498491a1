package thalweg

import (
	"runtime"
	"unsafe"

	"thalweg.org/go/low"
)

// Graph holds operations. Any goroutine may use it.
type Graph struct{ h *handle[low.Graph] }

func (g *Graph) use() (*low.Graph, error) {
	if g == nil {
		return nil, failure(InvalidArgument, "the graph is nil; make one with NewGraph")
	}
	return g.h.use()
}

// NewGraph makes an empty graph.
func NewGraph() (*Graph, error) {
	var object *low.Graph
	if err := check(low.GraphCreate(nil, &object)); err != nil {
		return nil, err
	}
	return &Graph{newHandle(object, "graph", low.GraphDestroy)}, nil
}

// ImportGraph makes a graph of a serialised GraphDef.
func ImportGraph(bytes []byte) (*Graph, error) {
	g, err := NewGraph()
	if err != nil {
		return nil, err
	}
	if err := check(low.GraphImport(g.h.object, unsafe.Pointer(first(bytes)), uint64(len(bytes)), nil)); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close ends the graph; its sessions go on.
func (g *Graph) Close() {
	if g != nil {
		g.h.close()
	}
}

// Export returns the graph as a serialised GraphDef.
func (g *Graph) Export() ([]byte, error) {
	object, err := g.use()
	if err != nil {
		return nil, err
	}
	defer g.h.leave()
	var out *low.Buffer
	err = check(low.GraphExport(object, &out))
	return bytesOf(out), err
}

// Len returns the number of operations.
func (g *Graph) Len() int {
	object, err := g.use()
	if err != nil {
		return 0
	}
	defer g.h.leave()
	return int(low.GraphCount(object))
}

// Output is a value of a graph. 0 is none: what a Scope returns after a failure.
type Output uint64

// Operation is one operation of a graph.
type Operation struct {
	graph  *Graph
	object *low.Operation
}

// use returns the operation for a call, and the function that ends the use.
func (o *Operation) use() (*low.Operation, func(), error) {
	if o == nil || o.object == nil {
		return nil, nil, failure(InvalidArgument, "an operation is nil; what made it has failed")
	}
	if _, err := o.graph.use(); err != nil {
		return nil, nil, err
	}
	return o.object, o.graph.h.leave, nil
}

// Name returns the operation's name, "" for nil.
func (o *Operation) Name() string {
	object, leave, err := o.use()
	if err != nil {
		return ""
	}
	defer leave()
	return low.Text(low.OperationName(object))
}

// Type returns the name of the op.
func (o *Operation) Type() string {
	object, leave, err := o.use()
	if err != nil {
		return ""
	}
	defer leave()
	return low.Text(low.OperationType(object))
}

// Output returns value i; 0 if there is none.
func (o *Operation) Output(i int) Output {
	object, leave, err := o.use()
	if err != nil || i < 0 {
		return 0
	}
	defer leave()
	return Output(low.OperationOutput(object, uint32(i)))
}

// Outputs returns all values.
func (o *Operation) Outputs() []Output {
	object, leave, err := o.use()
	if err != nil {
		return nil
	}
	defer leave()
	all := make([]Output, low.OperationOutputCount(object))
	for i := range all {
		all[i] = Output(low.OperationOutput(object, uint32(i)))
	}
	return all
}

// Operation finds an operation by its name.
func (g *Graph) Operation(name string) (*Operation, error) {
	object, err := g.use()
	if err != nil {
		return nil, err
	}
	defer g.h.leave()
	var out *low.Operation
	if err := check(low.GraphFind(object, text(name), &out)); err != nil {
		return nil, err
	}
	return &Operation{g, out}, nil
}

// Output finds a value by its name: "x" or "x:1".
func (g *Graph) Output(name string) (Output, error) {
	object, err := g.use()
	if err != nil {
		return 0, err
	}
	defer g.h.leave()
	var out uint64
	err = check(low.GraphFindOutput(object, text(name), &out))
	return Output(out), err
}

// Describe returns the element type and the shape of a value.
func (g *Graph) Describe(value Output) (DType, Shape, error) {
	object, err := g.use()
	if err != nil {
		return 0, nil, err
	}
	defer g.h.leave()
	return describe(object, value)
}

func describe(graph *low.Graph, value Output) (DType, Shape, error) {
	var dtype uint32
	var shape low.Shape
	err := check(low.GraphDescribe(graph, uint64(value), &dtype, &shape))
	return DType(dtype), shapeOf(&shape), err
}

func shapeOf(s *low.Shape) Shape {
	if s == nil || s.Rank < 0 {
		return nil
	}
	return append(Shape{}, unsafe.Slice(s.Dims, s.Rank)...)
}

// Variable is a variable of a graph: its handle and its name in checkpoints.
type Variable struct {
	Handle Output
	Name   string
	DType  DType
	Shape  Shape
}

// Variables lists the variables of the graph, in the order of adding.
func (g *Graph) Variables() ([]Variable, error) {
	object, err := g.use()
	if err != nil {
		return nil, err
	}
	defer g.h.leave()
	var list *low.Variables
	if err := check(low.VariablesCreate(object, &list)); err != nil {
		return nil, err
	}
	defer low.VariablesDestroy(list)
	all := make([]Variable, low.VariablesCount(list))
	for i := range all {
		var dtype uint32
		var shape low.Shape
		if err := check(low.VariablesDescribe(list, uint32(i), &dtype, &shape)); err != nil {
			return nil, err
		}
		all[i] = Variable{Output(low.VariablesHandle(list, uint32(i))), low.Text(low.VariablesName(list, uint32(i))), DType(dtype), shapeOf(&shape)}
	}
	return all, nil
}

// Scope adds operations to a graph. It keeps its first failure: calls after it do nothing and return 0, so that only Finish, or Err, has to
// be asked. One goroutine at a time.
type Scope struct {
	graph  *Graph
	object *low.Scope
	inner  bool // of a function of elements, with which it ends
}

// Scope begins to add operations, whose names have the prefix; "" for none.
func (g *Graph) Scope(prefix string) *Scope {
	object, err := g.use()
	if err != nil {
		return &Scope{graph: g}
	}
	s := &Scope{graph: g, object: low.ScopeCreate(object, optionalText(prefix))}
	runtime.SetFinalizer(s, func(s *Scope) { _ = s.Finish() })
	return s
}

// Finish ends the scope and returns its first failure.
func (s *Scope) Finish() error {
	if s == nil || s.object == nil {
		return failure(FailedPrecondition, "the scope is finished, or its graph is closed")
	}
	if s.inner {
		return failure(FailedPrecondition, "the scope of a function ends with the function")
	}
	runtime.SetFinalizer(s, nil)
	err := check(low.ScopeFinish(s.object))
	s.object = nil
	s.graph.h.leave()
	return err
}

// Graph returns the scope's graph.
func (s *Scope) Graph() *Graph { return s.graph }

// Err tells whether the scope has failed; Finish has the whole error.
func (s *Scope) Err() error {
	if s == nil || s.object == nil {
		return failure(FailedPrecondition, "the scope is finished")
	}
	defer runtime.KeepAlive(s)
	if code := Code(low.ScopeCode(s.object)); code != 0 {
		return code
	}
	return nil
}

// Fail reports a failure of a function that builds on scopes.
func (s *Scope) Fail(err error) {
	if s != nil && s.object != nil && err != nil {
		defer runtime.KeepAlive(s)
		low.ScopeFail(s.object, low.Failure(err))
	}
}

// SetDevice sets the device of the operations that follow, such as "CPU:0"; "" for any.
func (s *Scope) SetDevice(device string) {
	if s.at() {
		defer runtime.KeepAlive(s)
		low.ScopeSetDevice(s.object, text(device))
	}
}

// at records the line of the program for the next operations; false if the scope is finished.
func (s *Scope) at() bool {
	if s == nil || s.object == nil {
		return false
	}
	low.ScopeSetPlace(s.object, text(place()))
	runtime.KeepAlive(s) // a finalizer ends what nobody refers to, even during a call
	return true
}

func (s *Scope) operation(object *low.Operation) *Operation {
	if object == nil {
		return nil
	}
	return &Operation{s.graph, object}
}

// OpOptions are options of every op.
type OpOptions struct {
	Name   string       // of the operation; "": made from the op's
	Device string       // "": any
	After  []*Operation // operations that end before it begins
}

// Builder describes one operation; package ops has a function that uses one for each op.
type Builder struct {
	scope  *Scope
	object *low.Op
}

// Begin begins an operation of an op.
func (s *Scope) Begin(op string, options OpOptions) *Builder {
	if !s.at() {
		return &Builder{}
	}
	defer runtime.KeepAlive(s)
	b := &Builder{s, low.ScopeBegin(s.object, text(op), optionalText(options.Name))}
	if options.Device != "" {
		low.OpSetDevice(b.object, text(options.Device))
	}
	for _, before := range options.After {
		object, leave, err := before.use()
		if err != nil {
			s.Fail(err)
			continue
		}
		low.OpAddControl(b.object, object)
		leave()
	}
	return b
}

// Input adds an input.
func (b *Builder) Input(value Output) { low.OpAddInput(b.object, uint64(value)) }

// Inputs adds the values of a list.
func (b *Builder) Inputs(values ...Output) {
	low.OpAddInputs(b.object, (*uint64)(first(values)), uint32(len(values)))
}

// SetInt sets an attribute, as do the functions below.
func (b *Builder) SetInt(name string, v int64)     { low.OpSetInt(b.object, text(name), v) }
func (b *Builder) SetFloat(name string, v float64) { low.OpSetFloat(b.object, text(name), v) }
func (b *Builder) SetBool(name string, v bool)     { low.OpSetBool(b.object, text(name), uint8(flag(v))) }
func (b *Builder) SetString(name string, v string) {
	low.OpSetString(b.object, text(name), raw(v), uint64(len(v)))
}
func (b *Builder) SetType(name string, v DType)  { low.OpSetType(b.object, text(name), uint32(v)) }
func (b *Builder) SetFunc(name string, v string) { low.OpSetFunc(b.object, text(name), text(v)) }
func (b *Builder) SetShape(name string, v Shape) {
	rank := int32(len(v))
	if v == nil {
		rank = -1
	}
	low.OpSetShape(b.object, text(name), first(v), rank)
}
func (b *Builder) SetTensor(name string, v *Tensor) {
	object, err := v.use()
	if err != nil {
		b.scope.Fail(err)
		return
	}
	low.OpSetTensor(b.object, text(name), object)
	v.h.leave()
}
func (b *Builder) SetInts(name string, v []int64) {
	low.OpSetInts(b.object, text(name), first(v), uint32(len(v)))
}
func (b *Builder) SetFloats(name string, v []float64) {
	low.OpSetFloats(b.object, text(name), first(v), uint32(len(v)))
}
func (b *Builder) SetBools(name string, v []bool) {
	bytes := make([]uint8, len(v))
	for i, yes := range v {
		bytes[i] = uint8(flag(yes))
	}
	low.OpSetBools(b.object, text(name), first(bytes), uint32(len(v)))
}
func (b *Builder) SetTypes(name string, v []DType) {
	low.OpSetTypes(b.object, text(name), (*uint32)(first(v)), uint32(len(v)))
}
func (b *Builder) SetStrings(name string, v []string) { b.strings(name, v, low.OpSetStrings) }
func (b *Builder) SetFuncs(name string, v []string)   { b.strings(name, v, low.OpSetFuncs) }
func (b *Builder) strings(name string, v []string, set func(*low.Op, *byte, *low.String, uint32)) {
	var a arena
	defer a.free()
	all := make([]low.String, len(v))
	for i, s := range v {
		all[i] = low.String{Data: a.raw(s), Size: uint64(len(s))}
	}
	set(b.object, text(name), list(&a, all), uint32(len(v)))
}
func (b *Builder) SetShapes(name string, v []Shape) {
	var a arena
	defer a.free()
	low.OpSetShapes(b.object, text(name), list(&a, a.shapes(v)), uint32(len(v)))
}
func (b *Builder) SetTensors(name string, v []*Tensor) {
	objects, leave, err := useAll(v)
	if err != nil {
		b.scope.Fail(err)
		return
	}
	defer leave()
	low.OpSetTensors(b.object, text(name), first(objects), uint32(len(v)))
}

func (a *arena) shapes(all []Shape) []low.Shape {
	out := make([]low.Shape, len(all))
	for i, s := range all {
		out[i] = low.Shape{Dims: list(a, s), Rank: int32(len(s))}
		if s == nil {
			out[i].Rank = -1
		}
	}
	return out
}

// End adds the operation; nil after a failure, which the scope keeps.
func (b *Builder) End() *Operation {
	if b.scope == nil || b.scope.object == nil {
		return nil
	}
	defer runtime.KeepAlive(b)
	return b.scope.operation(low.ScopeEndOperation(b.scope.object, b.object))
}

// At returns value i of a list, or 0.
func At(values []Output, i int) Output {
	if i < 0 || i >= len(values) {
		return 0
	}
	return values[i]
}

// Middle returns the values of a list but for some at its ends.
func Middle(values []Output, before, after int) []Output {
	if len(values) < before+after {
		return nil
	}
	return values[before : len(values)-after]
}

// Ptr returns the address of a value, for options whose default is not Go's zero.
func Ptr[T any](value T) *T { return &value }

// Op adds an operation with default attributes and returns its first value.
func (s *Scope) Op(op string, inputs ...Output) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.ScopeOp(s.object, text(op), (*uint64)(first(inputs)), uint32(len(inputs))))
}

// Placeholder adds a value that each run feeds. dims: -1 is an unknown size.
func (s *Scope) Placeholder(name string, dtype DType, dims ...int64) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.ScopePlaceholder(s.object, text(name), uint32(dtype), first(dims), int32(len(dims))))
}

// Constant adds a constant.
func (s *Scope) Constant(value *Tensor) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	object, err := value.use()
	if err != nil {
		s.Fail(err)
		return 0
	}
	defer value.h.leave()
	return Output(low.ScopeConstant(s.object, object))
}

// Scalar adds a constant number of a type.
func (s *Scope) Scalar(dtype DType, value float64) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.ScopeScalar(s.object, uint32(dtype), value))
}

// Ints adds a constant vector of int32: sizes, axes.
func (s *Scope) Ints(values ...int32) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.ScopeInts(s.object, first(values), uint32(len(values))))
}

// Name gives a value a name, by which it can be fed, fetched and found.
func (s *Scope) Name(name string, value Output) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.ScopeName(s.object, text(name), uint64(value)))
}

// Group adds an operation that runs others.
func (s *Scope) Group(name string, operations ...*Operation) *Operation {
	if !s.at() {
		return nil
	}
	defer runtime.KeepAlive(s)
	objects := make([]*low.Operation, len(operations))
	for i, o := range operations {
		object, leave, err := o.use()
		if err != nil {
			s.Fail(err)
			return nil
		}
		defer leave()
		objects[i] = object
	}
	return s.operation(low.ScopeGroup(s.object, optionalText(name), first(objects), uint32(len(objects))))
}

// Variable adds a variable that Initializer sets to a value.
func (s *Scope) Variable(name string, initial Output) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.VariableCreate(s.object, text(name), uint64(initial)))
}

// Read adds a read of a variable.
func (s *Scope) Read(variable Output) Output {
	if !s.at() {
		return 0
	}
	defer runtime.KeepAlive(s)
	return Output(low.VariableRead(s.object, uint64(variable)))
}

// Assign adds an operation that sets a variable.
func (s *Scope) Assign(variable, value Output) *Operation {
	if !s.at() {
		return nil
	}
	defer runtime.KeepAlive(s)
	return s.operation(low.VariableAssign(s.object, uint64(variable), uint64(value)))
}

// Initializer adds the operation that sets all variables that the graph has now to their first values.
func (s *Scope) Initializer(name string) *Operation {
	if !s.at() {
		return nil
	}
	defer runtime.KeepAlive(s)
	return s.operation(low.VariableInitializer(s.object, text(name)))
}

// The formulas that most programs need; package ops has the rest.

// Add adds a + b, as Sub, Mul and Div do for their operators.
func (s *Scope) Add(a, b Output) Output { return s.Op("Add", a, b) }
func (s *Scope) Sub(a, b Output) Output { return s.Op("Sub", a, b) }
func (s *Scope) Mul(a, b Output) Output { return s.Op("Mul", a, b) }
func (s *Scope) Div(a, b Output) Output { return s.Op("RealDiv", a, b) }

// MatMul is the product of two matrices.
func (s *Scope) MatMul(a, b Output) Output { return s.Op("MatMul", a, b) }

// Reshape gives a value other sizes, of which one may be -1.
func (s *Scope) Reshape(x Output, dims ...int32) Output { return s.Op("Reshape", x, s.Ints(dims...)) }

// Mean is the mean of all elements.
func (s *Scope) Mean(x Output) Output { return s.Op("Mean", x, s.axes(x)) }

// Sum is the sum of all elements.
func (s *Scope) Sum(x Output) Output { return s.Op("Sum", x, s.axes(x)) }

func (s *Scope) axes(x Output) Output {
	var axes []int32
	if s != nil && s.object != nil && x != 0 {
		if graph := low.ScopeGraph(s.object); graph != nil {
			_, shape, err := describe(graph, x)
			if err == nil && shape == nil {
				err = failure(InvalidArgument, "Mean and Sum need a value of a known number of axes")
			}
			s.Fail(err)
			for i := range shape {
				axes = append(axes, int32(i))
			}
		}
	}
	return s.Ints(axes...)
}
