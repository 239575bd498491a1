package thalweg

import (
	"context"

	"thalweg.org/go/low"
)

// Session runs a graph. Any number of goroutines may run it at once.
type Session struct {
	h     *handle[low.Session]
	graph *Graph
}

func (s *Session) use() (*low.Session, error) {
	if s == nil {
		return nil, failure(InvalidArgument, "the session is nil; make one with Graph.NewSession")
	}
	return s.h.use()
}

// NewSession makes a session. options: "key=value", as low.SessionOption lists them, such as "threads=2".
func (g *Graph) NewSession(options ...string) (*Session, error) {
	object, err := g.use()
	if err != nil {
		return nil, err
	}
	defer g.h.leave()
	var a arena
	defer a.free()
	var out *low.Session
	if err := check(low.SessionCreate(object, a.texts(options), uint32(len(options)), &out)); err != nil {
		return nil, err
	}
	return &Session{newHandle(out, "session", low.SessionDestroy), g}, nil
}

// Close refuses new runs. The session ends with the last of those in progress.
func (s *Session) Close() {
	if s != nil {
		s.h.close()
	}
}

// Reset empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on; its
// variables can be initialised again. container "": the session's default one, which is its graph's own unless the session has a target
// or the option "container". With a target, the container is emptied on every task. Reset returns the number of objects it held.
func (s *Session) Reset(container string) (uint64, error) {
	object, err := s.use()
	if err != nil {
		return 0, err
	}
	defer s.h.leave()
	var count uint64
	err = check(low.SessionReset(object, text(container), &count))
	return count, err
}

// ResetContainer empties a container of this process without a session, as Session.Reset does. container "": "localhost".
func ResetContainer(container string) (uint64, error) {
	var count uint64
	err := check(low.RuntimeReset(nil, text(container), &count))
	return count, err
}

// Feeds are the fed values of a run.
type Feeds map[Output]*Tensor

// signature fills a record of C; the function ends the use of the operations.
func signature(a *arena, feeds, fetches []Output, targets []*Operation) (*low.Signature, func(), error) {
	what := record[low.Signature](a)
	what.Size = size(what)
	objects := make([]*low.Operation, len(targets))
	var leaves []func()
	leave := func() {
		for _, f := range leaves {
			f()
		}
	}
	for i, target := range targets {
		object, end, err := target.use()
		if err != nil {
			leave()
			return nil, nil, err
		}
		objects[i], leaves = object, append(leaves, end)
	}
	what.Feeds, what.NFeeds = (*uint64)(list(a, feeds)), uint32(len(feeds))
	what.Fetches, what.NFetches = (*uint64)(list(a, fetches)), uint32(len(fetches))
	what.Targets, what.NTargets = list(a, objects), uint32(len(objects))
	return what, leave, nil
}

// cancelling runs a call with a token that the context cancels. A context that is never done costs nothing.
func cancelling(ctx context.Context, call func(*low.CancelToken) *low.Status) error {
	if ctx == nil || ctx.Done() == nil {
		return check(call(nil))
	}
	if err := ctx.Err(); err != nil {
		return &Error{Code: codeOf(err), Message: "the run did not begin: " + err.Error(), cause: err}
	}
	var token *low.CancelToken
	if err := check(low.CancelTokenCreate(&token)); err != nil {
		return err
	}
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			low.CancelTokenCancel(token)
		case <-ended:
		}
		close(watched)
	}()
	defer func() {
		close(ended)
		<-watched
		low.CancelTokenDestroy(token)
	}()
	err := check(call(token))
	if e, ok := err.(*Error); ok && e.Code == Cancelled && ctx.Err() != nil {
		e.cause = ctx.Err()
		e.Code = codeOf(e.cause)
	}
	return err
}

func codeOf(cause error) Code {
	if cause == context.DeadlineExceeded {
		return DeadlineExceeded
	}
	return Cancelled
}

// Run runs one step: feeds values, runs targets and what they need, and returns the fetched values. It ends early, with an error that
// wraps the context's, when the context is done.
func (s *Session) Run(ctx context.Context, feeds Feeds, fetches []Output, targets ...*Operation) ([]*Tensor, error) {
	object, err := s.use()
	if err != nil {
		return nil, err
	}
	defer s.h.leave()
	var a arena
	defer a.free()
	inputs, tensors := make([]Output, 0, len(feeds)), make([]*Tensor, 0, len(feeds))
	for value, tensor := range feeds {
		inputs, tensors = append(inputs, value), append(tensors, tensor)
	}
	objects, leave, err := useAll(tensors)
	if err != nil {
		return nil, err
	}
	defer leave()
	what, end, err := signature(&a, inputs, fetches, targets)
	if err != nil {
		return nil, err
	}
	defer end()
	out := make([]*low.Tensor, len(fetches))
	err = cancelling(ctx, func(token *low.CancelToken) *low.Status {
		if token == nil {
			return low.SessionRun(object, what, first(objects), nil, first(out))
		}
		return low.SessionRun(object, what, first(objects), runOptions(token), first(out))
	})
	if err != nil {
		return nil, err
	}
	return tensorsOf(out), nil
}

func runOptions(token *low.CancelToken) *low.RunOptions {
	options := &low.RunOptions{Cancel: token}
	options.Size = size(options)
	return options
}

// Callable is a prepared run, whose feeds and fetches have an order.
type Callable struct {
	h       *handle[low.Callable]
	session *Session
	feeds   int
	fetches int
}

// Callable prepares a run.
func (s *Session) Callable(feeds, fetches []Output, targets ...*Operation) (*Callable, error) {
	object, err := s.use()
	if err != nil {
		return nil, err
	}
	defer s.h.leave()
	var a arena
	defer a.free()
	what, end, err := signature(&a, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	defer end()
	var out *low.Callable
	if err := check(low.CallableCreate(object, what, &out)); err != nil {
		return nil, err
	}
	return &Callable{newHandle(out, "callable", low.CallableDestroy), s, len(feeds), len(fetches)}, nil
}

// Close ends the callable.
func (c *Callable) Close() {
	if c != nil {
		c.h.close()
	}
}

// Run runs the step with a tensor for each feed, and returns the fetches.
func (c *Callable) Run(ctx context.Context, feeds ...*Tensor) ([]*Tensor, error) {
	if c == nil {
		return nil, failure(InvalidArgument, "the callable is nil")
	}
	if len(feeds) != c.feeds {
		return nil, failure(InvalidArgument, "the callable takes %d tensors, not %d", c.feeds, len(feeds))
	}
	if _, err := c.session.use(); err != nil {
		return nil, err
	}
	defer c.session.h.leave()
	object, err := c.h.use()
	if err != nil {
		return nil, err
	}
	defer c.h.leave()
	objects, leave, err := useAll(feeds)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]*low.Tensor, c.fetches)
	err = cancelling(ctx, func(token *low.CancelToken) *low.Status {
		if token == nil {
			return low.CallableRun(object, first(objects), nil, first(out))
		}
		return low.CallableRun(object, first(objects), runOptions(token), first(out))
	})
	if err != nil {
		return nil, err
	}
	return tensorsOf(out), nil
}
