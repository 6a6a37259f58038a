// Package systemd notifies the service manager: ready when the daemon serves, watchdog pings while it makes progress. Outside systemd every
// call does nothing.
package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Service is the daemon as systemd sees it. The zero value is ready. Its methods may be called from any goroutine.
type Service struct {
	// Alive reports whether work makes progress; it is called twice per watchdog interval and must not block.
	Alive func() bool
}

// Managed reports whether a service manager listens.
func (s *Service) Managed() bool {
	sent, _ := daemon.SdNotify(false, "")
	return sent
}

// Ready notifies that the daemon serves, whether or not its cameras are available.
func (s *Service) Ready() error { return notify(daemon.SdNotifyReady) }

// Status is the line that systemctl status shows.
func (s *Service) Status(format string, arguments ...any) error {
	return notify("STATUS=" + fmt.Sprintf(format, arguments...))
}

// Reloading notifies that the configuration is being reloaded; now is CLOCK_MONOTONIC in nanoseconds. Ready ends it.
func (s *Service) Reloading(now int64) error {
	return notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now/int64(time.Microsecond)))
}

// Working extends the start-up time limit while the daemon prepares what it needs before it serves.
func (s *Service) Working(more time.Duration) error {
	return notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\n%s", more.Microseconds(), daemon.SdNotifyWatchdog))
}

// Stopping notifies that the daemon is ending.
func (s *Service) Stopping() error { return notify(daemon.SdNotifyStopping) }

// Watch pings the watchdog while Alive returns true, until ctx ends. It returns at once if the unit sets no watchdog.
func (s *Service) Watch(ctx context.Context) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return err
	}
	ticker := time.NewTicker(interval / 2)
	defer ticker.Stop()
	for {
		if s.Alive() {
			if err := notify(daemon.SdNotifyWatchdog); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func notify(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
