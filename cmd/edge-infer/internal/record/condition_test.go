package record

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADiskThatIsNearlyFull: recording fails every few seconds and works in between. The log says so once, an hour later why it fails then,
// and that it works again when it has done so for a minute.
func TestADiskThatIsNearlyFull(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	var c condition
	set := func(at time.Duration, reason string) {
		c.set(&CameraStatus{Recording: reason == "", Reason: reason}, int64(time.Hour+at), logger, "no clips", "clips again")
		require.Equal(t, reason, c.status.Load().Reason, "the status is of this moment")
	}
	second := 0
	for ; second < 3590; second += 10 {
		set(time.Duration(second)*time.Second, fmt.Sprintf("%d MB are free", second%7))
		set(time.Duration(second+5)*time.Second, "")
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s", &log)
	for ; second < 3620; second += 10 {
		set(time.Duration(second)*time.Second, "the disk is gone")
	}
	require.Equal(t, 2, strings.Count(log.String(), "\n"), "%s", &log)
	require.Contains(t, log.String(), `msg="no clips" error="the disk is gone"`)
	set(3660*time.Second, "")
	require.NotContains(t, log.String(), "again")
	set(3671*time.Second, "")
	set(3672*time.Second, "")
	require.Equal(t, 1, strings.Count(log.String(), "clips again"))
	set(3680*time.Second, "the disk is gone")
	require.Equal(t, 4, strings.Count(log.String(), "\n"), "%s", &log)
}
