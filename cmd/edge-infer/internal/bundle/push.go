package bundle

import (
	"context"
	"fmt"
	"io"
)

// Push uploads the file of a bundle to a registry.
type Push struct {
	File string
	// To is HOST/NAME:TAG in the registry; its other fields say how it is reached.
	To Source
}

// PushResult is an uploaded bundle.
type PushResult struct {
	Summary
	To string `json:"to"`
}

// Print writes the result as text.
func (r *PushResult) Print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "pushed %s\n", r.To); err != nil {
		return err
	}
	return r.Summary.Print(out)
}

// Run uploads what the registry does not have yet.
func (p *Push) Run(ctx context.Context) (*PushResult, error) {
	l, err := openLayout(p.File)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", p.File, err)
	}
	defer l.Close()
	b := opened{source: l}
	if err := b.read(ctx, &Source{MaxBytes: maxNumber}, nil); err != nil {
		return nil, fmt.Errorf("bundle %s: %w", p.File, err)
	}
	r, err := p.To.openRepository()
	if err != nil {
		return nil, fmt.Errorf("push to %s: %w", p.To.Location, err)
	}
	defer r.Close()
	if _, err := r.reference.Digest(); err == nil {
		return nil, fmt.Errorf("push to %s: a tag is needed (HOST/NAME:TAG, such as :%d)", p.To.Location, b.Info.Version)
	}
	if err := r.push(ctx, l, b.Info); err != nil {
		return nil, fmt.Errorf("push to %s: %w", p.To.Location, r.explain(err))
	}
	return &PushResult{Summary: b.summary(p.File), To: p.To.Location}, nil
}
