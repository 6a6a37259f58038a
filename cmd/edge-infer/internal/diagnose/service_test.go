package diagnose

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// examinedService runs Service on a machine below a root.
func examinedService(t *testing.T, root string) map[string]Check {
	t.Helper()
	found := map[string]Check{}
	all := (&Doctor{Root: root, Timeout: time.Minute}).Service(t.Context(), "edge-infer", func(c Check) { found[c.Name] = c })
	require.Len(t, found, len(all))
	return found
}

func TestService(t *testing.T) {
	d := &Doctor{Root: t.TempDir()}
	found := examinedService(t, d.Root)
	require.Equal(t, Fail, found["unit"].Status)

	program := filepath.Join(d.Root, "program")
	put(t, d, "/proc/devices", "Character devices:\n  1 mem\n")
	put(t, d, "/etc/passwd", "edge-infer:x:990:990::/:/bin/false\n")
	put(t, d, "/etc/group", "edge-infer:x:990:\n")
	put(t, d, "/tmp/argus_socket", "")
	put(t, d, "/etc/systemd/system/edge-infer.service",
		"[Service]\nType=notify\nUser=edge-infer\nSupplementaryGroups=video\nPrivateTmp=yes\nDevicePolicy=closed\n"+
			"ExecStart="+program+" run --config /etc/x.yaml\n")
	found = examinedService(t, d.Root)
	require.Equal(t, Fail, found["devices"].Status)
	require.Equal(t, "group video: does not exist, so the service does not start", found["devices"].Detail)
	require.Equal(t, "groupadd --system video", found["devices"].Remedy)
	require.Equal(t, "PrivateTmp= hides /tmp/argus_socket: CSI cameras give no image", found["nvargus-daemon"].Detail)
	require.Equal(t, Warn, found["trial"].Status)
	require.Equal(t, "systemd is not running: the rules were read but not tested", found["trial"].Detail)
	require.Contains(t, found["Jetson"].Detail, "not checked")

	put(t, d, "/etc/group", "edge-infer:x:990:\nvideo:x:44:\n")
	put(t, d, "/etc/systemd/system/edge-infer.service.d/tmp.conf", "[Service]\nPrivateTmp=no\n")
	if os.Geteuid() != 0 {
		t.Skip("only root starts programs as another user")
	}
	// systemd-run is played by a program that notes what it is given, and starts what comes behind the properties.
	put(t, d, "/run/systemd/system/x", "")
	put(t, d, "/bin/systemd-run", "#!/bin/sh\necho \"$@\" >"+d.Root+"/given\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(d.Root, "bin", "systemd-run"), 0o755))
	put(t, d, "/program", "#!/bin/sh\necho '{\"v\":1,\"checks\":[{\"check\":\"camera\",\"status\":\"OK\",\"detail\":\"'\"$*\"'\"}]}'\n")
	require.NoError(t, os.Chmod(program, 0o755))
	t.Setenv("PATH", filepath.Join(d.Root, "bin")+":"+os.Getenv("PATH"))
	found = examinedService(t, d.Root)
	require.Equal(t, OK, found["nvargus-daemon"].Status)
	require.Equal(t, OK, found["trial"].Status)
	require.Equal(t, "doctor --json --config /etc/x.yaml", found["camera"].Detail)
	given, err := os.ReadFile(filepath.Join(d.Root, "given"))
	require.NoError(t, err)
	require.Equal(t, "--pipe --wait --collect --quiet --property=User=edge-infer --property=SupplementaryGroups=video --property=PrivateTmp=yes "+
		"--property=DevicePolicy=closed --property=PrivateTmp=no -- "+program+" doctor --json --config /etc/x.yaml\n", string(given))

	put(t, d, "/program", "#!/bin/sh\necho 'no such group' >&2\nexit 216\n")
	require.NoError(t, os.Chmod(program, 0o755))
	found = examinedService(t, d.Root)
	require.Equal(t, Fail, found["trial"].Status)
	require.Equal(t, "the service's program does not start under its rules: no such group", found["trial"].Detail)
}

// TestDoctorKnowsThatPlansOfOthersAreNotRun, as the engine does.
func TestDoctorKnowsThatPlansOfOthersAreNotRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CACHE_DIRECTORY", dir)
	d := &Doctor{Dirs: []Dir{{Name: "cache directory", Path: dir}}}
	require.NoError(t, os.Chmod(dir, 0o755))
	require.Empty(t, d.plans())
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Equal(t, []Check{{
		Name: "plan cache", Status: Fail, Detail: dir + " has mode 0777: other users can write code to it, and it would run",
		Remedy: "chmod go-w " + dir + " if you know who wrote to it, else remove it",
	}}, d.plans())
}
