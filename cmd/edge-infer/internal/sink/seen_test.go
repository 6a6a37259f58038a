package sink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A class that is counted for a moment, however often, has no entities; one that is counted in three minutes has, also if it never left.
func TestSeenLabelsNeedEvidence(t *testing.T) {
	var s SeenLabels
	labels := []string{"person", "car", "surfboard", "dog"}
	frame := func(at time.Duration, counts ...int) { s.Frame("gate", int64(at), counts, labels) }
	for at := time.Duration(0); at < 5*time.Minute; at += time.Second {
		visitor, mistake := 0, 0
		if at%(90*time.Second) < 10*time.Second { // somebody comes every 90 s
			visitor = 1
		}
		if at > 100*time.Second && at < 130*time.Second {
			mistake = 2
		}
		frame(at, visitor, 1, mistake, 0) // a car is parked all the time
		if at < 2*time.Minute {
			require.Empty(t, s.Of("gate"), at)
		}
	}
	require.Equal(t, []string{"car", "person"}, s.Of("gate"))
	frame(6*time.Minute, 1, 1, 1, 0)
	require.Equal(t, []string{"car", "person", "surfboard"}, s.Of("gate"), "seen in a third minute")
	require.Empty(t, s.Of("yard"))
	require.Zero(t, testing.AllocsPerRun(100, func() { frame(7*time.Minute, 1, 1, 1, 0) }))
}
