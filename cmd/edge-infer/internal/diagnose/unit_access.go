package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// denial is a device node, user or group that the unit denies its service.
type denial struct {
	subject string // node, user or group
	reason  string
	remedy  string // a line for a drop-in, or a command
	core    bool   // required for any GPU, camera or start
}

// denied lists the device nodes and accounts that are not available to the service. As in systemd, DeviceAllow rules match the names in
// /proc/devices, and the modes of the nodes apply too.
func (u *unit) denied(h *host) []denial {
	var denied []denial
	account, missing := u.account(h)
	denied = append(denied, missing...)
	for i := range h.nodes {
		node := &h.nodes[i]
		if !u.allows(h, node) {
			denied = append(denied, denial{
				subject: node.path, reason: fmt.Sprintf("DevicePolicy=%s, and no DeviceAllow= matches %s", u.policy(), h.describe(node)),
				remedy: "systemctl edit " + u.name + ": [Service] DeviceAllow=" + h.rule(node) + " rw", core: node.core,
			})
			continue
		}
		if !account.may(node) {
			denied = append(denied, denial{
				subject: node.path, reason: fmt.Sprintf("mode %04o of %s:%s denies access to %s", node.mode.Perm(), h.userName(node.uid),
					h.groupName(node.gid), account.name),
				remedy: account.remedy(h, node, u.name), core: node.core,
			})
		}
	}
	return denied
}

func (u *unit) policy() string {
	if policy := u.last("DevicePolicy"); policy != "" {
		return policy
	}
	return "auto"
}

// pseudo lists the nodes that DevicePolicy=closed allows: null, zero, full, random, urandom, by major and minor number.
var pseudo = [][2]uint32{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}}

func (u *unit) allows(h *host, node *deviceNode) bool {
	rules := u.all("DeviceAllow")
	policy := u.policy()
	if policy == "auto" && len(rules) == 0 {
		return true
	}
	if policy != "strict" && slices.Contains(pseudo, [2]uint32{node.major, node.minor}) {
		return true
	}
	return slices.ContainsFunc(rules, func(rule string) bool {
		specifier, access, _ := strings.Cut(rule, " ")
		if access = strings.TrimSpace(access); access != "" && !strings.Contains(access, "r") {
			return false
		}
		if pattern, group := strings.CutPrefix(specifier, "char-"); group {
			return slices.ContainsFunc(h.names[node.major], func(name string) bool { return match(pattern, name) })
		}
		return specifier == node.path
	})
}

// match is fnmatch without flags: * also matches slashes.
func match(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	matched, err := path.Match(flat.Replace(pattern), flat.Replace(name))
	return matched && err == nil
}

// account is the user of the service with its groups.
type account struct {
	name   string
	uid    uint32
	groups []uint32
}

// account returns the account of the service and the missing user and groups, without which the service does not start.
func (u *unit) account(h *host) (a account, missing []denial) {
	a.name = u.last("User")
	if a.name == "" {
		return account{name: "root"}, nil
	}
	uid, gid, known := h.lookUser(a.name)
	if !known {
		missing = append(missing, denial{
			subject: "user " + a.name, reason: "does not exist, so the service does not start",
			remedy: "install the package, or: useradd --system " + a.name, core: true,
		})
	}
	a.uid, a.groups = uid, append(h.groupsOf(a.name), gid)
	for _, name := range append(strings.Fields(strings.Join(u.all("SupplementaryGroups"), " ")), u.last("Group")) {
		if name == "" {
			continue
		}
		gid, known := h.lookGroup(name)
		if !known {
			missing = append(missing, denial{
				subject: "group " + name, reason: "does not exist, so the service does not start", remedy: "groupadd --system " + name, core: true,
			})
			continue
		}
		a.groups = append(a.groups, gid)
	}
	return a, missing
}

// may reports whether the node's mode allows the account to read; nodes that also need write access grant their group both.
func (a *account) may(node *deviceNode) bool {
	mode := node.mode.Perm()
	switch {
	case a.uid == 0 && a.name == "root":
		return true
	case a.uid == node.uid && node.uid != 0:
		return mode&0o400 != 0
	case slices.Contains(a.groups, node.gid):
		return mode&0o040 != 0
	}
	return mode&0o004 != 0
}

func (a *account) remedy(h *host, node *deviceNode, unit string) string {
	if node.gid != 0 && node.mode.Perm()&0o040 != 0 {
		return "systemctl edit " + unit + ": [Service] SupplementaryGroups=" + h.groupName(node.gid)
	}
	return "add a udev rule that gives it to the group video: KERNEL==\"" + path.Base(node.path) + "\", GROUP=\"video\", MODE=\"0660\""
}
