package access

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRate(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := RateLimit{PerSecond: 2, Burst: 3}
	for range 3 {
		require.True(t, r.Spend("192.0.2.1", now))
	}
	require.False(t, r.Spend("192.0.2.1", now))
	require.True(t, r.Spend("192.0.2.2", now), "each address on its own")
	require.True(t, r.Left("192.0.2.1", now.Add(time.Second/2)))
	require.True(t, r.Spend("192.0.2.1", now.Add(time.Second/2)))
	require.False(t, r.Spend("192.0.2.1", now.Add(time.Second/2)))
	for i := range 3 {
		require.True(t, r.Spend(fmt.Sprintf("2001:db8::%d", i), now))
	}
	require.False(t, r.Spend("2001:db8::9", now), "one /64 is one subscriber")
	require.False(t, r.Spend("[2001:db8::9]:443", now), "whatever its port")
	require.False(t, r.Spend("192.0.2.1:443", now.Add(time.Second/2)))
	for i := range 2 * maxClients {
		r.Spend(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), now)
	}
	require.LessOrEqual(t, len(r.used), maxClients)
}
