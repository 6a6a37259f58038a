package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/doctor/unit"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Service checks what a systemd unit keeps its service from, by reading it beside this machine's device nodes and accounts, and then by
// making every check of Run as its user and under its rules, where that is possible. It hands on findings as Run does.
func (d *Doctor) Service(ctx context.Context, name string, each func(Finding)) Findings {
	var all Findings
	add := func(found ...Finding) {
		for _, f := range found {
			all = append(all, f)
			each(f)
		}
	}
	u, err := unit.Load(d.Root, name)
	if err != nil {
		add(fail("unit", "install the package, or name the unit: --unit=NAME", "%v", err))
		return all
	}
	add(ok("unit", "%s", strings.Join(u.Files, ", ")))
	machine, err := unit.Survey(d.Root)
	if err != nil {
		add(fail("devices", "mount /proc", "%v", err))
		return all
	}
	add(d.nodes(u, machine)...)
	add(d.argus(u)...)
	add(d.trial(ctx, u)...)
	return all
}

// nodes tells what the unit's rules and the nodes' modes deny.
func (d *Doctor) nodes(u *unit.Unit, machine *unit.Machine) []Finding {
	const check = "devices"
	var found []Finding
	for _, denied := range u.Denied(machine) {
		found = append(found, worse(denied.Core, warn(check, denied.Fix, "%s: %s", denied.Subject, denied.Why)))
	}
	var paths []string
	for _, node := range machine.Nodes {
		paths = append(paths, node.Path)
	}
	switch {
	case len(found) > 0:
	case len(paths) == 0:
		found = append(found, ok(check, "no camera and no GPU has a node here, so no rule was tried"))
	default:
		found = append(found, ok(check, "the service may open all %d: %s", len(paths), strings.Join(paths, " ")))
	}
	if (cuda.Prober{Root: d.Root}).Jetson() == nil {
		found = append(found, ok("Jetson", "this is none, so the rules for its nodes were not tried"))
	}
	return found
}

// argusSocket is where nvargus-daemon listens, which reads CSI cameras.
const argusSocket = "/tmp/argus_socket"

func (d *Doctor) argus(u *unit.Unit) []Finding {
	if _, err := os.Stat(d.path(argusSocket)); err != nil {
		return nil
	}
	bound := slices.ContainsFunc(append(u.All("BindPaths"), u.All("BindReadOnlyPaths")...), func(paths string) bool {
		return strings.Contains(paths, argusSocket)
	})
	if u.True("PrivateTmp") && !bound {
		return []Finding{fail("nvargus-daemon", "systemctl edit "+u.Name+": [Service] PrivateTmp=no",
			"PrivateTmp= hides %s: CSI cameras give no image", argusSocket)}
	}
	return []Finding{ok("nvargus-daemon", "%s can be reached", argusSocket)}
}

// trial makes the checks of Run in a process that has what the service would have.
func (d *Doctor) trial(ctx context.Context, u *unit.Unit) []Finding {
	const check = "trial"
	if err := unit.Untried(d.Root); err != nil {
		return []Finding{warn(check, "sudo edge-infer doctor --unit="+strings.TrimSuffix(u.Name, ".service")+" on the machine itself",
			"%v: the rules were read, not tried", err)}
	}
	program := u.Arguments()
	if len(program) == 0 {
		return []Finding{fail(check, "install the package again", "%s has no ExecStart=", u.Name)}
	}
	arguments := slices.DeleteFunc(program[1:], func(a string) bool { return a == "run" })
	ctx, cancel := context.WithTimeout(ctx, 10*d.Timeout)
	defer cancel()
	output, err := u.Trial(ctx, slices.Concat(program[:1], []string{"doctor", "--json"}, arguments)...).Output()
	var answer struct{ Checks []Finding }
	if json.Unmarshal(output, &answer) == nil && len(answer.Checks) > 0 {
		return append([]Finding{ok(check, "what follows was tried as the service's user and under its rules")}, answer.Checks...)
	}
	reason := "no answer"
	if err != nil {
		reason = err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		reason = strings.TrimSpace(string(exit.Stderr))
	}
	return []Finding{
		fail(check, "see journalctl -e, and systemctl status "+u.Name, "the service's program does not start under its rules: %s", reason),
	}
}
