package systemd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bootScript starts systemd as process 1 of namespaces of its own. SYSTEMD_UNIT_PATH leaves it no units but those of the test, and what it
// writes to /etc and /run is gone with the namespaces.
const bootScript = `set -e
mount --make-rprivate /
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /etc/systemd
mkdir -p /run/changed /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/changed,workdir=/run/work /etc
mkdir -p /etc/edge-infer /etc/credstore /etc/credstore.encrypted
umask 077
echo from the file >/etc/edge-infer/mqtt-password
echo from the store >/etc/credstore/mqtt-password
echo encrypted >/etc/credstore.encrypted/mqtt-password
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
exec /usr/lib/systemd/systemd --system --unit=all.target --log-target=null
`

// TestThePasswordUnderABootedSystemd: the packaged units hand over the file that they name, whatever the credential stores hold.
func TestThePasswordUnderABootedSystemd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start systemd in namespaces")
	}
	if _, err := os.Stat("/usr/lib/systemd/systemd"); err != nil {
		t.Skip("systemd is not installed")
	}
	for _, name := range []string{"edge-infer.service", "edge-infer@.service"} {
		t.Run(name, func(t *testing.T) {
			unit, err := os.ReadFile(name)
			require.NoError(t, err)
			credential := regexp.MustCompile(`(?m)^LoadCredential=.*$`).FindString(string(unit))
			require.NotEmpty(t, credential)
			units := t.TempDir()
			write := func(name, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(units, name), []byte("[Unit]\nDefaultDependencies=no\n"+text), 0o600))
			}
			seen, up := filepath.Join(units, "seen"), filepath.Join(units, "up")
			write("all.target", "Wants=up.service try.service\n")
			write("up.service", "[Service]\nType=oneshot\nExecStart=/bin/touch "+up+"\n")
			write("try.service", "[Service]\nType=oneshot\n"+credential+
				"\nExecStart=/bin/sh -c 'cat $CREDENTIALS_DIRECTORY/mqtt-password >"+seen+".part && mv "+seen+".part "+seen+"'\n")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			machine := exec.CommandContext(ctx, "unshare", "--fork", "--pid", "--kill-child", "--mount", "--uts", "--ipc", "--cgroup",
				"--mount-proc", "sh", "-c", bootScript)
			machine.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+units, "container=other")
			var said strings.Builder
			machine.Stdout, machine.Stderr = &said, &said
			require.NoError(t, machine.Start())
			ended := make(chan error, 1)
			go func() { ended <- machine.Wait() }()
			for {
				if text, err := os.ReadFile(seen); err == nil {
					require.Equal(t, "from the file\n", string(text))
					break
				}
				select {
				case <-ended:
					require.NoFileExists(t, up, "systemd runs, and the password does not come")
					t.Skipf("systemd does not start in namespaces here: %s", said.String())
				case <-time.After(20 * time.Millisecond):
				}
			}
			cancel()
			<-ended
		})
	}
}
