package diagnose

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write writes a file below a root.
func write(t *testing.T, root, path, text string) {
	t.Helper()
	file := filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// packaged puts this project's units where the package does.
func packaged(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"edge-infer.service", "edge-infer@.service"} {
		text, err := os.ReadFile(filepath.Join("../../../../systemd", name))
		require.NoError(t, err)
		write(t, root, "/usr/lib/systemd/system/"+name, string(text))
	}
}

func TestDropInsChangeAUnit(t *testing.T) {
	root := t.TempDir()
	packaged(t, root)
	write(t, root, "/usr/lib/systemd/system/edge-infer@.service.d/10-all.conf", "[Service]\nDeviceAllow=\nDeviceAllow=char-x rw\n")
	write(t, root, "/etc/systemd/system/edge-infer@gate.service.d/20-gate.conf", "[Unit]\nUser=other\n[Service]\n# User=none\nUser=\\\ngate\n")
	write(t, root, "/run/systemd/system/edge-infer@gate.service.d/20-gate.conf", "[Service]\nUser=hidden\n")
	u, err := loadUnit(root, "edge-infer@gate")
	require.NoError(t, err)
	require.Equal(t, []string{
		root + "/usr/lib/systemd/system/edge-infer@.service", root + "/usr/lib/systemd/system/edge-infer@.service.d/10-all.conf",
		root + "/etc/systemd/system/edge-infer@gate.service.d/20-gate.conf",
	}, u.files)
	require.Equal(t, []string{"char-x rw"}, u.all("DeviceAllow"))
	require.Equal(t, "gate", u.last("User"))
	require.Equal(t, "edge-infer/gate", u.last("StateDirectory"))
	require.Equal(t, []string{"/usr/bin/edge-infer", "run", "--config", "/etc/edge-infer/gate.yaml"}, u.arguments())
	require.Contains(t, u.properties(), "Environment=TMPDIR=/var/cache/edge-infer")
	require.Contains(t, u.properties(), "ProtectSystem=strict")
	for _, p := range u.properties() {
		require.NotRegexp(t, `^(Exec|Type|Watchdog|Restart|Timeout)`, p)
	}
	for _, name := range []string{"none", "", "../x", "a b"} {
		_, err = loadUnit(root, name)
		require.Error(t, err)
	}
}

// board is what the nodes of a machine look like, by their names in /proc/devices.
func board(names map[uint32][]string, nodes ...deviceNode) *host {
	return &host{
		nodes: nodes, names: names,
		users:  map[string][2]uint32{"root": {0, 0}, "edge-infer": {990, 990}},
		groups: map[string]group{"root": {0, nil}, "video": {44, nil}, "render": {104, nil}, "edge-infer": {990, nil}, "debug": {999, nil}},
	}
}

func node(path string, major, minor uint32, mode fs.FileMode, gid uint32) deviceNode {
	return deviceNode{path: path, major: major, minor: minor, mode: mode, gid: gid, core: true}
}

// TestPackagedUnitAllowsEveryBoardsNodes, as their drivers' sources and their users' reports have them; docs/service.md says where. No
// board was at hand.
func TestPackagedUnitAllowsEveryBoardsNodes(t *testing.T) {
	root := t.TempDir()
	packaged(t, root)
	common := []deviceNode{
		node("/dev/nvmap", 10, 60, 0o440, 44), node("/dev/video0", 81, 0, 0o660, 44), node("/dev/nvhost-ctrl", 507, 0, 0o660, 44),
		node("/dev/nvhost-vic", 506, 0, 0o660, 44),
	}
	for name, m := range map[string]*host{
		"Nano": board(map[uint32][]string{10: {"misc"}, 81: {"video4linux"}, 506: {"nvhost"}, 507: {"nvhost"}, 505: {"57000000.gpu"}},
			append(common, node("/dev/nvhost-gpu", 505, 0, 0o660, 44), node("/dev/nvhost-ctrl-gpu", 505, 2, 0o660, 44))...),
		"TX2": board(map[uint32][]string{10: {"misc"}, 81: {"video4linux"}, 506: {"nvhost"}, 507: {"nvhost"}, 505: {"17000000.gp10b"}},
			append(common, node("/dev/nvhost-as-gpu", 505, 1, 0o660, 44))...),
		"Xavier": board(map[uint32][]string{
			10: {"misc"}, 81: {"video4linux"}, 506: {"nvhost"}, 507: {"nvhost"}, 505: {"17000000.gv11b"}, 226: {"drm"},
		},
			append(common, node("/dev/nvhost-as-gpu", 505, 1, 0o660, 44), node("/dev/dri/renderD128", 226, 128, 0o660, 104))...),
		"Orin": board(map[uint32][]string{
			10: {"misc"}, 81: {"video4linux"}, 195: {"nvidia", "nvidia-modeset", "nvidiactl"}, 226: {"drm"}, 498: {"17000000.ga10b"},
			497: {"17000000.ga10b"},
			506: {"nvhost"}, 507: {"nvhost"}, 496: {"host1x-fence"}, 495: {"nvsciipc"}, 1: {"mem"},
		}, append(common, node("/dev/nvgpu/igpu0/power", 498, 1, 0o660, 44), node("/dev/nvgpu/igpu0/ctrl", 497, 12, 0o660, 44),
			node("/dev/nvgpu/igpu0/channel", 497, 11, 0o660, 44), node("/dev/host1x-fence", 496, 0, 0o666, 44),
			node("/dev/nvsciipc", 495, 0, 0o660, 44),
			node("/dev/dri/renderD128", 226, 128, 0o660, 104), node("/dev/nvidia0", 195, 0, 0o666, 0), node("/dev/nvidiactl", 195, 255, 0o666, 0),
			node("/dev/v4l2-nvdec", 1, 3, 0o666, 0))...),
		"discrete": board(map[uint32][]string{195: {"nvidia-frontend"}, 511: {"nvidia-uvm"}, 510: {"nvidia-caps"}},
			node("/dev/nvidia0", 195, 0, 0o666, 0), node("/dev/nvidia-uvm", 511, 0, 0o666, 0)),
	} {
		for _, service := range []string{"edge-infer", "edge-infer@gate"} {
			u, err := loadUnit(root, service)
			require.NoError(t, err)
			require.Empty(t, u.denied(m), "%s on %s", service, name)
		}
	}
}

func TestWhatIsDeniedComesWithItsRemedy(t *testing.T) {
	root := t.TempDir()
	write(t, root, "/etc/systemd/system/x.service",
		"[Service]\nUser=edge-infer\nSupplementaryGroups=video\nDevicePolicy=closed\nDeviceAllow=char-nvhost rw\nDeviceAllow=/dev/odd w\n")
	u, err := loadUnit(root, "x.service")
	require.NoError(t, err)
	names := map[uint32][]string{498: {"17000000.ga10b"}, 506: {"nvhost"}, 226: {"drm"}, 10: {"misc"}}
	require.Equal(t, []denial{
		{
			subject: "/dev/nvgpu/igpu0/ctrl", reason: "DevicePolicy=closed, and no DeviceAllow= matches 17000000.ga10b",
			remedy: "systemctl edit x.service: [Service] DeviceAllow=char-17000000.ga10b rw", core: true,
		},
		{
			subject: "/dev/nvmap", reason: "DevicePolicy=closed, and no DeviceAllow= matches misc",
			remedy: "systemctl edit x.service: [Service] DeviceAllow=/dev/nvmap rw", core: true,
		},
		{
			subject: "/dev/nvhost-gpu", reason: "mode 0660 of root:render denies access to edge-infer",
			remedy: "systemctl edit x.service: [Service] SupplementaryGroups=render", core: true,
		},
		{
			subject: "/dev/nvhost-vic", reason: "mode 0600 of root:root denies access to edge-infer",
			remedy: `add a udev rule that gives it to the group video: KERNEL=="nvhost-vic", GROUP="video", MODE="0660"`, core: true,
		},
		{
			subject: "/dev/odd", reason: "DevicePolicy=closed, and no DeviceAllow= matches misc",
			remedy: "systemctl edit x.service: [Service] DeviceAllow=/dev/odd rw", core: true,
		},
	}, u.denied(board(names, node("/dev/nvgpu/igpu0/ctrl", 498, 1, 0o660, 44), node("/dev/nvmap", 10, 60, 0o660, 44),
		node("/dev/nvhost-gpu", 506, 1, 0o660, 104), node("/dev/nvhost-vic", 506, 2, 0o600, 0), node("/dev/odd", 10, 61, 0o666, 0))))

	write(t, root, "/etc/systemd/system/x.service.d/wide.conf", "[Service]\nDevicePolicy=auto\nDeviceAllow=\nSupplementaryGroups=render\n")
	u, err = loadUnit(root, "x")
	require.NoError(t, err)
	require.Empty(t, u.denied(board(names, node("/dev/nvgpu/igpu0/ctrl", 498, 1, 0o660, 44), node("/dev/nvhost-gpu", 506, 1, 0o660, 104))),
		"as documented")

	write(t, root, "/etc/systemd/system/x.service.d/who.conf", "[Service]\nUser=nobody-here\nGroup=gone\n")
	u, err = loadUnit(root, "x")
	require.NoError(t, err)
	denied := u.denied(board(names))
	require.Len(t, denied, 2)
	require.Equal(t, "user nobody-here", denied[0].subject)
	require.Equal(t, "groupadd --system gone", denied[1].remedy)
}

func TestReadHost(t *testing.T) {
	root := t.TempDir()
	_, err := readHost(root)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, root, "/proc/devices", "Character devices:\n  1 mem\n 10 misc\n498 17000000.ga10b\n498 second name\n\nBlock devices:\n  1 ramdisk\n")
	write(t, root, "/etc/passwd", "root:x:0:0::/root:/bin/sh\nedge-infer:x:990:991::/:/x\nbroken\n")
	write(t, root, "/etc/group", "video:x:44:edge-infer,me\nedge-infer:x:991:\n")
	write(t, root, "/dev/video0", "no device")
	m, err := readHost(root)
	require.NoError(t, err)
	require.Empty(t, m.nodes, "a file is no node")
	require.Equal(t, map[uint32][]string{1: {"mem"}, 10: {"misc"}, 498: {"17000000.ga10b", "second name"}}, m.names)
	require.Equal(t, []uint32{44}, m.groupsOf("edge-infer"))
	require.True(t, match("char/*", "char/a/b"))
	require.False(t, match("[", "["))
}

// FuzzUnit: whatever stands in a unit is read, and says of every node whether it may be opened.
func FuzzUnit(f *testing.F) {
	text, err := os.ReadFile("../../../../systemd/edge-infer@.service")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add("[Service]\nDeviceAllow=char-[ rw\nDevicePolicy=strict\nUser=\\\n=\nExecStart=%\n")
	f.Fuzz(func(t *testing.T, text string) {
		u := &unit{name: "x@y.service"}
		u.read(text)
		m := board(map[uint32][]string{498: {"17000000.ga10b"}}, node("/dev/nvgpu/igpu0/ctrl", 498, 1, 0o660, 44))
		for _, denied := range u.denied(m) {
			require.NotEmpty(t, denied.remedy)
		}
		require.NotNil(t, u.trial(t.Context(), "true"))
	})
}
