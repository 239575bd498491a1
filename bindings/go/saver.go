package thalweg

import (
	"thalweg.org/go/low"
)

// Saver writes variables to checkpoints in TensorFlow's format and reads them back.
type Saver struct{ h *handle[low.Saver] }

// NewSaver makes a saver for some variables; none: all that the graph has now.
func (g *Graph) NewSaver(variables ...Output) (*Saver, error) {
	object, err := g.use()
	if err != nil {
		return nil, err
	}
	var out *low.Saver
	if err := check(low.SaverCreate(object, (*uint64)(first(variables)), uint32(len(variables)), &out)); err != nil {
		g.h.leave()
		return nil, err
	}
	return &Saver{newHandle(out, "saver", func(saver *low.Saver) { // the graph outlives the saver
		low.SaverDestroy(saver)
		g.h.leave()
	})}, nil
}

func (v *Saver) run(s *Session, call func(*low.Saver, *low.Session) *low.Status) error {
	if v == nil {
		return failure(InvalidArgument, "the saver is nil; make one with Graph.NewSaver")
	}
	session, err := s.use()
	if err != nil {
		return err
	}
	defer s.h.leave()
	saver, err := v.h.use()
	if err != nil {
		return err
	}
	defer v.h.leave()
	return check(call(saver, session))
}

// Save writes the variables to the files prefix.*.
func (v *Saver) Save(s *Session, prefix string) error {
	return v.run(s, func(o *low.Saver, session *low.Session) *low.Status { return low.SaverSave(o, session, text(prefix)) })
}

// Restore reads the variables.
func (v *Saver) Restore(s *Session, prefix string) error {
	return v.run(s, func(o *low.Saver, session *low.Session) *low.Status {
		return low.SaverRestore(o, session, text(prefix))
	})
}

// Close ends the saver.
func (v *Saver) Close() {
	if v != nil {
		v.h.close()
	}
}

// Checkpoint reads the tensors of a checkpoint.
type Checkpoint struct{ h *handle[low.Checkpoint] }

// OpenCheckpoint opens the files prefix.*.
func OpenCheckpoint(prefix string) (*Checkpoint, error) {
	var out *low.Checkpoint
	if err := check(low.CheckpointOpen(text(prefix), &out)); err != nil {
		return nil, err
	}
	return &Checkpoint{newHandle(out, "checkpoint", low.CheckpointClose)}, nil
}

func (c *Checkpoint) use() (*low.Checkpoint, error) {
	if c == nil {
		return nil, failure(InvalidArgument, "the checkpoint is nil; open one with OpenCheckpoint")
	}
	return c.h.use()
}

// Names lists the tensors.
func (c *Checkpoint) Names() []string {
	object, err := c.use()
	if err != nil {
		return nil
	}
	defer c.h.leave()
	names := make([]string, low.CheckpointCount(object))
	for i := range names {
		names[i] = low.Text(low.CheckpointName(object, uint32(i)))
	}
	return names
}

// Read reads a tensor.
func (c *Checkpoint) Read(name string) (*Tensor, error) {
	object, err := c.use()
	if err != nil {
		return nil, err
	}
	defer c.h.leave()
	var out *low.Tensor
	err = check(low.CheckpointRead(object, text(name), &out))
	return newTensor(out), err
}

// Close ends the checkpoint.
func (c *Checkpoint) Close() {
	if c != nil {
		c.h.close()
	}
}

// WriteCheckpoint writes tensors to the files prefix.*.
func WriteCheckpoint(prefix string, tensors map[string]*Tensor) error {
	var a arena
	defer a.free()
	names, all := make([]string, 0, len(tensors)), make([]*Tensor, 0, len(tensors))
	for name, tensor := range tensors {
		names, all = append(names, name), append(all, tensor)
	}
	objects, leave, err := useAll(all)
	if err != nil {
		return err
	}
	defer leave()
	return check(low.CheckpointWrite(text(prefix), a.texts(names), first(objects), uint32(len(names))))
}
