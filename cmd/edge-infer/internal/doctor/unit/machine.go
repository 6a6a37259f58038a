package unit

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Node is a character device that cameras, GPUs or the memory between them use.
type Node struct {
	Path         string
	Major, Minor uint32
	Mode         fs.FileMode
	UID, GID     uint32
	Core         bool // nothing of its kind works without it
}

// Machine is what there is to be allowed.
type Machine struct {
	Nodes []Node
	// Names are those that drivers have registered for character devices, by major number: /proc/devices.
	Names map[uint32][]string

	users  map[string][2]uint32 // user and group numbers
	groups map[string]group
}

type group struct {
	number  uint32
	members []string
}

// wanted are the nodes that edge-infer's libraries open, as patterns; docs/service.md says where each is seen.
func wanted() map[string]bool {
	return map[string]bool{
		"/dev/video*": true, "/dev/media*": false, "/dev/dri/renderD*": true,
		"/dev/nvidia[0-9]*": true, "/dev/nvidiactl": true, "/dev/nvidia-uvm": true,
		"/dev/nvmap": true, "/dev/nvsciipc": false, "/dev/host1x-fence": true,
		"/dev/nvgpu/*/power": true, "/dev/nvgpu/*/ctrl": true, "/dev/nvgpu/*/as": true, "/dev/nvgpu/*/channel": true, "/dev/nvgpu/*/tsg": true,
		"/dev/nvhost-ctrl": true, "/dev/nvhost-ctrl-gpu": true, "/dev/nvhost-gpu": true, "/dev/nvhost-as-gpu": true, "/dev/nvhost-tsg-gpu": false,
		"/dev/nvhost-vic": false, "/dev/nvhost-nvdec": false, "/dev/nvhost-nvjpg": false, "/dev/nvhost-nvdla*": false, "/dev/v4l2-nv*": false,
	}
}

// Survey looks at this machine; root is put before every path.
func Survey(root string) (*Machine, error) {
	m := &Machine{}
	devices, err := os.ReadFile(filepath.Join(root, "/proc/devices"))
	if err != nil {
		return nil, err
	}
	m.readNames(string(devices))
	if err := m.readAccounts(root); err != nil {
		return nil, err
	}
	for pattern, core := range wanted() {
		paths, _ := filepath.Glob(filepath.Join(root, pattern)) // the only error is a malformed pattern
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
				continue
			}
			stat, known := info.Sys().(*syscall.Stat_t)
			if !known {
				continue
			}
			m.Nodes = append(m.Nodes, Node{
				Path: "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/"), Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev),
				Mode: info.Mode(), UID: stat.Uid, GID: stat.Gid, Core: core,
			})
		}
	}
	slices.SortFunc(m.Nodes, func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
	return m, nil
}

func (m *Machine) readNames(text string) {
	m.Names = map[uint32][]string{}
	for line := range strings.Lines(text) {
		number, name, found := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "Block") {
			return
		}
		if major, err := strconv.ParseUint(number, 10, 32); found && err == nil {
			m.Names[uint32(major)] = append(m.Names[uint32(major)], name)
		}
	}
}

func (m *Machine) readAccounts(root string) error {
	m.users, m.groups = map[string][2]uint32{}, map[string]group{}
	err := eachLine(filepath.Join(root, "/etc/passwd"), func(fields []string) {
		if len(fields) > 3 {
			m.users[fields[0]] = [2]uint32{number(fields[2]), number(fields[3])}
		}
	})
	if err != nil {
		return err
	}
	return eachLine(filepath.Join(root, "/etc/group"), func(fields []string) {
		if len(fields) > 3 {
			m.groups[fields[0]] = group{number(fields[2]), strings.Split(fields[3], ",")}
		}
	})
}

func number(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return ^uint32(0) // nobody's
	}
	return uint32(n)
}

func eachLine(path string, each func(fields []string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		each(strings.Split(lines.Text(), ":"))
	}
	return lines.Err()
}

func (m *Machine) lookUser(name string) (uid, gid uint32, known bool) {
	numbers, known := m.users[name]
	return numbers[0], numbers[1], known
}

func (m *Machine) lookGroup(name string) (gid uint32, known bool) {
	g, known := m.groups[name]
	return g.number, known
}

func (m *Machine) groupsOf(user string) []uint32 {
	var numbers []uint32
	for _, g := range m.groups {
		if slices.Contains(g.members, user) {
			numbers = append(numbers, g.number)
		}
	}
	return numbers
}

func (m *Machine) user(uid uint32) string {
	for name, numbers := range m.users {
		if numbers[0] == uid {
			return name
		}
	}
	return fmt.Sprint(uid)
}

func (m *Machine) group(gid uint32) string {
	for name, g := range m.groups {
		if g.number == gid {
			return name
		}
	}
	return fmt.Sprint(gid)
}

// misc is the name that devices of many kinds share, which says nothing.
const misc = "misc"

// rule is what a DeviceAllow= for the node names.
func (m *Machine) rule(node *Node) string {
	for _, name := range m.Names[node.Major] {
		if name != misc {
			return "char-" + name
		}
	}
	return node.Path
}

func (m *Machine) describe(node *Node) string {
	if names := m.Names[node.Major]; len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("number %d:%d", node.Major, node.Minor)
}
