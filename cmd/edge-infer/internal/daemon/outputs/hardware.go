package outputs

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// hardware returns manufacturer and model of this machine from its firmware; root is the directory of /proc and /sys, / when empty.
func hardware(root string) (manufacturer, model string) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join("/", root, path))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(strings.Trim(string(text), "\x00\n"))
	}
	if model = read("proc/device-tree/model"); model != "" {
		manufacturer, _, _ = strings.Cut(model, " ")
		return manufacturer, model
	}
	return read("sys/class/dmi/id/sys_vendor"), read("sys/class/dmi/id/product_name")
}

// reachable puts this machine's name in an address of every interface, which no browser can open.
func reachable(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsUnspecified() {
		return page
	}
	name, err := os.Hostname()
	if err != nil {
		return page
	}
	u.Host = net.JoinHostPort(name, u.Port())
	return u.String()
}
