package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Service checks what a systemd unit denies its service: first by comparing the unit with this machine's device nodes and accounts, then,
// if possible, by making all checks of Run as the service's user and under the unit's rules. It calls each as Run does.
func (d *Doctor) Service(ctx context.Context, name string, each func(Check)) Checks {
	all := &collector{each: each}
	add := all.add
	u, err := loadUnit(d.Root, name)
	if err != nil {
		add(fail("unit", "install the package, or set --unit=NAME", "%v", err))
		return all.checks
	}
	add(ok("unit", "%s", strings.Join(u.files, ", ")))
	h, err := readHost(d.Root)
	if err != nil {
		add(fail("devices", "mount /proc", "%v", err))
		return all.checks
	}
	add(d.nodes(u, h)...)
	add(d.argus(u)...)
	add(d.trial(ctx, u)...)
	return all.checks
}

// nodes reports what the unit's rules and the nodes' modes deny.
func (d *Doctor) nodes(u *unit, h *host) []Check {
	const name = "devices"
	var checks []Check
	for _, denied := range u.denied(h) {
		checks = append(checks, failIf(denied.core, warn(name, denied.remedy, "%s: %s", denied.subject, denied.reason)))
	}
	var paths []string
	for _, node := range h.nodes {
		paths = append(paths, node.path)
	}
	switch {
	case len(checks) > 0:
	case len(paths) == 0:
		checks = append(checks, ok(name, "no device nodes of cameras or GPUs, no rule was checked"))
	default:
		checks = append(checks, ok(name, "the service may open all %d: %s", len(paths), strings.Join(paths, " ")))
	}
	if (cuda.Prober{Root: d.Root}).Jetson() == nil {
		checks = append(checks, skip("Jetson", "not a Jetson: the rules for its nodes were not checked"))
	}
	return checks
}

// argusSocket is the socket of nvargus-daemon, which reads CSI cameras.
const argusSocket = "/tmp/argus_socket"

func (d *Doctor) argus(u *unit) []Check {
	if _, err := os.Stat(d.path(argusSocket)); err != nil {
		return nil
	}
	bound := slices.ContainsFunc(append(u.all("BindPaths"), u.all("BindReadOnlyPaths")...), func(paths string) bool {
		return strings.Contains(paths, argusSocket)
	})
	if u.enabled("PrivateTmp") && !bound {
		return []Check{fail("nvargus-daemon", "systemctl edit "+u.name+": [Service] PrivateTmp=no",
			"PrivateTmp= hides %s: CSI cameras give no image", argusSocket)}
	}
	return []Check{ok("nvargus-daemon", "%s can be reached", argusSocket)}
}

// trial makes the checks of Run in a process with the rights of the service.
func (d *Doctor) trial(ctx context.Context, u *unit) []Check {
	const name = "trial"
	if err := trialUnavailable(d.Root); err != nil {
		return []Check{warn(name, "sudo edge-infer doctor --unit="+strings.TrimSuffix(u.name, ".service")+" on the machine itself",
			"%v: the rules were read but not tested", err)}
	}
	program := u.arguments()
	if len(program) == 0 {
		return []Check{fail(name, "reinstall the package", "%s has no ExecStart=", u.name)}
	}
	arguments := slices.DeleteFunc(program[1:], func(a string) bool { return a == "run" })
	ctx, cancel := context.WithTimeout(ctx, 10*d.Timeout)
	defer cancel()
	output, err := u.trial(ctx, slices.Concat(program[:1], []string{"doctor", "--json"}, arguments)...).Output()
	var answer struct{ Checks []Check }
	if json.Unmarshal(output, &answer) == nil && len(answer.Checks) > 0 {
		return append([]Check{ok(name, "the checks below ran as the service's user, under its rules")}, answer.Checks...)
	}
	reason := "no answer"
	if err != nil {
		reason = err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		reason = strings.TrimSpace(string(exit.Stderr))
	}
	return []Check{
		fail(name, "see journalctl -e, and systemctl status "+u.name, "the service's program does not start under its rules: %s", reason),
	}
}
