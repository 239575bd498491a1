package thalweg

import (
	"io"
	"runtime"
	"unsafe"

	"thalweg.org/go/low"
)

// Iterator gives the batches of a training loop. One goroutine at a time.
type Iterator struct {
	h    *handle[low.Iterator]
	n    int
	keep interface{} // what must live as long
}

func (i *Iterator) use() (*low.Iterator, error) {
	if i == nil {
		return nil, failure(InvalidArgument, "the iterator is nil")
	}
	return i.h.use()
}

// BatchOptions are options of Batches.
type BatchOptions struct {
	Size          int64 // rows of a batch; 0: 32
	Seed          int64
	Shuffle       bool
	DropRemainder bool
}

// Batches gives rows of tensors with equal first sizes.
func Batches(options BatchOptions, tensors ...*Tensor) (*Iterator, error) {
	objects, leave, err := useAll(tensors)
	if err != nil {
		return nil, err
	}
	defer leave()
	o := &low.BatchOptions{}
	low.BatchOptionsInit(o)
	if options.Size != 0 {
		o.Batch = options.Size
	}
	o.Seed, o.Shuffle, o.DropRemainder = options.Seed, flag(options.Shuffle), flag(options.DropRemainder)
	var out *low.Iterator
	if err := check(low.IteratorCreateBatches(first(objects), uint32(len(objects)), o, &out)); err != nil {
		return nil, err
	}
	return newIterator(out, nil), nil
}

func newIterator(object *low.Iterator, keep interface{}) *Iterator {
	return &Iterator{newHandle(object, "iterator", low.IteratorDestroy), int(object.NTensors), keep}
}

// source is the registered value of an iterator over functions of Go.
type source struct {
	width int
	next  func() ([]*Tensor, error)
	reset func(epoch int64) error
}

func (s *source) Width() int { return s.width }

func (s *source) Next(out []*low.Tensor) (bool, error) {
	tensors, err := s.next()
	if err == io.EOF {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if len(tensors) != s.width {
		return false, failure(InvalidArgument, "the iterator's function returned %d tensors, not %d", len(tensors), s.width)
	}
	objects, leave, err := useAll(tensors)
	if err != nil {
		return false, err
	}
	defer leave()
	for i, object := range objects {
		low.TensorRetain(object)
		out[i] = object
	}
	return false, nil
}

func (s *source) Reset(epoch int64) error { return s.reset(epoch) }

// NewIterator gives what a function returns: batches of n tensors, and io.EOF at the end of an epoch. reset begins an epoch; nil: there is
// only one. A panic in either is a failure of the loop that called it.
func NewIterator(n int, next func() ([]*Tensor, error), reset func(epoch int64) error) (*Iterator, error) {
	if n <= 0 || next == nil {
		return nil, failure(InvalidArgument, "an iterator needs a function, and batches of at least one tensor, not %d", n)
	}
	object := (*low.Iterator)(low.Alloc(unsafe.Sizeof(low.Iterator{})))
	user := low.Register(&source{n, next, reset})
	object.Size, object.NTensors, object.NBatches = size(object), uint32(n), -1
	object.User, object.Next = user, low.CallNext
	if reset != nil {
		object.Reset = low.CallReset
	}
	free := func(object *low.Iterator) {
		low.Unregister(user)
		low.Free(unsafe.Pointer(object))
	}
	return &Iterator{newHandle(object, "iterator", free), n, nil}, nil
}

// Next returns the next batch; io.EOF at the end of the epoch.
func (i *Iterator) Next() ([]*Tensor, error) {
	object, err := i.use()
	if err != nil {
		return nil, err
	}
	defer i.h.leave()
	out := make([]*low.Tensor, i.n)
	var end uint32
	if err := check(low.IteratorNext(object, first(out), &end)); err != nil {
		return nil, err
	}
	if end != 0 {
		return nil, io.EOF
	}
	return tensorsOf(out), nil
}

// Reset begins an epoch.
func (i *Iterator) Reset(epoch int64) error {
	object, err := i.use()
	if err != nil {
		return err
	}
	defer i.h.leave()
	return check(low.IteratorReset(object, epoch))
}

// Close ends the iterator.
func (i *Iterator) Close() {
	if i != nil {
		i.h.close()
	}
}

// Dataset describes where elements come from and what happens to them; it is a value of a graph. An element is one or more tensors.
type Dataset struct {
	scope *Scope
	value Output
}

func (s *Scope) dataset(make func(*low.Scope) uint64) Dataset {
	if !s.at() {
		return Dataset{s, 0}
	}
	defer runtime.KeepAlive(s)
	return Dataset{s, Output(make(s.object))}
}

// Rows has an element for each row of values with equal first sizes.
func (s *Scope) Rows(components ...Output) Dataset {
	return s.dataset(func(o *low.Scope) uint64 {
		return low.DatasetRows(o, (*uint64)(first(components)), uint32(len(components)))
	})
}

// Range has the numbers from start to stop, as int64.
func (s *Scope) Range(start, stop, step int64) Dataset {
	return s.dataset(func(o *low.Scope) uint64 { return low.DatasetRange(o, start, stop, step) })
}

// Lines has the lines of text files; Records the records of TFRecord files. files: a vector of strings.
func (s *Scope) Lines(files Output) Dataset {
	return s.dataset(func(o *low.Scope) uint64 { return low.DatasetLines(o, uint64(files)) })
}
func (s *Scope) Records(files Output) Dataset {
	return s.dataset(func(o *low.Scope) uint64 { return low.DatasetRecords(o, uint64(files)) })
}

// Value is the dataset as a value of its graph.
func (d Dataset) Value() Output { return d.value }

// Take keeps the first elements; Skip drops them; Shard keeps each n-th; Repeat gives all again, -1 without end.
func (d Dataset) Take(n int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetTake(o, uint64(d.value), n) })
}
func (d Dataset) Skip(n int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetSkip(o, uint64(d.value), n) })
}
func (d Dataset) Shard(shards, index int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetShard(o, uint64(d.value), shards, index) })
}
func (d Dataset) Repeat(n int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetRepeat(o, uint64(d.value), n) })
}

// Shuffle draws each element from a buffer, in another order in each epoch.
func (d Dataset) Shuffle(buffer, seed int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetShuffle(o, uint64(d.value), buffer, seed, 1) })
}

// Batch stacks elements.
func (d Dataset) Batch(n int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetBatch(o, uint64(d.value), n, 0) })
}

// Prefetch computes elements before they are taken.
func (d Dataset) Prefetch(n int64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 { return low.DatasetPrefetch(o, uint64(d.value), n) })
}

// Map gives the results of a function for each element. The function adds operations through its scope, which it must not finish.
func (d Dataset) Map(function func(s *Scope, element []Output) []Output) Dataset {
	return d.apply(function, func(o *low.Scope, b *low.Block) uint64 {
		return low.DatasetMap(o, uint64(d.value), b, low.TW_DATASET_AUTO)
	})
}

// Filter keeps the elements for which a function gives true.
func (d Dataset) Filter(function func(s *Scope, element []Output) Output) Dataset {
	return d.apply(func(s *Scope, element []Output) []Output { return []Output{function(s, element)} },
		func(o *low.Scope, b *low.Block) uint64 { return low.DatasetFilter(o, uint64(d.value), b) })
}

func (d Dataset) apply(function func(*Scope, []Output) []Output, end func(*low.Scope, *low.Block) uint64) Dataset {
	return d.scope.dataset(func(o *low.Scope) uint64 {
		graph := low.ScopeGraph(o)
		if graph == nil {
			return 0
		}
		arguments := make([]Output, low.DatasetComponentCount(graph, uint64(d.value)))
		b := low.DatasetBlock(o, uint64(d.value), (*uint64)(first(arguments)))
		finished := false
		defer func() {
			if !finished { // the function panicked
				low.BlockDestroy(b)
			}
		}()
		inner := &Scope{graph: d.scope.graph, object: low.BlockScope(b), inner: true}
		results := function(inner, arguments)
		inner.object = nil
		low.BlockGive(b, (*uint64)(first(results)), uint32(len(results)))
		finished = true
		return end(o, b)
	})
}

// Iterator runs the dataset in a session of its own. Finish the scope first.
func (d Dataset) Iterator(sessionOptions ...string) (*Iterator, error) {
	if d.scope == nil {
		return nil, failure(InvalidArgument, "the dataset is empty; make one with Scope.Rows, Range, Lines or Records")
	}
	graph, err := d.scope.graph.use()
	if err != nil {
		return nil, err
	}
	defer d.scope.graph.h.leave()
	var a arena
	defer a.free()
	options := record[low.DatasetIteratorOptions](&a)
	low.DatasetIteratorOptionsInit(options)
	options.Session, options.NSession = a.texts(sessionOptions), uint32(len(sessionOptions))
	var out *low.Iterator
	if err := check(low.DatasetIteratorCreate(graph, uint64(d.value), options, &out)); err != nil {
		return nil, err
	}
	return newIterator(out, d.scope.graph), nil
}
