package diagnose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// notForTrial reports whether a setting belongs to a long-running service only.
func notForTrial(key string) bool {
	return strings.HasPrefix(key, "Exec") || strings.HasPrefix(key, "Timeout") || strings.HasPrefix(key, "Restart") ||
		slices.Contains([]string{"Type", "NotifyAccess", "WatchdogSec", "OOMPolicy"}, key)
}

// properties returns the settings of the service as properties for systemd-run.
func (u *unit) properties() []string {
	var properties []string
	for _, s := range u.settings {
		if !notForTrial(s.key) {
			properties = append(properties, s.key+"="+s.value)
		}
	}
	return properties
}

// arguments returns the service's program and its arguments.
func (u *unit) arguments() []string { return strings.Fields(u.last("ExecStart")) }

// trialUnavailable returns the reason why a trial is not possible on this machine, or nil.
func trialUnavailable(root string) error {
	if _, err := os.Stat(filepath.Join(root, "/run/systemd/system")); err != nil {
		return fmt.Errorf("systemd is not running")
	}
	if _, err := exec.LookPath("systemd-run"); err != nil {
		return fmt.Errorf("systemd-run is not installed")
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can start a program as another user")
	}
	return nil
}

// trial returns a command that runs a program under the unit's user and rules and waits for it.
func (u *unit) trial(ctx context.Context, program ...string) *exec.Cmd {
	arguments := []string{"--pipe", "--wait", "--collect", "--quiet"}
	for _, p := range u.properties() {
		arguments = append(arguments, "--property="+p)
	}
	return exec.CommandContext(ctx, "systemd-run", slices.Concat(arguments, []string{"--"}, program)...)
}
