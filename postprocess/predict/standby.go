package predict

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/standby"
)

// openStandby opens the servers and the local backend. Unreachable servers are no error: they are retried.
func (o *Options) openStandby(ctx context.Context, choice auto.Choice, logger *slog.Logger) (engine.Engine, error) {
	open := func(ctx context.Context) (standby.Remote, error) {
		e, err := auto.Open(ctx, o.Options, choice, logger)
		if err != nil {
			return nil, err
		}
		return auto.Unwrap(e).(standby.Remote), nil
	}
	remote, refused := open(ctx)
	if refused != nil && !errors.Is(refused, engine.ErrUnavailable) {
		return nil, refused
	}
	here := o.Options
	here.Filter = nil                  // boxes are listed by neither or both
	here.Slots = cmp.Or(here.Slots, 2) // a server answers several requests at once
	if remote != nil {
		here.MaxBatch = remote.Model().MaxBatch
	}
	local, err := auto.Open(ctx, here, auto.Choice{Engine: o.Standby}, logger)
	if err == nil {
		var e engine.Engine
		e, err = standby.Open(standby.Options{Remote: remote, Refused: refused, Reopen: open, Local: local, Log: logger})
		if err == nil {
			return e, nil
		}
		err = errors.Join(err, local.Close())
	}
	if remote != nil {
		err = errors.Join(err, remote.Close())
	}
	return nil, err
}
