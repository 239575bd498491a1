package thalweg

import (
	"bufio"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"thalweg.org/go/low"
)

// DType is the type of a tensor's elements.
type DType uint32

// The element types that slices of Go have; low has all.
const (
	Float      DType = low.TW_FLOAT
	Double     DType = low.TW_DOUBLE
	Int8       DType = low.TW_INT8
	Int16      DType = low.TW_INT16
	Int32      DType = low.TW_INT32
	Int64      DType = low.TW_INT64
	Uint8      DType = low.TW_UINT8
	Uint16     DType = low.TW_UINT16
	Uint32     DType = low.TW_UINT32
	Uint64     DType = low.TW_UINT64
	Bool       DType = low.TW_BOOL
	Complex64  DType = low.TW_COMPLEX64
	Complex128 DType = low.TW_COMPLEX128
	String     DType = low.TW_STRING
	Half       DType = low.TW_HALF
	Bfloat16   DType = low.TW_BFLOAT16
)

// String returns the name of the type, such as "float".
func (d DType) String() string { return low.Text(low.DtypeName(uint32(d))) }

// Shape is the size of each axis; -1 is an unknown size, and nil an unknown number of axes.
type Shape []int64

// Element is a type of Go that is an element type, too.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~complex64 | ~complex128
}

var kinds = map[reflect.Kind]DType{reflect.Float32: Float, reflect.Float64: Double, reflect.Int8: Int8, reflect.Int16: Int16,
	reflect.Int32: Int32, reflect.Int64: Int64, reflect.Uint8: Uint8, reflect.Uint16: Uint16, reflect.Uint32: Uint32,
	reflect.Uint64: Uint64, reflect.Bool: Bool, reflect.Complex64: Complex64, reflect.Complex128: Complex128}

// DTypeOf returns the element type of T.
func DTypeOf[T Element]() DType {
	var zero T
	return kinds[reflect.TypeOf(zero).Kind()]
}

// Tensor is an array of one element type in the library's memory. Any goroutine may read it; write to it only before anybody else has it.
type Tensor struct{ h *handle[low.Tensor] }

func newTensor(object *low.Tensor) *Tensor {
	if object == nil {
		return nil
	}
	return &Tensor{newHandle(object, "tensor", low.TensorRelease)}
}

func (t *Tensor) use() (*low.Tensor, error) {
	if t == nil {
		return nil, failure(InvalidArgument, "a tensor is nil")
	}
	return t.h.use()
}

// Close gives the tensor's memory back as soon as nobody else refers to it. A finalizer does so later if Close is not called.
func (t *Tensor) Close() {
	if t != nil {
		t.h.close()
	}
}

// resolve replaces one -1 by the size that n elements leave.
func resolve(n int, dims []int64) ([]int64, error) {
	known, at := int64(1), -1
	for i, d := range dims {
		switch {
		case d == -1 && at < 0:
			at = i
		case d < 0:
			return nil, failure(InvalidArgument, "sizes %v: one of them may be -1, the others are at least 0", dims)
		case d > 0 && known > int64(1)<<62/d:
			return nil, failure(InvalidArgument, "sizes %v are too large", dims)
		default:
			known *= d
		}
	}
	if at < 0 {
		return dims, nil
	}
	if known == 0 || int64(n)%known != 0 {
		return nil, failure(InvalidArgument, "%d elements do not fill sizes %v", n, dims)
	}
	dims = append([]int64(nil), dims...)
	dims[at] = int64(n) / known
	return dims, nil
}

// NewTensor copies a slice. dims: the size of each axis, of which one may be -1; none: a vector.
func NewTensor[T Element](data []T, dims ...int64) (*Tensor, error) {
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	dims, err := resolve(len(data), dims)
	if err != nil {
		return nil, err
	}
	var object *low.Tensor
	var zero T
	bytes := uint64(len(data)) * uint64(unsafe.Sizeof(zero))
	err = check(low.TensorCreateCopy(uint32(DTypeOf[T]()), first(dims), uint32(len(dims)), unsafe.Pointer(first(data)), bytes, &object))
	return newTensor(object), err
}

// Zeros makes a tensor of zeros, which Data fills without a copy.
func Zeros[T Element](dims ...int64) (*Tensor, error) {
	var object *low.Tensor
	err := check(low.TensorCreate(uint32(DTypeOf[T]()), first(dims), uint32(len(dims)), &object))
	return newTensor(object), err
}

// Scalar makes a tensor without axes.
func Scalar[T Element](value T) (*Tensor, error) {
	var object *low.Tensor
	err := check(low.TensorCreateCopy(uint32(DTypeOf[T]()), nil, 0, unsafe.Pointer(&value), uint64(unsafe.Sizeof(value)), &object))
	return newTensor(object), err
}

// Strings makes a tensor of texts or bytes.
func Strings(data []string, dims ...int64) (*Tensor, error) {
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	dims, err := resolve(len(data), dims)
	if err != nil {
		return nil, err
	}
	var object *low.Tensor
	if err := check(low.TensorCreate(low.TW_STRING, first(dims), uint32(len(dims)), &object)); err != nil {
		return nil, err
	}
	if low.TensorCount(object) != uint64(len(data)) {
		low.TensorRelease(object)
		return nil, failure(InvalidArgument, "%d texts do not fill sizes %v", len(data), dims)
	}
	for i, s := range data {
		if err := check(low.TensorSetString(object, uint64(i), raw(s), uint64(len(s)))); err != nil {
			low.TensorRelease(object)
			return nil, err
		}
	}
	return newTensor(object), nil
}

// DType returns the element type.
func (t *Tensor) DType() DType {
	object, err := t.use()
	if err != nil {
		return 0
	}
	defer t.h.leave()
	return DType(low.TensorDtype(object))
}

// Shape returns the sizes.
func (t *Tensor) Shape() Shape {
	object, err := t.use()
	if err != nil {
		return nil
	}
	defer t.h.leave()
	return append(Shape{}, unsafe.Slice((*int64)(low.TensorDims(object)), low.TensorRank(object))...)
}

// Len returns the number of elements.
func (t *Tensor) Len() int {
	object, err := t.use()
	if err != nil {
		return 0
	}
	defer t.h.leave()
	return int(low.TensorCount(object))
}

// Data returns the elements without a copy. The slice is valid until the tensor is closed; keep the tensor as long as the slice, because
// the garbage collector does not see that one needs the other. Write to it only if you made the tensor and nobody else has it.
func Data[T Element](t *Tensor) ([]T, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	if want, is := DTypeOf[T](), DType(low.TensorDtype(object)); want != is {
		return nil, failure(InvalidArgument, "the tensor holds %v, not %v", is, want)
	}
	if low.TensorDevice(object) != nil {
		return nil, failure(FailedPrecondition, "the tensor is in the memory of %s; use Host first", low.Text(low.TensorDevice(object)))
	}
	n := low.TensorCount(object)
	if n == 0 {
		return []T{}, nil
	}
	return unsafe.Slice((*T)(low.TensorData(object)), n), nil
}

// Values copies the elements, so that they outlive the tensor.
func Values[T Element](t *Tensor) ([]T, error) {
	data, err := Data[T](t)
	if err != nil {
		return nil, err
	}
	object, err := t.use() // kept while it is copied
	if err != nil || object == nil {
		return nil, err
	}
	defer t.h.leave()
	return append([]T{}, data...), nil
}

// Item returns the only element.
func Item[T Element](t *Tensor) (T, error) {
	var zero T
	values, err := Values[T](t)
	if err != nil {
		return zero, err
	}
	if len(values) != 1 {
		return zero, failure(InvalidArgument, "the tensor has %d elements, not one", len(values))
	}
	return values[0], nil
}

// StringValues copies the texts of a tensor of strings.
func (t *Tensor) StringValues() ([]string, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	all := make([]string, low.TensorCount(object))
	for i := range all {
		var data *byte
		var bytes uint64
		if err := check(low.TensorGetString(object, uint64(i), &data, &bytes)); err != nil {
			return nil, err
		}
		all[i] = string(unsafe.Slice(data, bytes))
	}
	return all, nil
}

// Reshape returns the same elements under other sizes; the memory is shared.
func (t *Tensor) Reshape(dims ...int64) (*Tensor, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	dims, err = resolve(int(low.TensorCount(object)), dims)
	if err != nil {
		return nil, err
	}
	var out *low.Tensor
	err = check(low.TensorReshape(object, first(dims), uint32(len(dims)), &out))
	return newTensor(out), err
}

// Host returns the same elements in host memory.
func (t *Tensor) Host() (*Tensor, error) {
	object, err := t.use()
	if err != nil {
		return nil, err
	}
	defer t.h.leave()
	var out *low.Tensor
	err = check(low.TensorToHost(object, &out))
	return newTensor(out), err
}

// String returns the elements as text, as many as fit a line or two.
func (t *Tensor) String() string {
	object, err := t.use()
	if err != nil {
		return err.Error()
	}
	defer t.h.leave()
	var out *low.Buffer
	if err := check(low.TensorText(object, 20, &out)); err != nil {
		return err.Error()
	}
	return string(bytesOf(out))
}

// useAll takes the objects of tensors for a call, and the function that leaves them.
func useAll(tensors []*Tensor) ([]*low.Tensor, func(), error) {
	objects := make([]*low.Tensor, len(tensors))
	leave := func(n int) {
		for _, t := range tensors[:n] {
			t.h.leave()
		}
	}
	for i, t := range tensors {
		object, err := t.use()
		if err != nil {
			leave(i)
			return nil, nil, failure(CodeOf(err), "tensor %d: %v", i, err)
		}
		objects[i] = object
	}
	return objects, func() { leave(len(tensors)) }, nil
}

func tensorsOf(objects []*low.Tensor) []*Tensor {
	tensors := make([]*Tensor, len(objects))
	for i, object := range objects {
		tensors[i] = newTensor(object)
	}
	return tensors
}

// ReadCSV reads the numbers of a file with commas between them, a row for each line.
func ReadCSV(path string) ([][]float32, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var rows [][]float32
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(lines.Text(), ",")
		row := make([]float32, len(cells))
		for i, cell := range cells {
			value, err := strconv.ParseFloat(strings.TrimSpace(cell), 32)
			if err != nil {
				return nil, failure(InvalidArgument, "%s:%d: '%s' is not a number", path, len(rows)+1, cell)
			}
			row[i] = float32(value)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
