package unit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// otherwise are the settings that belong to a service that runs on and tells of itself; a trial ends by itself.
func otherwise(key string) bool {
	return strings.HasPrefix(key, "Exec") || strings.HasPrefix(key, "Timeout") || strings.HasPrefix(key, "Restart") ||
		slices.Contains([]string{"Type", "NotifyAccess", "WatchdogSec", "OOMPolicy"}, key)
}

// Properties are the settings under which a program does what the service could do, as systemd-run takes them.
func (u *Unit) Properties() []string {
	var properties []string
	for _, s := range u.settings {
		if !otherwise(s.key) {
			properties = append(properties, s.key+"="+s.value)
		}
	}
	return properties
}

// Arguments are those of the service's program, which comes first.
func (u *Unit) Arguments() []string { return strings.Fields(u.Last("ExecStart")) }

// Untried says why Trial cannot be made here; nil when it can.
func Untried(root string) error {
	if _, err := os.Stat(filepath.Join(root, "/run/systemd/system")); err != nil {
		return fmt.Errorf("systemd does not run here")
	}
	if _, err := exec.LookPath("systemd-run"); err != nil {
		return fmt.Errorf("there is no systemd-run")
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can start a program as another user")
	}
	return nil
}

// Trial is a command that runs a program under the unit's user and rules, and waits for it.
func (u *Unit) Trial(ctx context.Context, program ...string) *exec.Cmd {
	arguments := []string{"--pipe", "--wait", "--collect", "--quiet"}
	for _, p := range u.Properties() {
		arguments = append(arguments, "--property="+p)
	}
	return exec.CommandContext(ctx, "systemd-run", slices.Concat(arguments, []string{"--"}, program)...)
}
