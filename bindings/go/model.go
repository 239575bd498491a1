package thalweg

import (
	"context"
	"sort"
	"strings"
	"unsafe"

	"thalweg.org/go/low"
)

// Model is a model from a file: ONNX, a SavedModel, or what else a plugin imports. Any number of goroutines may run it at once.
type Model struct{ h *handle[low.Model] }

// Value is an input or output of a model.
type Value struct {
	Name     string
	DType    DType
	Shape    Shape
	Optional bool
}

// Signature is one way to run a model.
type Signature struct {
	Name            string
	Inputs, Outputs []Value
}

// LoadOptions are options of Load.
type LoadOptions struct {
	Importer string   // "": the surest one
	Options  []string // "key=value" for the importer, such as "tags=serve"
	Session  []string // "key=value" for the session, such as "threads=2"
}

// Load loads a model file or folder.
func Load(path string, options ...LoadOptions) (*Model, error) {
	var a arena
	defer a.free()
	o := record[low.ModelOptions](&a)
	o.Size = size(o)
	for _, given := range options {
		o.Importer = a.optional(given.Importer)
		o.Options, o.NOptions = a.texts(given.Options), uint32(len(given.Options))
		o.SessionOptions, o.NSessionOptions = a.texts(given.Session), uint32(len(given.Session))
	}
	var out *low.Model
	if err := check(low.ModelLoad(nil, text(path), o, &out)); err != nil {
		return nil, err
	}
	return &Model{newHandle(out, "model", low.ModelDestroy)}, nil
}

func (m *Model) use() (*low.Model, error) {
	if m == nil {
		return nil, failure(InvalidArgument, "the model is nil; load one with Load")
	}
	return m.h.use()
}

// Close ends the model.
func (m *Model) Close() {
	if m != nil {
		m.h.close()
	}
}

func valuesIn(first **low.ModelValue, n uint32) []Value {
	values := make([]Value, n)
	for i, v := range unsafe.Slice(first, n) {
		values[i] = Value{low.Text(v.Name), DType(v.Dtype), shapeOf(v.Shape), v.IsOptional != 0}
	}
	return values
}

func signatureOf(s *low.ModelSignature) Signature {
	return Signature{low.Text(s.Name), valuesIn(s.Inputs, s.NInputs), valuesIn(s.Outputs, s.NOutputs)}
}

// Signatures lists the ways to run the model.
func (m *Model) Signatures() ([]Signature, error) {
	object, err := m.use()
	if err != nil {
		return nil, err
	}
	defer m.h.leave()
	all := make([]Signature, low.ModelSignatureCount(object))
	for i := range all {
		all[i] = signatureOf(low.ModelSignatureAt(object, uint32(i)))
	}
	return all, nil
}

// Run runs the default signature by the names in the file.
func (m *Model) Run(ctx context.Context, inputs map[string]*Tensor) (map[string]*Tensor, error) {
	return m.RunSignature(ctx, "", inputs)
}

// RunSignature runs a signature; "" is the default one.
func (m *Model) RunSignature(ctx context.Context, name string, inputs map[string]*Tensor) (map[string]*Tensor, error) {
	object, err := m.use()
	if err != nil {
		return nil, err
	}
	defer m.h.leave()
	var found *low.ModelSignature
	if err := check(low.ModelFind(object, optionalText(name), &found)); err != nil {
		return nil, err
	}
	s := signatureOf(found)
	objects, used := make([]*low.Tensor, len(s.Inputs)), 0
	for i, input := range s.Inputs {
		if tensor, ok := inputs[input.Name]; ok {
			used++
			if objects[i], err = tensor.use(); err != nil {
				return nil, failure(CodeOf(err), "input '%s': %v", input.Name, err)
			}
			defer tensor.h.leave()
		}
	}
	if used != len(inputs) {
		return nil, unknownInput(s, inputs)
	}
	out := make([]*low.Tensor, len(s.Outputs))
	if err := cancelling(ctx, func(token *low.CancelToken) *low.Status {
		if token == nil {
			return low.ModelRun(object, optionalText(name), first(objects), nil, first(out))
		}
		return low.ModelRun(object, optionalText(name), first(objects), runOptions(token), first(out))
	}); err != nil {
		return nil, err
	}
	outputs := map[string]*Tensor{}
	for i, tensor := range tensorsOf(out) {
		outputs[s.Outputs[i].Name] = tensor
	}
	return outputs, nil
}

func unknownInput(s Signature, inputs map[string]*Tensor) error {
	known := map[string]bool{}
	var names, wrong []string
	for _, input := range s.Inputs {
		known[input.Name] = true
		names = append(names, input.Name)
	}
	for name := range inputs {
		if !known[name] {
			wrong = append(wrong, name)
		}
	}
	sort.Strings(wrong)
	return failure(InvalidArgument, "signature '%s' has no input '%s'; it has: %s", s.Name, strings.Join(wrong, "', '"), strings.Join(names, ", "))
}
