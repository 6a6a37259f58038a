package mqtt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

func TestMarkReplayed(t *testing.T) {
	for in, want := range map[string]string{
		`{"v":1}`: `^\{"v":1,"age_s":0(\.\d+)?,"replayed":true\}$`, `{}`: `^\{\}$`, `[1]`: `^\[1\]$`, ``: `^$`,
	} {
		events := &spool.Spool{Logger: mqtttest.Discard(), Notify: func() {}}
		require.NoError(t, events.Open())
		events.Offer("topic", func(buf []byte, _ uint64) []byte { return append(buf, in...) })
		e, ok := events.Next(0, nil)
		require.True(t, ok)
		r := qos1Sender{session: &session{link: &Link{events: events}}}
		r.markReplayed(&e)
		assert.Regexp(t, want, string(e.Payload))
		require.NoError(t, events.Close())
	}
}
