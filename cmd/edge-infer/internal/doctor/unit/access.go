package unit

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Denial is something that the unit keeps its service from.
type Denial struct {
	Subject string // the node, user or group
	Why     string
	Fix     string // a line for a drop-in, or a command
	// Core says that nothing works without it: no GPU, no camera, no start.
	Core bool
}

// Denied looks at every device node, and at the accounts, and lists what the service would not get. It follows what systemd does: the rules
// of DeviceAllow are matched with the names in /proc/devices at the moment, and the modes of the nodes count besides.
func (u *Unit) Denied(m *Machine) []Denial {
	var denied []Denial
	account, missing := u.account(m)
	denied = append(denied, missing...)
	for i := range m.Nodes {
		node := &m.Nodes[i]
		if !u.allows(m, node) {
			denied = append(denied, Denial{
				Subject: node.Path, Why: fmt.Sprintf("DevicePolicy=%s, and no DeviceAllow= matches %s", u.policy(), m.describe(node)),
				Fix: "systemctl edit " + u.Name + ": [Service] DeviceAllow=" + m.rule(node) + " rw", Core: node.Core,
			})
			continue
		}
		if !account.may(node) {
			denied = append(denied, Denial{
				Subject: node.Path, Why: fmt.Sprintf("mode %04o of %s:%s does not let %s in", node.Mode.Perm(), m.user(node.UID), m.group(node.GID),
					account.name),
				Fix: account.fix(m, node, u.Name), Core: node.Core,
			})
		}
	}
	return denied
}

func (u *Unit) policy() string {
	if policy := u.Last("DevicePolicy"); policy != "" {
		return policy
	}
	return "auto"
}

// pseudo are the nodes that DevicePolicy=closed gives: null, zero, full, random, urandom, by major and minor.
var pseudo = [][2]uint32{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}}

func (u *Unit) allows(m *Machine, node *Node) bool {
	rules := u.All("DeviceAllow")
	policy := u.policy()
	if policy == "auto" && len(rules) == 0 {
		return true
	}
	if policy != "strict" && slices.Contains(pseudo, [2]uint32{node.Major, node.Minor}) {
		return true
	}
	return slices.ContainsFunc(rules, func(rule string) bool {
		specifier, access, _ := strings.Cut(rule, " ")
		if access = strings.TrimSpace(access); access != "" && !strings.Contains(access, "r") {
			return false
		}
		if pattern, group := strings.CutPrefix(specifier, "char-"); group {
			return slices.ContainsFunc(m.Names[node.Major], func(name string) bool { return match(pattern, name) })
		}
		return specifier == node.Path
	})
}

// match is fnmatch without flags: * passes over slashes.
func match(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	matched, err := path.Match(flat.Replace(pattern), flat.Replace(name))
	return matched && err == nil
}

// account is whom the service runs as.
type account struct {
	name   string
	uid    uint32
	groups []uint32
}

// account finds the user and the groups; those that are missing keep the service from starting.
func (u *Unit) account(m *Machine) (a account, missing []Denial) {
	a.name = u.Last("User")
	if a.name == "" {
		return account{name: "root"}, nil
	}
	uid, gid, known := m.lookUser(a.name)
	if !known {
		missing = append(missing, Denial{
			Subject: "user " + a.name, Why: "there is none, the service does not start", Fix: "install the package, or: useradd --system " + a.name,
			Core: true,
		})
	}
	a.uid, a.groups = uid, append(m.groupsOf(a.name), gid)
	for _, name := range append(strings.Fields(strings.Join(u.All("SupplementaryGroups"), " ")), u.Last("Group")) {
		if name == "" {
			continue
		}
		gid, known := m.lookGroup(name)
		if !known {
			missing = append(missing, Denial{
				Subject: "group " + name, Why: "there is none, the service does not start", Fix: "groupadd --system " + name, Core: true,
			})
			continue
		}
		a.groups = append(a.groups, gid)
	}
	return a, missing
}

// may reports whether the node's mode lets the account read; what needs more, like a camera, gives its group both.
func (a *account) may(node *Node) bool {
	mode := node.Mode.Perm()
	switch {
	case a.uid == 0 && a.name == "root":
		return true
	case a.uid == node.UID && node.UID != 0:
		return mode&0o400 != 0
	case slices.Contains(a.groups, node.GID):
		return mode&0o040 != 0
	}
	return mode&0o004 != 0
}

func (a *account) fix(m *Machine, node *Node, unit string) string {
	if node.GID != 0 && node.Mode.Perm()&0o040 != 0 {
		return "systemctl edit " + unit + ": [Service] SupplementaryGroups=" + m.group(node.GID)
	}
	return "a udev rule that gives it to the group video: KERNEL==\"" + path.Base(node.Path) + "\", GROUP=\"video\", MODE=\"0660\""
}
