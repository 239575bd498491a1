package thalweg

import (
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"thalweg.org/go/low"
)

// handle holds an object of C. Close ends it, and a finalizer does if nobody has. A call that uses the object keeps it until the call
// ends, so any goroutine may close it at any time; calls after Close fail.
type handle[T any] struct {
	object *T
	what   string
	users  int64 // running calls, and 1 until Close
	closed int32
	free   func(*T)
}

func newHandle[T any](object *T, what string, free func(*T)) *handle[T] {
	h := &handle[T]{object: object, what: what, users: 1, free: free}
	runtime.SetFinalizer(h, (*handle[T]).close)
	return h
}

// use returns the object for a call; leave must follow if there is no error.
func (h *handle[T]) use() (*T, error) {
	if h == nil {
		return nil, failure(InvalidArgument, "the object is nil; make one with its New function")
	}
	for {
		n := atomic.LoadInt64(&h.users)
		if n <= 0 || atomic.LoadInt32(&h.closed) != 0 {
			return nil, failure(FailedPrecondition, "the %s is closed", h.what)
		}
		if atomic.CompareAndSwapInt64(&h.users, n, n+1) {
			return h.object, nil
		}
	}
}

func (h *handle[T]) leave() {
	if atomic.AddInt64(&h.users, -1) == 0 {
		h.free(h.object)
	}
	runtime.KeepAlive(h)
}

func (h *handle[T]) close() {
	if h != nil && atomic.CompareAndSwapInt32(&h.closed, 0, 1) {
		runtime.SetFinalizer(h, nil)
		h.leave()
	}
}

// arena is memory of C for the records and lists of one call.
type arena struct{ blocks []unsafe.Pointer }

func (a *arena) alloc(bytes uintptr) unsafe.Pointer {
	p := low.Alloc(bytes)
	a.blocks = append(a.blocks, p)
	return p
}

func (a *arena) free() {
	for _, p := range a.blocks {
		low.Free(p)
	}
	a.blocks = nil
}

// record is a zeroed record of C.
func record[T any](a *arena) *T {
	var t T
	return (*T)(a.alloc(unsafe.Sizeof(t)))
}

// list copies a list into memory of C; nil for an empty one.
func list[T any](a *arena, values []T) *T {
	if len(values) == 0 {
		return nil
	}
	p := (*T)(a.alloc(unsafe.Sizeof(values[0]) * uintptr(len(values))))
	copy(unsafe.Slice(p, len(values)), values)
	return p
}

// clean replaces zero bytes, which would end a text of C early: a name with one is then a name that nothing has.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

func (a *arena) text(s string) *byte { return a.raw(clean(s)) }

// raw copies bytes, which come with a length.
func (a *arena) raw(s string) *byte {
	p := (*byte)(a.alloc(uintptr(len(s))))
	copy(unsafe.Slice(p, len(s)+1), s)
	return p
}

// optional is the text, or nil for "".
func (a *arena) optional(s string) *byte {
	if s == "" {
		return nil
	}
	return a.text(s)
}

func (a *arena) texts(all []string) **byte {
	pointers := make([]*byte, len(all))
	for i, s := range all {
		pointers[i] = a.text(s)
	}
	return list(a, pointers)
}

// text is a text with a terminating zero in memory of Go, for the length of a call.
func text(s string) *byte { return raw(clean(s)) }

// raw is bytes in memory of Go, which come with a length.
func raw(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}

func optionalText(s string) *byte {
	if s == "" {
		return nil
	}
	return text(s)
}

// first is the address of a list's first element, for the length of a call; nil for an empty list.
func first[T any](values []T) *T {
	if len(values) == 0 {
		return nil
	}
	return &values[0]
}

// bytesOf takes the contents of a buffer, which it releases.
func bytesOf(buffer *low.Buffer) []byte {
	if buffer == nil {
		return nil
	}
	n := low.BufferBytes(buffer)
	bytes := append([]byte(nil), unsafe.Slice(low.BufferData(buffer), n)...)
	low.BufferRelease(buffer)
	return bytes
}

func flag(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}
