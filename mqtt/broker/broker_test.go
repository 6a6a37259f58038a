package broker

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// open opens a broker on a free port.
func open(t testing.TB, b *Broker) *Broker {
	t.Helper()
	if b.Address == "" {
		b.Address = "127.0.0.1:0"
	}
	if b.Logger == nil {
		b.Logger = mqtttest.Discard()
	}
	require.NoError(t, b.Open())
	t.Cleanup(func() { b.Close() })
	return b
}

func TestBrokerPortInUse(t *testing.T) {
	first := open(t, &Broker{})
	second := &Broker{Address: first.Addr(), Logger: mqtttest.Discard()}
	assert.EqualError(t, second.Open(), "open embedded broker: listen tcp "+first.Addr()+": bind: address already in use "+
		"(if that is a broker, publish to it with --mqtt tcp://"+first.Addr()+", or choose another port)")
	assert.NoError(t, second.Close())
}

func TestBrokerCloses(t *testing.T) {
	mqtttest.NoLeaks(t)
	b := &Broker{}
	assert.NoError(t, b.Close(), "never opened")
	b = open(t, &Broker{})
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	b.Address = b.Addr()
	require.NoError(t, b.Open(), "opened again on the same port")
	require.NoError(t, b.Close())
}

// TestBrokerClosesWhileClientsLeave: the library's own way of closing a listener would wait for ever in some of the rounds.
func TestBrokerClosesWhileClientsLeave(t *testing.T) {
	for range 50 {
		b := open(t, &Broker{})
		var connections []net.Conn
		for i := range 32 {
			conn := dial(t, b, login(4, fmt.Sprintf("client-%d", i)))
			_, err := io.ReadFull(conn, make([]byte, 4)) // CONNACK
			require.NoError(t, err)
			connections = append(connections, conn)
		}
		go func() {
			for _, conn := range connections {
				_ = conn.Close()
			}
		}()
		require.NoError(t, b.Close())
	}
}

func TestBrokerPasswordAndTLS(t *testing.T) {
	authority := mqtttest.NewAuthority(t)
	server := authority.Issue(t, "server", time.Now().Add(time.Hour))
	client := authority.Issue(t, "client", time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("geheim\n"), 0o600))
	b := &Broker{Address: "127.0.0.1:0", User: "edge", PasswordFile: file, TLS: server, Logger: mqtttest.Discard()}
	require.NoError(t, b.Open())
	defer b.Close()
	for _, c := range []struct {
		name, user string
		password   string
		files      credentials.TLS
		connects   bool
	}{
		{"all right", "edge", "geheim", client, true},
		{"wrong password", "edge", "geheim2", client, false},
		{"wrong user", "edg", "geheim", client, false},
		{"nobody", "", "", client, false},
		{"no certificate", "edge", "geheim", credentials.TLS{CAFile: client.CAFile}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := c.files.Load()
			require.NoError(t, err)
			options := paho.NewClientOptions().AddBroker(b.URL()).SetClientID("test").SetTLSConfig(config)
			options.SetUsername(c.user).SetPassword(c.password)
			client := paho.NewClient(options.SetConnectTimeout(mqtttest.Patience))
			token := client.Connect()
			require.True(t, token.WaitTimeout(mqtttest.Patience))
			assert.Equal(t, c.connects, token.Error() == nil, "%v", token.Error())
			client.Disconnect(10)
		})
	}
}

func TestBrokerIsQuiet(t *testing.T) {
	log := &mqtttest.Journal{}
	b := &Broker{Address: "127.0.0.1:0", Logger: log.Logger()}
	require.NoError(t, b.Open())
	require.NoError(t, b.Close())
	assert.NotContains(t, log.String(), "level=WARN")
	assert.NotContains(t, log.String(), "level=INFO", "the library's own lines are for debugging")
	assert.Contains(t, log.String(), "level=DEBUG")
}

func TestBrokerRefusesBadFiles(t *testing.T) {
	b := &Broker{Address: "127.0.0.1:0", PasswordFile: "/nowhere/password", Logger: mqtttest.Discard()}
	assert.EqualError(t, b.Open(), "open embedded broker: read password file: open /nowhere/password: no such file or directory")
	b = &Broker{
		Address: "127.0.0.1:0", TLS: credentials.TLS{CertificateFile: "/nowhere/cert", KeyFile: "/nowhere/key"}, Logger: mqtttest.Discard(),
	}
	assert.EqualError(t, b.Open(), "open embedded broker: load certificate /nowhere/cert: open /nowhere/cert: no such file or directory")
}
