package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupLimit returns the memory limit in bytes of this process's control group and those around it: the least of memory.max and
// memory.high in version 2, of memory.limit_in_bytes in version 1; 0 for no limit. memory.high counts because the kernel slows a process
// down above it. root is the parent of /proc and /sys, / if empty.
func cgroupLimit(root string) int64 {
	text, err := os.ReadFile(filepath.Join("/", root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	least := int64(0)
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path, of which the second is empty in version 2
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, found := strings.Cut(rest, ":")
		switch {
		case !found:
		case controllers == "":
			least = lesser(least, smallest(root, "sys/fs/cgroup", path, "memory.max", "memory.high"))
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			least = lesser(least, smallest(root, "sys/fs/cgroup/memory", path, "memory.limit_in_bytes"))
		}
	}
	return least
}

// unlimited is the value of version 1 without a limit; anything near it counts too.
const unlimited = int64(1) << 60

// smallest returns the smallest number in the files from a group up to the mount; 0 for none. In a container the group's path may not exist
// below its mount: then the mount's own files count.
func smallest(root, mount, group string, names ...string) int64 {
	least := int64(0)
	for at := filepath.Clean("/" + group); ; at = filepath.Dir(at) {
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join("/", root, mount, at, name))
			if err != nil {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
			if err == nil && n > 0 && n < unlimited {
				least = lesser(least, n)
			}
		}
		if at == "/" {
			return least
		}
	}
}

// lesser returns the smaller of two limits, where 0 means no limit.
func lesser(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
