// Package crashtest kills processes in tests.
package crashtest

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kill runs a test of this binary as another process, with further environment variables, and kills it at a random moment within a time
// after its first line of the form "word number". It returns the numbers of all these lines.
func Kill(t *testing.T, test, word string, within time.Duration, environment ...string) (numbers []uint64) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	child.Env = append(os.Environ(), environment...)
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	for lines := bufio.NewScanner(output); lines.Scan(); {
		number, found := strings.CutPrefix(lines.Text(), word+" ")
		if !found {
			require.NotContains(t, lines.Text(), "FAIL")
			continue
		}
		n, err := strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		if len(numbers) == 0 {
			time.AfterFunc(rand.N(within), func() { _ = child.Process.Kill() })
		}
		numbers = append(numbers, n)
	}
	require.Error(t, child.Wait())
	require.NotEmpty(t, numbers, "the process did nothing")
	return numbers
}
