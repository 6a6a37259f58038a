package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretNeverPrints(t *testing.T) {
	log := &journal{}
	s := Secret("hunter2")
	log.logger().Info("x", "secret", s, "inside", struct{ S Secret }{s}, slog.Any("any", s))
	marshalled, err := json.Marshal(map[string]any{"secret": s, "list": []Secret{s}})
	require.NoError(t, err)
	all := log.String() + string(marshalled) + fmt.Sprintf("%s %v %+v %#v %q %+v %#v", s, s, s, s, s, struct{ S Secret }{s}, struct{ S Secret }{s}) +
		fmt.Errorf("wrapped %v", s).Error()
	assert.NotContains(t, all, "hunter2")
	assert.Contains(t, all, secretMark)
	assert.Empty(t, Secret("").String())
}

func TestReadSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	for content, want := range map[string]string{"a": "a", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", " a ": " a ", "": ""} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		got, err := readSecret("unused", file)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := readSecret("", file+"2")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestSecretsStayInside runs everything that can go wrong with a password in play, and searches all that comes out.
func TestSecretsStayInside(t *testing.T) {
	const secret = "Gehe1mWort"
	authority := newAuthority(t)
	server := authority.issue(t, "server", time.Now().Add(time.Hour))
	log := &journal{}
	broker := &Broker{Address: "127.0.0.1:0", User: "edge", Password: "another", Logger: log.logger()}
	require.NoError(t, broker.Open())
	defer broker.Close()
	right := &Broker{Address: "127.0.0.1:0", User: "edge", Password: secret, Logger: log.logger()}
	require.NoError(t, right.Open())
	defer right.Close()
	secure := &Broker{Address: "127.0.0.1:0", User: "edge", Password: secret, TLS: server, Logger: log.logger()}
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
	sub := subscribe(t, "tcp://edge:"+secret+"@"+right.Addr(), "#")
	for _, url := range []string{
		broker.URL(), right.URL(), secure.URL(), "tcp://" + secure.Addr(), "tls://" + right.Addr(), "tcp://" + freeAddress(t), "ws://" + right.Addr(),
		"tcp://broker.invalid", stallingBroker(t, false),
	} {
		for _, c := range []*Client{testClient(inURL(url)), testClient(url)} {
			c.User, c.Password, c.Logger, c.ConnectTimeout = "edge", secret, log.logger(), 200*time.Millisecond
			stop := start(t, c)
			c.Status(&Status{})
			c.Stats(&Stats{})
			require.Eventually(t, func() bool { s := c.Connection(); return s.Connected || s.Error != "" }, patience, time.Millisecond)
			see(c.Connection(), c.Accounting(), c.Topics(), c.Password)
			stop()
		}
	}
	for _, text := range []string{"http://edge:" + secret + "@host", "tcp://edge:" + secret + "@host:port", "tcp://edge:" + secret + "@", "tcp://edge:" + secret + "%zz@h"} {
		err := testClient(text).Open()
		require.Error(t, err)
		see(err, err.Error(), errors.Unwrap(err))
	}
	second := &Broker{Address: right.Addr(), User: "edge", Password: secret, Logger: log.logger()}
	see(second.Open())
	sub.mu.Lock()
	for _, m := range sub.got {
		see(m)
	}
	sub.mu.Unlock()
	out = append(out, log.String(), strings.Join(os.Args, " "))
	for _, text := range out {
		require.NotContains(t, text, secret)
	}
	assert.Contains(t, log.String(), "mqtt connected")
	assert.Contains(t, log.String(), "mqtt cannot connect")
}
