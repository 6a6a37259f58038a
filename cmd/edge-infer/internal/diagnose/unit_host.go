package diagnose

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

// deviceNode is a character device of cameras, GPUs or their shared memory.
type deviceNode struct {
	path         string
	major, minor uint32
	mode         fs.FileMode
	uid, gid     uint32
	core         bool // required for all devices of its kind
}

// host holds the device nodes and accounts of this machine.
type host struct {
	nodes  []deviceNode
	names  map[uint32][]string  // names of the drivers of character devices by major number, from /proc/devices
	users  map[string][2]uint32 // user and group id by name
	groups map[string]group
}

type group struct {
	id      uint32
	members []string
}

// nodePatterns returns the nodes that edge-infer's libraries open, and whether they are required; see docs/service.md.
func nodePatterns() map[string]bool {
	return map[string]bool{
		"/dev/video*": true, "/dev/media*": false, "/dev/dri/renderD*": true,
		"/dev/nvidia[0-9]*": true, "/dev/nvidiactl": true, "/dev/nvidia-uvm": true,
		"/dev/nvmap": true, "/dev/nvsciipc": false, "/dev/host1x-fence": true,
		"/dev/nvgpu/*/power": true, "/dev/nvgpu/*/ctrl": true, "/dev/nvgpu/*/as": true, "/dev/nvgpu/*/channel": true, "/dev/nvgpu/*/tsg": true,
		"/dev/nvhost-ctrl": true, "/dev/nvhost-ctrl-gpu": true, "/dev/nvhost-gpu": true, "/dev/nvhost-as-gpu": true, "/dev/nvhost-tsg-gpu": false,
		"/dev/nvhost-vic": false, "/dev/nvhost-nvdec": false, "/dev/nvhost-nvjpg": false, "/dev/nvhost-nvdla*": false, "/dev/v4l2-nv*": false,
	}
}

// readHost reads the device nodes and accounts below root.
func readHost(root string) (*host, error) {
	h := &host{}
	devices, err := os.ReadFile(filepath.Join(root, "/proc/devices"))
	if err != nil {
		return nil, err
	}
	h.readNames(string(devices))
	if err := h.readAccounts(root); err != nil {
		return nil, err
	}
	for pattern, core := range nodePatterns() {
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
			h.nodes = append(h.nodes, deviceNode{
				path: "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/"), major: unix.Major(stat.Rdev), minor: unix.Minor(stat.Rdev),
				mode: info.Mode(), uid: stat.Uid, gid: stat.Gid, core: core,
			})
		}
	}
	slices.SortFunc(h.nodes, func(a, b deviceNode) int { return cmp.Compare(a.path, b.path) })
	return h, nil
}

func (h *host) readNames(text string) {
	h.names = map[uint32][]string{}
	for line := range strings.Lines(text) {
		number, name, found := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "Block") {
			return
		}
		if major, err := strconv.ParseUint(number, 10, 32); found && err == nil {
			h.names[uint32(major)] = append(h.names[uint32(major)], name)
		}
	}
}

func (h *host) readAccounts(root string) error {
	h.users, h.groups = map[string][2]uint32{}, map[string]group{}
	err := eachLine(filepath.Join(root, "/etc/passwd"), func(fields []string) {
		if len(fields) > 3 {
			h.users[fields[0]] = [2]uint32{parseID(fields[2]), parseID(fields[3])}
		}
	})
	if err != nil {
		return err
	}
	return eachLine(filepath.Join(root, "/etc/group"), func(fields []string) {
		if len(fields) > 3 {
			h.groups[fields[0]] = group{parseID(fields[2]), strings.Split(fields[3], ",")}
		}
	})
}

func parseID(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return ^uint32(0) // no valid id
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

func (h *host) lookUser(name string) (uid, gid uint32, known bool) {
	numbers, known := h.users[name]
	return numbers[0], numbers[1], known
}

func (h *host) lookGroup(name string) (gid uint32, known bool) {
	g, known := h.groups[name]
	return g.id, known
}

func (h *host) groupsOf(user string) []uint32 {
	var numbers []uint32
	for _, g := range h.groups {
		if slices.Contains(g.members, user) {
			numbers = append(numbers, g.id)
		}
	}
	return numbers
}

func (h *host) userName(uid uint32) string {
	for name, numbers := range h.users {
		if numbers[0] == uid {
			return name
		}
	}
	return fmt.Sprint(uid)
}

func (h *host) groupName(gid uint32) string {
	for name, g := range h.groups {
		if g.id == gid {
			return name
		}
	}
	return fmt.Sprint(gid)
}

// misc is the driver name shared by unrelated devices.
const misc = "misc"

// rule returns the DeviceAllow= specifier of a node.
func (h *host) rule(node *deviceNode) string {
	for _, name := range h.names[node.major] {
		if name != misc {
			return "char-" + name
		}
	}
	return node.path
}

func (h *host) describe(node *deviceNode) string {
	if names := h.names[node.major]; len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("number %d:%d", node.major, node.minor)
}
