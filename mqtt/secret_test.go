package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestSecretsStayInside runs everything that can go wrong with a password in play, and searches all that comes out.
func TestSecretsStayInside(t *testing.T) {
	const secret = "Gehe1mWort"
	authority := mqtttest.NewAuthority(t)
	server := authority.Issue(t, "server", time.Now().Add(time.Hour))
	log := &mqtttest.Journal{}
	broker := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: "another", Logger: log.Logger()}
	require.NoError(t, broker.Open())
	defer broker.Close()
	right := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: secret, Logger: log.Logger()}
	require.NoError(t, right.Open())
	defer right.Close()
	secure := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: secret, TLS: server, Logger: log.Logger()}
	require.NoError(t, secure.Open())
	defer secure.Close()
	inURL := func(url string) string { return strings.Replace(url, "://", "://edge:"+secret+"@", 1) }
	var out []string
	see := func(values ...any) {
		for _, v := range values {
			marshalled, _ := json.Marshal(v)
			out = append(out, fmt.Sprintf("%v %+v %#v", v, v, v), string(marshalled))
		}
	}
	sub := mqtttest.Subscribe(t, "tcp://edge:"+secret+"@"+right.Addr(), "#")
	for _, url := range []string{
		broker.URL(), right.URL(), secure.URL(), "tcp://" + secure.Addr(), "tls://" + right.Addr(), "tcp://" + mqtttest.FreeAddress(t),
		"ws://" + right.Addr(),
		"tcp://broker.invalid", stallingBroker(t, false),
	} {
		for _, c := range []*Client{testClient(inURL(url)), testClient(url)} {
			c.User, c.Password, c.Logger, c.ConnectTimeout = "edge", secret, log.Logger(), 200*time.Millisecond
			stop := start(t, c)
			c.Status(&payload.Status{})
			c.Stats(&payload.Stats{})
			require.Eventually(t, func() bool { s := c.Connection(); return s.Connected || s.Error != "" }, mqtttest.Patience, time.Millisecond)
			see(c.Connection(), c.Accounting(), c.Topics(), c.Password)
			stop()
		}
	}
	for _, text := range []string{
		"http://edge:" + secret + "@host", "tcp://edge:" + secret + "@host:port", "tcp://edge:" + secret + "@", "tcp://edge:" + secret + "%zz@h",
	} {
		err := testClient(text).Open()
		require.Error(t, err)
		see(err, err.Error(), errors.Unwrap(err))
	}
	second := &embedded.Broker{Address: right.Addr(), User: "edge", Password: secret, Logger: log.Logger()}
	see(second.Open())
	for _, m := range sub.All() {
		see(m)
	}
	out = append(out, log.String(), strings.Join(os.Args, " "))
	for _, text := range out {
		require.NotContains(t, text, secret)
	}
	assert.Contains(t, log.String(), "mqtt connected")
	assert.Contains(t, log.String(), "mqtt cannot connect")
}
